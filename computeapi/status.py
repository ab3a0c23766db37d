"""`computeapi status`: the state of the service, and whether it can run as configured (`upgrade check`)."""

import contextlib
import enum
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import timedelta
from typing import NamedTuple

import sqlalchemy as sa
from oslo_config import cfg
from oslo_policy import policy as oslo_policy

from computeapi import api
from computeapi.backends import registry
from computeapi.backends.health import Health, HealthReport
from computeapi.compute.tasks.runner import reason_of
from computeapi.config.neighbours import are_wanted
from computeapi.db import agents, placement_changes, processes, schema, tasks
from computeapi.db.engine import Store, store_of
from computeapi.errors import DatabaseError
from computeapi.options import unknown_in
from computeapi.pipeline import find_paste_file
from computeapi.readiness import Condition, Readiness, is_ready
from computeapi.web.policy import Policies, defaults

# A broker that does not answer within this time is reported as away.
BROKER_SECONDS = 4.0


class Result(enum.IntEnum):
    """The result of a check; the worst is the exit status, as with `*-status upgrade check` of other services."""

    Success = 0
    Warning = 1
    Failure = 2


class Check(NamedTuple):
    name: str
    result: Result
    details: str


def checks(conf: cfg.ConfigOpts) -> Iterator[Check]:
    for name, check in CHECKS.items():
        yield Check(name, *check(conf))
    for name, found in neighbours(conf).items():
        yield Check(name, RESULTS[found.health], found.words)


def database(conf: cfg.ConfigOpts) -> tuple[Result, str]:
    try:
        with contextlib.closing(store_of(conf)) as store, store.error_log.silenced():
            url, version = store.url.render_as_string(), schema.version(store)
    except (DatabaseError, sa.exc.SQLAlchemyError, ImportError) as error:
        return Result.Failure, f'The database cannot be reached: {getattr(error, "reason", error)}'
    if obstacle := schema.obstacle(version):
        return Result.Warning if schema.is_later(version) else Result.Failure, f'{url}: {obstacle}'
    return Result.Success, f'{url} is at revision {version}'


def paste_file(conf: cfg.ConfigOpts) -> tuple[Result, str]:
    try:
        return Result.Success, str(find_paste_file(conf))
    except FileNotFoundError as error:
        return Result.Failure, str(error)


def policies(conf: cfg.ConfigOpts) -> tuple[Result, str]:
    try:
        enforcer = Policies(conf, defaults(api.operations())).enforcer
        enforcer.check_rules(raise_on_violation=True)
    except (oslo_policy.InvalidDefinitionError, cfg.Error, ValueError, OSError) as error:
        return Result.Failure, str(error)
    unknown = sorted(set(enforcer.file_rules) - set(enforcer.registered_rules))
    if unknown:
        return (
            Result.Warning,
            f'{conf.oslo_policy.policy_file} contains rules that no operation uses: {", ".join(unknown)}',
        )
    return Result.Success, f'{len(enforcer.file_rules)} of {len(enforcer.rules)} rules differ from the default'


def backends(conf: cfg.ConfigOpts) -> tuple[Result, str]:
    """Warn about built-in backends with Keystone authentication: its callers cannot create anything in them."""
    chosen = {kind: conf[kind].backend for kind in ('identity', 'image', 'network', 'volume')}
    said = ', '.join(f'[{kind}]backend is {name}' for kind, name in chosen.items())
    if conf.api.auth_strategy == 'keystone' and 'local' in chosen.values():
        return (
            Result.Warning,
            f'Callers are users of Keystone, and cannot create resources in built-in services: {said}',
        )
    return Result.Success, said


def config_files(conf: cfg.ConfigOpts) -> tuple[Result, str]:
    if unknown := unknown_in(conf):
        return Result.Warning, f'These are no options, and have no effect: {", ".join(unknown)}'
    return Result.Success, ', '.join(conf.config_file) or 'There is none'


def message_bus(conf: cfg.ConfigOpts) -> tuple[Result, str]:
    found = broker(conf)
    if found is None:
        return Result.Success, 'There are no agents'
    return Result.Success if found.ok else Result.Warning, found.why


def broker(conf: cfg.ConfigOpts) -> Condition | None:
    """Whether the broker between workers and agents can be reached; None if there are no agents."""
    try:
        bus = registry.bus_of(conf)
    except cfg.ConfigFileValueError as error:
        return Condition(False, str(error))
    if bus is None:
        return None
    with contextlib.closing(bus):
        obstacle = bus.obstacle(BROKER_SECONDS)
    return Condition(obstacle is None, obstacle or 'The broker responds.')


def neighbours(conf: cfg.ConfigOpts) -> Mapping[str, HealthReport]:
    """The state of the services that this one depends on; empty if all are built in."""
    if not are_wanted(conf):
        return {}
    try:
        from computeapi.backends import health_checks
    except ImportError as error:
        return {'Neighbours': HealthReport(Health.WRONG, f'{error}: the extra `openstack` is not installed')}
    return {**health_checks.check_all(conf), 'Token keys': health_checks.check_token_keys(conf)}


RESULTS = {
    Health.OK: Result.Success,
    Health.AWAY: Result.Warning,
    Health.LACKING: Result.Warning,
    Health.WRONG: Result.Failure,
}
CHECKS: dict[str, Callable[[cfg.ConfigOpts], tuple[Result, str]]] = {
    'Config files': config_files,
    'Database': database,
    'Paste file': paste_file,
    'Policies': policies,
    'Backends': backends,
    'Message bus': message_bus,
}


def report(conf: cfg.ConfigOpts) -> tuple[bool, list[str]]:
    """Whether the service and its neighbours are ready, and lines to print: the conditions, the neighbours, the
    processes, the queue.

    /readyz does not check the neighbours: requests that need none of those that are away are still answered.
    """
    try:
        with contextlib.closing(store_of(conf)) as store, store.error_log.silenced():
            conditions = Readiness(conf, store, frank=True).check()
            lines = [*work(conf, store)] if conditions['schema'].ok else []
    except (DatabaseError, sa.exc.SQLAlchemyError, ImportError) as error:
        conditions, lines = {'database': Condition(False, reason_of(error))}, []
    found = broker(conf)
    if found is not None:
        conditions['bus'] = found
    checked = [line(name, 'ok' if each.ok else 'not ok', each.why) for name, each in conditions.items()]
    others = neighbours(conf)
    asked = [line(name, each.health.value, each.words) for name, each in others.items()]
    well = all(each.health is not Health.AWAY and each.health is not Health.WRONG for each in others.values())
    return well and is_ready(conditions), checked + asked + lines


def line(name: str, state: str, words: str) -> str:
    return f'{name:12}  {state:7}  {words}'


def work(conf: cfg.ConfigOpts, store: Store) -> Iterator[str]:
    """A line for each process and each agent, one for the queue, with ages by the database's clock, and one for the
    changes not yet sent to Placement."""
    now = store.clock()
    for each in store.query(processes.select):
        seen = now - each.seen_at
        state = 'alive' if seen <= timedelta(seconds=conf.task_lease) else 'dead'
        what = f'{each.binary} {each.pid} on {each.host} with {each.workers} workers'
        yield line('process', state, f'{what}: started {age(now - each.started_at)} ago, last seen {age(seen)} ago')
    for agent in store.query(agents.select):
        seen = now - agent.seen_at
        state = 'alive' if seen <= timedelta(seconds=conf.service_down_time) else 'dead'
        what = f'{agent.host}: {agent.release}, process {agent.pid} on {agent.machine}'
        yield line('agent', state, f'{what}: started {age(now - agent.started_at)} ago, last seen {age(seen)} ago')
    number, oldest = store.query(tasks.load, now)
    due = 'none is due' if oldest is None else f'the oldest due for {age(now - oldest)}'
    yield line('queue', str(number), f'tasks, {due}')
    if conf.placement.enabled:
        yield line('placement', str(store.query(placement_changes.waiting)), 'changes not yet reported')


def age(time: timedelta) -> str:
    """Formatted as 1:02:03, with days before it if there are any."""
    return str(timedelta(seconds=max(0, int(time.total_seconds()))))


def table(results: Iterable[Check]) -> str:
    """One line per check."""
    return '\n'.join(line(each.name, each.result.name, each.details) for each in results)
