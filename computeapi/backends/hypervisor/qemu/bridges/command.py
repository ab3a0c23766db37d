"""Runs programs of the host, always as a list of arguments and with a time limit."""

import logging
import os
import subprocess
from collections.abc import Sequence

from computeapi.backends.hypervisor import HypervisorError

LOG = logging.getLogger(__name__)
SECONDS = 30
PATH = '/usr/sbin:/sbin:/usr/bin:/bin'


def run(*arguments: str, stdin: str = '', ends: Sequence[int] = (0,)) -> str:
    """Its output; HypervisorError for another exit status. ends: the accepted exit statuses."""
    try:
        done = subprocess.run(
            arguments,
            input=stdin,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            env={'PATH': PATH, 'LC_ALL': 'C'},
            cwd=os.sep,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        LOG.warning('%s could not be run: %s', arguments[0], error)
        raise HypervisorError(f'{arguments[0]} could not be run on the host.') from None
    if done.returncode not in ends:
        LOG.warning('%s failed: %s', ' '.join(arguments), done.stderr.strip())
        raise HypervisorError(f'{arguments[0]} failed on the host.')
    return done.stdout
