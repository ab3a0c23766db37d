"""The options of `serve` and `run` that request a kit. The kit is only loaded if one of them is given."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING

from computeapi.argument_types import number
from computeapi.errors import Invalid

if TYPE_CHECKING:
    from computeapi.kit.cloud_files.accounts import UserAccount
    from computeapi.kit.kit import Kit

ASKING = ('control_token', 'journal', 'load', 'hints', 'seed')
"""Each of these options makes `serve` have a kit."""


def add_run(command: argparse.ArgumentParser) -> None:
    """Add the options of `run`, which always has a kit."""
    _add_likeness(command)
    _add_kit(command)


def add_serve(command: argparse.ArgumentParser) -> None:
    """Add the options of `serve`, which has a kit if one of them requires it."""
    _add_likeness(command)
    kit = command.add_argument_group('with --in-memory')
    kit.add_argument(
        '--control-token',
        metavar='TOKEN',
        help='enable the control API at /control, for clients that send this token in X-Control-Token',
    )
    kit.add_argument(
        '--hints',
        action='store_true',
        default=None,
        help='report in a header and in the log which version supports the parts of a request that its own version '
        'does not',
    )
    _add_kit(kit)


def _add_likeness(command: argparse.ArgumentParser) -> None:
    """Add the options that make the cloud similar to another one."""
    newest = command.add_mutually_exclusive_group()
    newest.add_argument(
        '--release',
        type=release,
        metavar='RELEASE',
        help='behave like this release of OpenStack, given by number or name, such as 2023.1 or antelope',
    )
    newest.add_argument('--max-microversion', metavar='VERSION', help='the newest version that clients are offered')
    command.add_argument(
        '--page-limit', type=number, metavar='N', help='the maximum number of items in one page of a list (1000)'
    )
    command.add_argument('--policy', type=policy_file, metavar='FILE', help='a file of policy rules, like policy.yaml')


def _add_kit(command: argparse._ActionsContainer) -> None:
    command.add_argument(
        '--journal', metavar='FILE', help='append each request and its response to this file, as lines of JSON'
    )
    command.add_argument('--load', metavar='FILE', type=Path, help='the initial state of the cloud, as YAML or JSON')
    command.add_argument(
        '--seed', type=int, metavar='N', help='generate the same IDs, addresses and passwords for the same N'
    )
    command.add_argument(
        '--webhook-allow',
        action='append',
        default=[],
        metavar='CIDR',
        help='a network that webhooks may be sent to, in addition to the loopback; may be repeated',
    )


def release(text: str) -> dict[tuple[str, str], str]:
    """An argparse type: the configuration options that make a cloud similar to a release."""
    from computeapi.kit.releases import options_of

    try:
        return options_of(text)
    except Invalid as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def policy_file(text: str) -> str:
    """An argparse type: the path of a valid policy file. For a missing file, oslo.policy would silently use the
    defaults."""
    from oslo_policy import policy as oslo_policy

    from computeapi import api
    from computeapi.web.policy import defaults

    try:
        rules = oslo_policy.parse_file_contents(Path(text).read_text())
        if not isinstance(rules, dict):
            raise ValueError('each rule must have a name')
    except (OSError, ValueError) as error:
        raise argparse.ArgumentTypeError(f'{text}: {error}') from None
    known = {rule.name for rule in defaults(api.operations())}
    if unknown := sorted(set(rules) - known):
        print(f'computeapi: {text} contains rules that no operation uses: {", ".join(unknown)}', file=sys.stderr)
    return os.path.abspath(text)


@contextmanager
def kit_of(options: argparse.Namespace) -> Iterator[Kit | None]:
    """The kit that the options of `serve` require, or None. Raises Invalid for options that do not go together,
    OSError."""
    asked = [name for name in ASKING if getattr(options, name) is not None]
    if options.webhook_allow and options.control_token is None:
        raise Invalid('--webhook-allow requires --control-token, without which no webhooks can be added.')
    if not asked:
        yield None
        return
    if not options.in_memory:
        option = '--' + asked[0].replace('_', '-')
        raise Invalid(f'{option} requires --in-memory: a reset would delete everything in the data directory.')
    if options.seed is not None and not is_loopback(options.host):
        warning = 'The passwords of this cloud are derived from --seed: anybody who can guess it can log in at'
        print(f'computeapi: {warning} {options.host}', file=sys.stderr)
    from computeapi.kit.kit import Kit
    from computeapi.kit.seed import Seed

    seed = Seed(options.seed)
    with closing(
        Kit(
            token=options.control_token,
            journal=options.journal,
            cloud_file=options.load,
            on_user_loaded=print_password,
            seed=seed,
            webhook_allow=options.webhook_allow,
        )
    ) as kit:
        kit.tools.hints.usually = kit.tools.hints.on = bool(options.hints)
        yield kit


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach a listener at this address."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == 'localhost'


def print_password(account: UserAccount) -> None:
    """Print a password that is in no file."""
    if not account.stated:
        where = f' in the project {account.project}' if account.project else ''
        print(f'computeapi: The password of {account.user}{where} is {account.password}', file=sys.stderr)
