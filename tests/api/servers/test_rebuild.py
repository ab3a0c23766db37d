"""Rebuilding servers: requests and responses at every version, and the results."""

import base64
import re
import uuid
from pathlib import Path

import pytest
import sqlalchemy as sa

from computeapi.context import Context
from computeapi.db import block_devices, server_tags
from computeapi.db.tables.servers import domains, server_action_events, server_actions, tasks
from tests.api.servers.conftest import message

BOB = 'bob:project:member,reader'
IMAGE = '70a599e0-31e7-49b7-b260-868f441e862b'
OTHER_IMAGE = '155d900f-4e14-4e4c-a73d-069cbf4541e6'
SAMPLES = Path(__file__).parents[2] / 'samples'


@pytest.fixture
def world(world):
    world.image(OTHER_IMAGE, properties={'os_distro': 'plan9', 'kernel_id': 'nucleus'})
    return world


@pytest.fixture
def server(made, settle):
    """A running server, as it was after its boot."""
    server = made('2.19', description='first', metadata={'old': 'item'})[-1]
    settle()
    return server


@pytest.fixture
def rebuild(api, server):
    """rebuild('2.54', key_name='key')"""

    def post(version='2.104', as_=BOB, image=IMAGE, client=api, server_id=server.uuid, **kwargs):
        body = {'rebuild': {'imageRef': image, **kwargs}}
        return client.post(f'/servers/{server_id}/action', body, version, as_=as_)

    return post


@pytest.fixture
def rebuilt(rebuild, settle, servers, server):
    """rebuilt(...): rebuilds the server; returns its row afterwards."""

    def act(*args, **kwargs):
        answer = rebuild(*args, **kwargs)
        assert answer.status == 202, answer
        settle()
        return servers.get(server.uuid)

    return act


@pytest.fixture
def key(service):
    """key(name): creates a key pair; returns its public key."""

    def add(name, user_id='bob'):
        context = Context(user_id=user_id, project_id='project')
        return service.cloud.keypairs.generate(context, user_id, name, 'ssh').public_key

    return add


# ------------------------------------------------------------------ responses


def recorded():
    names = [str(path.relative_to(SAMPLES)) for path in SAMPLES.glob('**/server-action-rebuild*-resp.json')]
    return [pytest.param(name, (re.findall(r'v(2\.\d+)/', name) or ['2.1'])[0], id=name) for name in sorted(names)]


@pytest.fixture
def like(world, servers, server, key):
    """like(seen): makes the server look like a recorded one."""

    def change(seen):
        properties = {'architecture': 'x86_64', 'auto_disk_config': 'True'}
        world.images.update(world.bob, IMAGE, properties=properties)
        flavor = server.flavor | {'extra_specs': seen['flavor'].get('extra_specs') or {}}
        facts = {'scheduler_hints': seen.get('scheduler_hints') or {}, 'pinned_availability_zone': 'nova'}
        group = str(uuid.uuid4()) if seen.get('server_groups') else None
        with servers.store.write() as connection:
            server_tags.replace(connection, server.uuid, seen.get('tags') or ())
        servers.change(
            server.uuid, flavor=flavor, server_group_id=group, description=None, network_info=[PRIVATE], **facts
        )
        if seen.get('locked'):
            servers.change(server.uuid, locked_by='owner', locked_reason=seen.get('locked_reason'))
        if seen.get('key_name'):
            key(seen['key_name'])

    return change


PRIVATE = {
    'port_id': 'a-port',
    'network_name': 'private',
    'mac_address': '00:0c:29:0d:11:74',
    'addresses': [{'address': '192.168.1.30', 'version': 4, 'floating': []}],
    'security_groups': ['default'],
    'created': True,
}


@pytest.mark.parametrize(('name', 'version'), recorded())
def test_samples(api, server, like, sample, shape, name, version):
    seen = sample(name)['server']
    like(seen)
    as_ = 'admin:project' if seen.get('locked') or 'OS-EXT-SRV-ATTR:host' in seen else BOB
    answer = api.post(f'/servers/{server.uuid}/action', sample(name.replace('-resp', '')), version, as_=as_)
    assert answer.status == 202, answer
    assert shape(answer.json) == shape({'server': under_way(seen)})
    assert answer.json['server']['adminPass'] == 'seekr3t'


def under_way(seen):
    """The recorded server in its task state: the samples were recorded where nothing takes time."""
    task_state = 'OS-EXT-STS:task_state'
    return seen | {task_state: 'rebuilding'} if task_state in seen else seen


def test_the_answer_shows_what_the_server_becomes(rebuild, server):
    answer = rebuild('2.98', image=OTHER_IMAGE, name='new', metadata={'new': 'item'})
    shown = answer.json['server']
    assert (shown['name'], shown['status'], shown['progress']) == ('new', 'REBUILD', 0)
    assert (shown['OS-EXT-STS:task_state'], shown['OS-EXT-STS:vm_state']) == ('rebuilding', 'active')
    assert shown['metadata'] == {'new': 'item'} and shown['description'] == 'first'
    assert shown['image']['id'] == OTHER_IMAGE
    assert shown['image']['properties'] == {'os_distro': 'plan9'} and shown['OS-EXT-SRV-ATTR:hostname'] == 'server'
    assert answer.headers['Location'] == f'http://localhost/v2.1/servers/{server.uuid}'
    assert len(shown['adminPass']) == 12


def test_on_v2(legacy, rebuild, server):
    answer = rebuild(None, client=legacy, name=' new ', unknown=1)
    assert answer.status == 202 and answer.json['server']['name'] == 'new'
    assert answer.headers['Location'] == f'http://localhost/v2/servers/{server.uuid}'


def test_metadata_are_checked_on_v2_too(legacy, rebuild):
    for items in ({'k' * 256: 'v'}, {'k': 'v' * 256}, {'': 'v'}):
        assert rebuild(None, client=legacy, metadata=items).status == 400, items


def test_nothing_that_is_asked_for_is_kept_before_its_version(rebuild):
    wanted = {
        'description': ('2.19', 'x'),
        'key_name': ('2.54', None),
        'user_data': ('2.57', None),
        'trusted_image_certificates': ('2.63', None),
        'hostname': ('2.90', 'name'),
    }
    for name, (version, value) in wanted.items():
        before = f'2.{int(version[2:]) - 1}'
        answer = rebuild(before, **{name: value})
        assert answer.status == 400 and f"('{name}' was unexpected)" in answer.text
    files = [{'path': '/x', 'contents': ''}]
    assert "('personality' was unexpected)" in rebuild('2.57', personality=files).text


BAD = [
    ({'image': 'http://images/' + IMAGE}, f"'http://images/{IMAGE}' is not a 'uuid'"),
    ({'image': None}, "None is not of type 'string'"),
    ({'name': ''}, "'' should be non-empty"),
    ({'name': ' x'}, 'Can not start or end with whitespace'),
    ({'adminPass': 5}, "5 is not of type 'string'"),
    ({'preserve_ephemeral': 'maybe'}, 'field/attribute preserve_ephemeral'),
    ({'accessIPv4': 'x'}, "'x' is not a 'ipv4'"),
    ({'metadata': {'key': 1}}, "1 is not of type 'string'"),
    ({'user_data': 'x'}, 'field/attribute user_data'),
    ({'user_data': 1}, "1 is not of type 'string', 'null'"),
    ({'trusted_image_certificates': []}, 'field/attribute trusted_image_certificates'),
    ({'hostname': 'not a name'}, 'field/attribute hostname'),
    ({'unknown': 1}, "('unknown' was unexpected)"),
    ({'description': 'bell\x07'}, 'field/attribute description'),
]


def test_bad_requests(rebuild):
    for facts, text in BAD:
        answer = rebuild(**facts)
        assert answer.status == 400 and text in answer.text, answer


# ------------------------------------------------------------------ results


def test_a_server_is_made_anew(store, rebuilt, servers, server):
    before, machine = servers.get(server.uuid), domain(store, server)
    after = rebuilt(image=OTHER_IMAGE)
    assert (after.vm_state, after.task_state, after.power_state) == ('active', None, 1)
    assert after.launched_at > before.launched_at and domain(store, server).created_at > machine.created_at
    assert (after.image_id, after.image_properties['os_distro'], after.kernel_id) == (OTHER_IMAGE, 'plan9', 'nucleus')
    with store.read() as connection:
        (root,) = block_devices.of_servers(connection, [server.uuid])
    assert root.image_id == OTHER_IMAGE


def domain(store, server):
    """The machine that the simulated hypervisor runs."""
    with store.read() as connection:
        return connection.execute(domains.select().where(domains.c.server_id == server.uuid)).one()


def test_what_is_not_asked_for_stays(rebuilt, servers, server):
    before = servers.get(server.uuid)
    after = rebuilt()
    for name in ('name', 'hostname', 'description', 'metadata', 'key_name', 'user_data', 'network_info', 'host'):
        assert getattr(after, name) == getattr(before, name), name


def test_what_is_asked_for_changes(rebuilt, key):
    public_key = key('key')
    user_data = base64.b64encode(b'#!/bin/sh').decode()
    certificates = ['0b5d2c72-12cc-4ba6-a8d7-3ff5cc1d8cb8']
    after = rebuilt(
        name='new',
        description='second',
        hostname='new.example.org',
        metadata={'new': 'item'},
        key_name='key',
        user_data=user_data,
        trusted_image_certificates=certificates,
        accessIPv4='1.2.3.4',
        accessIPv6='80fe:0::',
        **{'OS-DCF:diskConfig': 'AUTO'},
    )
    assert (after.name, after.description, after.hostname) == ('new', 'second', 'new.example.org')
    assert (after.metadata, after.user_data, after.disk_config) == ({'new': 'item'}, user_data, 'AUTO')
    assert (after.key_name, after.public_key) == ('key', public_key)
    assert (after.access_ip_v4, after.access_ip_v6) == ('1.2.3.4', '80fe::')
    assert after.trusted_image_certificates == certificates
    gone = rebuilt(key_name=None, user_data=None, trusted_image_certificates=None, description=None)
    for name in ('key_name', 'public_key', 'user_data', 'trusted_image_certificates', 'description'):
        assert getattr(gone, name) is None


def test_files_are_injected_until_2_56(rebuilt):
    files = [{'path': '/etc/motd', 'contents': base64.b64encode(b'hello').decode()}]
    assert rebuilt('2.56', personality=files).personality == files
    assert rebuilt('2.57').personality is None


def test_a_stopped_server_stays_stopped(store, rebuilt, server, api, settle):
    api.post(f'/servers/{server.uuid}/action', {'os-stop': None}, as_=BOB)
    settle()
    after = rebuilt()
    assert (after.vm_state, after.power_state) == ('stopped', 4)
    assert domain(store, server).power_state == 4


def test_a_server_in_error_is_well_again(servers, server, rebuilt):
    servers.change(server.uuid, vm_state='error')
    assert rebuilt().vm_state == 'active'


def test_a_worker_that_dies(store, service, rebuild, servers, server):
    """Another worker continues where it stopped."""
    states = []
    driver = service.hypervisor
    for name in ('destroy', 'spawn'):
        original = getattr(driver, name)

        def watched(server, *arguments, original=original):
            states.append(servers.get(server.uuid).task_state)
            original(server, *arguments)
            if states in (['rebuilding'], ['rebuilding', 'rebuilding', 'rebuild_spawning']):
                raise SystemExit

        setattr(driver, name, watched)
    rebuild()
    for _ in range(3):
        try:
            service.worker.step()
        except SystemExit:
            free(store)
    assert states == ['rebuilding', 'rebuilding', 'rebuild_spawning', 'rebuild_spawning']
    assert servers.get(server.uuid).vm_state == 'active'


def free(store):
    """Release the tasks of a dead worker."""
    with store.write() as connection:
        connection.execute(tasks.update().values(owner=None, lease_until=None))


def test_the_action_is_recorded(store, rebuilt, server):
    rebuilt()
    with store.read() as connection:
        statement = sa.select(server_actions.c.action, server_action_events.c.event).join_from(
            server_actions, server_action_events
        )
        recorded = connection.execute(statement.where(server_actions.c.server_id == server.uuid)).all()
    assert ('rebuild', 'compute_rebuild_instance') in recorded


# ------------------------------------------------------------------ refusals


def test_states_in_which_it_is_not_possible(servers, server, rebuild):
    for state in ('paused', 'suspended', 'rescued', 'resized', 'shelved_offloaded', 'building'):
        servers.change(server.uuid, vm_state=state)
        refusal = f"Cannot 'rebuild' instance {server.uuid} while it is in vm_state {state}"
        assert message(rebuild(image=str(uuid.UUID(int=0)))) == (409, refusal)


def test_a_server_that_is_busy(rebuild, server):
    rebuild()
    assert message(rebuild()) == (
        409,
        f"Cannot 'rebuild' instance {server.uuid} while it is in task_state rebuilding",
    )


def test_a_locked_server(servers, server, rebuild):
    servers.change(server.uuid, locked_by='owner')
    assert message(rebuild()) == (409, f'Instance {server.uuid} is locked')


def test_a_server_that_never_ran(servers, server, rebuild):
    servers.change(server.uuid, vm_state='error', launched_at=None)
    assert rebuild().status == 409


def test_who_may_rebuild(rebuild):
    assert rebuild(as_='carol:project:reader').status == 403
    assert rebuild(as_='carol:other:member').status == 404


@pytest.fixture
def no_certificates(conf, tmp_path):
    rules = tmp_path / 'policy.yaml'
    rules.write_text("'os_compute_api:servers:rebuild:trusted_certs': '!'")
    conf.set_override('policy_file', str(rules), 'oslo_policy')


def test_certificates_have_a_rule_of_their_own(no_certificates, rebuild):
    assert 'trusted_certs' in rebuild('2.63', trusted_image_certificates=None).text
    assert rebuild('2.63').status == 202


def test_images_that_there_are_not(rebuild):
    assert message(rebuild(image=str(uuid.UUID(int=0)))) == (400, 'Cannot find image for rebuild')


def test_images_that_do_not_fit(world, rebuild):
    too_large = world.image(min_disk=9000)
    assert message(rebuild(image=too_large)) == (
        400,
        "Flavor's disk is smaller than the minimum size specified in image metadata. "
        f'Flavor disk is {2**30} bytes, minimum size is {9000 * 2**30} bytes.',
    )
    assert message(rebuild(image=world.image(min_ram=65)))[1] == "Flavor's memory is too small for requested image."
    queued = world.image(active=False)
    assert message(rebuild(image=queued)) == (400, f'Image {queued} is not active.')


def test_an_image_that_does_not_let_its_disk_be_resized(world, rebuild):
    image = world.image(properties={'auto_disk_config': 'disabled'})
    answer = rebuild(image=image, **{'OS-DCF:diskConfig': 'AUTO'})
    assert message(answer) == (400, f'Requested image {image} has automatic disk resize disabled.')


def test_keys_that_there_are_not(rebuild):
    assert message(rebuild('2.54', key_name='none')) == (400, 'Invalid key_name provided.')


def test_keys_are_those_of_the_caller(rebuild, rebuilt, key):
    """Whoever the server belongs to."""
    key('key'), key('hers')
    public_key = key('key', 'alice')
    colleague = 'alice:project:member,reader'
    assert message(rebuild(as_=colleague, key_name='hers')) == (400, 'Invalid key_name provided.')
    assert rebuilt(as_=colleague, key_name='key').public_key == public_key


def test_quotas(conf, rebuild):
    conf.set_override('metadata_items', 128, 'quota')
    many = {f'key{number}': 'value' for number in range(129)}
    assert message(rebuild(metadata=many)) == (403, 'Maximum number of metadata items exceeds 128')
    files = [{'path': f'/{number}', 'contents': ''} for number in range(6)]
    assert message(rebuild('2.56', personality=files)) == (403, 'Personality file limit exceeded')


def test_nothing_changes_when_it_is_refused(servers, server, rebuild):
    before = servers.get(server.uuid)
    rebuild(name='new', key_name='none')
    assert servers.get(server.uuid) == before


# ------------------------------------------------------------------ later failures


def test_ephemeral_disks_cannot_be_preserved(rebuilt, store, server):
    before = domain(store, server)
    after = rebuilt('2.1', preserve_ephemeral=True)
    assert after.vm_state == 'error' and 'preserving ephemeral' in after.fault['message']
    assert domain(store, server) == before


def test_an_image_for_another_machine(world, rebuilt, server):
    """The server is not touched and keeps its image, but shows the failure."""
    image = world.image(properties={'hw_architecture': 'mips'})
    after = rebuilt(image=image)
    assert after.vm_state == 'error' and 'No valid host' in after.fault['message']
    assert (after.image_id, after.image_properties) == (IMAGE, server.image_properties)


def test_a_machine_that_cannot_be_made(conf, rebuilt):
    conf.set_override('fail', ['spawn'], 'simulated')
    after = rebuilt(image=OTHER_IMAGE)
    assert (after.vm_state, after.task_state, after.image_id) == ('error', None, OTHER_IMAGE)


# ------------------------------------------------------------------ servers on volumes


@pytest.fixture
def volume(world):
    return world.volume(image_id=IMAGE)


@pytest.fixture
def server_on_volume(volume, made, settle):
    disk = {'boot_index': 0, 'uuid': volume, 'source_type': 'volume', 'destination_type': 'volume'}
    server = made(imageRef=None, block_device_mapping_v2=[disk])[-1]
    settle()
    return server.uuid


def image_of(world, volume):
    return world.volumes.get(world.bob, volume).image_metadata['image_id']


def test_a_volume_is_written_over_from_2_93_on(world, volume, server_on_volume, rebuild, settle, servers):
    answer = rebuild('2.92', image=OTHER_IMAGE, server_id=server_on_volume)
    text = 'Unable to rebuild with a different image for a volume-backed server.'
    assert message(answer) == (400, f'Image {OTHER_IMAGE} is unacceptable: {text}')
    answer = rebuild('2.93', image=OTHER_IMAGE, server_id=server_on_volume)
    assert answer.status == 202 and answer.json['server']['image'] == ''
    settle()
    after = servers.get(server_on_volume)
    assert (after.vm_state, after.image_id) == ('active', None)
    assert after.image_properties['os_distro'] == 'plan9'
    assert image_of(world, volume) == OTHER_IMAGE
    assert world.volumes.get(world.bob, volume).status == 'in-use'


def test_a_volume_keeps_its_image_until_2_92(world, volume, server_on_volume, rebuild, settle, servers):
    assert rebuild('2.92', server_id=server_on_volume).status == 202
    settle()
    assert servers.get(server_on_volume).vm_state == 'active' and image_of(world, volume) == IMAGE


def test_volumes_that_are_too_small(world, server_on_volume, rebuild):
    image = world.image(min_disk=2)
    answer = rebuild(image=image, server_id=server_on_volume)
    assert answer.status == 400 and 'Volume is smaller than the minimum size' in answer.text


def test_a_server_is_not_rebuilt_while_a_volume_of_its_is_not_in_use(world, volume, server_on_volume, rebuild):
    world.volumes.reset_status(world.admin, volume, status='maintenance')
    text = f"Invalid volume: volume '{volume}' status must be 'in-use'. Currently in 'maintenance' status"
    assert message(rebuild(server_id=server_on_volume)) == (400, text)
    world.volumes.reset_status(world.admin, volume, status='in-use')
    assert rebuild(server_id=server_on_volume).status == 202


def test_certificates_are_for_images(server_on_volume, rebuild):
    answer = rebuild('2.93', server_id=server_on_volume, trusted_image_certificates=['a'])
    assert answer.status == 400 and 'not supported when booting from volume' in answer.text


def test_a_volume_that_cannot_be_written_over(world, volume, server_on_volume, rebuild, settle, servers):
    answer = rebuild('2.93', image=OTHER_IMAGE, server_id=server_on_volume)
    world.images.delete(world.bob, OTHER_IMAGE)
    settle()
    assert answer.status == 202 and servers.get(server_on_volume).vm_state == 'error'
