"""The user that guests run as where the service is root, which bridges and block storage need.

QEMU opens all that a guest begins with as root, and gives up its rights before the guest runs. What comes later is
opened for it (`Monitor.lent`), so that the files of guests are root's: who broke out of one can open none of another.
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
    """name: None, where guests run as the service does.  arguments: of a QEMU that gives up its rights."""

    name: str | None = None
    uid: int = -1
    gid: int = -1
    arguments: tuple[str, ...] = ('-sandbox', SANDBOX.format('deny'))

    @classmethod
    def of(cls, options: cfg.ConfigOpts.GroupAttr) -> Self:
        """As [qemu] says; cfg.ConfigFileValueError for a user that guests cannot run as."""
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
        # It must be able to change its user once; who is not root any more can only become what he is.
        sandbox = ('-sandbox', SANDBOX.format('allow'))
        return cls(name, found.pw_uid, found.pw_gid, (*sandbox, *dropping(options.binary, name)))

    @property
    def command(self) -> list[str]:
        """What runs the program that is behind it as this user."""
        if self.name is None:
            return []
        return ['setpriv', f'--reuid={self.uid}', f'--regid={self.gid}', '--init-groups', '--no-new-privs', '--']

    def give(self, path: Path) -> None:
        """The file, to who cannot be root for a moment; nobody comes to it by its path."""
        if self.name is not None:
            os.chown(path, self.uid, self.gid)


def dropping(binary: str, name: str) -> tuple[str, str]:
    """How this QEMU is told to become a user: -runas is on its way out since 9.1."""
    said = subprocess.run([binary, '--help'], capture_output=True, text=True, timeout=HELP_SECONDS).stdout
    options = said.partition('-run-with ')[2].partition('\n-')[0]
    return ('-run-with', f'user={name}') if 'user=' in options else ('-runas', name)
