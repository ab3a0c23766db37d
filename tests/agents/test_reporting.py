"""The machines that an agent finds at its start: it reports them until none has to be removed."""

import threading
import uuid

import pytest

from computeapi import config
from computeapi.agent.process import own_store
from computeapi.agent.reporting import Reporter
from computeapi.backends.hypervisor.remote.calls import EXPECTATION
from computeapi.backends.hypervisor.simulated_lone import LoneSimulatedHypervisor
from computeapi.bus import Unanswered
from computeapi.compute.agent_reports import AgentReports
from computeapi.compute.hosts import HostRegistry
from computeapi.db import allocations
from computeapi.db.allocations import Amounts
from computeapi.db.tables.servers import domains, migrations
from computeapi.states import TaskState
from tests.agents.cloud import MACHINE

HOST = 'alpha'
CLAIM = Amounts(vcpus=1, memory_mb=64, disk_gb=1)
TIMEOUT = 10


class Worker:
    """Receives an agent's reports without a bus.

    told: the work for a host that is back, which is done as soon as `let` is set.
    """

    def __init__(self, store):
        self.told, self.let, self.over = [], threading.Event(), threading.Semaphore(0)
        self.away = False
        registry = HostRegistry(store, list, control=None, beat_seconds=0, clock=store.clock)
        self.agent_reports = AgentReports(store, registry, self.returned)

    def returned(self, host, machines):
        self.told.append((host, machines))
        assert self.let.wait(TIMEOUT)
        self.over.release()

    def call(self, topic, method, seconds, report):
        if self.away:
            raise Unanswered('the bus accepted no message')
        self.expected = EXPECTATION.read(self.agent_reports.report({}, report))
        return EXPECTATION.write(self.expected)


@pytest.fixture
def worker(store):
    return Worker(store)


@pytest.fixture
def own(tmp_path):
    """The store of the agent's driver."""
    store = own_store(tmp_path)
    yield store
    store.close()


@pytest.fixture
def reporter(worker, own):
    driver = LoneSimulatedHypervisor(own, config.load().simulated, own.clock, HOST, '127.0.0.1')
    return Reporter(worker, HOST, driver)


@pytest.fixture
def machine(own):
    """machine(server_id): creates a machine on the host."""

    def machine(server_id):
        with own.write() as connection:
            connection.execute(domains.insert().values(server_id=server_id, host=HOST, **MACHINE))
        return server_id

    return machine


def test_an_agent_hears_what_is_to_go(worker, reporter, store, servers, machine):
    stays, going, elsewhere, never = (machine(servers.add(host=host)) for host in (HOST, HOST, 'beta', 'beta'))
    deleted, stranger = machine(servers.add(deleted_at=servers.now(), host=HOST)), machine(str(uuid.uuid4()))
    facts = {'migration_type': 'live-migration', 'status': 'completed', 'created_at': servers.now()}
    move = {'uuid': str(uuid.uuid4()), 'server_id': elsewhere, 'source_host': HOST, 'dest_host': 'beta', **facts}
    store.change(lambda connection: connection.execute(migrations.insert().values(**move)))
    for server_id in (stays, going):
        store.change(allocations.replace, server_id, HOST, Amounts(), CLAIM)
    servers.change(going, task_state=TaskState.DELETING)
    worker.let.set()
    reporter.report()
    assert set(worker.expected.leaving) == {going, elsewhere, deleted}
    assert worker.told == [(HOST, sorted([stays, going, elsewhere, never, deleted, stranger]))]


def test_an_agent_says_what_is_there_until_nothing_is_to_go(worker, reporter, own, servers, machine, caplog):
    """The worker that should remove it may have been killed, so the report is repeated, but not while that work is in
    progress."""
    deleted = machine(servers.add(deleted_at=servers.now(), host=HOST))
    for _ in range(3):
        reporter.report()
    assert len(worker.told) == 1
    worker.let.set()
    assert worker.over.acquire(timeout=TIMEOUT)
    reporter.report()
    assert worker.over.acquire(timeout=TIMEOUT)
    with own.write() as connection:
        connection.execute(domains.delete())
    reporter.report()
    assert worker.over.acquire(timeout=TIMEOUT)
    assert worker.told == [(HOST, [deleted]), (HOST, [deleted]), (HOST, [])]
    reporter.report()
    assert not reporter.arriving and worker.expected.leaving == []
    assert len([each for each in caplog.messages if 'is here, but not expected' in each]) == 1


def test_an_agent_that_was_not_heard_says_again_what_is_there(worker, reporter, servers, machine):
    """Its host may have been taken for down meanwhile, and the server deleted."""
    worker.let.set()
    reporter.report()
    assert worker.over.acquire(timeout=TIMEOUT) and not reporter.arriving
    worker.away = True
    reporter.report()
    deleted = machine(servers.add(deleted_at=servers.now(), host=HOST))
    worker.away = False
    reporter.report()
    assert worker.over.acquire(timeout=TIMEOUT)
    assert worker.told == [(HOST, []), (HOST, [deleted])]
