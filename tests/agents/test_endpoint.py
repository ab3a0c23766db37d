"""What an agent does with calls, whoever sends them and however often."""

import os
import threading
import time
from dataclasses import replace
from datetime import timedelta

import pytest

from computeapi import config
from computeapi.agent.endpoint import AgentEndpoint
from computeapi.agent.executor import ServerExecutor
from computeapi.agent.gate import ConsoleGate
from computeapi.agent.process import own_store
from computeapi.agent.server_state import ServerStates
from computeapi.backends.hypervisor import HypervisorError, NotYet, Outdated, Unfit
from computeapi.backends.hypervisor.remote import signing
from computeapi.backends.hypervisor.remote.calls import (
    ANSWER,
    CALL,
    VERSION,
    AnswerKind,
    Call,
    WorkClaim,
    signature,
)
from computeapi.backends.hypervisor.remote.driver import result_of
from computeapi.backends.hypervisor.remote.signing import MAX_SECONDS, Receiver, is_signed, key_of, sign
from computeapi.backends.hypervisor.simulated_lone import LoneSimulatedHypervisor
from computeapi.errors import NeighbourAway

HOST = 'alpha'
NEWEST = WorkClaim(9, 9, 'task 9', waits=True)


class Told(LoneSimulatedHypervisor):
    """A driver that records its calls, and can be blocked."""

    def __init__(self, store, options, clock):
        super().__init__(store, options, clock, HOST, '127.0.0.1')
        self.heard, self.goes_on, self.begun = [], threading.Event(), threading.Semaphore(0)
        self.error = None
        self.goes_on.set()

    def act(self, operation, server, *lines):
        self.heard.append(operation)
        self.begun.release()
        assert self.goes_on.wait(30)
        if self.error is not None:
            raise self.error
        super().act(operation, server, *lines)


class AgentInTests:
    """An agent without a bus."""

    def __init__(self, folder, options):
        folder.mkdir(exist_ok=True)
        self.folder, self.options = folder, options
        self.store = own_store(folder)
        self.driver = Told(self.store, options, self.store.clock)
        self.states = ServerStates(folder / 'servers')
        self.executor, self.gate = ServerExecutor(self.states, 4), ConsoleGate(self.driver, '127.0.0.1', 0)
        self.endpoint = AgentEndpoint(HOST, self.driver, self.states, self.executor, self.gate, 60)

    def tell(self, operation, *args, host=HOST, work='task 7', token=3, patience=20.0, **kwargs):
        written = signature(operation).write(args, kwargs)
        claim = WorkClaim(token, 7, work, waits=True)
        return self.say(Call(host, operation, written, claim, patience=patience))

    def say(self, call, **more):
        return ANSWER.read(self.endpoint.tell({}, call={**CALL.write(call), **more}, later='unknown'))

    def again(self):
        """The agent that is started after this one was killed."""
        self.close()
        return AgentInTests(self.folder, self.options)

    def close(self):
        self.executor.close()
        self.gate.close()
        self.store.close()


@pytest.fixture
def agent(tmp_path):
    made = AgentInTests(tmp_path / HOST, config.load().simulated)
    yield made
    made.close()


@pytest.fixture
def server(servers):
    return servers.get(servers.add(host=HOST))


@pytest.fixture
def running(agent, server):
    assert agent.tell('spawn', server, []).kind is AnswerKind.DONE
    agent.driver.heard.clear()
    agent.driver.begun = threading.Semaphore(0)
    return server


def test_what_is_told_again_is_not_done_again(agent, running):
    for _ in range(3):
        assert agent.tell('reboot', running, hard=True).kind is AnswerKind.DONE
    assert agent.driver.heard == ['reboot']
    assert agent.tell('reboot', running, hard=True, work='task 8').kind is AnswerKind.DONE
    assert agent.driver.heard == ['reboot'] * 2


def test_an_agent_that_was_killed_knows_what_it_did(agent, running):
    agent.tell('reboot', running, hard=True)
    other = agent.again()
    assert other.tell('reboot', running, hard=True).kind is AnswerKind.DONE
    assert other.driver.heard == []
    assert other.tell('power_off', running, token=2).kind is AnswerKind.OUTDATED
    other.close()


def test_an_agent_that_can_write_nothing_down_works_on(agent, running):
    agent.states.directory = agent.states.directory / 'away'
    assert agent.tell('power_off', running).kind is AnswerKind.DONE
    assert agent.tell('destroy', running, work='task 8', token=4).kind is AnswerKind.DONE
    assert agent.tell('power_on', running, work='task 8', token=3).kind is AnswerKind.OUTDATED


def test_what_was_undone_meanwhile_is_done_again(agent, running):
    for operation in ('power_off', 'power_on', 'power_off'):
        agent.tell(operation, running)
    assert agent.driver.heard == ['power_off', 'power_on', 'power_off']


def test_what_comes_from_another_host_is_not_taken_for_what_was_removed(agent, running):
    elsewhere = replace(running, host='beta')
    agent.tell('destroy', running)
    agent.tell('prepare_live_migration', elsewhere, HOST, {})
    agent.driver.spawn(running, [])
    agent.tell('destroy', running)
    assert agent.driver.heard == ['destroy', 'prepare_live_migration', 'spawn', 'destroy']


def test_what_only_looks_changes_nothing_of_what_was_done(agent, running):
    agent.tell('reboot', running, hard=True)
    agent.tell('describe', running)
    agent.tell('reboot', running, hard=True)
    assert agent.driver.heard == ['reboot', 'describe']


def test_after_the_machine_was_switched_off_nothing_counts_as_done(agent, running):
    agent.tell('reboot', running, hard=True)
    agent.states.boot = 'another'
    agent.states.held.clear()
    agent.tell('reboot', running, hard=True)
    assert agent.driver.heard == ['reboot'] * 2


def test_who_is_told_that_it_is_under_way_hears_later_how_it_went(agent, running):
    agent.driver.goes_on.clear()
    assert agent.tell('reboot', running, hard=True, patience=0.0).kind is AnswerKind.UNDER_WAY
    assert agent.tell('reboot', running, hard=True, patience=0.0, token=4).kind is AnswerKind.UNDER_WAY
    agent.driver.goes_on.set()
    assert agent.tell('reboot', running, hard=True, token=5).kind is AnswerKind.DONE
    assert agent.driver.heard == ['reboot']


def test_an_agent_that_works_for_years_has_only_what_is_under_way_in_memory(agent, running):
    agent.driver.goes_on.clear()
    assert agent.tell('reboot', running, hard=True, patience=0.0).kind is AnswerKind.UNDER_WAY
    agent.driver.begun.acquire()
    assert [*agent.executor.operations] == [*agent.states.held] == [running.uuid]
    agent.driver.goes_on.set()
    assert agent.tell('reboot', running, hard=True).kind is AnswerKind.DONE
    assert not agent.executor.operations and not agent.states.held
    assert agent.tell('reboot', running, hard=True).kind is AnswerKind.DONE
    assert agent.driver.heard == ['reboot']


def test_what_nobody_comes_back_for_is_forgotten_and_what_is_under_way_is_not(agent, running, servers):
    other = servers.get(servers.add(host=HOST))
    agent.tell('spawn', other, [])
    agent.driver.begun.acquire()
    agent.driver.goes_on.clear()
    agent.tell('reboot', running, hard=True, patience=0.0)
    agent.driver.begun.acquire()
    for path in agent.states.directory.iterdir():
        os.utime(path, (0, 0))
    agent.states.forget()
    assert [path.stem for path in agent.states.directory.iterdir()] == [running.uuid]
    agent.driver.goes_on.set()


def test_work_waits_for_a_service_that_is_away_for_as_long_as_it_may(agent, running):
    agent.driver.error, first = NeighbourAway(name='Glance'), agent.states.clock()
    for seconds, kind in ((0, AnswerKind.NOT_YET), (59, AnswerKind.NOT_YET), (61, AnswerKind.FAILED)):
        agent.states.clock = lambda seconds=seconds: first + timedelta(seconds=seconds)
        assert agent.tell('reboot', running, hard=True).kind is kind
    at_once = Call(HOST, 'pause', signature('pause').write((running,), {}), WorkClaim(3, 8, 'task 8'), patience=20.0)
    assert agent.say(at_once).text == 'Glance is currently unavailable.'
    agent.driver.error = None
    assert agent.tell('pause', running).kind is AnswerKind.DONE


def test_one_thing_after_the_other_is_done_with_a_server_and_others_need_not_wait(agent, running, servers):
    agent.driver.goes_on.clear()
    assert agent.tell('reboot', running, hard=True, patience=0.0).kind is AnswerKind.UNDER_WAY
    assert agent.tell('pause', running, patience=0.0, token=4).kind is AnswerKind.UNDER_WAY
    agent.driver.begun.acquire(timeout=30)
    assert agent.driver.heard == ['reboot']
    assert agent.tell('power_state', running).value == 'RUNNING'
    other = servers.get(servers.add(host=HOST))
    assert agent.tell('spawn', other, [], patience=0.0).kind is AnswerKind.UNDER_WAY
    agent.driver.goes_on.set()
    while agent.tell('pause', running, token=4).kind is AnswerKind.UNDER_WAY:
        pass
    assert agent.driver.heard.count('pause') == 1


def test_an_agent_works_for_its_own_host_alone(agent, running):
    elsewhere = replace(running, host='beta')
    for answer in (
        agent.tell('power_off', running, host='beta'),
        agent.tell('power_off', elsewhere),
        agent.tell('prepare_live_migration', running, 'beta', {}),
        ANSWER.read(agent.endpoint.piece({}, 'beta', 'any', 0)),
    ):
        assert answer.kind is AnswerKind.FAILED and 'does not work for host' in answer.text
    assert agent.driver.heard == []


def test_an_agent_with_a_key_does_what_is_signed_with_it_and_lately(agent, running, monkeypatch):
    keys = (key_of('x' * 32, HOST),)
    agent.endpoint._receiver = Receiver(keys)
    calls = {}
    for operation in ('pause', 'power_off'):
        written = signature(operation).write((running,), {})
        calls[operation] = CALL.write(Call(HOST, operation, written, NEWEST, patience=9.0))
    said = sign(keys, 'tell', {'call': calls['pause']})
    begun = time.time() - MAX_SECONDS - 1
    with monkeypatch.context() as earlier:
        earlier.setattr(time, 'time', lambda: begun)
        late = sign(keys, 'tell', {'call': calls['pause']})
    for wrong in (
        {'call': calls['pause']},
        sign((key_of('x' * 32, 'beta'),), 'tell', {'call': calls['pause']}),
        sign(keys, 'piece', {'call': calls['pause']}),
        {**said, 'call': calls['power_off']},
        {**said, 'signed': {'moment': 'now', 'digest': None}},
        {**said, 'later': 'added'},
        late,
    ):
        assert ANSWER.read(agent.endpoint.tell({}, **wrong)).kind is AnswerKind.NOT_YET
    assert ANSWER.read(agent.endpoint.piece({}, HOST, 'any', 0)).kind is AnswerKind.FAILED
    assert agent.driver.heard == []
    assert ANSWER.read(agent.endpoint.tell({}, **said)).kind is AnswerKind.DONE


def test_two_keys_are_accepted_while_one_replaces_the_other():
    receiver = Receiver(('new', 'old'))
    assert all(receiver.accepts('tell', sign((key,), 'tell', {})) for key in ('new', 'old'))
    assert not receiver.accepts('tell', sign(('older',), 'tell', {}))
    assert is_signed(('new',), 'tell', sign(('new', 'old'), 'tell', {}))


def test_what_was_signed_is_done_once_though_other_work_is_done_since(agent, running):
    keys = (key_of('x' * 32, HOST),)
    agent.endpoint._receiver = Receiver(keys)
    said = []
    for operation in ('pause', 'unpause'):
        written = signature(operation).write((running,), {})
        call = CALL.write(Call(HOST, operation, written, NEWEST, patience=9.0))
        said.append(sign(keys, 'tell', {'call': call}))
        assert ANSWER.read(agent.endpoint.tell({}, **said[-1])).kind is AnswerKind.DONE
    assert ANSWER.read(agent.endpoint.tell({}, **said[0])).kind is AnswerKind.NOT_YET
    assert agent.driver.heard == ['pause', 'unpause']
    # A call that is sent again is signed again.
    again = sign(keys, 'tell', {'call': said[1]['call']})
    assert ANSWER.read(agent.endpoint.tell({}, **again)).kind is AnswerKind.DONE


def test_what_was_signed_before_an_agent_started_is_not_done_again(agent, running, monkeypatch):
    """Its previous process may have done it, and other work since."""
    keys, start = (key_of('x' * 32, HOST),), time.time()
    call = CALL.write(Call(HOST, 'pause', signature('pause').write((running,), {}), NEWEST, patience=9.0))
    monkeypatch.setattr(time, 'time', lambda: start)
    endpoint = AgentEndpoint(HOST, agent.driver, agent.states, agent.executor, agent.gate, keys=keys)
    assert ANSWER.read(endpoint.tell({}, **sign(keys, 'tell', {'call': call}))).kind is AnswerKind.NOT_YET
    monkeypatch.setattr(time, 'time', lambda: start + 2)
    assert ANSWER.read(endpoint.tell({}, **sign(keys, 'tell', {'call': call}))).kind is AnswerKind.DONE


def test_signatures_are_remembered_while_they_are_valid(monkeypatch):
    receiver, start = Receiver(('key',)), time.time()
    first = sign(('key',), 'tell', {})
    assert receiver.accepts('tell', first) and not receiver.accepts('tell', first)
    monkeypatch.setattr(time, 'time', lambda: start + MAX_SECONDS + 2)
    assert not receiver.accepts('tell', first)
    assert receiver.accepts('tell', sign(('key',), 'tell', {}))
    assert len(receiver._accepted) == 1


def test_an_earlier_control_plane_may_say_the_same_twice():
    moment = int(time.time())
    said = {'signed': {'moment': moment, 'digest': signing._digest('key', 'tell', {}, moment)}}
    receiver = Receiver(('key',))
    assert receiver.accepts('tell', said) and receiver.accepts('tell', said)


@pytest.mark.parametrize('server_id', ['../../etc/passwd', '', 'x' * 36])
def test_a_server_without_a_proper_id_is_none(agent, server, server_id):
    answer = agent.tell('spawn', replace(server, uuid=server_id), [])
    assert answer.kind is AnswerKind.FAILED and agent.driver.heard == []


@pytest.mark.parametrize('arguments', [{}, {'server': 5}, {'server': {}}, {'server': None, 'devices': 'x'}])
def test_what_makes_no_sense_is_refused(agent, arguments):
    answer = agent.say(Call(HOST, 'spawn', arguments, WorkClaim(1, 1, 'x', waits=True), patience=1.0))
    assert answer.kind is AnswerKind.FAILED and agent.driver.heard == []


def test_an_agent_passes_over_what_is_new(agent, running):
    newer = Call(HOST, 'power_off', signature('power_off').write((running,), {}), NEWEST, patience=9.0)
    newer.arguments['gently'] = True
    newer.arguments['server']['colour'] = 'red'
    assert agent.say(newer, colour='red').kind is AnswerKind.DONE


def test_an_agent_of_the_version_before_does_what_it_knows(agent, running):
    """The caller states the minimum version that the agent needs."""
    needed = replace(CALL.read(CALL.write(Call(HOST, 'power_off'))), needs=(VERSION[0], VERSION[1] + 1))
    needed.arguments.update(signature('power_off').write((running,), {}))
    assert agent.say(needed).kind is AnswerKind.NOT_SUPPORTED
    assert agent.say(replace(needed, needs=VERSION, claim=NEWEST, patience=9.0)).kind is AnswerKind.DONE
    assert agent.say(Call(HOST, 'paint', {})).kind is AnswerKind.NOT_SUPPORTED


def test_a_bug_is_told_without_its_traceback(agent, running):
    def broken(server):
        raise ZeroDivisionError('secret')

    agent.driver.console_output = lambda server, lines: broken(server)
    answer = agent.tell('console_output', running, 5)
    assert (answer.kind, answer.text) == (AnswerKind.FAILED, f'The driver of host {HOST} failed unexpectedly.')


@pytest.mark.parametrize(
    ('error', 'kind'), [(NotYet(2.5), AnswerKind.NOT_YET), (Outdated('x'), AnswerKind.OUTDATED)], ids=['wait', 'late']
)
def test_what_is_no_error_is_none_here(agent, running, error, kind):
    def told(*args, **kwargs):
        raise error

    agent.driver.power_state = told
    assert agent.tell('power_state', running).kind is kind


@pytest.mark.parametrize('error', [Unfit, HypervisorError])
def test_what_no_host_can_do_is_told_to_be_so(agent, running, error):
    agent.driver.error = error('This is why.')
    answer = agent.tell('pause', running)
    assert (answer.kind, answer.text, answer.unfit) == (AnswerKind.FAILED, 'This is why.', error is Unfit)
    with pytest.raises(error) as raised:
        result_of(answer)
    assert type(raised.value) is error


def test_a_step_takes_its_time_from_when_it_was_begun_first(agent, server):
    assert agent.states.passed(server.uuid, 'task 1', 'spawn') == 0
    other = agent.again()
    assert other.states.passed(server.uuid, 'task 1', 'spawn') > 0
    assert other.states.passed(server.uuid, 'task 2', 'spawn') == 0
    other.close()
