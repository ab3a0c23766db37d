"""The subcommands of `computeapi`. Each imports what it needs itself, because most need little."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING

from computeapi.defaults import WORKERS

if TYPE_CHECKING:
    from oslo_config import cfg

    from computeapi.db.engine import Store

MAKING_TABLES = '`computeapi db upgrade` creates them, and --data-dir selects the data directory of `serve`'

Run = Callable[['cfg.ConfigOpts', 'argparse.Namespace'], 'int | None']


def serve(conf: cfg.ConfigOpts, options: argparse.Namespace) -> None:
    from computeapi import serve
    from computeapi.kit.options import kit_of

    with kit_of(options) as kit:
        serve.run(conf, options, kit)


def run(conf: cfg.ConfigOpts, options: argparse.Namespace) -> int:
    from computeapi.testing.command import run

    return run(conf, options.command, options.journal, options.load, options.seed, options.webhook_allow)


def control(options: argparse.Namespace) -> None:
    from computeapi.kit.shell import run

    run(options.arguments)


def replay(conf: cfg.ConfigOpts, options: argparse.Namespace) -> int:
    from computeapi.kit.replay.command import run

    return run(options)


def worker(conf: cfg.ConfigOpts, options: argparse.Namespace) -> None:
    """Run workers even if the config file, which may be shared with processes that answer requests, sets none."""
    from computeapi import worker

    conf.set_override('workers', options.workers or conf.workers or WORKERS)
    worker.run(conf)


def agent(conf: cfg.ConfigOpts, options: argparse.Namespace) -> None:
    from computeapi.agent import process

    process.run(conf)


def agent_key(conf: cfg.ConfigOpts, options: argparse.Namespace) -> None:
    """Print the key, or the keys while a secret is being replaced."""
    from oslo_config import cfg

    from computeapi.backends.hypervisor.remote.signing import keys_of, secrets_of

    secrets = secrets_of(conf)
    if not secrets:
        raise cfg.ConfigFileValueError('[agent]secret is not set')
    print(','.join(keys_of(secrets, options.host_name)))


def consoleproxy(conf: cfg.ConfigOpts, options: argparse.Namespace) -> None:
    from computeapi.consoles import process

    process.run(conf)


def db(conf: cfg.ConfigOpts, options: argparse.Namespace) -> None:
    """Print the revision of the tables, after upgrading them if requested."""
    from computeapi.db import schema

    _use_data_dir(conf, options)
    with _store(conf, whatever_it_is=True) as store:
        if options.upgrade:
            schema.upgrade(store)
        found = schema.version(store)
        if found is None:
            raise schema.WrongTables(f'There are no tables in {store.url.render_as_string()}; {MAKING_TABLES}')
        print(found)


def clear(conf: cfg.ConfigOpts, options: argparse.Namespace) -> None:
    """Print how many rows of each table were moved or removed."""
    from computeapi.db import archive

    _use_data_dir(conf, options)
    clear = {'archive': archive.archive, 'purge': archive.purge}[options.clear]
    with _store(conf) as store:
        for name, count in clear(store, options.before, options.batch).items():
            print(name, count)


def cell(conf: cfg.ConfigOpts, options: argparse.Namespace) -> None:
    """Print the cells, after marking one as down or up if requested."""
    from computeapi.compute.cells import Cells

    _use_data_dir(conf, options)
    with _store(conf) as store:
        cells = Cells(store)
        if options.change != 'list':
            cells.mark(options.name, down=options.change == 'down')
        for cell in cells.list():
            print(cell.name, cell.uuid, 'down' if cell.down else 'up', *cell.hosts)


def audit(conf: cfg.ConfigOpts, options: argparse.Namespace) -> int:
    """Print what no task holds, and whether it was repaired."""
    from computeapi.main import Service

    _use_data_dir(conf, options)
    # The metrics belong to the processes of the service.
    conf.set_override('enabled', False, 'metrics')
    with _store(conf) as store:
        audit = Service(conf, store).audit
        found = list(audit.repair()) if options.repair else [(finding, False) for finding in audit.findings()]
    for finding, mended in found:
        print(finding, '(repaired)' if mended else '')
    return int(not all(mended for _, mended in found))


def _use_data_dir(conf: cfg.ConfigOpts, options: argparse.Namespace) -> None:
    """Use the database of `serve`, unless another one is configured: in the directory that is given, or in its own one
    if there is no configuration, which `worker` and the API would use."""
    from computeapi import config

    if options.data_dir is not None:
        conf.set_override('data_dir', options.data_dir, 'standalone')
    conf.set_default('state_path', f'{conf.standalone.data_dir}/qemu', 'qemu')
    if options.data_dir is None and config.is_given(conf):
        return
    from computeapi.serve import directory

    if options.data_dir is None and not directory.database_file(conf.standalone.data_dir).exists():
        return
    own = directory.database(conf.standalone.data_dir)
    conf.set_default('connection', own, 'database')
    if conf.database.connection == own:
        # As in `serve`, which checks its own tokens.
        config.use_own_identity(conf)


@contextmanager
def _store(conf: cfg.ConfigOpts, *, whatever_it_is: bool = False) -> Iterator[Store]:
    """The database, for the duration of a block; its tables must be those of this release, unless whatever_it_is."""
    from computeapi.db import schema
    from computeapi.db.engine import store_of

    with closing(store_of(conf)) as store, store.error_log.silenced():
        if not whatever_it_is:
            schema.check(store)
        yield store


def status(conf: cfg.ConfigOpts, options: argparse.Namespace) -> int:
    from computeapi import status

    _use_data_dir(conf, options)
    if options.words:
        results = list(status.checks(conf))
        print(status.table(results))
        return max(each.result for each in results)
    ready, lines = status.report(conf)
    print(*lines, sep='\n')
    return int(not ready)


def explain(conf: cfg.ConfigOpts, options: argparse.Namespace) -> int:
    from computeapi import explanation

    return explanation.explain(conf, options, sys.stdout)


def report(name: str, *arguments: str) -> Run:
    """A command that prints the output of the function *name* in computeapi.reports, called with these options."""

    def run(conf: cfg.ConfigOpts, options: argparse.Namespace) -> None:
        from computeapi import reports

        getattr(reports, name)(sys.stdout, *(getattr(options, each) for each in arguments))

    return run
