"""What `computeapi status` prints: how the service is, and whether it can run as it is configured (`upgrade check`)."""

import contextlib
import enum
from collections.abc import Callable, Iterable, Iterator
from datetime import timedelta
from typing import NamedTuple

import sqlalchemy as sa
from oslo_config import cfg
from oslo_policy import policy as oslo_policy

from computeapi import api
from computeapi.compute.tasks.runner import reason_of
from computeapi.db import processes, schema, tasks
from computeapi.db.engine import Store, store_of
from computeapi.errors import DatabaseTrouble
from computeapi.pipeline import find_paste_file
from computeapi.readiness import Condition, Readiness, is_ready
from computeapi.web.policy import Policies, defaults


class Result(enum.IntEnum):
    """How a check went; the worst of all is the exit status, as with the `*-status upgrade check` of other services."""

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


def database(conf: cfg.ConfigOpts) -> tuple[Result, str]:
    try:
        with contextlib.closing(store_of(conf)) as store, store.watch.silenced():
            url, version = store.url.render_as_string(), schema.version(store)
    except (DatabaseTrouble, sa.exc.SQLAlchemyError, ImportError) as error:
        return Result.Failure, f'The database cannot be reached: {getattr(error, "reason", error)}'
    head = schema.head()
    if version == head:
        return Result.Success, f'{url} is at revision {head}'
    if version is not None and version > head:
        return Result.Warning, f'{url} is at revision {version}, newer than this release ({head})'
    return Result.Failure, f'{url} is at revision {version}, not {head}: run `computeapi db upgrade`'


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
        return Result.Warning, f'{conf.oslo_policy.policy_file} has rules that nothing asks for: {", ".join(unknown)}'
    return Result.Success, f'{len(enforcer.file_rules)} of {len(enforcer.rules)} rules are not the default'


CHECKS: dict[str, Callable[[cfg.ConfigOpts], tuple[Result, str]]] = {
    'Database': database,
    'Paste file': paste_file,
    'Policies': policies,
}


def report(conf: cfg.ConfigOpts) -> tuple[bool, list[str]]:
    """Whether the service is ready, and lines for people: the conditions, the processes, the queue."""
    try:
        with contextlib.closing(store_of(conf)) as store, store.watch.silenced():
            conditions = Readiness(conf, store, frank=True).check()
            lines = [*work(conf, store)] if conditions['schema'].ok else []
    except (DatabaseTrouble, sa.exc.SQLAlchemyError, ImportError) as error:
        conditions, lines = {'database': Condition(False, reason_of(error))}, []
    checked = [f'{name:10}  {"ok" if each.ok else "not ok":7}  {each.why}' for name, each in conditions.items()]
    return is_ready(conditions), checked + lines


def work(conf: cfg.ConfigOpts, store: Store) -> Iterator[str]:
    """A line for each process and one for the queue, with ages by the database's clock."""
    now = store.clock()
    for each in store.ask(processes.select):
        seen = now - each.seen_at
        state = 'lives' if seen <= timedelta(seconds=conf.task_lease) else 'is dead'
        what = f'{each.binary} {each.pid} on {each.host} with {each.workers} workers'
        yield f'{"process":10}  {state:7}  {what}: begun {age(now - each.started_at)} ago, seen {age(seen)} ago'
    number, oldest = store.ask(tasks.load, now)
    due = 'none is due' if oldest is None else f'the oldest due for {age(now - oldest)}'
    yield f'{"queue":10}  {number:<7}  tasks, {due}'


def age(time: timedelta) -> str:
    """As 1:02:03, or with days before it."""
    return str(timedelta(seconds=max(0, int(time.total_seconds()))))


def table(results: Iterable[Check]) -> str:
    """One line per check."""
    return '\n'.join(f'{each.name:10}  {each.result.name:7}  {each.details}' for each in results)
