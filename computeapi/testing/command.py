"""`computeapi run`: runs a command with its own cloud."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from oslo_config import cfg

from computeapi.kit.options import print_password
from computeapi.testing.cloud import Cloud

NOT_FOUND = 127
"""The exit status of shells for a command that does not exist."""
TERMINATED = 128 + signal.SIGTERM
ELSEWHERE = re.compile(
    r'OS_(?!\w*__)(AUTH_TYPE|(AUTH_)?TOKEN|ENDPOINT|SYSTEM_SCOPE|TRUST_ID|TENANT_NAME|(USER|PROJECT|TENANT)_ID'
    r'|\w*DOMAIN(_ID|_NAME)?|APPLICATION_CREDENTIAL_\w+|\w+_ENDPOINT_OVERRIDE)'
)
"""Variables that the openrc of another cloud may have set, and that would conflict with ours."""
OWN = re.compile('computeapi(-.*)?')
"""Values of OS_CLOUD that are kept."""


def run(
    conf: cfg.ConfigOpts,
    command: Sequence[str],
    journal: str | None = None,
    scene: Path | None = None,
    seed: int | None = None,
    webhook_allow: Sequence[str] = (),
) -> int:
    """Run the command with a cloud of this configuration; returns its exit status, as a shell reports it.

    journal: a file to which each request is appended.  scene: a cloud file with the initial content.
    seed: of IDs, addresses and passwords.  webhook_allow: networks that webhooks may connect to, besides the loopback.
    """
    cloud = Cloud(
        conf=conf,
        journal=journal,
        load=scene,
        on_user_loaded=print_password,
        seed=seed,
        webhook_allow=webhook_allow,
    )
    with _exiting_when_terminated(), cloud:
        try:
            process = subprocess.Popen(command, env={**_inherited(), **cloud.environ})
        except OSError as error:
            print(f'computeapi: {command[0]}: {error.strerror}', file=sys.stderr)
            return NOT_FOUND
        status = _status(process)
    return 128 - status if status < 0 else status


def _inherited() -> dict[str, str]:
    """The environment variables that the command inherits: all that do not lead it to another cloud."""
    kept = {name: value for name, value in os.environ.items() if not ELSEWHERE.fullmatch(name)}
    if not OWN.fullmatch(kept.get('OS_CLOUD', '')):
        kept.pop('OS_CLOUD', None)
    return kept


@contextmanager
def _exiting_when_terminated() -> Iterator[None]:
    """Turn SIGTERM into an exception in the block, so that everything is cleaned up."""
    before = signal.signal(signal.SIGTERM, lambda *_: sys.exit(TERMINATED))
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _status(process: 'subprocess.Popen[bytes]') -> int:
    """The exit status of the command, which is terminated if this process is."""
    # A terminal sends SIGINT to both processes, and the command decides how to react.
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        return process.wait()
    except SystemExit:
        process.terminate()
        process.wait()
        raise
    finally:
        signal.signal(signal.SIGINT, before)
