"""TLS between hosts: who sends a guest and who takes it in each show a certificate of the same CA.

QEMU's own names for the files: ca-cert.pem, server-cert.pem, server-key.pem, client-cert.pem, client-key.pem.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Self

from oslo_config import cfg

from computeapi.backends.hypervisor import HypervisorError
from computeapi.backends.hypervisor.qemu import qemu_img
from computeapi.backends.hypervisor.qemu.machine import text
from computeapi.backends.hypervisor.qemu.user import GuestUser

End = Literal['server', 'client']
ENDS: tuple[End, ...] = ('server', 'client')


@dataclass(frozen=True)
class HostCertificates:
    """directory: of the files; None: what moves is not encrypted."""

    directory: Path | None

    @classmethod
    def of(cls, options: cfg.ConfigOpts.GroupAttr, user: GuestUser) -> Self:
        """As [qemu] says; cfg.ConfigFileValueError for files that QEMU does not take, which reads them as that user."""
        found = cls(Path(options.tls_certificates).absolute() if options.tls_certificates else None)
        for end in ENDS:
            if problem := found.problem(end, user):
                raise cfg.ConfigFileValueError(f'[qemu]tls_certificates: {problem}')
        return found

    def problem(self, end: End, user: GuestUser) -> str:
        """What is to be said against the files, if anything."""
        if self.directory is None:
            return ''
        # QEMU goes without what a client lacks.
        missing = [name for name in (f'{end}-cert.pem', f'{end}-key.pem') if not (self.directory / name).exists()]
        if missing:
            return f'{self.directory / missing[0]} is not there'
        return qemu_img.complaint(user.command, 'measure', *self.arguments(end), '--size', '1', '-O', 'raw')

    def credentials(self, end: End) -> dict[str, Any] | None:
        """The properties of QEMU's object; either end looks who the other one is."""
        if self.directory is None:
            return None
        facts = {'qom-type': 'tls-creds-x509', 'id': self.name(end), 'endpoint': end, 'verify-peer': True}
        return facts | {'dir': str(self.directory)}

    def name(self, end: End) -> str:
        """What QEMU calls the credentials."""
        return f'tls-{end}' if self.directory else ''

    def arguments(self, end: End) -> list[str]:
        """The credentials, for a program of QEMU's."""
        credentials = self.credentials(end)
        return [] if credentials is None else ['--object', text(credentials)]

    def target(self, host: str, facts: Mapping[str, Any]) -> dict[str, Any]:
        """Where another host takes in what facts tell of, for an NBD block device. The name in its certificate must be
        that of the host which the guest is to go to, wherever the facts lead; HypervisorError where one of both does
        not encrypt."""
        if bool(self.directory) != bool(facts.get('tls')):
            raise HypervisorError(f'Host {host} and the one that the server is on do not both encrypt what moves.')
        found = {'driver': 'nbd', 'server': {'type': 'inet', 'host': facts['address'], 'port': str(facts['port'])}}
        return found | ({'tls-creds': self.name('client'), 'tls-hostname': host} if self.directory else {})
