"""A real Placement agrees with the claims, from the first host to the last server, even after an outage."""

import threading
import time
import uuid
from contextlib import closing

import pytest
import sqlalchemy as sa

from computeapi.db.tables import compute
from computeapi.db.tables.servers import migrations
from tests.api.servers.conftest import BOB, IMAGE, NETWORK, World, body
from tests.conftest import emptied
from tests.neighbours import cloud
from tests.proxy import Proxy

SMALL = {'VCPU': 1, 'MEMORY_MB': 64, 'DISK_GB': 1}
LARGE = {'VCPU': 2, 'MEMORY_MB': 64, 'DISK_GB': 1}
TIMEOUT_SECONDS = 60
OPTIONS = """
[DEFAULT]
task_sweep_interval = 0.5
[placement]
enabled = true
connect_retries = 0
endpoint_override = http://127.0.0.1:{port}
[simulated]
hosts = 2
host_name = {name}-
"""


@pytest.fixture
def line():
    """The connection to Placement, which can be cut."""
    url = cloud.running().service('placement').get_endpoint_data().url
    host, _, port = url.partition('://')[2].partition('/')[0].partition(':')
    with closing(Proxy(host, int(port))) as proxy:
        yield proxy


@pytest.fixture
def conf(line, tmp_path):
    """All other services are built in."""
    made = cloud.running().conf(text=OPTIONS.format(port=line.port, name=f'host-{uuid.uuid4()}'))
    for (group, option), value in {
        ('api', 'auth_strategy'): 'none',
        ('api', 'response_validation'): 'error',
        ('standalone', 'data_dir'): str(tmp_path),
    }.items():
        made.set_override(option, value, group)
    return made


@pytest.fixture
def store(stores, monkeypatch):
    found = emptied(stores('sqlite'))
    monkeypatch.setattr(found, 'noted', threading.Event())
    return found


@pytest.fixture
def world(service):
    world = World(service)
    service.hosts.register()
    world.image(IMAGE)
    world.network(NETWORK)
    world.flavor()
    return world


@pytest.fixture
def ids(store, world, line):
    """The IDs of the providers by name; all are deleted at the end."""
    table = compute.hypervisors
    rows = store.query(lambda connection: connection.execute(sa.select(table).order_by(table.c.id)).all())
    yield {row.host: row.uuid for row in rows}
    line.go_on()
    real = cloud.running().service('placement')
    for row in rows:
        for consumer_id in there(row.uuid):
            real.delete(f'/allocations/{consumer_id}')
        real.delete(f'/resource_providers/{row.uuid}', raise_exc=False)


def there(provider_id):
    """The allocations of a provider according to Placement; empty if it does not know the provider."""
    path = f'/resource_providers/{provider_id}/allocations'
    answer = cloud.running().service('placement').get(path, raise_exc=False).json()
    return {key: each['resources'] for key, each in answer.get('allocations', {}).items()}


@pytest.fixture
def seen(service, ids):
    """seen(): the allocations of the two hosts."""

    def look():
        service.mirror.catch_up()
        return [there(provider_id) for provider_id in ids.values()]

    return look


@pytest.fixture
def act(api, service):
    def post(server, name, argument=None, version='2.1', as_=BOB):
        answer = api.post(f'/servers/{server}/action', {name: argument}, version, as_=as_)
        assert answer.status < 300, answer
        while service.worker.step():
            pass

    return post


def boot(api):
    answer = api.post('/servers', body(), as_=BOB)
    assert answer.status == 202
    return answer.json['server']['id']


def test_a_server_on_its_way(api, service, world, seen, act, store):
    server = boot(api)
    while service.worker.step():
        pass
    assert sorted(seen(), key=len) == [{}, {server: SMALL}]
    act(server, 'resize', {'flavorRef': world.flavor('2', vcpus=2).flavorid})
    [migration] = store.query(lambda connection: connection.scalars(sa.select(migrations.c.uuid)).all())
    assert sorted(seen(), key=str) == sorted([{migration: SMALL}, {server: LARGE}], key=str)
    act(server, 'confirmResize')
    assert sorted(seen(), key=len) == [{}, {server: LARGE}]
    act(server, 'os-migrateLive', {'host': None, 'block_migration': 'auto'}, '2.34', as_=None)
    assert sorted(seen(), key=len) == [{}, {server: LARGE}]
    act(server, 'shelve')
    assert seen() == [{}, {}]
    act(server, 'unshelve')
    assert sorted(seen(), key=len) == [{}, {server: LARGE}]
    api.delete(f'/servers/{server}', as_=BOB)
    while service.worker.step():
        pass
    assert seen() == [{}, {}]


def test_hosts_of_the_cloud(api, service, ids, seen):
    real, (name, provider_id) = cloud.running().service('placement'), next(iter(ids.items()))
    found = api.post('/os-aggregates', {'aggregate': {'name': 'a', 'availability_zone': None}}, '2.41').json[
        'aggregate'
    ]
    api.post(f'/os-aggregates/{found["id"]}/action', {'add_host': {'host': name}})
    [compute_service] = api.get(f'/os-services?host={name}&binary=nova-compute', '2.53').json['services']
    api.put(f'/os-services/{compute_service["id"]}', {'status': 'disabled'}, '2.53')
    seen()
    path = f'/resource_providers/{provider_id}'
    assert real.get(path).json()['name'] == name
    traits = real.get(f'{path}/traits', microversion='1.6').json()['traits']
    assert {'COMPUTE_NODE', 'COMPUTE_STATUS_DISABLED'} <= set(traits)
    assert real.get(f'{path}/aggregates', microversion='1.19').json()['aggregates'] == [found['uuid']]
    room = real.get(f'{path}/inventories').json()['inventories']
    assert {kind: each['total'] for kind, each in room.items()} == {
        'VCPU': 512,
        'MEMORY_MB': 1024 * 1024,
        'DISK_GB': 64 * 1024,
    }
    api.delete(f'/os-services/{compute_service["id"]}', '2.53')
    service.mirror.catch_up()
    assert real.get(path, raise_exc=False).status_code == 404


def test_placement_is_away_while_servers_come_and_go(api, service, ids, line, store):
    def statuses(servers):
        return {api.get(f'/servers/{server}').json.get('server', {}).get('status') for server in servers}

    service.start()
    try:
        first = [boot(api) for _ in range(5)]
        until(lambda: statuses(first) == {'ACTIVE'})
        line.refuse()
        later = [boot(api) for _ in range(5)]
        for server in first[:3]:
            api.delete(f'/servers/{server}', as_=BOB)
        until(lambda: statuses(first[3:] + later) == {'ACTIVE'} and statuses(first[:3]) == {None})
        line.go_on()
        kept = {*first[3:], *later}
        until(lambda: {key for each in ids.values() for key in there(each)} == kept)
        for server in kept:
            api.delete(f'/servers/{server}', as_=BOB)
        until(lambda: not any(there(each) for each in ids.values()))
    finally:
        service.stop()
    changes = store.query(lambda connection: connection.execute(sa.select(compute.placement_changes)).all())
    assert changes == []


def until(is_so):
    deadline = time.monotonic() + TIMEOUT_SECONDS
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def test_the_audit_finds_and_mends_what_is_wrong_there(api, service, ids, seen):
    server, real = boot(api), cloud.running().service('placement')
    while service.worker.step():
        pass
    seen()
    assert list(service.audit.placement()) == []
    real.delete(f'/allocations/{server}')
    provider_id = next(iter(ids.values()))
    stray, theirs = str(uuid.uuid4()), str(uuid.uuid4())
    held = {'allocations': {provider_id: {'resources': SMALL}}, 'project_id': 'p', 'user_id': 'u'}
    for consumer_id, kind in ((stray, 'INSTANCE'), (theirs, 'RESERVATION')):
        document = held | {'consumer_generation': None, 'consumer_type': kind}
        real.put(f'/allocations/{consumer_id}', json=document, microversion='1.38')
    real.delete(f'/resource_providers/{provider_id}/traits', microversion='1.6')
    assert sorted(found.server_id for found in service.audit.placement()) == sorted([server, stray, next(iter(ids))])
    assert all(mended for _, mended in service.audit.repair())
    assert list(service.audit.placement()) == []
    assert {key for each in ids.values() for key in there(each)} == {server, theirs}
