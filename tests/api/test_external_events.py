"""External events from other services, and their effects."""

import uuid

import pytest
import sqlalchemy as sa

from computeapi.clock import utcnow
from computeapi.context import Context
from computeapi.db import block_devices
from computeapi.db.tables.volume import volumes

BOB = 'bob:project'
CONTEXT = Context(user_id='bob', project_id='project', roles=frozenset({'member', 'reader'}), request_id='req-1')
EVENTS = '/os-server-external-events'
ABSENT = '00000000-0000-0000-0000-000000000000'


def event_of(name, server_id, **more):
    return {'name': name, 'server_uuid': server_id} | more


@pytest.fixture
def send_events(api):
    """send_events(event, ...): the response to these events at the newest version."""
    return lambda *events, version='2.104', **more: api.post(EVENTS, {'events': list(events)}, version, **more)


@pytest.fixture
def work(service):
    """Let the workers do what is due."""

    def run():
        while service.worker.step():
            pass

    return run


def test_it_looks_like_the_sample(send_events, servers, sample, shape):
    answer = send_events(event_of('network-changed', servers.add(), tag='foo', status='completed'), version='2.1')
    assert answer.status == 200
    assert shape(answer.json) == shape(sample('os-server-external-events/event-create-resp.json'))


def test_each_event_has_its_answer(send_events, servers):
    here, homeless = servers.add(), servers.add(host=None)
    answer = send_events(
        event_of('network-changed', here, status='in-progress'),
        event_of('network-changed', ABSENT),
        event_of('network-vif-plugged', homeless, tag='x'),
        event_of('volume-extended', here),
        event_of('power-update', here),
        event_of('accelerator-request-bound', here),
        event_of('volume-reimaged', here),
    )
    assert answer.status == 207
    assert answer.json['events'] == [
        event_of('network-changed', here, status='completed', code=200),
        event_of('network-changed', ABSENT, status='failed', code=404),
        event_of('network-vif-plugged', homeless, tag='x', status='failed', code=422),
        event_of('volume-extended', here, status='failed', code=400),
        event_of('power-update', here, status='failed', code=400),
        event_of('accelerator-request-bound', here, status='failed', code=400),
        event_of('volume-reimaged', here, status='completed', code=200),
    ]


@pytest.mark.parametrize(
    ('name', 'first'),
    [('volume-extended', '2.51'), ('power-update', '2.76'), ('accelerator-request-bound', '2.82')]
    + [('volume-reimaged', '2.93')],
)
def test_names_come_with_versions(send_events, legacy, servers, name, first):
    event = event_of(name, servers.add(), tag='x')
    before = f'2.{int(first.partition(".")[2]) - 1}'
    assert send_events(event, version=first).status == 200
    assert name in send_events(event, version=before).json['badRequest']['message']
    assert legacy.post(EVENTS, {'events': [event]}).status == 400


@pytest.mark.parametrize(
    'events',
    [
        [],
        'x',
        [{'server_uuid': ABSENT}],
        [{'name': 'network-changed'}],
        [event_of('unknown', ABSENT)],
        [event_of('network-changed', 'x')],
        [event_of('network-changed', ABSENT, status='cf')],
        [event_of('network-changed', ABSENT, tag=5)],
        [event_of('network-changed', ABSENT, other=5)],
    ],
)
def test_bad_events_are_refused(api, events):
    assert api.post(EVENTS, {'events': events}).status == 400


def test_they_are_for_services(send_events, legacy, servers):
    refused = send_events(event_of('network-changed', servers.add()), as_=BOB)
    assert refused.json['forbidden']['message'] == (
        "Policy doesn't allow os_compute_api:os-server-external-events:create to be performed."
    )
    dropped = legacy.post(EVENTS, {'events': [event_of('network-changed', ABSENT, other=1)]})
    assert dropped.status == 207


def test_the_addresses_follow_the_ports(service, send_events, servers, work):
    service.networks.populate(CONTEXT)
    (network,) = service.networks.networks(CONTEXT)
    server_id = servers.add()
    port = service.networks.create_port(CONTEXT, network.id, server_id=server_id, host='compute1')
    entry = {'port_id': port.id, 'created': True, 'tag': None, 'mac_address': port.mac_address, 'addresses': []}
    servers.change(server_id, network_info=[entry])
    for _ in range(2):
        send_events(event_of('network-changed', server_id, tag=port.id))
    assert service.worker.step() and not service.worker.step()
    assert servers.get(server_id).network_info[0]['addresses'][0]['address'] == port.fixed_ips[0]['ip_address']
    service.networks.delete_port(CONTEXT, port.id)
    send_events(event_of('network-vif-deleted', server_id, tag=port.id))
    work()
    assert servers.get(server_id).network_info == []


@pytest.fixture
def attached(service, servers, store):
    """A running server with a volume of 1 GiB: the IDs of both."""
    server_id, volume = servers.add(), service.volumes.create(CONTEXT, 1)
    attachment = service.volumes.reserve(CONTEXT, volume.id, server_id)
    service.volumes.complete(CONTEXT, attachment, {'host': 'compute1', 'mountpoint': '/dev/vdb'})
    device = {
        'uuid': str(uuid.uuid4()),
        'server_id': server_id,
        'source_type': 'volume',
        'destination_type': 'volume',
        'device_name': '/dev/vdb',
        'volume_id': volume.id,
        'attachment_id': attachment,
        'volume_size': 1,
        'delete_on_termination': False,
        'created_at': utcnow(),
    }
    with store.write() as connection:
        block_devices.insert(connection, device)
    service.hypervisor.spawn(servers.get(server_id), [])
    return server_id, volume.id


@pytest.fixture
def size(store):
    """The size of a server's only disk."""

    def read(server_id):
        with store.read() as connection:
            return block_devices.of_servers(connection, [server_id])[0].volume_size

    return read


def test_an_extended_volume_is_seen(service, api, send_events, attached, size, servers, store, work):
    server_id, volume_id = attached
    with store.write() as connection:
        connection.execute(sa.update(volumes).where(volumes.c.id == volume_id).values(size=2))
    assert send_events(event_of('volume-extended', server_id, tag=volume_id)).status == 200
    work()
    assert size(server_id) == 2
    assert '/dev/vdb has 2 GiB' in service.hypervisor.console_output(servers.get(server_id), None)
    (action,) = api.get(f'/servers/{server_id}/os-instance-actions', '2.58').json['instanceActions']
    assert (action['action'], action['message']) == ('extend_volume', None)


def test_a_volume_that_grows_in_the_volume_service_is_seen(service, attached, size, work):
    server_id, volume_id = attached
    service.volumes.extend(CONTEXT, volume_id, 3)
    work()
    assert size(server_id) == 3


def test_a_volume_that_is_not_attached_changes_nothing(api, send_events, servers, work):
    server_id = servers.add()
    assert send_events(event_of('volume-extended', server_id, tag=ABSENT)).status == 200
    work()
    assert api.get(f'/servers/{server_id}/os-instance-actions', '2.58').json == {'instanceActions': []}


def test_the_power_follows_the_machine(service, send_events, servers, work):
    server_id = servers.add(locked_by='admin')
    service.hypervisor.spawn(servers.get(server_id), [])

    def after(tag):
        assert send_events(event_of('power-update', server_id, tag=tag)).status == 200
        work()
        server = servers.get(server_id)
        return server.vm_state, server.power_state, server.task_state

    assert after('POWER_OFF') == ('stopped', 4, None)
    assert after('POWER_OFF') == ('stopped', 4, None)
    assert after('HALF') == ('stopped', 4, None)
    assert after('POWER_ON') == ('active', 1, None)
    servers.change(server_id, task_state='rebuilding')
    assert after('POWER_OFF') == ('active', 1, 'rebuilding')
