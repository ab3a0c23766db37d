"""Attaching volumes to existing servers: during the request, by the workers, and after a crash."""

import pytest

from computeapi.db import block_devices
from computeapi.errors import Conflict, DatabaseError, NeighbourAway, Unavailable, VolumeNotFound

AWAY = NeighbourAway(name='Cinder')
BOB, READER, ALICE, SERVICE = 'bob:project', 'rea:project:reader', 'alice:elsewhere', 'cinder:service:service'


@pytest.fixture
def volume(world):
    return world.volume()


@pytest.fixture
def path(server):
    return f'/servers/{server}/os-volume_attachments'


@pytest.fixture
def attach(api, path, settle):
    """attach(volume, '2.49', tag='a'): the response, after the workers have finished."""

    def post(volume, version='2.100', as_=BOB, work=True, **kwargs):
        answer = api.post(path, {'volumeAttachment': {'volumeId': volume, **kwargs}}, version, as_=as_)
        if work:
            settle()
        return answer

    return post


@pytest.fixture
def detach(api, path, settle):
    def delete(volume, version='2.20', as_=BOB):
        answer = api.delete(f'{path}/{volume}', version, as_=as_)
        settle()
        return answer

    return delete


@pytest.fixture
def attached(api, path):
    """attached(): the IDs of the attached volumes as clients see them."""
    return lambda: [each['volumeId'] for each in api.get(path).json['volumeAttachments']]


@pytest.fixture
def status(world):
    return lambda volume: world.volumes.get(world.bob, volume).status


@pytest.fixture
def unheard(world, monkeypatch):
    """unheard('reserve'): the volume service carries out the request once, but its response is lost."""

    def lose(name, error=AWAY):
        ask = getattr(world.volumes, name)

        def lost(*args, **kwargs):
            monkeypatch.undo()
            ask(*args, **kwargs)
            raise error

        monkeypatch.setattr(world.volumes, name, lost)

    return lose


@pytest.fixture
def act(api, server, settle):
    def post(name, argument=None):
        assert api.post(f'/servers/{server}/action', {name: argument}, '2.20').status == 202
        settle()

    return post


@pytest.fixture
def events(history, server):
    return lambda: history(server)


# ------------------------------------------------------------------ attaching


VERSIONS = ['2.1', '2.49', '2.70', '2.79', '2.85', '2.89', '2.101']


@pytest.mark.parametrize('version', VERSIONS)
def test_attachments_look_like_the_samples(api, attach, path, world, sample, shape, version):
    folder = 'os-volume_attachments' + ('' if version == '2.1' else f'/v{version}')
    facts = sample(f'{folder}/attach-volume-to-server-req.json')['volumeAttachment']
    first, second = world.volume(), world.volume()
    answer = attach(**facts | {'volume': first, 'version': version, 'volumeId': first})
    if version == '2.101':
        assert (answer.status, answer.text) == (202, '')
        assert answer.headers['Content-Type'] == 'text/html; charset=UTF-8'
    else:
        assert answer.status == 200
        assert shape(answer.json) == shape(sample(f'{folder}/attach-volume-to-server-resp.json'))
    attach(second, version)
    shown = api.get(f'{path}/{first}', version, as_=READER)
    assert shape(shown.json) == shape(sample(f'{folder}/volume-attachment-detail-resp.json'))
    listed = api.get(path, version, as_=READER)
    assert shape(listed.json) == shape(sample(f'{folder}/list-volume-attachments-resp.json'))
    assert listed.json['volumeAttachments'][0] == shown.json['volumeAttachment']


def test_a_volume_is_reserved_at_the_request_and_connected_by_a_worker(
    api, attach, server, volume, world, status, settle, events
):
    answer = attach(volume, '2.1', work=False)
    assert answer.json['volumeAttachment'] == {
        'id': volume,
        'volumeId': volume,
        'serverId': server,
        'device': '/dev/vdb',
    }
    assert status(volume) == 'reserved'
    settle()
    assert status(volume) == 'in-use'
    (held,) = world.volumes.get(world.bob, volume).attachments
    assert (held['server_id'], held['device']) == (server, '/dev/vdb')
    shown = api.get(f'/servers/{server}', '2.3').json['server']
    assert shown['os-extended-volumes:volumes_attached'] == [{'id': volume, 'delete_on_termination': False}]
    assert events() == [('attach_volume', None, [('compute_attach_volume', 'Success')])]


def test_devices_have_the_name_that_was_asked_for_or_the_next(api, attach, path, world):
    names = [
        attach(world.volume(), device=name).json['volumeAttachment']['device'] for name in ('/dev/vdd', None, None)
    ]
    assert names == ['/dev/vdd', '/dev/vdb', '/dev/vdc']
    answer = attach(world.volume(), device='/dev/vda')
    assert answer.status == 409
    assert answer.json['conflictingRequest']['message'] == 'The supplied device path (/dev/vda) is in use.'


def test_from_2_101_a_name_that_is_taken_shows_later(attach, attached, volume, status, events):
    assert attach(volume, '2.101', device='/dev/vda').status == 202
    assert attached() == [] and status(volume) == 'available'
    assert events() == [('attach_volume', 'Error', [('compute_attach_volume', 'Error')])]
    assert attach(volume, '2.101', device='/dev/vdz').status == 202
    assert attached() == [volume] and status(volume) == 'in-use'


def test_from_2_101_a_reset_leaves_the_volume_to_its_attachment(api, attach, server, volume, world):
    """The reset connects what the server should have, but this volume has no device name yet."""
    assert api.post(f'/servers/{server}/action', {'os-resetState': {'state': 'active'}}).status == 202
    assert attach(volume, '2.101').status == 202
    (held,) = world.volumes.get(world.bob, volume).attachments
    assert (held['server_id'], held['device']) == (server, '/dev/vdb')


def test_there_are_letters_for_any_number(attach, world):
    world.volumes.quotas.set_limits('project', {'volumes': 30})
    answers = [attach(world.volume(), work=False).json['volumeAttachment']['device'] for _ in range(27)]
    assert answers[0] == '/dev/vdb' and answers[-3:] == ['/dev/vdz', '/dev/vdaa', '/dev/vdab']


TOO_MANY = 'The maximum allowed number of disk devices (2) to attach to a single instance has been exceeded.'


def test_the_number_of_disks_may_be_limited(attach, attached, world, status):
    """The disk of the image counts, too."""
    world.service.conf.set_override('max_disk_devices_to_attach', 2, 'compute')
    first, second = world.volume(), world.volume()
    assert attach(first).status == 200
    refused = attach(second)
    assert (refused.status, refused.json['forbidden']['message']) == (403, TOO_MANY)
    assert attached() == [first] and status(second) == 'available'


def test_from_2_101_too_many_disks_show_later(attach, attached, world, status, events):
    world.service.conf.set_override('max_disk_devices_to_attach', 2, 'compute')
    first, second = world.volume(), world.volume()
    assert (attach(first, '2.101').status, attached()) == (202, [first])
    assert (attach(second, '2.101').status, attached()) == (202, [first])
    assert status(second) == 'available'
    assert events()[0] == ('attach_volume', 'Error', [('compute_attach_volume', 'Error')])


def test_an_offloaded_server_takes_more_but_cannot_run_with_them(act, api, attach, attached, server, world):
    world.service.conf.set_override('max_disk_devices_to_attach', 1, 'compute')
    volume = world.volume()
    act('shelve')
    assert attach(volume).status == 200
    act('unshelve')
    assert api.get(f'/servers/{server}').json['server']['status'] == 'SHELVED_OFFLOADED' and attached() == [volume]
    world.service.conf.set_override('max_disk_devices_to_attach', 2, 'compute')
    act('unshelve')
    assert api.get(f'/servers/{server}').json['server']['status'] == 'ACTIVE'


@pytest.mark.parametrize(
    ('version', 'facts', 'status'),
    [
        ('2.1', {'tag': 'a'}, 400),
        ('2.48', {'tag': 'a'}, 400),
        ('2.49', {'tag': 'a'}, 200),
        ('2.49', {'tag': 'a/b'}, 400),
        ('2.78', {'delete_on_termination': True}, 400),
        ('2.79', {'delete_on_termination': 'true'}, 200),
        ('2.79', {'delete_on_termination': 'maybe'}, 400),
        ('2.1', {'device': 'bad one'}, 400),
        ('2.1', {'device': 'vdb'}, 400),
        ('2.1', {'device': '/dev/' + 'd' * 300}, 400),
        ('2.1', {'device': None}, 200),
        ('2.1', {'other': 1}, 400),
        ('2.1', {'volumeId': 'x'}, 400),
        ('2.1', {'volumeId': 5}, 400),
    ],
)
def test_what_can_be_asked_for(api, path, volume, version, facts, status):
    body = {'volumeAttachment': {'volumeId': volume} | facts}
    assert api.post(path, body, version, as_=BOB).status == status


def test_v2_drops_unknown_keys(legacy, path, volume):
    body = {'volumeAttachment': {'volumeId': volume, 'tag': 'a/b'}, 'other': 1}
    answer = legacy.post(path, body, as_=BOB)
    assert answer.status == 200 and 'tag' not in answer.json['volumeAttachment']


def test_volumes_that_cannot_be_attached(attach, world, volume, server):
    assert attach('00000000-0000-4000-8000-00000000dead').status == 404
    assert attach(volume).status == 200
    again = attach(volume)
    assert again.status == 400
    taken = f'Invalid volume: volume {volume} is already attached to instances: {server}'
    assert again.json['badRequest']['message'] == taken
    elsewhere = world.volume()
    world.volumes.reserve(world.bob, elsewhere, 'another-server')
    taken = attach(elsewhere)
    assert taken.status == 400 and taken.json['badRequest']['message'].startswith('Invalid volume: ')


def test_a_refused_volume_leaves_nothing_behind(attach, attached, world, events):
    volume = world.volume()
    world.volumes.reset_status(world.admin, volume, 'error')
    assert attach(volume).status == 400
    assert attached() == [] and events() == []


def test_block_storage_that_does_not_answer_leaves_nothing_behind(attach, attached, volume, world, status, monkeypatch):
    def unreachable(*args, **kwargs):
        raise Unavailable('The volume service did not answer.')

    monkeypatch.setattr(world.volumes, 'reserve', unreachable)
    assert attach(volume).status == 503
    monkeypatch.undo()
    assert attached() == [] and status(volume) == 'available'
    assert attach(volume).status == 200


@pytest.mark.parametrize('error', [AWAY, DatabaseError('It has gone away.')], ids=['away', 'database'])
def test_a_reservation_that_nobody_heard_of_is_taken_back(attach, attached, volume, status, unheard, events, error):
    unheard('reserve', error)
    assert attach(volume, work=False).status == 503
    assert status(volume) == 'reserved'
    assert attach(volume).status == 400
    assert attached() == [] and status(volume) == 'available' and events() == []
    assert attach(volume).status == 200
    assert attached() == [volume] and status(volume) == 'in-use'


def test_nothing_is_detached_on_a_host_that_is_down(api, attach, attached, detach, server, volume, world):
    attach(volume)
    world.down(api.get(f'/servers/{server}').json['server']['OS-EXT-SRV-ATTR:host'])
    answer = detach(volume)
    assert (answer.status, answer.json['conflictingRequest']['message']) == (
        409,
        'Service is unavailable at this time.',
    )
    assert attached() == [volume]


def test_a_reservation_that_cannot_be_written_down_is_taken_back(attach, attached, volume, status, monkeypatch):
    def fail(*arguments):
        monkeypatch.undo()
        raise DatabaseError('It is full.')

    monkeypatch.setattr(block_devices, 'update', fail)
    assert attach(volume).status == 503
    assert attached() == [] and status(volume) == 'available'


def test_who_may(api, attach, detach, path, volume):
    refused = "Policy doesn't allow os_compute_api:os-volumes-attachments:create to be performed."
    assert attach(volume, as_=READER).json['forbidden']['message'] == refused
    assert attach(volume, as_=ALICE).status == 404
    assert attach(volume).status == 200
    assert detach(volume, as_=READER).status == 403
    assert detach(volume, as_=ALICE).status == 404
    assert api.get(path, as_=ALICE).status == 404
    assert api.get(f'{path}/{volume}', as_=ALICE).status == 404


def test_multiattach_volumes_from_2_60(create, attach, api, settle, world, status):
    volume = world.volume(volume_type='multiattach')
    assert attach(volume, '2.59').status == 400
    assert attach(volume, '2.60').status == 200
    twice = attach(volume, '2.60').json['badRequest']['message']
    assert twice == f'Invalid volume: volume {volume} already attached'
    other = create(name='other').json['server']['id']
    settle()
    body = {'volumeAttachment': {'volumeId': volume}}
    assert api.post(f'/servers/{other}/os-volume_attachments', body, '2.60', as_=BOB).status == 200
    settle()
    assert len(world.volumes.get(world.bob, volume).attachments) == 2
    api.delete(f'/servers/{other}/os-volume_attachments/{volume}', as_=BOB)
    settle()
    assert status(volume) == 'in-use'


def test_a_locked_or_busy_server_refuses(api, attach, detach, volume, server, servers):
    attach(volume)
    servers.change(server, locked_by='owner')
    for answer in (attach(volume), detach(volume)):
        assert answer.json['conflictingRequest']['message'] == f'Instance {server} is locked'
    servers.change(server, locked_by=None, task_state='powering-off')
    text = f"Cannot '{{}}' instance {server} while it is in task_state powering-off"
    assert attach(volume).json['conflictingRequest']['message'] == text.format('attach_volume')
    assert detach(volume).json['conflictingRequest']['message'] == text.format('detach_volume')
    servers.change(server, task_state=None)
    text = f"Cannot '{{}}' instance {server} while it is in vm_state {{}}"
    for vm_state in ('error', 'suspended', 'rescued'):
        servers.change(server, vm_state=vm_state)
        assert attach(volume).json['conflictingRequest']['message'] == text.format('attach_volume', vm_state)
        assert detach(volume).json['conflictingRequest']['message'] == text.format('detach_volume', vm_state)


# ------------------------------------------------------------------ lists


def test_pages_count_the_local_disks(api, attach, path, world, server):
    volumes = [world.volume() for _ in range(3)]
    for volume in volumes:
        attach(volume)

    def page(query, version='2.1'):
        return [each['volumeId'] for each in api.get(f'{path}?{query}', version).json['volumeAttachments']]

    assert page('limit=1') == []
    assert page('limit=3') == volumes[:2]
    assert page('limit=2&offset=2') == volumes[1:]
    assert page('limit=0') == page('offset=1') == page('other=1') == volumes
    assert api.get(f'{path}?offset=-1').status == 400
    assert api.get(f'{path}?other=1', '2.75').status == 400
    assert api.get(f'{path}/{volumes[0]}?other=1', '2.104').status == 200


def test_from_2_89_a_volume_shows_once_it_is_reserved(api, attach, path, volume, world, monkeypatch):
    reserve, seen = world.volumes.reserve, []

    def look(*args, **kwargs):
        for version in ('2.88', '2.89'):
            listed = api.get(path, version).json['volumeAttachments']
            seen.append((len(listed), api.get(f'{path}/{volume}', version).status))
        return reserve(*args, **kwargs)

    monkeypatch.setattr(world.volumes, 'reserve', look)
    attach(volume)
    assert seen == [(1, 200), (0, 404)]
    assert len(api.get(path, '2.89').json['volumeAttachments']) == 1


def test_a_volume_that_is_not_attached(api, path, server, detach, volume):
    text = f'Instance {server} is not attached to volume {volume}'
    assert api.get(f'{path}/{volume}').json['itemNotFound']['message'] == text
    assert detach(volume).json['itemNotFound']['message'] == text
    missing = '00000000-0000-4000-8000-00000000dead'
    assert detach(missing).json['itemNotFound']['message'] == f'Volume {missing} could not be found.'


# ------------------------------------------------------------------ detaching


def test_detaching(api, attach, detach, attached, volume, status, events, server):
    attach(volume, delete_on_termination=True)
    answer = detach(volume)
    assert (answer.status, answer.text) == (202, '')
    assert attached() == [] and status(volume) == 'available'
    assert events()[0] == ('detach_volume', None, [('compute_detach_volume', 'Success')])
    assert detach(volume).status == 404
    assert attach(volume).status == 200


def test_a_detachment_that_nobody_heard_begin_is_taken_back(attach, detach, attached, volume, status, unheard):
    attach(volume)
    unheard('begin_detaching')
    assert detach(volume).status == 503
    assert attached() == [volume] and status(volume) == 'in-use'
    assert detach(volume).status == 202
    assert attached() == [] and status(volume) == 'available'


def test_detaching_before_it_was_attached(attach, detach, attached, volume, status):
    attach(volume, work=False)
    refused = detach(volume)
    text = f'Invalid volume: Volume {volume} cannot be detached while it is reserved.'
    assert refused.json['badRequest']['message'] == text
    assert attached() == [volume] and status(volume) == 'in-use'


def test_detaching_is_not_lost_when_the_server_goes_on_to_something_else(
    api, attach, path, server, settle, volume, status
):
    attach(volume)
    assert api.delete(f'{path}/{volume}', as_=BOB).status == 202
    assert status(volume) == 'detaching'
    assert api.delete(f'{path}/{volume}', as_=BOB).status == 400
    assert api.post(f'/servers/{server}/action', {'os-stop': None}, as_=BOB).status == 202
    settle()
    assert status(volume) == 'available'
    assert api.get(f'/servers/{server}').json['server']['status'] == 'SHUTOFF'


def test_the_root_stays(api, create, world, settle):
    volume = world.volume(image_id='70a599e0-31e7-49b7-b260-868f441e862b')
    disk = {'boot_index': 0, 'uuid': volume, 'source_type': 'volume', 'destination_type': 'volume'}
    server = create(imageRef='', block_device_mapping_v2=[disk]).json['server']['id']
    settle()
    answer = api.delete(f'/servers/{server}/os-volume_attachments/{volume}', '2.20', as_=BOB)
    assert answer.json == {'badRequest': {'code': 400, 'message': 'Cannot detach a root device volume'}}


def test_shelved_servers_from_2_20(api, attach, detach, attached, act, volume, world, server, status):
    act('shelve')
    text = f"Cannot '{{}}' instance {server} while it is in vm_state shelved_offloaded"
    assert attach(volume, '2.19').json['conflictingRequest']['message'] == text.format('attach_volume')
    assert attach(volume, '2.20').json['volumeAttachment']['device'] is None
    assert attached() == [volume] and status(volume) == 'in-use'
    assert 'device' not in api.get(f'/servers/{server}/os-volume_attachments/{volume}').json['volumeAttachment']
    assert detach(volume, '2.19').json['conflictingRequest']['message'] == text.format('detach_volume')
    assert detach(volume, '2.20').status == 202
    assert status(volume) == 'available'
    assert attach(volume, tag='a').status == 400
    assert attach(world.volume(volume_type='multiattach')).status == 400
    attach(volume)
    act('unshelve')
    assert status(volume) == 'in-use'
    assert detach(volume).status == 202
    assert status(volume) == 'available'


def test_what_is_to_be_deleted_with_the_server_is_deleted_when_an_offloaded_server_loses_it(
    attach, detach, attached, act, volume, world, status
):
    kept, used = world.volume(), world.volume()
    for each, deletes in ((volume, True), (kept, False), (used, True)):
        assert attach(each, delete_on_termination=deletes).status == 200
    world.volumes.create_snapshot(world.bob, used, name='snapshot', force=True)
    act('shelve')
    for each in (volume, kept, used):
        assert detach(each).status == 202
    assert attached() == []
    assert [status(each) for each in (kept, used)] == ['available', 'available']
    with pytest.raises(VolumeNotFound):
        status(volume)


def test_a_volume_outlives_its_detachment_from_a_server_on_a_host(attach, detach, volume, status):
    attach(volume, delete_on_termination=True)
    assert detach(volume).status == 202
    assert status(volume) == 'available'


def test_the_device_of_an_offloaded_server_is_named_when_it_is_unshelved(api, attach, act, path, volume):
    act('shelve')
    assert attach(volume, device='/dev/vdq').json['volumeAttachment']['device'] is None
    act('unshelve')
    assert api.get(f'{path}/{volume}').json['volumeAttachment']['device'] == '/dev/vdb'


def test_an_offloaded_server_uses_nothing_from_anywhere(attach, act, volume, world, server, status):
    def places():
        (attachment,) = world.volumes.attachments(world.bob, volume_id=volume)
        ports = world.networks.resources.find(world.admin, 'ports', {'device_id': [server]})
        return attachment.host, [port['binding:host_id'] for port in ports]

    attach(volume)
    assert status(volume) == 'in-use' and places() == ('compute1', ['compute1'])
    act('shelve')
    assert status(volume) == 'reserved' and places() == (None, [''])
    act('unshelve')
    assert status(volume) == 'in-use' and places() == ('compute1', ['compute1'])


# ------------------------------------------------------------------ updates


def put(api, path, volume, version='2.85', as_=BOB, **kwargs):
    return api.put(f'{path}/{volume}', {'volumeAttachment': {'volumeId': volume} | kwargs}, version, as_=as_)


def test_what_becomes_of_a_volume_can_change_from_2_85(api, attach, path, server, volume):
    attach(volume, tag='a')

    def kept():
        return api.get(f'{path}/{volume}', '2.79').json['volumeAttachment']['delete_on_termination']

    assert put(api, path, volume, delete_on_termination=True).status == 202
    assert kept() is True
    same = {'id': volume, 'serverId': server, 'device': '/dev/vdb', 'tag': 'a'}
    assert put(api, path, volume, delete_on_termination='false', **same).status == 202
    assert kept() is False
    for name, value in {'id': server, 'serverId': volume, 'device': '/dev/vdq', 'tag': 'b'}.items():
        answer = put(api, path, volume, delete_on_termination=True, **{name: value})
        assert answer.json['badRequest']['message'] == f'The {name} property is not mutable'
    assert kept() is False
    assert put(api, path, volume, '2.84', delete_on_termination=True).status == 400
    missing = put(api, path, server, delete_on_termination=True).json['itemNotFound']['message']
    assert missing == f'No volume Block Device Mapping with id {server}.'
    assert put(api, path, volume, delete_on_termination='maybe').status == 400
    assert (
        put(api, path, volume, as_=READER)
        .json['forbidden']['message']
        .endswith('os-volumes-attachments:update to be performed.')
    )
    assert put(api, path, server).status == 404


def test_delete_on_termination_is_kept(api, attach, path, server, settle, world):
    first, second = world.volume(), world.volume()
    attach(first, '2.79', delete_on_termination=True)
    attach(second, '2.79')
    api.delete(f'/servers/{server}', as_=BOB)
    settle()
    assert [each.id for each in world.volumes.list(world.bob)] == [second]
    assert world.volumes.get(world.bob, second).status == 'available'


def test_a_volume_that_block_storage_is_at_for_ever_does_not_keep_its_server(
    api, attach, server, volume, world, settle
):
    attach(volume, delete_on_termination=True)
    world.volumes.reset_status(world.admin, volume, status='uploading')
    api.delete(f'/servers/{server}', as_=BOB)
    settle()
    assert api.get(f'/servers/{server}').json['server']['OS-EXT-STS:task_state'] == 'deleting'
    world.service.conf.set_override('block_device_allocate_retries', 0)
    settle(later=True)
    assert api.get(f'/servers/{server}').status == 404
    assert world.volumes.get(world.bob, volume).status == 'uploading'


# ------------------------------------------------------------------ swapping


@pytest.fixture
def moving(attach, volume, world):
    """An attached volume that the volume service is migrating to another one: (volume, other)."""
    attach(volume, tag='a')
    world.volumes.reset_status(world.admin, volume, migration_status='migrating')
    return volume, world.volume(2)


def swap(api, path, old, new, as_='admin:admin', version='2.1'):
    return api.put(f'{path}/{old}', {'volumeAttachment': {'volumeId': new}}, version, as_=as_)


def test_swapping(api, path, moving, attached, settle, status, events):
    old, new = moving
    before = api.get(f'{path}/{old}', '2.89').json['volumeAttachment']
    assert swap(api, path, old, new, version='2.85').status == 202
    assert status(new) == 'reserved'
    settle()
    assert attached() == [new]
    assert (status(old), status(new)) == ('available', 'in-use')
    after = api.get(f'{path}/{new}', '2.89').json['volumeAttachment']
    assert after.pop('attachment_id') != before.pop('attachment_id')
    assert after == before | {'volumeId': new}
    assert events()[0] == ('swap_volume', None, [('compute_swap_volume', 'Success')])


@pytest.mark.parametrize('step', ['begin_detaching', 'reserve'])
def test_a_swap_that_nobody_heard_begin_is_taken_back(api, path, moving, attached, settle, status, unheard, step):
    old, new = moving
    unheard(step)
    assert swap(api, path, old, new).status == 503
    settle()
    assert attached() == [old]
    assert (status(old), status(new)) == ('in-use', 'available')


def test_only_volumes_that_move_are_swapped(api, path, attach, volume, world):
    attach(volume)
    answer = swap(api, path, volume, world.volume())
    text = f'volume {volume} is not migrating; this API should only be called by Cinder'
    assert answer.json == {'conflictingRequest': {'code': 409, 'message': text}}


def test_what_cannot_be_swapped(api, path, moving, server, servers, world, status):
    old, new = moving
    assert swap(api, path, old, new, as_=BOB).json['forbidden']['message'].endswith(':swap to be performed.')
    assert swap(api, path, old, new, as_=SERVICE).status == 404
    assert swap(api, path, old, '00000000-0000-4000-8000-00000000dead').status == 400
    world.volumes.extend(world.bob, old, 3)
    assert swap(api, path, old, new).status == 400
    world.volumes.extend(world.bob, new, 3)
    world.volumes.attach(world.bob, new, server_id='another-server')
    assert swap(api, path, old, new).status == 400
    loose = world.volume()
    world.volumes.reset_status(world.admin, loose, migration_status='migrating')
    assert swap(api, path, loose, world.volume()).status == 404
    servers.change(server, vm_state='stopped')
    assert swap(api, path, old, new).status == 409
    assert swap(api, path, '00000000-0000-4000-8000-00000000dead', new).status == 404
    assert status(old) == 'in-use'


def test_2_85_the_rest_of_a_change_is_looked_at_before_the_swap(api, path, attach, volume, world):
    attach(volume)
    other, fixed = world.volume(), 'The device property is not mutable'
    answer = api.put(f'{path}/{volume}', {'volumeAttachment': {'volumeId': other, 'device': '/dev/vdz'}}, '2.85')
    assert (answer.status, answer.json['badRequest']['message']) == (400, fixed)
    assert swap(api, path, other, volume, version='2.85').status == 404
    assert swap(api, path, volume, other, version='2.85').status == 409


def test_a_driver_that_cannot_swap_leaves_both_volumes_as_they_are(
    api, path, moving, attached, status, service, monkeypatch
):
    old, new = moving
    monkeypatch.setattr(type(service.hypervisor), 'capabilities', frozenset())
    assert swap(api, path, old, new).status == 501
    assert (attached(), status(old), status(new)) == ([old], 'in-use', 'available')


def test_a_failed_swap_keeps_the_old_volume(api, path, moving, attached, settle, status, world, events):
    old, new = moving
    world.service.conf.set_override('fail', ['swap'], 'simulated')
    assert swap(api, path, old, new).status == 202
    settle()
    assert attached() == [old]
    assert (status(old), status(new)) == ('in-use', 'available')
    assert events()[0] == ('swap_volume', 'Error', [('compute_swap_volume', 'Error')])


@pytest.mark.parametrize('step', ['complete', 'release', 'swap'])
def test_a_swap_that_fails_when_the_guest_has_the_new_volume_leaves_it_there(
    api, path, moving, attached, settle, status, world, events, monkeypatch, step
):
    old, new = moving
    told, exchange = [], world.volumes.swap
    monkeypatch.setattr(world.volumes, 'swap', lambda *ids, **kwargs: told.append(kwargs) or exchange(*ids, **kwargs))
    ask = getattr(world.volumes, step)

    def refuse(*args, **kwargs):
        monkeypatch.setattr(world.volumes, step, ask)
        raise Conflict('It does not move any more.')

    monkeypatch.setattr(world.volumes, step, refuse)
    assert swap(api, path, old, new).status == 202
    settle()
    assert attached() == [new]
    assert status(old) == 'available' and status(new) in ('in-use', 'attaching')
    # A Cinder would delete the new volume.
    assert {'failed': True} not in told
    assert world.volumes.get(world.admin, old).migration_status is None
    assert events()[0] == ('swap_volume', 'Error', [('compute_swap_volume', 'Error')])
    assert api.get(path.rpartition('/')[0]).json['server']['status'] == 'ACTIVE'


# ------------------------------------------------------------------ failures


@pytest.mark.parametrize('fails', [['attach'], ['attach', 'detach']])
def test_what_a_host_cannot_attach_is_given_back(api, attach, attached, server, volume, status, world, events, fails):
    world.service.conf.set_override('fail', fails, 'simulated')
    assert attach(volume).status == 200
    assert attached() == [] and status(volume) == 'available'
    assert events() == [('attach_volume', 'Error', [('compute_attach_volume', 'Error')])]
    assert api.get(f'/servers/{server}').json['server']['status'] == 'ACTIVE'


def test_what_a_host_cannot_detach_stays(attach, detach, attached, volume, status, world):
    attach(volume)
    world.service.conf.set_override('fail', ['detach'], 'simulated')
    assert detach(volume).status == 202
    assert attached() == [volume] and status(volume) == 'in-use'
    world.service.conf.clear_override('fail', 'simulated')
    detach(volume)
    assert attached() == [] and status(volume) == 'available'


@pytest.mark.parametrize('after', [False, True])
def test_a_kill_at_the_request_leaves_no_volume_reserved(attach, attached, volume, world, status, die, after):
    die(world.volumes, 'reserve', lambda: attach(volume, work=False), after)
    assert attached() == [volume] and status(volume) == 'in-use'


@pytest.mark.parametrize('after', [False, True])
@pytest.mark.parametrize(('backend', 'step'), [('hypervisor', 'attach'), ('volumes', 'complete')])
def test_a_kill_of_the_worker_delays_the_attachment(
    attach, attached, volume, service, status, die, settle, backend, step, after
):
    attach(volume, '2.101', work=False)
    die(getattr(service, backend), step, settle, after)
    assert attached() == [volume] and status(volume) == 'in-use'


@pytest.mark.parametrize('after', [False, True])
@pytest.mark.parametrize(
    ('backend', 'step'), [('volumes', 'begin_detaching'), ('hypervisor', 'detach'), ('volumes', 'release')]
)
def test_a_kill_of_the_worker_delays_the_detachment(
    attach, detach, attached, volume, service, status, die, backend, step, after
):
    attach(volume)
    die(getattr(service, backend), step, lambda: detach(volume), after)
    assert attached() == [] and status(volume) == 'available'


@pytest.mark.parametrize('after', [False, True])
@pytest.mark.parametrize(
    ('backend', 'step'),
    [('volumes', 'reserve'), ('hypervisor', 'swap'), ('volumes', 'swap'), ('volumes', 'release')],
)
def test_a_kill_delays_the_swap(api, path, moving, attached, service, status, die, settle, backend, step, after):
    old, new = moving

    def exchange():
        swap(api, path, old, new)
        settle()

    die(getattr(service, backend), step, exchange, after)
    assert attached() == [new]
    assert (status(old), status(new)) == ('available', 'in-use')
