"""The `computeapi` command and its arguments; commands.py implements its subcommands."""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from computeapi import __version__, commands, garbage
from computeapi.argument_types import date, number, password, port, seconds, version
from computeapi.commands import Run
from computeapi.defaults import MACHINE_FILE, WORKERS
from computeapi.errors import DatabaseError, Error

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


STANDALONE = (commands.serve, commands.run)
"""The commands that are a cloud. The clients of other services are then not loaded, which take 12 MiB."""
LOADED_LATE = {
    'serve': ('computeapi.kit.options', 'add_serve'),
    'run': ('computeapi.kit.options', 'add_run'),
    'replay': ('computeapi.kit.replay.command', 'add'),
    'explain': ('computeapi.explanation', 'add'),
    'populate': ('computeapi.kit.cloud_files.commands', 'add_populate'),
    'clone': ('computeapi.kit.cloud_files.commands', 'add_clone'),
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
    except DatabaseError as error:
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

    files = options.config_file or config.standard_files()
    conf = config.load(files, _overrides(options), standalone=options.run in STANDALONE)
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
    text = 'replay a journal against clouds and compare the responses: exit status 0 if they match, else 1'
    _add(parsers, 'replay', commands.replay, text)
    _add(
        parsers,
        'populate',
        None,
        'fill a cloud, or a file for --load, with synthetic servers and everything that belongs to them',
    )
    _add(
        parsers,
        'clone',
        None,
        'print the resources of a real cloud as a file for --load; nothing in the cloud is changed',
    )
    _add_worker(parsers)
    _add_agent(parsers)
    _add_agent_key(parsers)
    _add(
        parsers, 'consoleproxy', commands.consoleproxy, 'connect browsers and other clients to the consoles of servers'
    )
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
        help='may be repeated; default: OS_COMPUTEAPI_CONFIG_FILES, separated by `;`, or ' + MACHINE_FILE,
    )
    return command


def _add_serve(parsers: Parsers) -> None:
    text = 'run a complete cloud in this process: compute with built-in identity, images, networks and volumes'
    serve = _add(parsers, 'serve', commands.serve, text)
    serve.add_argument('--host', default='127.0.0.1', help='the address to listen on (%(default)s)')
    serve.add_argument(
        '--port', type=port, default=8774, help='the port to listen on, 0 for any free port (%(default)s)'
    )
    serve.add_argument(
        '--public-url',
        metavar='URL',
        help='the URL at which clients reach the cloud; links and the catalog then use only this URL',
    )
    serve.add_argument(
        '--metadata-port',
        type=port,
        metavar='PORT',
        help='the port at which guests, or a proxy in front of them, read metadata; the shared secret of the proxy is '
        'in the data directory (none)',
    )
    where = serve.add_mutually_exclusive_group()
    where.add_argument(
        '--data-dir', metavar='DIR', help='the directory in which everything is stored (./computeapi-data)'
    )
    where.add_argument('--in-memory', action='store_true', help='discard everything at exit')
    serve.add_argument(
        '--admin-password',
        type=password,
        metavar='PASSWORD',
        help='default: generated, and stored in the data directory',
    )
    serve.add_argument(
        '--hypervisor',
        choices=['simulated', 'qemu'],
        help='simulate servers, or run them with QEMU as [qemu] describes (simulated)',
    )
    serve.add_argument('--quiet', action='store_true', help='do not log requests')
    _add_cloud(serve)


def _add_cloud(command: argparse.ArgumentParser) -> None:
    """The arguments that describe a simulated cloud."""
    command.add_argument(
        '--hosts', type=number, metavar='N', help='the number of hosts that the cloud appears to have (1)'
    )
    command.add_argument(
        '--passing-seconds',
        type=seconds,
        metavar='S',
        help='how many seconds REBOOT and other transient states last (0)',
    )


def _add_run(parsers: Parsers) -> None:
    text = 'run a command with a temporary cloud, which it finds through OS_* variables and which is deleted afterwards'
    run = _add(parsers, 'run', commands.run, text)
    _add_cloud(run)
    run.add_argument('command', nargs='+', metavar='COMMAND', help='the command and its arguments, after --')


def _add_control(parsers: Parsers) -> None:
    text = 'control a cloud of `run` or `serve` through its control API'
    # Another parser handles all that follows; this one must treat nothing as an option, not even a leading --help.
    control = parsers.add_parser('control', help=text, add_help=False, prefix_chars='\0')
    control.set_defaults(run=commands.control, config_file=None)
    control.add_argument('arguments', nargs=argparse.REMAINDER)


def _add_worker(parsers: Parsers) -> None:
    text = 'run the tasks that requests queue, alongside the processes that answer requests'
    worker = _add(parsers, 'worker', commands.worker, text)
    worker.add_argument(
        '--workers',
        type=number,
        metavar='N',
        help=f'the number of concurrent tasks ([DEFAULT]workers, else {WORKERS})',
    )


def _add_agent(parsers: Parsers) -> None:
    text = 'drive the hypervisor of this machine, as workers request over the message bus'
    agent = _add(parsers, 'agent', commands.agent, text)
    agent.add_argument(
        '--host', dest='agent_host', metavar='NAME', help='the name of this machine among the hosts ([agent]host)'
    )


def _add_agent_key(parsers: Parsers) -> None:
    text = 'print the [agent]key of a compute machine, derived from the [agent]secret in this configuration'
    _add(parsers, 'agent-key', commands.agent_key, text).add_argument('host_name', metavar='HOST')


def _add_db(parsers: Parsers) -> None:
    db = parsers.add_parser('db', help='manage the tables in the database').add_subparsers(
        metavar='COMMAND', required=True
    )
    upgrade = _add(db, 'upgrade', commands.db, 'upgrade the tables to the newest revision')
    upgrade.set_defaults(upgrade=True, data_dir=None)
    revision = _add(db, 'version', commands.db, 'print the revision of the tables')
    revision.set_defaults(upgrade=False)
    _add_data_dir(revision)
    for name, text in {
        'archive': 'move deleted servers, with everything that belongs to them, to the archive',
        'purge': 'permanently delete archived servers, and expired tokens, messages and the like',
    }.items():
        command = _add(db, name, commands.clear, text)
        command.set_defaults(clear=name)
        _add_data_dir(command)
        command.add_argument(
            '--before',
            required=True,
            type=date,
            metavar='DATE',
            help='only what was deleted, or expired, before this date (UTC), e.g. 2026-01-31',
        )
        command.add_argument(
            '--batch',
            type=number,
            default=100,
            metavar='N',
            help='the number of servers or rows per transaction (%(default)s)',
        )


def _add_cell(parsers: Parsers) -> None:
    text = 'manage the cells that hosts belong to'
    cell = parsers.add_parser('cell', help=text).add_subparsers(metavar='COMMAND', required=True)
    for name, text in {
        'list': 'print the name, the UUID, the state and the hosts of each cell',
        'down': 'mark a cell as down: its servers are UNKNOWN, and requests for them fail with 503',
        'up': 'mark a cell as up again',
    }.items():
        command = _add(cell, name, commands.cell, text)
        command.set_defaults(change=name)
        _add_data_dir(command)
        if name != 'list':
            command.add_argument('name', metavar='CELL', help='such as cell1; [simulated]cells sets how many there are')


def _add_data_dir(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        '--data-dir',
        metavar='DIR',
        help='the data directory of `serve`, if no database is configured (./computeapi-data, if there is no config '
        'file)',
    )


def _add_audit(parsers: Parsers) -> None:
    text = 'print leftovers that no task holds, such as claims of deleted servers: exit status 0 if none remain, else 1'
    audit = _add(parsers, 'audit', commands.audit, text)
    _add_data_dir(audit)
    audit.add_argument(
        '--repair', action='store_true', help='repair them; repairs of existing servers are queued as tasks'
    )


def _add_status(parsers: Parsers) -> None:
    text = 'print the checks of /readyz, other services, processes and the queue: exit status 0 if all is well, else 1'
    status = _add(parsers, 'status', commands.status, text)
    _add_data_dir(status)
    status.add_argument(
        'words',
        nargs='*',
        metavar='upgrade check',
        choices=[[], 'upgrade', 'check'],
        help='check whether the service can run, as other OpenStack services do: exit status 0 if so, 1 with '
        'warnings, 2 if not',
    )


def _add_reports(parsers: Parsers) -> None:
    report = commands.report
    _add(parsers, 'routes', report('routes'), 'print every operation: method, path, versions, policy')
    history = _add(parsers, 'history', report('history', 'version', 'markdown'), 'print what changed in each version')
    history.add_argument('version', nargs='?', metavar='VERSION', type=version, help='only in this version')
    history.add_argument('--markdown', action='store_true', help='in Markdown, as in docs/reference/history.md')
    openapi = _add(parsers, 'openapi', report('openapi', 'version'), 'print the OpenAPI document of one version')
    openapi.add_argument('version', metavar='VERSION', type=version, help='such as 2.1, or `latest`')
    _add(parsers, 'policy', report('policy'), 'print a policy.yaml with every rule as a comment')
    _add(
        parsers,
        'explain',
        commands.explain,
        'print which policy rules an operation checks, and whether a caller passes',
    )
    _add(parsers, 'config', report('config'), 'print a configuration file with every option as a comment')
