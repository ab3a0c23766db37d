"""The `computeapi` command.  Each subcommand imports what it needs itself: most need little."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING

from oslo_config import cfg

from computeapi import __version__, config
from computeapi.errors import DatabaseTrouble, Error

if TYPE_CHECKING:
    from datetime import datetime

    from computeapi.db.engine import Store

    Commands = argparse._SubParsersAction[argparse.ArgumentParser]

Run = Callable[[cfg.ConfigOpts, argparse.Namespace], int | None]


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    try:
        conf = config.load(options.config_file or config.standard_files(), _overrides(options))
        status = options.run(conf, options) or 0
        sys.stdout.flush()
        return status
    except BrokenPipeError:
        # The reader, such as `head`, has seen enough; Python would complain when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except DatabaseTrouble as error:
        print(f'computeapi: The database cannot be used: {error.reason}', file=sys.stderr)
        return 1
    except (cfg.Error, Error, OSError) as error:
        print(f'computeapi: {error}', file=sys.stderr)
        return 2


def _overrides(options: argparse.Namespace) -> dict[tuple[str, str], object]:
    """Options of the configuration that stand on the command line."""
    named = {'hosts': 'simulated', 'passing_seconds': 'simulated', 'public_url': 'api'}
    given = {(group, name): getattr(options, name, None) for name, group in named.items()}
    return {option: value for option, value in given.items() if value is not None}


def _parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(prog='computeapi', description='The OpenStack compute API.')
    top.add_argument('--version', action='version', version=f'computeapi {__version__}')
    commands = top.add_subparsers(metavar='COMMAND', required=True)
    _add_serve(commands)
    _add_worker(commands)
    _add_db(commands)
    _add_cell(commands)
    _add_audit(commands)
    _add_reports(commands)
    _add_status(commands)
    return top


def _add(commands: Commands, name: str, run: Run, text: str) -> argparse.ArgumentParser:
    command = commands.add_parser(name, help=text, description=text[0].upper() + text[1:] + '.')
    command.set_defaults(run=run)
    command.add_argument(
        '--config-file',
        action='append',
        metavar='FILE',
        help='may be repeated; else OS_COMPUTEAPI_CONFIG_FILES, separated by `;`, or ' + config.MACHINE_FILE,
    )
    return command


def _add_serve(commands: Commands) -> None:
    text = 'run a whole cloud of its own in this process: compute with its own identity, images, networks and volumes'
    serve = _add(commands, 'serve', _serve, text)
    serve.add_argument('--host', default='127.0.0.1', help='the address to listen at (%(default)s)')
    serve.add_argument('--port', type=_port, default=8774, help='the port, 0 for any that is free (%(default)s)')
    serve.add_argument(
        '--public-url', metavar='URL', help='what clients reach it by; links and the catalog then name no other host'
    )
    serve.add_argument(
        '--metadata-port',
        type=_port,
        metavar='PORT',
        help='where guests, or a proxy before them, read their metadata; its secret is in the data directory (none)',
    )
    where = serve.add_mutually_exclusive_group()
    where.add_argument('--data-dir', metavar='DIR', help='where everything is kept (./computeapi-data)')
    where.add_argument('--in-memory', action='store_true', help='forget everything at the end')
    serve.add_argument('--hosts', type=int, metavar='N', help='how many hosts to simulate (1)')
    serve.add_argument(
        '--passing-seconds', type=float, metavar='S', help='how long REBOOT and other states last that pass (0)'
    )
    serve.add_argument('--admin-password', metavar='PASSWORD', help='else one is made and kept in the data directory')
    serve.add_argument('--quiet', action='store_true', help='log no requests')


def _add_worker(commands: Commands) -> None:
    worker = _add(commands, 'worker', _worker, 'do what requests leave to be done, beside processes that answer them')
    worker.add_argument(
        '--workers',
        type=_number,
        metavar='N',
        help=f'on how many tasks at a time ([DEFAULT]workers, else {config.WORKERS})',
    )


def _add_db(commands: Commands) -> None:
    db = commands.add_parser('db', help='the tables in the database').add_subparsers(metavar='COMMAND', required=True)
    _add(db, 'upgrade', _db, 'bring the tables to the newest revision').set_defaults(upgrade=True)
    _add(db, 'version', _db, 'print the revision of the tables').set_defaults(upgrade=False)
    for name, text in {
        'archive': 'move deleted servers, with all that hung on them, out of the way of the others',
        'purge': 'remove for good what was archived, and tokens, messages and the like whose time is over',
    }.items():
        command = _add(db, name, _clear, text)
        command.set_defaults(clear=name)
        _add_data_dir(command)
        command.add_argument(
            '--before',
            required=True,
            type=_date,
            metavar='DATE',
            help='what was deleted before, e.g. 2026-01-31, in UTC',
        )
        command.add_argument(
            '--batch', type=_number, default=100, metavar='N', help='how many in one transaction (%(default)s)'
        )


def _add_cell(commands: Commands) -> None:
    text = 'the cells that hosts belong to, and whether they are down'
    cell = commands.add_parser('cell', help=text).add_subparsers(metavar='COMMAND', required=True)
    for name, text in {
        'list': 'print the name, the UUID, the state and the hosts of each cell',
        'down': 'say that a cell does not respond: its servers are UNKNOWN, and what is asked of them is answered 503',
        'up': 'say that a cell responds again',
    }.items():
        command = _add(cell, name, _cell, text)
        command.set_defaults(change=name)
        _add_data_dir(command)
        if name != 'list':
            command.add_argument('name', metavar='CELL', help='such as cell1; there are [simulated]cells of them')


def _add_data_dir(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        '--data-dir', metavar='DIR', help='that of `serve`, where no database is configured (./computeapi-data)'
    )


def _add_audit(commands: Commands) -> None:
    text = 'print what no task holds, such as claims of deleted servers: exit status 0 if there is nothing left, else 1'
    audit = _add(commands, 'audit', _audit, text)
    _add_data_dir(audit)
    audit.add_argument('--repair', action='store_true', help='mend it; what is wrong with living servers is queued')


def _add_status(commands: Commands) -> None:
    text = 'print what /readyz says, how neighbours are, processes and the queue: exit status 0 if all is well, else 1'
    status = _add(commands, 'status', _status, text)
    _add_data_dir(status)
    status.add_argument(
        'words',
        nargs='*',
        metavar='upgrade check',
        choices=[[], 'upgrade', 'check'],
        help='whether the service can run, as other services say it: exit status 0 yes, 1 with warnings, 2 no',
    )


def _add_reports(commands: Commands) -> None:
    _add(commands, 'routes', _report('routes'), 'print every operation: method, path, versions, policy')
    history = _add(commands, 'history', _report('history', 'version', 'markdown'), 'print what changed in each version')
    history.add_argument('version', nargs='?', metavar='VERSION', type=_version, help='only in this one')
    history.add_argument('--markdown', action='store_true', help='as a document, which docs/history.md is')
    openapi = _add(commands, 'openapi', _report('openapi', 'version'), 'print the OpenAPI document of one version')
    openapi.add_argument('version', metavar='VERSION', type=_version, help='such as 2.1, or `latest`')
    _add(commands, 'policy', _report('policy'), 'print a policy.yaml with every rule as a comment')
    _add(commands, 'config', _report('config'), 'print a configuration file with every option as a comment')


def _report(name: str, *arguments: str) -> Run:
    """Print what the function of this name in computeapi.reports makes of these arguments."""

    def run(conf: cfg.ConfigOpts, options: argparse.Namespace) -> None:
        from computeapi import reports

        getattr(reports, name)(sys.stdout, *(getattr(options, each) for each in arguments))

    return run


def _version(text: str) -> str:
    """A version that exists, for argparse to refuse others."""
    from computeapi.versions import HISTORY

    if text != 'latest' and text not in HISTORY:
        raise argparse.ArgumentTypeError(f'{text} is not a version of this API')
    return text


def _port(text: str) -> int:
    if not text.isdecimal() or int(text) > 65535:
        raise argparse.ArgumentTypeError(f'{text} is not a port')
    return int(text)


def _number(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f'{text} is not a number above 0')
    return int(text)


def _date(text: str) -> datetime:
    from computeapi.clock import parsed

    try:
        return parsed(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f'{text} is not a date') from None


def _serve(conf: cfg.ConfigOpts, options: argparse.Namespace) -> None:
    from computeapi import serve

    serve.run(conf, options)


def _worker(conf: cfg.ConfigOpts, options: argparse.Namespace) -> None:
    """Also where the file, which may be that of the processes that answer requests, asks for no workers."""
    from computeapi import worker

    conf.set_override('workers', options.workers or conf.workers or config.WORKERS)
    worker.run(conf)


def _db(conf: cfg.ConfigOpts, options: argparse.Namespace) -> None:
    """Print the revision of the tables, after an upgrade if that is asked."""
    from computeapi.db import schema

    with _store(conf, whatever_it_is=True) as store:
        if options.upgrade:
            schema.upgrade(store)
        print(schema.version(store))


def _clear(conf: cfg.ConfigOpts, options: argparse.Namespace) -> None:
    """Print how many rows of which table went."""
    from computeapi.db import archive

    _use_data_dir(conf, options)
    clear = {'archive': archive.archive, 'purge': archive.purge}[options.clear]
    with _store(conf) as store:
        for name, count in clear(store, options.before, options.batch).items():
            print(name, count)


def _cell(conf: cfg.ConfigOpts, options: argparse.Namespace) -> None:
    """Print the cells, or say that one of them is down or back."""
    from computeapi.compute.cells import Cells

    _use_data_dir(conf, options)
    with _store(conf) as store:
        cells = Cells(store)
        if options.change != 'list':
            cells.mark(options.name, down=options.change == 'down')
        for cell in cells.list():
            print(cell.name, cell.uuid, 'down' if cell.down else 'up', *cell.hosts)


def _audit(conf: cfg.ConfigOpts, options: argparse.Namespace) -> int:
    """Print what nobody holds, and whether it was mended."""
    from computeapi.main import Service

    _use_data_dir(conf, options)
    with _store(conf) as store:
        audit = Service(conf, store).audit
        found = list(audit.repair()) if options.repair else [(finding, False) for finding in audit.findings()]
    for finding, mended in found:
        print(finding, '(mended)' if mended else '')
    return int(not all(mended for _, mended in found))


def _use_data_dir(conf: cfg.ConfigOpts, options: argparse.Namespace) -> None:
    """Without another database, that in the directory of `serve`."""
    from computeapi.serve import directory

    if options.data_dir is not None:
        conf.set_override('data_dir', options.data_dir, 'standalone')
    conf.set_default('connection', directory.database(conf.standalone.data_dir), 'database')


@contextmanager
def _store(conf: cfg.ConfigOpts, *, whatever_it_is: bool = False) -> Iterator[Store]:
    """The database, for a while; its tables must be those of this release, or whatever they are."""
    from computeapi.db import schema
    from computeapi.db.engine import store_of

    with closing(store_of(conf)) as store, store.watch.silenced():
        if not whatever_it_is:
            schema.check(store)
        yield store


def _status(conf: cfg.ConfigOpts, options: argparse.Namespace) -> int:
    from computeapi import status

    if options.words:
        results = list(status.checks(conf))
        print(status.table(results))
        return max(each.result for each in results)
    _use_data_dir(conf, options)
    ready, lines = status.report(conf)
    print(*lines, sep='\n')
    return int(not ready)


if __name__ == '__main__':
    sys.exit(main())
