"""`computeapi replay JOURNAL --to URL`."""

import argparse
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from computeapi.kit.replay.comparison import PlayedRequest, replay
from computeapi.kit.replay.player import ReplayPlayer
from computeapi.kit.replay.recording import read
from computeapi.kit.replay.target import target_of


def add(command: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    command.add_argument('journal', metavar='JOURNAL', help='a journal as lines of JSON, or an HTTP Archive (.har)')
    command.add_argument(
        '--to',
        metavar='URL',
        help='the URL of the cloud or its Keystone, or its name in clouds.yaml (default: what OS_* or --os-cloud name)',
    )
    command.add_argument(
        '--and',
        dest='other',
        metavar='URL',
        help='a second cloud, whose responses are compared with those of the first',
    )
    command.add_argument(
        '--os-cloud',
        metavar='NAME',
        help='the cloud in clouds.yaml whose credentials are used (default: the OS_* variables)',
    )
    command.add_argument(
        '--token', metavar='TOKEN', help='use this token instead of logging in; all services must be below the URL'
    )
    command.add_argument('--microversion', metavar='VERSION', help='use this version of compute for all requests')
    command.add_argument('--headers', action='store_true', help='also compare the names of headers')
    command.add_argument(
        '--patience', type=float, default=60.0, metavar='S', help='how many seconds to wait for a state (%(default)s)'
    )


def run(options: argparse.Namespace) -> int:
    """Print the result of each request; returns 1 if a response differs. Raises Invalid, OSError, CloudUnreachable."""
    recording = read(options.journal)
    with ExitStack() as stack:
        first = stack.enter_context(_player(options, options.to))
        other = stack.enter_context(_player(options, options.other)) if options.other else None
        played = []
        for each in replay(recording, first, other, headers=options.headers):
            print(each, flush=True)
            played.append(each)
    print(summary(played, len(recording)))
    return int(any(each.differences for each in played))


@contextmanager
def _player(options: argparse.Namespace, where: str | None) -> Iterator[ReplayPlayer]:
    target = target_of(where, options.os_cloud, options.token)
    try:
        yield ReplayPlayer(target, options.patience, options.microversion)
    finally:
        target.close()


def summary(played: list[PlayedRequest], recorded: int) -> str:
    skipped = sum(each.skipped is not None for each in played)
    differing = sum(bool(each.differences) for each in played)
    return (
        f'{recorded} requests were recorded: {len(played) - skipped} were replayed, {skipped} were skipped, and'
        f' {recorded - len(played)} only polled for a state. {differing} responses differ.'
    )
