"""The user that guests run as if the service runs as root, which bridges and block storage need.

QEMU opens a guest's initial files as root, and drops its privileges before the guest runs. Later files are opened for
it (`Monitor.lent`), so that guests' files stay owned by root: an attacker who broke out of one guest cannot open those
of another.
"""

import os
import pwd
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from oslo_config import cfg

SANDBOX = 'on,obsolete=deny,elevateprivileges={},spawn=deny,resourcecontrol=deny'
HELP_SECONDS = 30


@dataclass(frozen=True)
class GuestUser:
    """name: None if guests run as the service does.  arguments: those of a QEMU that drops its privileges."""

    name: str | None = None
    uid: int = -1
    gid: int = -1
    arguments: tuple[str, ...] = ('-sandbox', SANDBOX.format('deny'))

    @classmethod
    def of(cls, options: cfg.ConfigOpts.GroupAttr) -> Self:
        """As configured in [qemu]; cfg.ConfigFileValueError for a user that guests cannot run as."""
        name, own = options.user, os.geteuid()
        if not name:
            return cls()
        try:
            found = pwd.getpwnam(name)
        except KeyError:
            raise cfg.ConfigFileValueError(f'[qemu]user: there is no user {name}') from None
        if found.pw_uid == own:
            return cls()
        if own != 0:
            raise cfg.ConfigFileValueError(f'[qemu]user: guests can run as {name} only if the service runs as root')
        # The sandbox must allow QEMU to change its user once; without root it can only become the user that it is.
        sandbox = ('-sandbox', SANDBOX.format('allow'))
        return cls(name, found.pw_uid, found.pw_gid, (*sandbox, *dropping(options.binary, name)))

    @property
    def command(self) -> list[str]:
        """The command prefix that runs a program as this user."""
        if self.name is None:
            return []
        return ['setpriv', f'--reuid={self.uid}', f'--regid={self.gid}', '--init-groups', '--no-new-privs', '--']

    def give(self, path: Path) -> None:
        """Make the user the owner of a file, for processes that never run as root; they still cannot reach its path."""
        if self.name is not None:
            os.chown(path, self.uid, self.gid)


def dropping(binary: str, name: str) -> tuple[str, str]:
    """The arguments with which this QEMU changes its user: -runas is deprecated since 9.1."""
    output = subprocess.run([binary, '--help'], capture_output=True, text=True, timeout=HELP_SECONDS).stdout
    options = output.partition('-run-with ')[2].partition('\n-')[0]
    return ('-run-with', f'user={name}') if 'user=' in options else ('-runas', name)
