"""`computeapi populate` and `computeapi clone`."""

import argparse
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from oslo_config import cfg

from computeapi import serve
from computeapi.argument_types import number
from computeapi.clock import utcnow
from computeapi.db import schema
from computeapi.db.engine import store_of
from computeapi.errors import Error
from computeapi.kit.cloud_files.anonymity import Anonymity
from computeapi.kit.cloud_files.cloning import clone as read
from computeapi.kit.cloud_files.document import CloudFileError, commented
from computeapi.kit.cloud_files.populating import populate as fill
from computeapi.kit.cloud_files.synthetic import SyntheticCloud
from computeapi.main import Service
from computeapi.serve import bootstrap
from computeapi.serve.directory import opened


def add_populate(parser: argparse.ArgumentParser) -> None:
    parser.add_argument('--servers', type=number, default=1000, metavar='N', help='number of servers (%(default)s)')
    parser.add_argument('--projects', type=number, default=20, metavar='N', help='number of projects (%(default)s)')
    # The dest is not `hosts`, which sets [simulated] hosts; those exist in addition.
    about_hosts = 'number of hosts (%(default)s)'
    parser.add_argument('--hosts', type=number, default=20, metavar='N', dest='synthetic_hosts', help=about_hosts)
    parser.add_argument(
        '--seed', type=int, default=1, metavar='N', help='selects which cloud is generated (%(default)s)'
    )
    where = parser.add_mutually_exclusive_group()
    where.add_argument(
        '--data-dir', metavar='DIR', help='the data directory of `serve`, which must not be running (./computeapi-data)'
    )
    where.add_argument(
        '--output', type=Path, metavar='FILE', help='write a file for --load instead; -: standard output'
    )
    parser.set_defaults(run=populate)


def populate(conf: cfg.ConfigOpts, options: argparse.Namespace) -> None:
    """Generate a cloud; OSError for a directory that is in use."""
    inventory = SyntheticCloud(options.servers, options.projects, options.synthetic_hosts, options.seed, utcnow())
    if options.output is not None:
        text = commented(inventory.document(), ())
        if str(options.output) == '-':
            print(text, end='')
        else:
            options.output.write_text(text)
        return
    with ExitStack() as stack:
        directory = stack.enter_context(opened(options.data_dir or conf.standalone.data_dir))
        serve.configure(conf, directory)
        # Not durable: after an interruption, begin again with another directory.
        service = Service(conf, store_of(conf, durable=False, alone=True))
        stack.callback(service.close)
        schema.upgrade(service.store)
        bootstrap.prepare(service, directory, None)
        service.hosts.register()
        try:
            fill(service, inventory, _print_progress)
        except CloudFileError as error:
            raise Error(f'{directory.path} already contains a synthetic cloud: {error.message}') from None
        if sys.stderr.isatty():
            print(file=sys.stderr)
        print(f'{options.servers} servers are in {directory.path}')


def add_clone(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        '--os-cloud', metavar='NAME', help='the cloud in clouds.yaml (default: OS_CLOUD, or the OS_* variables)'
    )
    parser.add_argument(
        '--anonymize', action='store_true', help='replace all names, addresses, IDs and texts that identify it'
    )
    parser.set_defaults(run=clone)


def clone(conf: cfg.ConfigOpts, options: argparse.Namespace) -> None:
    """Print the content of a cloud; Error if it cannot be reached. What is refused is reported in comments and on
    stderr."""
    document, left_out = cloned(options.os_cloud, anonymous=options.anonymize)
    print(commented(document, left_out), end='')
    for each in left_out:
        print(f'computeapi: left out: {each}', file=sys.stderr)


def cloned(name: str | None, *, anonymous: bool = False) -> tuple[dict[str, Any], list[str]]:
    """The content of a cloud in clouds.yaml, and what is left out; Error."""
    try:
        import openstack
        from keystoneauth1.exceptions import ClientException
        from openstack.exceptions import SDKException
    except ImportError:
        raise Error('Reading a cloud requires the package openstacksdk.') from None
    try:
        with openstack.connect(cloud=name) as connection:
            document, left_out = read(connection)
    except (ClientException, SDKException) as error:
        raise Error(str(error)) from None
    return (Anonymity(document).applied() if anonymous else document), left_out


def _print_progress(done: int) -> None:
    """Show progress on a terminal."""
    if sys.stderr.isatty():
        print(f'\r{done} servers', end='', file=sys.stderr, flush=True)
