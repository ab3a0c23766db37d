"""The audit finds and repairs inconsistencies that no task will resolve, and leaves everything else alone."""

import threading
import uuid
from datetime import timedelta

import pytest
import sqlalchemy as sa

from computeapi.backends.hypervisor import NotYet, Outdated
from computeapi.backends.hypervisor.behaviour import at_once
from computeapi.clock import utcnow
from computeapi.compute import audit as module
from computeapi.compute.audit import CloudAudit
from computeapi.compute.servers import leftovers, placement
from computeapi.db import allocations
from computeapi.db.allocations import Amounts
from computeapi.db.tables.compute import hypervisors, quota_usages
from computeapi.db.tables.image import images
from computeapi.db.tables.servers import domains, migrations, tasks
from computeapi.db.tables.servers import servers as table
from tests.api.servers.conftest import BOB, NETWORK
from tests.invariants import problems


@pytest.fixture
def audit(service):
    return CloudAudit(service.platform)


@pytest.fixture
def change(store):
    """change(statement): changes the database, as a fault or an operator could."""
    return lambda statement: store.change(lambda connection: connection.execute(statement))


@pytest.fixture
def gone(api, server, settle):
    """The ID of a deleted server."""
    assert api.delete(f'/servers/{server}', as_=BOB).status == 204
    settle()
    return server


@pytest.fixture
def repaired(audit, settle):
    """repaired(): the first words of the findings; the workers then do what the repair left to them."""

    def repair():
        found = [(finding, mended) for finding, mended in audit.repair()]
        settle()
        assert all(mended for _, mended in found)
        return [finding.what for finding, _ in found]

    return repair


@pytest.fixture
def leave(change):
    """leave(server_id): leaves a machine of the server on compute2, to which it was to be migrated."""

    def leave(server_id):
        facts = {'migration_type': 'migration', 'status': 'error', 'created_at': utcnow()}
        move = {'uuid': str(uuid.uuid4()), 'server_id': server_id, 'dest_host': 'compute2', **facts}
        change(migrations.insert().values(**move))
        change(domains.insert().values(server_id=server_id, host='compute2', **MACHINE))

    return leave


CLAIM = Amounts(vcpus=1, memory_mb=64, disk_gb=1)
MACHINE = {'power_state': 1, 'console_log': '', 'created_at': utcnow()}


def test_a_sound_cloud_is_left_alone(cloud, act, server, audit):
    assert list(audit.findings()) == []
    act(server, 'resize', {'flavorRef': cloud.flavor('2', vcpus=2).flavorid}, work=False)
    assert list(audit.findings()) == []
    while cloud.service.worker.step():
        assert list(audit.findings()) == []


def test_a_passing_state(api, cloud, server, change, repaired, state, store):
    change(table.update().values(task_state='resize_migrating'))
    assert repaired() == ['the transient state']
    assert state(server)[:4] == ('ERROR', 'error', 1, None)
    shown = api.get(f'/servers/{server}').json['server']
    assert shown['fault']['message'] == 'No worker continued resize_migrating.'
    assert problems(store) == []


def test_a_build_that_nothing_continues(api, server, change, repaired, state, store):
    change(table.update().values(vm_state='building', task_state=None))
    assert repaired() == ['the transient state']
    assert state(server)[:2] == ('ERROR', 'error')
    assert api.get(f'/servers/{server}').json['server']['fault']['message'] == 'No worker continued building.'
    assert problems(store) == []


@pytest.mark.parametrize('doing', ['deleting', 'soft-deleting'])
def test_a_deletion(api, cloud, server, change, repaired, state, store, doing):
    cloud.service.conf.set_override('reclaim_instance_interval', 3600)
    change(table.update().values(task_state=doing))
    assert repaired() == ['the transient state']
    assert (api.get(f'/servers/{server}').status == 404) is (doing == 'deleting')
    assert doing == 'deleting' or state(server)[0] == 'SOFT_DELETED'
    assert problems(store) == []


@pytest.mark.parametrize('alive', [True, False])
def test_a_claim_and_a_machine_on_another_host(request, cloud, leave, repaired, store, alive):
    owner = request.getfixturevalue('server' if alive else 'gone')
    store.change(allocations.replace, owner, 'compute2', Amounts(), CLAIM)
    assert repaired() == ['the claim on compute2']
    leave(owner)
    assert repaired() == ['the machine on compute2']
    assert problems(store) == []


def test_who_had_work_on_a_deleted_server_makes_no_machine_of_it_again(cloud, gone, leave, repaired, servers):
    leave(gone)
    assert repaired() == ['the machine on compute2']
    late, server = cloud.service.hypervisor.during(at_once, 1), placement.at(servers.get(gone), 'compute2')
    with pytest.raises(Outdated):
        late.spawn(server, [])
    assert (gone, 'compute2') not in cloud.service.hypervisor.machines()


@pytest.mark.parametrize('error', [NotYet(1), Outdated('Claim 1 is not the newest.')])
def test_a_machine_at_which_others_are_is_left_to_the_next_audit(
    service, gone, leave, audit, repaired, monkeypatch, error
):
    leave(gone)

    def destroy(self, server):
        raise error

    with monkeypatch.context() as patched:
        patched.setattr(type(service.hypervisor), 'destroy', destroy)
        assert [mended for _, mended in audit.repair()] == [False]
    assert repaired() == ['the machine on compute2']


def test_the_machine_of_a_server_that_nobody_knows_is_told_of_and_left_alone(cloud, audit, change):
    stranger = str(uuid.uuid4())
    change(domains.insert().values(server_id=stranger, host='compute2', **MACHINE))
    [(finding, mended)] = audit.repair()
    assert (str(finding), mended) == (f'the machine on compute2 of an unknown server {stranger}', False)
    assert (stranger, 'compute2') in cloud.service.hypervisor.machines()


@pytest.mark.parametrize('alive', [True, False])
def test_the_machine_of_a_server_that_was_never_there_is_told_of_and_left_alone(
    request, cloud, audit, change, monkeypatch, alive
):
    """A host that has been taken over must not learn of others' servers by naming them."""
    owner = request.getfixturevalue('server' if alive else 'gone')
    change(domains.insert().values(server_id=owner, host='compute2', **MACHINE))
    with monkeypatch.context() as patched:
        patched.delattr(type(cloud.service.hypervisor), 'destroy')
        [(finding, mended)] = audit.repair()
    assert (str(finding), mended) == (f'the machine on compute2 of a server that was never there {owner}', False)


def test_only_so_many_machines_of_one_host_are_treated_in_one_audit(audit, gone, leave, change, monkeypatch):
    """First those that can be removed."""
    monkeypatch.setattr(module, 'STRAYS', 2)
    for host in ('compute1', 'compute2'):
        for _ in range(3):
            change(domains.insert().values(server_id=str(uuid.uuid4()), host=host, **MACHINE))
    leave(gone)
    owners = ['an unknown server', 'an unknown server', 'server', 'an unknown server']
    assert [finding.owner for finding in audit.findings()] == owners


def test_what_a_resize_may_go_back_to_is_kept(cloud, act, server, repaired, store):
    act(server, 'resize', {'flavorRef': cloud.flavor('2', vcpus=2).flavorid})
    store.change(allocations.replace, server, 'compute3', Amounts(), CLAIM)
    assert repaired() == ['the claim on compute3']
    act(server, 'revertResize')
    assert problems(store) == []


def test_a_claim_of_nobody(cloud, repaired, store):
    store.change(allocations.replace, 'nobody', 'compute1', Amounts(), CLAIM)
    assert repaired() == ['the claim on compute1']
    assert problems(store) == []


def test_what_is_counted_wrong_of_a_host(cloud, server, change, repaired, store):
    change(hypervisors.update().where(hypervisors.c.host == 'compute1').values(used_memory_mb=77))
    assert problems(store) == ['host compute1 has other claims than are counted']
    assert repaired() == ['the usage count']
    assert problems(store) == []


def test_what_other_services_keep_for_a_server_that_is_gone(world, gone, repaired, store):
    port = world.port(name='port')
    world.networks.bind_port(world.admin, port, server_id=gone, host='compute1')
    volume = world.volume(name='volume')
    world.volumes.reserve(world.bob, volume, gone)
    assert repaired() == [f'the port {port}', f'the attachment of volume {volume}']
    assert world.networks.port(world.bob, port).device_id == ''
    assert world.volumes.get(world.bob, volume).status == 'available'
    assert problems(store) == []


def test_what_was_made_too_late_is_given_back(world, server, servers, api, settle, store):
    late = servers.get(server)
    assert api.delete(f'/servers/{server}', as_=BOB).status == 204
    settle()
    world.networks.create_port(world.admin, NETWORK, server_id=server, host='compute1')
    volume = world.volume(name='volume')
    world.volumes.reserve(world.bob, volume, server)
    leftovers.settle(world.service.platform, world.bob, late)
    assert problems(store) == []


def test_use_of_quotas_that_is_miscounted(server, change, repaired, store):
    change(quota_usages.update().where(quota_usages.c.resource == 'cores').values(amount=5))
    change(quota_usages.delete().where(quota_usages.c.resource == 'instances'))
    assert repaired() == ['the count of cores, too high by 4,', 'the count of instances, too low by 1,']
    assert problems(store) == []


@pytest.mark.parametrize('kind', ['snapshot', 'backup'])
def test_an_image_that_nobody_sends_the_data_of(world, server, change, repaired, kind):
    properties = {'instance_uuid': server, 'image_type': kind}
    waiting = world.image(active=False, properties=properties)
    assert repaired() == []
    change(images.update().where(images.c.id == waiting).values(created_at=utcnow() - timedelta(hours=2)))
    assert repaired() == [f'the unfinished image {waiting}']
    assert waiting not in {image.id for image in world.images.list(world.bob)}


def test_what_a_task_holds_is_left_alone(cloud, act, server, audit, settle, store):
    act(server, 'os-stop', work=False)
    store.change(allocations.replace, server, 'compute2', Amounts(), CLAIM)
    assert list(audit.findings()) == []
    settle()
    assert [finding.what for finding in audit.findings()] == ['the claim on compute2']


def test_it_is_done_now_and_then_by_one_process(store, cloud, server, change, service, monkeypatch):
    turns, over = iter([False, True, True]), threading.Event()

    def is_mine():
        mine = next(turns, None)
        if mine is None:
            over.set()
        return mine

    change(table.update().values(task_state='resize_migrating'))
    monkeypatch.setattr(service.heartbeat, 'is_first', is_mine)
    auditor = service.periodic_in_one_process('audit', service.repair, 0.01)
    auditor.start()
    assert over.wait(30)
    auditor.stop()
    with store.read() as connection:
        assert connection.scalars(sa.select(tasks.c.kind)).all() == ['reset']


def test_one_of_the_living_processes_is_the_first(service, store):
    from computeapi.compute.tasks.heartbeat import Heartbeat
    from computeapi.compute.tasks.queue import Tasks

    beats = [Heartbeat(Tasks(store, 12), 'computeapi-worker', 'control', workers) for workers in (0, 2, 2)]
    assert [beat.is_first() for beat in beats] == [False, False, False]
    for beat in beats:
        beat.begin()
    assert [beat.is_first() for beat in beats] == [False, True, False]
    beats[1].end()
    assert [beat.is_first() for beat in beats] == [False, False, True]
