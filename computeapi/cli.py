"""The `computeapi` command and its arguments; commands.py implements its subcommands."""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from computeapi import __version__, commands, garbage
from computeapi.argument_types import date, number, port, version
from computeapi.commands import Run
from computeapi.defaults import MACHINE_FILE, WORKERS
from computeapi.errors import DatabaseTrouble, Error

if TYPE_CHECKING:
    Parsers = argparse._SubParsersAction[argparse.ArgumentParser]

OVERRIDES = {
    'hosts': ('simulated', 'hosts'),
    'hypervisor': ('hypervisor', 'backend'),
    'passing_seconds': ('simulated', 'passing_seconds'),
    'public_url': ('api', 'public_url'),
    'max_microversion': ('api', 'max_microversion'),
    'page_limit': ('api', 'max_limit'),
    'policy': ('oslo_policy', 'policy_file'),
    'agent_host': ('agent', 'host'),
}
"""The config options that arguments of the command line override."""


LOADED_LATE = {
    'serve': ('computeapi.kit.options', 'add_serve'),
    'run': ('computeapi.kit.options', 'add_run'),
    'replay': ('computeapi.kit.replay.command', 'add'),
    'explain': ('computeapi.explanation', 'add'),
    'populate': ('computeapi.kit.scenes.commands', 'add_populate'),
    'clone': ('computeapi.kit.scenes.commands', 'add_clone'),
}
"""The functions that add the arguments of commands that take a while to load anyway."""


def main(arguments: Sequence[str] | None = None) -> int:
    garbage.begin()
    arguments = sys.argv[1:] if arguments is None else arguments
    options = parser(arguments).parse_args(arguments)
    try:
        status = _run(options)
        sys.stdout.flush()
        return status
    except BrokenPipeError:
        # The reader, such as `head`, closed the pipe; Python would complain when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except DatabaseTrouble as error:
        print(f'computeapi: The database cannot be used: {error.reason}', file=sys.stderr)
        return 1
    except Exception as error:
        if not _is_expected(error):
            raise
        print(f'computeapi: {error}', file=sys.stderr)
        return 2


def _run(options: argparse.Namespace) -> int:
    """Run the command; returns the exit status."""
    if options.run is commands.control:
        # It talks to a running cloud, which is configured already; loading a configuration takes longer than the help.
        commands.control(options)
        return 0
    from computeapi import config

    conf = config.load(options.config_file or config.standard_files(), _overrides(options))
    return options.run(conf, options) or 0


def _is_expected(error: Exception) -> bool:
    """Whether its message tells users all that they need to know."""
    from oslo_config import cfg

    return isinstance(error, cfg.Error | Error | OSError)


def _overrides(options: argparse.Namespace) -> dict[tuple[str, str], object]:
    """Config options that are given on the command line."""
    given = {option: getattr(options, name, None) for name, option in OVERRIDES.items()}
    release = getattr(options, 'release', None) or {}
    return release | {option: value for option, value in given.items() if value is not None}


def parser(arguments: Sequence[str]) -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(prog='computeapi', description='The OpenStack compute API.')
    top.add_argument('--version', action='version', version=f'computeapi {__version__}')
    parsers = top.add_subparsers(metavar='COMMAND', required=True)
    _add_serve(parsers)
    _add_run(parsers)
    _add_control(parsers)
    text = 'ask clouds what a journal recorded: exit status 0 if they answer alike, else 1'
    _add(parsers, 'replay', commands.replay, text)
    _add(parsers, 'populate', None, 'fill a cloud, or a file for --load, with servers and all around them')
    _add(parsers, 'clone', None, 'print what a real cloud has, as a file for --load; nothing in it is changed')
    _add_worker(parsers)
    _add_agent(parsers)
    _add_agent_key(parsers)
    _add(parsers, 'consoleproxy', commands.consoleproxy, 'let browsers and other clients to the consoles of servers')
    _add_db(parsers)
    _add_cell(parsers)
    _add_audit(parsers)
    _add_reports(parsers)
    _add_status(parsers)
    if arguments and arguments[0] in LOADED_LATE:
        module, name = LOADED_LATE[arguments[0]]
        getattr(importlib.import_module(module), name)(parsers.choices[arguments[0]])
    return top


def _add(parsers: Parsers, name: str, run: Run | None, text: str) -> argparse.ArgumentParser:
    command = parsers.add_parser(name, help=text, description=text[0].upper() + text[1:] + '.')
    command.set_defaults(run=run)
    command.add_argument(
        '--config-file',
        action='append',
        metavar='FILE',
        help='may be repeated; else OS_COMPUTEAPI_CONFIG_FILES, separated by `;`, or ' + MACHINE_FILE,
    )
    return command


def _add_serve(parsers: Parsers) -> None:
    text = 'run a whole cloud of its own in this process: compute with its own identity, images, networks and volumes'
    serve = _add(parsers, 'serve', commands.serve, text)
    serve.add_argument('--host', default='127.0.0.1', help='the address to listen at (%(default)s)')
    serve.add_argument('--port', type=port, default=8774, help='the port, 0 for any that is free (%(default)s)')
    serve.add_argument(
        '--public-url', metavar='URL', help='what clients reach it by; links and the catalog then name no other host'
    )
    serve.add_argument(
        '--metadata-port',
        type=port,
        metavar='PORT',
        help='where guests, or a proxy before them, read their metadata; its secret is in the data directory (none)',
    )
    where = serve.add_mutually_exclusive_group()
    where.add_argument('--data-dir', metavar='DIR', help='where everything is kept (./computeapi-data)')
    where.add_argument('--in-memory', action='store_true', help='forget everything at the end')
    serve.add_argument('--admin-password', metavar='PASSWORD', help='else one is made and kept in the data directory')
    serve.add_argument(
        '--hypervisor',
        choices=['simulated', 'qemu'],
        help='what runs servers: nothing, or QEMU (simulated); see [qemu] for what guests are like',
    )
    serve.add_argument('--quiet', action='store_true', help='log no requests')
    _add_cloud(serve)


def _add_cloud(command: argparse.ArgumentParser) -> None:
    """The arguments that describe a simulated cloud."""
    command.add_argument('--hosts', type=int, metavar='N', help='how many hosts there are, or are said to be (1)')
    command.add_argument(
        '--passing-seconds', type=float, metavar='S', help='how long REBOOT and other states last that pass (0)'
    )


def _add_run(parsers: Parsers) -> None:
    text = 'run a command with a cloud of its own, which it finds by OS_* variables and which goes away with it'
    run = _add(parsers, 'run', commands.run, text)
    _add_cloud(run)
    run.add_argument('command', nargs='+', metavar='COMMAND', help='with its arguments, after --')


def _add_control(parsers: Parsers) -> None:
    text = 'do to a cloud of `run` or `serve` what its control API can do'
    # Another parser handles all that follows; this one must treat nothing as an option, not even a leading --help.
    control = parsers.add_parser('control', help=text, add_help=False, prefix_chars='\0')
    control.set_defaults(run=commands.control, config_file=None)
    control.add_argument('arguments', nargs=argparse.REMAINDER)


def _add_worker(parsers: Parsers) -> None:
    text = 'do what requests leave to be done, beside processes that answer them'
    worker = _add(parsers, 'worker', commands.worker, text)
    worker.add_argument(
        '--workers',
        type=number,
        metavar='N',
        help=f'on how many tasks at a time ([DEFAULT]workers, else {WORKERS})',
    )


def _add_agent(parsers: Parsers) -> None:
    text = 'drive the hypervisor of this machine, as workers say over the message bus'
    agent = _add(parsers, 'agent', commands.agent, text)
    agent.add_argument(
        '--host', dest='agent_host', metavar='NAME', help='what the machine is called among hosts ([agent]host)'
    )


def _add_agent_key(parsers: Parsers) -> None:
    text = 'print the [agent]key of a compute machine, which follows from the [agent]secret here'
    _add(parsers, 'agent-key', commands.agent_key, text).add_argument('host_name', metavar='HOST')


def _add_db(parsers: Parsers) -> None:
    db = parsers.add_parser('db', help='the tables in the database').add_subparsers(metavar='COMMAND', required=True)
    upgrade = _add(db, 'upgrade', commands.db, 'bring the tables to the newest revision')
    upgrade.set_defaults(upgrade=True, data_dir=None)
    revision = _add(db, 'version', commands.db, 'print the revision of the tables')
    revision.set_defaults(upgrade=False)
    revision.add_argument('--data-dir', metavar='DIR', help='that of `serve`, where no database is configured')
    for name, text in {
        'archive': 'move deleted servers, with all that hung on them, out of the way of the others',
        'purge': 'remove for good what was archived, and tokens, messages and the like whose time is over',
    }.items():
        command = _add(db, name, commands.clear, text)
        command.set_defaults(clear=name)
        _add_data_dir(command)
        command.add_argument(
            '--before',
            required=True,
            type=date,
            metavar='DATE',
            help='what was deleted before, e.g. 2026-01-31, in UTC',
        )
        command.add_argument(
            '--batch',
            type=number,
            default=100,
            metavar='N',
            help='how many in one transaction (%(default)s)',
        )


def _add_cell(parsers: Parsers) -> None:
    text = 'the cells that hosts belong to, and whether they are down'
    cell = parsers.add_parser('cell', help=text).add_subparsers(metavar='COMMAND', required=True)
    for name, text in {
        'list': 'print the name, the UUID, the state and the hosts of each cell',
        'down': 'say that a cell does not respond: its servers are UNKNOWN, and what is asked of them is answered 503',
        'up': 'say that a cell responds again',
    }.items():
        command = _add(cell, name, commands.cell, text)
        command.set_defaults(change=name)
        _add_data_dir(command)
        if name != 'list':
            command.add_argument('name', metavar='CELL', help='such as cell1; there are [simulated]cells of them')


def _add_data_dir(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        '--data-dir', metavar='DIR', help='that of `serve`, where no database is configured (./computeapi-data)'
    )


def _add_audit(parsers: Parsers) -> None:
    text = 'print what no task holds, such as claims of deleted servers: exit status 0 if there is nothing left, else 1'
    audit = _add(parsers, 'audit', commands.audit, text)
    _add_data_dir(audit)
    audit.add_argument('--repair', action='store_true', help='mend it; what is wrong with living servers is queued')


def _add_status(parsers: Parsers) -> None:
    text = 'print what /readyz says, how neighbours are, processes and the queue: exit status 0 if all is well, else 1'
    status = _add(parsers, 'status', commands.status, text)
    _add_data_dir(status)
    status.add_argument(
        'words',
        nargs='*',
        metavar='upgrade check',
        choices=[[], 'upgrade', 'check'],
        help='whether the service can run, as other services say it: exit status 0 yes, 1 with warnings, 2 no',
    )


def _add_reports(parsers: Parsers) -> None:
    report = commands.report
    _add(parsers, 'routes', report('routes'), 'print every operation: method, path, versions, policy')
    history = _add(parsers, 'history', report('history', 'version', 'markdown'), 'print what changed in each version')
    history.add_argument('version', nargs='?', metavar='VERSION', type=version, help='only in this one')
    history.add_argument('--markdown', action='store_true', help='as a document, which docs/reference/history.md is')
    openapi = _add(parsers, 'openapi', report('openapi', 'version'), 'print the OpenAPI document of one version')
    openapi.add_argument('version', metavar='VERSION', type=version, help='such as 2.1, or `latest`')
    _add(parsers, 'policy', report('policy'), 'print a policy.yaml with every rule as a comment')
    _add(parsers, 'explain', commands.explain, 'print which rules an operation asks, and whether a caller passes')
    _add(parsers, 'config', report('config'), 'print a configuration file with every option as a comment')


if __name__ == '__main__':
    sys.exit(main())
