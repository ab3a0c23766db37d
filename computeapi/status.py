"""Whether the service can run as it is configured: what `computeapi status` checks."""

import contextlib
import enum
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import sqlalchemy as sa
from oslo_config import cfg
from oslo_policy import policy as oslo_policy

from computeapi import api
from computeapi.db import schema
from computeapi.db.engine import store_of
from computeapi.errors import DatabaseTrouble
from computeapi.main import find_paste_file
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


def table(results: Iterable[Check]) -> str:
    """One line per check."""
    return '\n'.join(f'{each.name:10}  {each.result.name:7}  {each.details}' for each in results)
