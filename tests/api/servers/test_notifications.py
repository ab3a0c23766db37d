"""What other services are told about servers, in the names and objects of Nova 34."""

import json
from pathlib import Path

import pytest

from computeapi.compute.notifications.catalogue import NOTICES
from tests.api.servers.conftest import BOB, IMAGE, NETWORK
from tests.interruptible import Interruptible, is_done_when_killed
from tests.notified import OBJECTS, around, data, names, objects, taken

ADMIN = 'admin:admin'
OF_OTHERS = ('AggregatePayload', 'ServerGroupPayload', 'ServiceStatusPayload')
"""The objects that are not about servers."""
MAX_STEPS = 200
BOOT = ['create.start', 'create.end']
END = ['delete.start', 'shutdown.start', 'shutdown.end', 'delete.end']
RESIZE = ('resize', {'flavorRef': '2'})
RESIZED = ['exists', *around('resize_prep', 'resize', 'resize_finish')]


@pytest.fixture
def store(store):
    return Interruptible(store)


@pytest.fixture
def conf(conf, request):
    """Notifications in the format of the parameter."""
    conf.set_override('notification_format', getattr(request, 'param', 'versioned'), 'notifications')
    conf.set_override('bdms_in_notifications', True, 'notifications')
    return conf


@pytest.fixture
def told(store, world):
    """told(): the notifications since the last call."""
    # Those of the hosts.
    taken(store)
    return lambda: taken(store)


@pytest.mark.parametrize(
    ('changes', 'wanted'),
    [
        ([('os-stop',)], around('power_off')),
        ([('os-stop',), ('os-start',)], around('power_on')),
        ([('reboot', {'type': 'HARD'})], around('reboot')),
        ([('pause',)], around('pause')),
        ([('pause',), ('unpause',)], around('unpause')),
        ([('suspend',)], around('suspend')),
        ([('suspend',), ('resume',)], around('resume')),
        ([('rescue', {})], ['exists', *around('rescue')]),
        ([('rescue', {}), ('unrescue',)], around('unrescue')),
        ([('rebuild', {'imageRef': IMAGE})], ['exists', *around('rebuild')]),
        (
            [('os-stop',), ('rebuild', {'imageRef': IMAGE})],
            ['exists', 'rebuild.start', *around('power_off'), 'rebuild.end'],
        ),
        ([('createImage', {'name': 'image'})], around('snapshot')),
        ([('createBackup', {'name': 'b', 'backup_type': 'daily', 'rotation': 1})], around('snapshot')),
        ([('shelve',)], ['exists', *around('shelve', 'shelve_offload')]),
        ([('shelve',), ('unshelve',)], around('unshelve')),
        ([RESIZE], RESIZED),
        ([RESIZE, ('confirmResize',)], around('resize_confirm')),
        ([RESIZE, ('revertResize',)], ['exists', *around('resize_revert')]),
        ([('migrate',)], RESIZED),
        ([('forceDelete',)], END),
        ([('shelve',), ('forceDelete',)], END),
    ],
)
def test_each_action_is_told(act, server, world, told, changes, wanted):
    world.flavor('2', vcpus=2, memory_mb=128)
    for change in changes:
        told()
        assert act(server, *change, version='2.42', as_=ADMIN).status in (200, 202, 204)
    found = told()
    assert names(found) == wanted
    assert {data(each)['uuid'] for each in found} == {server}


def test_a_boot_is_told_with_the_states_that_clients_see(create, settle, told, world):
    server = create('2.52', tags=['b', 'a']).json['server']['id']
    settle()
    begun, ended = told()
    assert (begun.event_type, ended.event_type) == ('instance.create.start', 'instance.create.end')
    assert (data(begun)['state'], data(begun)['task_state'], data(begun)['power_state']) == (
        'building',
        'networking',
        'pending',
    )
    shown = data(ended)
    assert (shown['state'], shown['task_state'], shown['power_state']) == ('active', None, 'running')
    assert (shown['uuid'], shown['tags'], shown['host']) == (server, ['a', 'b'], 'compute1')
    (address,) = (each['nova_object.data'] for each in shown['ip_addresses'])
    assert (address['address'], address['version'], address['label']) == ('10.0.0.2', 4, 'network')
    assert (ended.publisher_id, ended.priority, ended.format) == ('nova-compute:compute1', 'info', 'versioned')


def test_the_end_of_an_action_shows_its_outcome(act, server, told):
    told()
    act(server, 'rescue', {})
    used, begun, ended = map(data, told())
    assert used['audit_period'] and (begun['state'], begun['task_state']) == ('active', 'rescuing')
    assert (ended['state'], ended['task_state'], ended['rescue_image_ref']) == ('rescued', None, IMAGE)


def test_a_deleted_server_is_told_without_its_addresses(act, server, told):
    told()
    act(server, 'forceDelete', as_=ADMIN)
    *_, ended = map(data, told())
    assert (ended['state'], ended['ip_addresses']) == ('deleted', [])
    assert ended['deleted_at'] and ended['terminated_at']


def test_every_object_has_the_fields_of_its_version(act, api, create, server, settle, told, world):
    world.flavor('2', vcpus=2, memory_mb=128)
    volume, other, share = (
        world.volume(),
        world.volume(),
        world.service.shares.create(world.bob, 1, 'NFS', name='share').id,
    )
    path = f'/servers/{server}'
    api.post('/os-keypairs', {'keypair': {'name': 'key'}}, as_=BOB)
    second = create(key_name='key').json['server']['id']
    settle()
    act(second, *RESIZE)
    for action in (('rebuild', {'imageRef': IMAGE}), ('createImage', {'name': 'image'}), ('rescue', {}), ('unrescue',)):
        act(server, *action)
    api.post(f'{path}/os-volume_attachments', {'volumeAttachment': {'volumeId': volume}}, '2.60', as_=BOB)
    settle()
    world.volumes.reset_status(world.admin, volume, migration_status='migrating')
    swap = {'volumeAttachment': {'volumeId': other}}
    assert api.put(f'{path}/os-volume_attachments/{volume}', swap, '2.60', as_=ADMIN).status == 202
    settle()
    act(server, 'os-stop')
    assert api.post(f'{path}/shares', {'share': {'share_id': share}}, '2.97', as_=BOB).status == 201
    settle()
    world.service.conf.set_override('fail', ['power_on'], 'simulated')
    act(server, 'os-start')
    api.put(f'{path}/tags/new', version='2.26', as_=BOB)
    assert objects(told()) == {name: facts for name, facts in OBJECTS.items() if name not in OF_OTHERS}


def test_volumes_and_shares_are_named(api, act, server, settle, told, world):
    volume = world.volume()
    api.post(f'/servers/{server}/os-volume_attachments', {'volumeAttachment': {'volumeId': volume}}, as_=BOB)
    settle()
    *_, attached = told()
    assert attached.event_type == 'instance.volume_attach.end' and data(attached)['volume_id'] == volume
    (device,) = (each['nova_object.data'] for each in data(attached)['block_devices'])
    assert device['volume_id'] == volume and device['device_name'] == '/dev/vdb'
    api.delete(f'/servers/{server}/os-volume_attachments/{volume}', as_=BOB)
    settle()
    assert [(each.event_type, data(each)['volume_id']) for each in told()] == [
        ('instance.volume_detach.start', volume),
        ('instance.volume_detach.end', volume),
    ]


def test_an_interface_is_told_with_its_address(api, server, told):
    told()
    api.post(f'/servers/{server}/os-interface', {'interfaceAttachment': {'net_id': NETWORK}}, as_=BOB)
    begun, ended = told()
    assert [each.event_type for each in (begun, ended)] == [f'instance.{each}' for each in around('interface_attach')]
    assert (len(data(begun)['ip_addresses']), len(data(ended)['ip_addresses'])) == (1, 2)


def test_locks_are_told_at_once(act, server, told):
    told()
    act(server, 'lock', {'locked_reason': 'mine'}, '2.73')
    act(server, 'unlock')
    locked, unlocked = told()
    assert [(each.event_type, each.publisher_id) for each in (locked, unlocked)] == [
        ('instance.lock', 'nova-api:controller'),
        ('instance.unlock', 'nova-api:controller'),
    ]
    assert [(data(each)['locked'], data(each)['locked_reason']) for each in (locked, unlocked)] == [
        (True, 'mine'),
        (False, None),
    ]


def test_a_failure_is_told_with_its_reason(create, settle, told, world):
    world.service.conf.set_override('fail', ['spawn'], 'simulated')
    world.service.conf.set_override('max_attempts', 1, 'scheduler')
    create()
    settle()
    begun, failed = told()
    assert (failed.event_type, failed.priority) == ('instance.create.error', 'error')
    fault = data(failed)['fault']['nova_object.data']
    assert data(begun)['fault'] is None and fault['exception'] and fault['exception_message'] in fault['traceback']
    assert fault['module_name'].startswith('computeapi.')


def test_steps_that_had_ended_have_not_failed(act, server, told, world):
    world.flavor('2', vcpus=2, memory_mb=128)
    world.service.conf.set_override('fail', ['power_on'], 'simulated')
    told()
    act(server, *RESIZE)
    assert names(told()) == [*RESIZED[:-1], 'resize_finish.error']


def test_a_failure_after_the_last_step_is_told_once(act, server, told, monkeypatch, world):
    """The image of a shelved server is deleted after it was started."""
    act(server, 'shelve')
    told()
    fail = RuntimeError('no space left')

    def delete(*args):
        raise fail

    monkeypatch.setattr(world.service.images, 'delete', delete)
    act(server, 'unshelve')
    assert names(told()) == ['unshelve.start', 'unshelve.error']


@pytest.mark.parametrize('conf', ['unversioned'], indirect=True)
def test_unversioned_notifications(create, settle, told, act):
    server = create(metadata={'a': 'b'}).json['server']['id']
    settle()
    begun, ended = told()
    assert (begun.event_type, ended.event_type) == ('compute.instance.create.start', 'compute.instance.create.end')
    assert (ended.publisher_id, ended.format) == ('compute.compute1', 'unversioned')
    shown = ended.payload
    assert (shown['instance_id'], shown['state'], shown['state_description']) == (server, 'active', '')
    assert (shown['memory_mb'], shown['vcpus'], shown['disk_gb'], shown['message']) == (64, 1, 1, 'Success')
    assert (shown['metadata'], shown['deleted_at'], shown['tenant_id']) == ({'a': 'b'}, '', 'project')
    assert [(each['address'], each['label']) for each in shown['fixed_ips']] == [('10.0.0.2', 'network')]
    act(server, 'migrate', as_=ADMIN)
    prefix = 'compute.instance.'
    assert [each.event_type.removeprefix(prefix) for each in told()] == [
        *('exists', 'resize.prep.start', 'resize.prep.end', 'resize.start', 'resize.end'),
        *('finish_resize.start', 'finish_resize.end'),
    ]


@pytest.mark.parametrize('conf', ['both'], indirect=True)
def test_both_formats_at_once(create, settle, told):
    create()
    settle()
    assert [each.event_type for each in told()] == [
        *('compute.instance.create.start', 'instance.create.start'),
        *('compute.instance.create.end', 'instance.create.end'),
    ]


@pytest.mark.parametrize('conf', ['none'], indirect=True)
def test_nothing_is_told_if_it_is_off(create, settle, told):
    create()
    settle()
    assert told() == []


def test_a_token_is_never_told(create, settle, told):
    create(as_='bob:project:member')
    settle()
    for each in told():
        assert each.context['user_id'] == 'bob' and each.context['roles'] == ['member']
        assert 'token' not in json.dumps([each.context, each.payload])


def test_the_steps_in_the_catalogue_exist():
    """An event that was renamed would silently not be told any more."""
    code = ''.join(path.read_text() for path in Path('computeapi/compute/servers').rglob('*.py'))
    assert [name for name in NOTICES if f"'{name}'" not in code] == []


@pytest.mark.no_cover
@pytest.mark.parametrize(
    ('before', 'change', 'wanted'),
    [
        ([], ('rescue', {}), ['exists', *around('rescue')]),
        ([], ('shelve',), ['exists', *around('shelve', 'shelve_offload')]),
        ([('shelve',)], ('unshelve',), around('unshelve')),
        ([], ('rebuild', {'imageRef': IMAGE}), ['exists', *around('rebuild')]),
        ([], RESIZE, RESIZED),
        ([], ('forceDelete',), END),
    ],
)
def test_a_kill_loses_nothing_and_tells_nothing_twice(
    world, store, api, made, act, settle, told, before, change, wanted
):
    world.flavor('2', vcpus=2, memory_mb=128)
    for steps in range(MAX_STEPS):
        server = made()[0].uuid
        settle()
        for each in before:
            act(server, *each, as_=ADMIN)
        told()
        act(server, *change, as_=ADMIN, work=False)
        done = is_done_when_killed(store, world.service, settle, steps)
        assert names(told()) == wanted, steps
        act(server, 'forceDelete', as_=ADMIN)
        if done:
            return
    raise AssertionError('The work never ended.')


@pytest.mark.parametrize('conf', ['both'], indirect=True)
def test_new_members_of_a_group_are_told_together(api, create, told):
    created = api.post('/os-server-groups', {'server_group': {'name': 'g', 'policies': ['affinity']}}, as_=BOB)
    group = created.json['server_group']['id']
    first = create(hints={'group': group}).json['server']['id']
    told()
    create('2.1', hints={'group': group}, min_count=2, max_count=2)
    members = api.get(f'/os-server-groups/{group}', as_=BOB).json['server_group']['members']
    flat, found = (each for each in told() if 'group' in each.event_type)
    assert (found.event_type, found.publisher_id) == ('server_group.add_member', 'nova-api:controller')
    assert data(found)['members'] == members and len(members) == 3
    new = {'server_group_id': group, 'instance_uuids': [each for each in members if each != first]}
    assert (flat.event_type, flat.payload) == ('servergroup.addmember', new)
