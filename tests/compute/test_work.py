"""How work on a server ends: successfully, with an error, after retries, or overtaken by another task."""

import itertools
import json
import logging
import re
from dataclasses import replace
from datetime import timedelta

import pytest

from computeapi import log
from computeapi.backends.hypervisor import NotYet, Outdated, PowerState
from computeapi.compute.tasks.fence import BEGUN, Superseded
from computeapi.compute.tasks.queue import Tasks
from computeapi.compute.tasks.runner import MAX_ATTEMPTS, Runner
from computeapi.compute.tasks.transition import Transition
from computeapi.compute.tasks.worker import Worker
from computeapi.context import Context
from computeapi.db import actions
from computeapi.db import servers as rows
from computeapi.db.tables.servers import server_action_events, server_actions
from computeapi.errors import Conflict, DatabaseError, Deadlock, Unavailable

BOB = Context(user_id='bob', project_id='project', roles=frozenset({'member', 'reader'}), request_id='req-1')


@pytest.fixture
def platform(service, clock):
    service.platform.tasks.clock = clock
    return replace(service.platform, clock=clock)


@pytest.fixture
def runner(platform):
    """A runner whose only transition is the test's."""
    return Runner(platform, [])


@pytest.fixture
def add_task(platform, runner, store, clock, servers):
    """add_task(function): lets the workers run this for a server; returns the server's ID."""

    def put(function, task_state='testing', steps=()):
        test = Transition('test', during='testing', steps=steps)
        test.work(function)
        runner.transitions = {test.kind: test}
        server_id = servers.add(task_state=task_state)
        with store.write() as connection:
            action_id = actions.start(connection, BOB, server_id, test.name, clock())
            platform.tasks.add(connection, test, server_id, BOB, action_id=action_id)
        return server_id

    return put


@pytest.fixture
def work(platform, runner, clock):
    """work(): do what is due, and later what was postponed; returns the number of tasks processed."""

    def step_all():
        working, steps = Worker(platform.tasks, runner, 0, 1), 0
        while working.step():
            steps += 1
            clock.forward(2)
        return steps

    return step_all


@pytest.fixture
def outcome(store, servers):
    """outcome(server_id): vm_state, task_state, and the messages of the fault and of the action."""

    def get(server_id):
        server = servers.get(server_id)
        with store.read() as connection:
            action = connection.execute(server_actions.select().where(server_actions.c.server_id == server_id)).one()
        assert action.finish_time is not None
        return server.vm_state, server.task_state, (server.fault or {}).get('message'), action.message

    return get


def test_work_that_succeeds(platform, add_task, work, outcome):
    server_id = add_task(lambda job: job.finish(vm_state='stopped'))
    assert work() == 1
    assert outcome(server_id) == ('stopped', None, None, None)
    assert platform.tasks.idle()


def test_work_that_fails(platform, add_task, work, outcome):
    def fail(job):
        raise Conflict('There is no room.')

    server_id = add_task(fail)
    assert work() == 1
    assert outcome(server_id) == ('error', None, 'There is no room.', 'Error')
    assert platform.tasks.idle()


def test_clients_do_not_read_what_broke(add_task, work, outcome):
    def fail(job):
        raise RuntimeError('password: secret')

    server_id = add_task(fail)
    work()
    assert outcome(server_id) == ('error', None, 'RuntimeError', 'Error')


def test_a_service_that_is_away_for_a_while_is_waited_for(add_task, work, outcome):
    def try_again(job):
        if job.task.attempts < 3:
            raise Unavailable('The network service does not answer.')
        job.finish(vm_state='active')

    server_id = add_task(try_again)
    assert work() == 3
    assert outcome(server_id) == ('active', None, None, None)


def test_a_database_error_during_an_event_does_not_end_it(platform, add_task, work, outcome, store):
    def try_again(job):
        with job.event('step'):
            if job.task.attempts < 2:
                raise DatabaseError('It is away.')
        job.finish(vm_state='active')

    server_id = add_task(try_again)
    assert work() == 2
    assert outcome(server_id) == ('active', None, None, None)
    with store.read() as connection:
        [event] = connection.execute(server_action_events.select()).all()
    assert (event.event, event.result, event.details) == ('step', 'Success', None)


@pytest.mark.parametrize('at', range(5))
def test_what_is_in_the_way_of_others_is_written_again(add_task, work, outcome, store, at):
    """At the start and end of an event, at the start of two more, and at the end of the work in both."""
    numbers = itertools.count()

    def stumble(connection):
        if next(numbers) == at:
            raise Deadlock('Another one was first.')

    def go(job):
        check = job.store.check
        job.store.check = lambda connection: (check(connection), stumble(connection))
        with job.event('step'):
            pass
        with job.event('around'), job.event('last', 'compute2'):
            job.end()

    server_id = add_task(go)
    assert work() == 1
    assert outcome(server_id) == ('active', 'testing', None, None)
    with store.read() as connection:
        events = connection.execute(server_action_events.select().order_by(server_action_events.c.id)).all()
    assert [(each.event, each.result) for each in events] == [(name, 'Success') for name in ('step', 'around', 'last')]


@pytest.mark.parametrize(
    'other', [lambda job: job.platform.networks.networks(job.context), lambda job: job.driver.power_state(job.server)]
)
def test_a_step_is_written_before_another_service_is_asked(servers, add_task, work, outcome, other):
    seen = []

    def go(job):
        look = lambda: seen.append(servers.get(job.server.uuid).task_state)  # noqa: E731
        job.later(task_state='trying')
        look()
        other(job)
        look()
        job.later(task_state='tested')
        job.finish(vm_state='active')

    server_id = add_task(go, steps=('trying', 'tested'))
    assert work() == 1
    assert seen == ['testing', 'trying']
    assert outcome(server_id) == ('active', None, None, None)


def test_a_step_that_was_not_written_is_taken_again(servers, add_task, work, outcome):
    def go(job):
        if job.task.attempts < 2:
            job.later(task_state='trying')
            raise Unavailable('The network service does not answer.')
        assert job.server.task_state == 'testing'
        job.finish(vm_state='active')

    server_id = add_task(go, steps=('trying',))
    assert work() == 2
    assert outcome(server_id) == ('active', None, None, None)


def test_steps_of_a_server_that_has_gone_another_way_come_to_nothing(servers, add_task, work):
    def go(job):
        job.later(task_state='trying')
        servers.change(job.server.uuid, task_state='deleting')
        job.finish(vm_state='active')

    server_id = add_task(go, steps=('trying',))
    work()
    assert servers.get(server_id).task_state == 'deleting'


@pytest.mark.parametrize('fails', [False, True])
def test_an_event_that_begins_soon_is_written_with_what_comes_next(add_task, work, store, fails):
    seen = []

    def events():
        with store.read() as connection:
            return [(each.event, each.result) for each in connection.execute(server_action_events.select())]

    def go(job):
        with job.event('step', soon=True):
            seen.append(events())
            if fails:
                raise Conflict('There is no room.')
            job.save(progress=50)
            seen.append(events())
            job.finish(vm_state='active')

    add_task(go)
    work()
    assert seen == ([[]] if fails else [[], [('step', None)]])
    assert events() == [('step', 'Error' if fails else 'Success')]


def test_a_service_that_stays_away(platform, add_task, work, outcome):
    def fail(job):
        raise Unavailable('The network service does not answer.')

    server_id = add_task(fail)
    assert work() == MAX_ATTEMPTS + 1
    assert outcome(server_id) == ('error', None, f'Gave up after {MAX_ATTEMPTS} attempts.', 'Error')
    assert platform.tasks.idle()


def test_overtaken_before_it_began(platform, add_task, work, outcome):
    server_id = add_task(lambda job: job.finish(vm_state='stopped'), task_state='deleting')
    assert work() == 1
    assert outcome(server_id) == ('active', 'deleting', None, 'Error')
    assert platform.tasks.idle()


@pytest.mark.parametrize('error', [Conflict('The host is gone.'), KeyError('host')])
def test_what_can_never_be_taken_back_keeps_nothing_waiting(platform, runner, add_task, servers, clock, store, error):
    """The server went another way, and is asked for something else meanwhile."""

    def fail(platform, task, server):
        tried.append(task.attempts)
        raise error

    tried = []
    server_id = add_task(lambda job: job.finish())
    runner.transitions['test'].undo = fail
    servers.change(server_id, task_state=None, vm_state='error')
    following = Transition('following', beside=True)
    following.work(lambda job: job.end())
    runner.transitions['following'] = following
    store.change(platform.tasks.add, following, server_id, BOB)
    working = Worker(platform.tasks, runner, 0, 1)
    for _ in range(MAX_ATTEMPTS + 2):
        assert working.step()
        clock.forward(2)
    assert tried == [*range(1, MAX_ATTEMPTS + 2)]
    assert platform.tasks.idle()


def test_overtaken_on_the_way(platform, servers, add_task, work, outcome):
    def overtaken(job):
        servers.change(job.server.uuid, task_state='deleting')
        job.finish(vm_state='stopped')

    server_id = add_task(overtaken)
    assert work() == 1
    assert outcome(server_id) == ('active', 'deleting', None, 'Error')
    assert platform.tasks.idle()


def test_the_server_is_gone(platform, clock, servers, add_task, work, outcome):
    server_id = add_task(lambda job: job.finish(vm_state='stopped'))
    servers.change(server_id, vm_state='deleted', task_state=None, deleted_at=clock.now)
    assert work() == 1
    assert outcome(server_id) == ('deleted', None, None, None)
    assert platform.tasks.idle()


def test_a_worker_taken_for_dead_does_no_harm(platform, runner, store, clock, add_task, work, outcome):
    """It wakes up after another worker took over, and its outcome is discarded."""

    lease = platform.conf.task_lease
    other = Worker(Tasks(store, lease, clock), runner, 0, 1)

    def be_slow(job):
        if job.task.attempts == 1:
            clock.forward(lease + 1)
            assert other.step()
        job.finish(vm_state='stopped' if job.task.attempts == 2 else 'error')

    server_id = add_task(be_slow)
    assert work() == 1
    assert outcome(server_id) == ('stopped', None, None, None)
    assert platform.tasks.idle()


def test_nothing_of_a_worker_taken_for_dead_lasts(platform, runner, store, clock, servers, add_task, work, outcome):
    """Not in the store, the driver, or another service, whichever it calls first."""
    refused = []

    def be_slow(job):
        if job.task.attempts == 2:
            job.driver.spawn(job.server, [])
            return job.finish(vm_state='stopped')
        clock.forward(platform.conf.task_lease + 1)
        assert Worker(Tasks(store, platform.conf.task_lease, clock), runner, 0, 1).step()
        # The claim was not checked for the duration of the lease.
        job.fence.looked -= platform.conf.task_lease
        for harm in (
            lambda: job.driver.power_off(job.server),
            lambda: job.platform.networks.ports(job.elevated, server_ids=[job.server.uuid]),
            lambda: job.store.change(servers_changed, job.server.uuid),
            lambda: job.save(vm_state='error'),
            lambda: job.end(),
        ):
            with pytest.raises((Superseded, Outdated)):
                harm()
            refused.append(harm)
        job.finish(vm_state='error')

    def servers_changed(connection, server_id):
        rows.update(connection, server_id, {'vm_state': 'paused'})

    server_id = add_task(be_slow)
    assert work() == 1
    assert len(refused) == 5
    assert outcome(server_id) == ('stopped', None, None, None)
    assert platform.hypervisor.power_state(servers.get(server_id)) is PowerState.RUNNING


def test_a_worker_that_was_overtaken_says_so(platform, clock, add_task, work, runner):
    """It was stopped, and another worker has ended the task meanwhile."""
    overtaken = []
    runner.overtaken = lambda platform, context, server: overtaken.append((context.user_id, server.uuid))

    def be_slow(job):
        if job.task.attempts == 2:
            return job.finish()
        clock.forward(platform.conf.task_lease + 1)
        assert Worker(Tasks(platform.store, platform.conf.task_lease, clock), runner, 0, 1).step()
        job.finish()

    server_id = add_task(be_slow)
    work()
    assert overtaken == [('bob', server_id)]


def test_work_begins_again_when_the_server_changed(platform, servers, add_task, work, outcome):
    """The data that it read first are outdated; the server still has the state that the task is for."""

    def change(job):
        if not seen:
            servers.change(job.server.uuid, task_state='tested')
        seen.append(job.server.task_state)
        job.finish(vm_state='stopped')

    seen = []
    server_id = add_task(change, steps=('tested',))
    assert work() == 1
    assert seen == ['testing', 'tested']
    assert outcome(server_id) == ('stopped', None, None, None)


def test_work_that_waits_too_long_has_failed(platform, add_task, work, outcome):
    platform.conf.set_override('task_timeout', 5)

    def wait(job):
        job.fence.passed('step')
        raise NotYet(1)

    server_id = add_task(wait)
    assert work() == 4
    assert outcome(server_id) == ('error', None, 'The task did not end within 5 s.', 'Error')


def test_each_kind_of_work_has_one_function(platform):
    undone, first, second = Transition('undone'), Transition('twice'), Transition('twice')
    for each in (first, second):
        each.work(lambda job: job.finish())
    for wrong in ([undone], [first, second]):
        with pytest.raises(TypeError):
            Runner(platform, wrong)
    with pytest.raises(TypeError, match='already'):
        first.work(lambda job: job.finish())


# ------------------------------------------------------------------ the log


@pytest.fixture
def lines(caplog, logged):
    """lines(): the log records of the service itself, as JSON."""
    caplog.set_level(logging.INFO, 'computeapi')
    caplog.handler.addFilter(log.Callers())
    return lambda: [json.loads(log.JSONLines().format(record)) for record in logged()]


def refuse(job):
    raise Conflict('There is no room.')


def break_down(job):
    raise RuntimeError('a bug')


@pytest.mark.parametrize(
    ('function', 'level', 'how', 'traced'),
    [
        (lambda job: job.finish(vm_state='stopped'), 'INFO', r'is done after \d\.\d{3} s', False),
        (refuse, 'WARNING', r'failed after \d\.\d{3} s: There is no room\.', False),
        (break_down, 'ERROR', r'failed after \d\.\d{3} s: a bug', True),
    ],
)
def test_work_is_one_line(add_task, work, lines, function, level, how, traced):
    server_id = add_task(function)
    work()
    [line] = lines()
    assert line['level'] == level and re.fullmatch(f'test of server {server_id} {how}', line['message'])
    assert (line['request_id'], line['user_id'], line['project_id']) == ('req-1', 'bob', 'project')
    assert ('exception' in line) == traced


def test_work_that_is_tried_again_is_a_line_each_time(add_task, work, lines):
    def try_again(job):
        if job.task.attempts == 1:
            raise Unavailable('The network service does not answer.')
        job.finish(vm_state='active')

    server_id = add_task(try_again)
    work()
    first, second = (line['message'] for line in lines())
    reason = 'The network service does not answer.'
    assert first == f'test of server {server_id} is retried in 1 s (attempt 1 failed): {reason}'
    assert second.startswith(f'test of server {server_id} is done after ')


def test_work_that_waited_says_how_long_it_took(platform, clock, add_task, work, lines):
    def wait(job):
        since = (job.clock() - timedelta(seconds=5)).isoformat()
        platform.tasks.note(job.task, {BEGUN: {'step': since}})
        job.finish()

    add_task(wait)
    work()
    [line] = lines()
    assert re.search(r'is done after 5\.\d{3} s$', line['message'])


def test_work_that_is_taken_over_is_a_line(platform, clock, add_task, work, lines):
    server_id = add_task(lambda job: job.finish())
    platform.tasks.claim()
    clock.forward(platform.conf.task_lease + 1)
    work()
    first, second = (line['message'] for line in lines())
    assert first == f'test of server {server_id} is taken over from a worker that died (attempt 2)'
    assert second.startswith(f'test of server {server_id} is done after ')
