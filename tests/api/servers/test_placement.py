"""Placement is kept up to date about hosts' inventories and servers' allocations, despite failures on the way."""

import threading
import uuid
from datetime import timedelta

import pytest
import sqlalchemy as sa

from computeapi.backends.placement import ConcurrentUpdate, ConsumerAllocations, PlacementRefused
from computeapi.compute.audit import CloudAudit
from computeapi.compute.mirror import Mirror
from computeapi.db import allocations, placement_changes
from computeapi.db.placement_changes import SERVER
from computeapi.db.tables import compute
from tests.api.servers.conftest import BOB
from tests.placement import PlacementInMemory

SMALL = {'VCPU': 1, 'MEMORY_MB': 64, 'DISK_GB': 1}
LARGE = {'VCPU': 2, 'MEMORY_MB': 64, 'DISK_GB': 1}


@pytest.fixture
def placement():
    return PlacementInMemory()


@pytest.fixture
def service(store, service, placement, monkeypatch):
    """The service reports later changes to Placement when `mirror.catch_up` is called."""
    monkeypatch.setattr(store, 'noted', threading.Event())
    service.mirror = Mirror(store, placement, service.hypervisor, service.conf)
    return service


@pytest.fixture
def mirror(service):
    return service.mirror


@pytest.fixture
def ids(store, cloud):
    """The IDs of providers by host name."""
    rows = store.query(lambda connection: connection.execute(sa.select(compute.hypervisors)).all())
    return {row.host: row.uuid for row in rows}


@pytest.fixture
def seen(mirror, placement, ids, store):
    """seen(): the allocations by host, after all changes were reported."""

    def look():
        mirror.catch_up()
        assert waiting(store) == []
        return {name: dict(placement.consumers_of(provider_id)) for name, provider_id in ids.items()}

    return look


def waiting(store):
    table = compute.placement_changes
    unsaid = sa.select(table.c.kind, table.c.id).where(table.c.change_id.is_not(None))
    return store.query(lambda connection: connection.execute(unsaid.order_by(table.c.kind)).all())


def hasten(store):
    """All pending changes become due."""
    now = sa.update(compute.placement_changes).values(due_at=None)
    store.change(lambda connection: connection.execute(now))


def rows(store):
    return store.query(lambda connection: connection.execute(sa.select(compute.placement_changes)).all())


def move(store):
    """The UUID of the only migration."""
    return store.query(lambda connection: connection.scalars(sa.text('SELECT uuid FROM migrations')).one())


# ------------------------------------------------------------------ servers


def test_a_server_from_its_boot_to_its_end(api, server, seen, settle, store, placement):
    assert seen() == {'compute1': {server: SMALL}, 'compute2': {}}
    held = placement.allocations_of(server)
    assert (held.type, held.project_id, held.user_id) == ('INSTANCE', 'project', 'bob')
    api.delete(f'/servers/{server}', as_=BOB)
    settle()
    assert seen() == {'compute1': {}, 'compute2': {}}
    assert rows(store) == []


def test_a_resize_is_held_by_its_move_until_it_is_confirmed(act, server, seen, store, cloud, placement):
    assert seen()['compute1'] == {server: SMALL}
    act(server, 'resize', {'flavorRef': cloud.flavor('2', vcpus=2).flavorid})
    migration = move(store)
    assert seen() == {'compute1': {migration: SMALL}, 'compute2': {server: LARGE}}
    assert placement.allocations_of(migration).type == 'MIGRATION'
    act(server, 'confirmResize')
    assert seen() == {'compute1': {}, 'compute2': {server: LARGE}}
    assert rows(store) == []


def test_a_resize_that_is_reverted(act, server, seen, store, cloud):
    act(server, 'resize', {'flavorRef': cloud.flavor('2', vcpus=2).flavorid})
    assert set(seen()['compute1']) == {move(store)}
    act(server, 'revertResize')
    assert seen() == {'compute1': {server: SMALL}, 'compute2': {}}
    assert rows(store) == []


def test_a_resize_of_which_nobody_was_told_in_between(act, server, seen, store, cloud, placement):
    seen()
    act(server, 'resize', {'flavorRef': cloud.flavor('2', vcpus=2).flavorid})
    act(server, 'confirmResize')
    assert seen() == {'compute1': {}, 'compute2': {server: LARGE}}
    assert {name for each in placement.told for name in each} == {server}


def test_a_live_migration(act, server, seen, service, store):
    act(server, 'os-migrateLive', {'host': None, 'block_migration': 'auto'}, '2.34', as_=None, work=False)
    assert seen() == {'compute1': {server: SMALL}, 'compute2': {}}
    while service.worker.step():
        seen()
    assert seen() == {'compute1': {}, 'compute2': {server: SMALL}}
    assert rows(store) == []


def test_a_live_migration_that_has_its_host_before_the_answer(api, act, server, seen, store):
    body = {'host': None, 'block_migration': False, 'disk_over_commit': False}
    act(server, 'os-migrateLive', body, as_=None, work=False)
    assert seen() == {'compute1': {move(store): SMALL}, 'compute2': {server: SMALL}}


def test_an_evacuation_leaves_the_old_host_last(act, server, seen, cloud):
    seen()
    cloud.down('compute1')
    act(server, 'evacuate', {}, '2.14', as_=None)
    assert seen() == {'compute1': {}, 'compute2': {server: SMALL}}


def test_a_shelved_server_holds_nothing(act, server, seen):
    act(server, 'shelve')
    assert seen() == {'compute1': {}, 'compute2': {}}
    act(server, 'unshelve')
    assert sum(map(len, seen().values())) == 1


# ------------------------------------------------------------------ hosts


def test_hosts_and_what_is_said_of_them(api, mirror, seen, placement, ids, cloud):
    cloud.service.conf.set_override('vcpus', 100, 'simulated')
    cloud.service.hosts.register()
    seen()
    there = placement.providers[ids['compute1']]
    assert there.name == 'compute1'
    assert there.inventories['VCPU'][:3] == (100, 4.0, 400)
    assert {'COMPUTE_NODE', 'COMPUTE_VOLUME_EXTEND'} <= set(there.traits)
    assert 'COMPUTE_STATUS_DISABLED' not in there.traits


def test_a_host_that_is_disabled(api, seen, placement, ids):
    [service] = api.get('/os-services?host=compute1&binary=nova-compute', '2.53').json['services']
    for status, there in (('disabled', True), ('enabled', False)):
        api.put(f'/os-services/{service["id"]}', {'status': status}, '2.53')
        seen()
        assert ('COMPUTE_STATUS_DISABLED' in placement.providers[ids['compute1']].traits) is there


def test_aggregates(api, seen, placement, ids):
    found = api.post('/os-aggregates', {'aggregate': {'name': 'a', 'availability_zone': None}}, '2.41').json[
        'aggregate'
    ]
    action = f'/os-aggregates/{found["id"]}/action'
    api.post(action, {'add_host': {'host': 'compute2'}})
    seen()
    assert placement.providers[ids['compute2']].aggregates == {found['uuid']: True}
    api.post(action, {'remove_host': {'host': 'compute2'}})
    assert api.delete(f'/os-aggregates/{found["id"]}').status == 200
    seen()
    assert placement.providers[ids['compute2']].aggregates == {}


def test_a_host_that_is_gone(api, mirror, seen, placement, ids):
    seen()
    [service] = api.get('/os-services?host=compute2&binary=nova-compute', '2.53').json['services']
    assert api.delete(f'/os-services/{service["id"]}', '2.53').status == 204
    seen()
    assert set(placement.providers) == {ids['compute1']}


# ------------------------------------------------------------------ concurrency and crashes


def test_a_server_waits_for_no_placement(api, create, settle, state, mirror, placement, store, ids, caplog):
    placement.away = True
    server = create().json['server']['id']
    settle()
    for _ in range(2):
        mirror.catch_up()
    assert state(server)[0] == 'ACTIVE'
    assert ('server', server) in waiting(store)
    assert [record.message for record in caplog.records if 'Placement' in record.message] == [
        'Placement is unavailable: 3 changes wait to be reported'
    ]
    placement.away = False
    mirror.catch_up()
    assert placement.consumers_of(ids['compute1']) == {server: SMALL} and waiting(store) == []


def test_a_claim_and_what_is_to_be_told_are_one_transaction(server, seen, store):
    seen()
    with pytest.raises(ZeroDivisionError), store.write() as connection:
        allocations.release(connection, server)
        raise ZeroDivisionError
    assert waiting(store) == []
    store.noted.clear()
    with store.write() as connection:
        allocations.release(connection, server)
        assert not store.noted.is_set()
    assert waiting(store) == [(SERVER, server)] and store.noted.is_set()


def test_who_dies_between_telling_and_forgetting_is_followed(server, mirror, placement, ids, store, monkeypatch):
    class Killed(BaseException):
        pass

    def die(*arguments):
        raise Killed

    forget = placement_changes.forget

    monkeypatch.setattr(placement_changes, 'forget', die)
    with pytest.raises(Killed):
        mirror.catch_up()
    monkeypatch.setattr(placement_changes, 'forget', forget)
    mirror.catch_up()
    assert len(waiting(store)) == 1, 'what somebody is at is left to that one for a while'
    hasten(store)
    mirror.catch_up()
    assert waiting(store) == []
    assert placement.consumers_of(ids['compute1']) == {server: SMALL}


def test_what_changes_while_it_is_told_is_told_again(server, mirror, placement, seen, ids, store, monkeypatch):
    hold = placement.set_allocations

    def grow(found):
        monkeypatch.setattr(placement, 'set_allocations', hold)
        hold(found)
        store.change(allocations.resize, server, 'compute1', {'vcpus': 3})

    monkeypatch.setattr(placement, 'set_allocations', grow)
    assert seen()['compute1'] == {server: SMALL | {'VCPU': 3}}


def test_two_mirrors_at_once(create, settle, mirror, placement, ids, service, store):
    made = [create().json['server']['id'] for _ in range(5)]
    settle()
    others = [Mirror(store, placement, service.hypervisor, service.conf) for _ in range(3)]
    threads = [threading.Thread(target=each.catch_up) for each in (mirror, *others)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for _ in range(20):
        hasten(store)
        mirror.catch_up()
    held = {key for provider_id in ids.values() for key in placement.consumers_of(provider_id)}
    assert held == set(made) and waiting(store) == []
    assert sorted(name for each in placement.told for name in each) == sorted(made)


def test_a_mirror_that_was_too_slow_says_nothing_old(server, mirror, placement, seen, service, store):
    seen()
    store.change(allocations.resize, server, 'compute1', {'vcpus': 2})
    [change] = store.query(placement_changes.due, store.clock(), 1)
    other = Mirror(store, placement, service.hypervisor, service.conf)
    compared = mirror._compare(server, None)
    store.change(allocations.resize, server, 'compute1', {'vcpus': 3})
    other.catch_up()
    with pytest.raises(ConcurrentUpdate):
        placement.set_allocations(compared[1])
    # It was slow, and finds that everything was reported: it cannot know by which of the two last.
    store.change(placement_changes.forget, change)
    assert waiting(store) == [(SERVER, server)]
    assert seen()['compute1'] == {server: SMALL | {'VCPU': 3}}


def test_what_is_refused_is_tried_again_later(server, mirror, placement, seen, ids, store, monkeypatch):
    def refuse(found):
        raise PlacementRefused('It has not so much.')

    monkeypatch.setattr(placement, 'set_allocations', refuse)
    for attempts in (1, 2):
        mirror.catch_up()
        [row] = rows(store)
        assert row.attempts == attempts
        assert timedelta(0) < row.due_at - store.clock() <= timedelta(seconds=attempts)
        hasten(store)
    monkeypatch.delattr(placement, 'set_allocations')
    assert seen()['compute1'] == {server: SMALL}


# ------------------------------------------------------------------ the audit


@pytest.fixture
def audit(service):
    return CloudAudit(service.platform)


def found(audit):
    return sorted(map(str, audit.findings()))


def test_the_audit_mends_what_placement_knows_otherwise(server, audit, seen, placement, ids, store, settle):
    seen()
    assert found(audit) == []
    ours, theirs = (
        ConsumerAllocations(str(uuid.uuid4()), kind, 'p', 'u', {ids['compute2']: SMALL})
        for kind in ('INSTANCE', 'OTHER')
    )
    placement.set_allocations([ours, theirs])
    held = placement.allocations_of(server)
    placement.set_allocations([held._replace(resources={ids['compute1']: LARGE})])
    placement.providers[ids['compute2']].inventories.pop('VCPU')
    placement.providers[ids['compute2']].traits['CUSTOM_THEIRS'] = True
    expected = [
        f'the allocation on compute1 in Placement of server {server}',
        f'the allocation on compute2 in Placement of server {ours.consumer_id}',
        'inventories in Placement of host compute2',
    ]
    assert found(audit) == sorted(expected)
    assert all(mended for _, mended in audit.repair())
    assert found(audit) == []
    assert seen() == {'compute1': {server: SMALL}, 'compute2': {theirs.consumer_id: SMALL}}
    assert 'CUSTOM_THEIRS' in placement.providers[ids['compute2']].traits


def test_the_audit_finds_what_was_never_told(server, audit, placement, ids, store):
    store.change(lambda connection: connection.execute(compute.placement_changes.delete()))
    assert len(found(audit)) == 3
    assert all(mended for _, mended in audit.repair())
    assert found(audit) == [] and placement.consumers_of(ids['compute1']) == {server: SMALL}


def test_what_the_audit_cannot_mend(server, audit, placement, seen, ids, store):
    seen()
    placement.providers[ids['compute1']].inventories.pop('VCPU')
    store.change(lambda connection: connection.execute(compute.placement_changes.delete()))
    placement.set_allocations([placement.allocations_of(server)._replace(resources={})])
    placement.declare = lambda provider: None
    assert [mended for _, mended in audit.repair()] == [True, False]


def test_the_audit_empties_a_move_that_is_over(act, server, audit, seen, placement, ids, store, cloud):
    act(server, 'resize', {'flavorRef': cloud.flavor('2', vcpus=2).flavorid})
    seen()
    assert found(audit) == []
    store.change(lambda connection: connection.execute(compute.placement_changes.delete()))
    act(server, 'confirmResize')
    assert seen()['compute1'] == {move(store): SMALL}
    assert found(audit) == [f'the allocation on compute1 in Placement of server {server}']
    assert all(mended for _, mended in audit.repair())
    assert seen()['compute1'] == {} and found(audit) == []


def test_the_audit_leaves_alone_what_is_about_to_be_told(server, audit, seen, store):
    seen()
    store.change(allocations.resize, server, 'compute1', {'vcpus': 2})
    assert found(audit) == []


def test_the_audit_goes_on_without_placement(server, audit, placement):
    placement.away = True
    assert found(audit) == []
