"""Invalid or unauthorized reports and responses of agents affect no host other than their own."""

import threading
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta

import pytest
from oslo_config import cfg

from computeapi import config
from computeapi.backends.hypervisor import (
    Capability,
    Console,
    Host,
    HostDown,
    HypervisorError,
    NotYet,
    Outdated,
    PowerState,
    require,
)
from computeapi.backends.hypervisor.remote import circuit_breaker
from computeapi.backends.hypervisor.remote import driver as module
from computeapi.backends.hypervisor.remote.calls import (
    ANSWER,
    CHUNK_BYTES,
    PIECE,
    REPORT,
    AgentAnswer,
    AnswerKind,
    Report,
)
from computeapi.backends.hypervisor.remote.circuit_breaker import ANSWER_SECONDS, OPEN_SECONDS, CircuitBreaker
from computeapi.backends.hypervisor.remote.codec import codec
from computeapi.backends.hypervisor.remote.driver import RemoteHypervisor
from computeapi.bus import Unanswered
from computeapi.compute.agent_reports import AgentReports, networks_of
from computeapi.compute.hosts import HostRegistry
from computeapi.db import cells
from computeapi.errors import DatabaseError, NotSupported

HOSTS, TIMEOUT = ('alpha', 'beta'), 10
CONSOLE = codec(Console)
OWN, STRANGE = [[str(uuid.uuid4()), host] for host in HOSTS]


class Answering:
    """A bus on which agents respond; answers: by topic."""

    def __init__(self):
        self.answers, self.calls = {}, 0

    def call(self, topic, method, seconds, **said):
        self.calls += 1
        found = self.answers[topic]
        if isinstance(found, list) and found:
            found = found.pop(0)
        return ANSWER.write(found) if isinstance(found, AgentAnswer) else found


def report_of(host, *capabilities, said=None, **kwargs):
    """said: fields of the report, besides those of the host."""
    its = Host(host, host, 'QEMU', 7002022, '192.0.2.1', 8, 1024, 10)
    report = Report(replace(its, **kwargs), frozenset(capabilities), 'x', 'x', 1, 'x')
    return REPORT.write(replace(report, **said or {}))


@pytest.fixture
def agent_reports(store):
    registry = HostRegistry(store, list, control=None, beat_seconds=0, clock=store.clock)
    made = AgentReports(store, registry, lambda host, machines: None)
    for host in HOSTS:
        made.report({}, report_of(host))
    return made


@pytest.fixture
def bus():
    return Answering()


@pytest.fixture
def driver(agent_reports, store, bus):
    return RemoteHypervisor(bus, store, down_after=60, longest=1, clock=store.clock)


def done(value):
    return AgentAnswer(AnswerKind.DONE, value)


@pytest.mark.parametrize(
    'answer',
    [
        AgentAnswer(AnswerKind.FAILED, text='The agent of host beta cannot verify the sender.'),
        AgentAnswer(AnswerKind.NOT_SUPPORTED, text='The agent of host beta is too old for this.'),
        AgentAnswer(AnswerKind.NOT_YET, seconds=1),
        AgentAnswer(AnswerKind.OUTDATED),
        done('x'),
        done([['x']]),
        {'kind': 'x'},
        [],
    ],
)
def test_the_machines_of_other_hosts_are_told_whatever_one_answers(monkeypatch, driver, bus, answer):
    monkeypatch.setattr(module, 'AGAIN_SECONDS', 0.1)
    bus.answers = {'agent-alpha': done([OWN]), 'agent-beta': answer}
    assert [*driver.machines()] == [tuple(OWN)]


def test_a_host_tells_of_its_own_machines_alone(driver, bus):
    bus.answers = {'agent-alpha': done([OWN, STRANGE]), 'agent-beta': done([])}
    assert [*driver.machines()] == [tuple(OWN)]


@pytest.mark.parametrize('answer', [done('on'), done(7), {'kind': 'x'}, {}, {'value': 'RUNNING'}, None])
def test_an_answer_without_sense_is_a_fault_of_that_host(driver, bus, servers, answer):
    bus.answers = {'agent-alpha': answer}
    with pytest.raises(HypervisorError, match='Host alpha sent an invalid response'):
        driver.power_state(servers.get(servers.add(host='alpha')))


@pytest.mark.parametrize('seconds', [float('inf'), float('nan'), 1e300, -1.0, None])
def test_nobody_waits_for_a_host_as_long_as_it_likes(driver, bus, servers, seconds):
    bus.answers = {'agent-alpha': AgentAnswer(AnswerKind.NOT_YET, seconds=seconds)}
    with pytest.raises(NotYet) as wait:
        driver.during(lambda step: 0.0, 1, 1).power_on(servers.get(servers.add(host='alpha')))
    assert 0 <= wait.value.seconds <= 3600


def test_a_host_cannot_invent_a_newer_claim(driver, bus, servers):
    """Work that was claimed again ends without a trace; other work must not."""
    bus.answers = {'agent-alpha': AgentAnswer(AnswerKind.OUTDATED)}
    server = servers.get(servers.add(host='alpha', claims=2))
    for token in (0, 2):
        with pytest.raises(HypervisorError, match='reports a newer claim, although there is none'):
            driver.during(lambda step: 0.0, token, 1).power_on(server)
    with pytest.raises(Outdated):
        driver.during(lambda step: 0.0, 1, 1).power_on(server)


def test_nobody_calls_a_host_without_a_pause(driver, bus, servers):
    bus.answers = {'agent-alpha': AgentAnswer(AnswerKind.NOT_YET, seconds=1e-9)}
    with pytest.raises(NotYet) as wait:
        driver.during(lambda step: 0.0, 1, 1).power_on(servers.get(servers.add(host='alpha')))
    assert wait.value.seconds >= module.MIN_WAIT_SECONDS


@pytest.mark.parametrize(
    'answer', [AgentAnswer(AnswerKind.FAILED, text='x\n' * 10**6), done('x\n' * 10**6), {'kind': 'x\n' * 10**6}]
)
def test_what_a_host_says_at_length_is_neither_logged_nor_stored(driver, bus, servers, caplog, answer):
    bus.answers = {'agent-alpha': answer}
    with pytest.raises(HypervisorError) as error:
        driver.power_state(servers.get(servers.add(host='alpha')))
    for text in (str(error.value), *caplog.messages):
        assert len(text) < 1100 and '\n' not in text


class Slow:
    """A bus on which alpha takes its time. inside: how many calls of alpha are in progress; most: have been at once."""

    def __init__(self):
        self.lock, self.let, self.inside, self.most = threading.Lock(), threading.Event(), 0, 0

    def call(self, topic, method, seconds, **said):
        if topic == 'agent-alpha':
            with self.lock:
                self.inside += 1
                self.most = max(self.most, self.inside)
            assert self.let.wait(TIMEOUT)
            with self.lock:
                self.inside -= 1
        return ANSWER.write(done('RUNNING'))


def test_a_host_that_takes_its_time_occupies_one_thread(monkeypatch, driver, servers):
    monkeypatch.setattr(circuit_breaker, 'SLOW_SECONDS', -1)
    monkeypatch.setattr(module, 'AGAIN_SECONDS', 0.01)
    driver.bus = slow = Slow()
    alpha, beta = (servers.get(servers.add(host=host)) for host in HOSTS)
    slow.let.set()
    assert driver.power_state(alpha) is PowerState.RUNNING
    slow.let.clear()
    with ThreadPoolExecutor(4) as pool:
        try:
            first = pool.submit(driver.power_state, alpha)
            while not slow.inside:
                assert not first.done()
            waiting = driver.during(lambda step: 0.0, 1, 1)
            with pytest.raises(NotYet):
                waiting.power_state(alpha)
            others = [pool.submit(driver.power_state, alpha) for _ in range(3)]
            assert driver.power_state(beta) is PowerState.RUNNING
        finally:
            slow.let.set()
        assert {each.result() for each in (first, *others)} == {PowerState.RUNNING}
    assert slow.most == 1


def test_one_call_at_a_time_tests_a_host_that_is_silent():
    now = 0.0
    made = CircuitBreaker(lambda: now)
    made.check('alpha')
    made.begin('alpha')
    now = OPEN_SECONDS + 1
    made.check('alpha')
    now += ANSWER_SECONDS
    with pytest.raises(Unanswered):
        made.check('alpha')
    made.end('alpha')
    made.check('alpha')


def test_who_cannot_wait_asks_again_until_his_time_is_over(monkeypatch, driver, bus, servers):
    monkeypatch.setattr(module, 'AGAIN_SECONDS', 0.1)
    bus.answers, began = {'agent-alpha': AgentAnswer(AnswerKind.NOT_YET, seconds=1)}, time.monotonic()
    with pytest.raises(HypervisorError, match='does not respond'):
        driver.power_on(servers.get(servers.add(host='alpha')))
    assert bus.calls > 1 and time.monotonic() - began >= 1


def test_who_waits_for_a_host_that_is_down_does_not_for_a_server_that_is_to_go(driver, bus, servers):
    bus.answers = {'agent-alpha': AgentAnswer(AnswerKind.UNDER_WAY)}
    staying, going = servers.add(host='alpha'), servers.add(host='alpha', task_state='deleting')
    told = driver.during(lambda step: 0.0, 1, 1)
    with pytest.raises(NotYet):
        told.power_on(servers.get(going))
    told.down_after = timedelta(seconds=-1)
    with pytest.raises(NotYet):
        told.power_on(servers.get(staying))
    with pytest.raises(HypervisorError, match='Host alpha does not respond'):
        told.power_on(servers.get(going))


def test_what_is_to_go_from_a_host_that_is_down_is_not_said_to_be_gone(driver, bus, servers):
    driver.down_after = timedelta(seconds=-1)
    with pytest.raises(HostDown, match='Host alpha is down'):
        driver.destroy(servers.get(servers.add(host='alpha')))
    assert not bus.calls


def test_what_one_host_cannot_do_others_can(agent_reports, driver):
    agent_reports.report({}, report_of('alpha', Capability.PAUSE))
    require(driver, Capability.PAUSE, 'alpha')
    for capability, host in ((Capability.SUSPEND, 'alpha'), (Capability.PAUSE, 'beta')):
        with pytest.raises(NotSupported):
            require(driver, capability, host)
    assert driver.capabilities_of(None) == driver.capabilities_of('unheard') == set(Capability)


def test_a_host_takes_no_hypervisor_from_another(agent_reports, driver):
    answer = agent_reports.report({}, report_of('alpha', hypervisor_hostname='beta'))
    assert answer['refused'] == 'hypervisor beta is of another host'
    assert [(each.name, each.hypervisor_hostname) for each in driver.hosts()] == [(host, host) for host in HOSTS]


def test_a_host_keeps_its_hypervisor_and_its_cell(agent_reports, driver, store):
    answer = agent_reports.report({}, report_of('alpha', hypervisor_hostname='gamma', said={'id': 'y'}))
    assert answer['refused'] == 'host alpha has another hypervisor than gamma'
    assert agent_reports.report({}, report_of('alpha', cell='cell9', said={'id': 'y'}))['refused'] == ''
    assert {each.cell for each in driver.hosts()} == {'cell1'} == {each.name for each in store.query(cells.every)}


@pytest.mark.parametrize(
    'facts',
    [
        {'name': None},
        {'name': ''},
        {'name': 'x' * 256},
        {'hypervisor_hostname': 'x\nINFO all is well'},
        {'hypervisor_type': 'x' * 65},
        {'host_ip': ''},
        {'vcpus': -1},
        {'memory_mb': 2**31},
        {'local_gb': None},
        {'traits': ['X' * 256]},
        {'traits': None},
        {'resources': {'VGPU': 2**31}},
        {'resources': {'x\ny': 1}},
        {'cpu_info': {'model': 'x' * 2**20}},
        {'said': {'machine': 'x' * 256}},
        {'said': {'connector': None}},
        {'said': {'machines': ['x']}},
        {'said': {'machines': [str(uuid.uuid4())] * 30_000}},
    ],
)
def test_a_report_that_no_agent_sends_is_refused(agent_reports, caplog, facts):
    report = report_of('alpha', **facts)
    assert agent_reports.report({}, report)['refused'] == 'it is not valid'
    assert max(map(len, caplog.messages)) < 100
    assert agent_reports.report({}, {'host': 'alpha'})['refused'] == 'it is not valid'


def test_hosts_have_addresses_in_the_networks_of_hosts(store):
    registry = HostRegistry(store, list, control=None, beat_seconds=0, clock=store.clock)
    conf = config.load()
    conf.set_override('allowed_networks', ['192.0.2.0/24', '2001:db8::/64'], 'agent')
    agent_reports = AgentReports(store, registry, lambda host, machines: None, (), networks_of(conf))
    for address, refused in (('192.0.2.7', False), ('2001:db8::7', False), ('127.0.0.1', True), ('localhost', True)):
        assert bool(agent_reports.report({}, report_of('alpha', host_ip=address))['refused']) is refused
    conf.set_override('allowed_networks', ['192.0.2.1/24'], 'agent')
    with pytest.raises(cfg.ConfigFileValueError, match='allowed_networks'):
        networks_of(conf)


def test_an_agent_hears_that_the_database_is_away(agent_reports, store, monkeypatch):
    @contextmanager
    def away():
        raise DatabaseError('gone')
        yield

    monkeypatch.setattr(store, 'write', away)
    assert agent_reports.report({}, report_of('alpha'))['refused'] == 'The database is currently unavailable.'


@pytest.mark.parametrize('sizes', [[CHUNK_BYTES, 1, 1], [1, CHUNK_BYTES], [CHUNK_BYTES + 1]])
def test_pieces_of_an_image_are_whole_except_the_last(driver, bus, servers, sizes):
    server = servers.get(servers.add(host='alpha'))
    pieces = [done(PIECE.write(bytes(size))) for size in (CHUNK_BYTES, 1, 0)]
    bus.answers = {'agent-alpha': [done('stream'), *pieces]}
    assert [len(piece) for piece in driver.snapshot(server, 'raw')] == [CHUNK_BYTES, 1]
    bus.answers = {'agent-alpha': [done('stream'), *(done(PIECE.write(bytes(size))) for size in sizes)]}
    with pytest.raises(HypervisorError, match='Host alpha sent an invalid response'):
        list(driver.snapshot(server, 'raw'))


def test_a_host_connects_to_volumes_as_itself(agent_reports, driver):
    agent_reports.report({}, report_of('alpha', said={'connector': {'host': 'beta', 'ip': '192.0.2.1'}}))
    assert driver.connector('alpha') == {'host': 'alpha', 'ip': '192.0.2.1'}


WORD = '0123456789abcdef' * 4


def test_a_console_is_at_the_address_of_its_host(driver, bus, servers):
    bus.answers = {'agent-alpha': done(CONSOLE.write(Console('127.0.0.1', 5999, internal_access_path=WORD)))}
    found = driver.console(servers.get(servers.add(host='alpha')), 'vnc')
    assert found == Console('192.0.2.1', 5999, internal_access_path=WORD)


@pytest.mark.parametrize(
    'facts',
    [
        {'port': 0},
        {'port': 2**16},
        {'port': None},
        {'tls_port': 2**31},
        {'internal_access_path': None},
        {'internal_access_path': f'{WORD}\n'},
        {'internal_access_path': 'FLUSHALL'},
    ],
)
def test_a_console_that_no_gate_has_is_not_connected_to(driver, bus, servers, facts):
    console = Console('192.0.2.1', 5999, internal_access_path=WORD)._replace(**facts)
    bus.answers = {'agent-alpha': done(CONSOLE.write(console))}
    with pytest.raises(HypervisorError, match='Host alpha sent an invalid response'):
        driver.console(servers.get(servers.add(host='alpha')), 'vnc')
