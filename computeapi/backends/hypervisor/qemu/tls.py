"""TLS between hosts: the source and the destination of a guest each present a certificate of the same CA.

The file names are QEMU's: ca-cert.pem, server-cert.pem, server-key.pem, client-cert.pem, client-key.pem.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Self

from oslo_config import cfg

from computeapi.backends.hypervisor import HypervisorError
from computeapi.backends.hypervisor.qemu import qemu_img
from computeapi.backends.hypervisor.qemu.command_line import text
from computeapi.backends.hypervisor.qemu.user import GuestUser

End = Literal['server', 'client']
ENDS: tuple[End, ...] = ('server', 'client')


@dataclass(frozen=True)
class HostCertificates:
    """directory: of the files; None: transfers are not encrypted."""

    directory: Path | None

    @classmethod
    def of(cls, options: cfg.ConfigOpts.GroupAttr, user: GuestUser) -> Self:
        """As configured in [qemu]; cfg.ConfigFileValueError for files that QEMU, as that user, does not accept."""
        found = cls(Path(options.tls_certificates).absolute() if options.tls_certificates else None)
        for end in ENDS:
            if problem := found.problem(end, user):
                raise cfg.ConfigFileValueError(f'[qemu]tls_certificates: {problem}')
        return found

    def problem(self, end: End, user: GuestUser) -> str:
        """The problem with the files, if any."""
        if self.directory is None:
            return ''
        # QEMU itself does not complain about a client's missing files.
        missing = [name for name in (f'{end}-cert.pem', f'{end}-key.pem') if not (self.directory / name).exists()]
        if missing:
            return f'{self.directory / missing[0]} is not there'
        return qemu_img.complaint(user.command, 'measure', *self.arguments(end), '--size', '1', '-O', 'raw')

    def credentials(self, end: End) -> dict[str, Any] | None:
        """The properties of the QEMU object; each end verifies the other one."""
        if self.directory is None:
            return None
        facts = {'qom-type': 'tls-creds-x509', 'id': self.name(end), 'endpoint': end, 'verify-peer': True}
        return facts | {'dir': str(self.directory)}

    def name(self, end: End) -> str:
        """The name of the credentials object in QEMU."""
        return f'tls-{end}' if self.directory else ''

    def arguments(self, end: End) -> list[str]:
        """The credentials, as arguments of a QEMU program."""
        credentials = self.credentials(end)
        return [] if credentials is None else ['--object', text(credentials)]

    def target(self, host: str, facts: Mapping[str, Any]) -> dict[str, Any]:
        """The NBD target on another host, as described by its facts. Its certificate must contain the name of the host
        that the guest is to go to, wherever the facts point. HypervisorError if only one of the two hosts encrypts."""
        if bool(self.directory) != bool(facts.get('tls')):
            raise HypervisorError(f'Host {host} and the current host of the server do not both encrypt migrations.')
        found = {'driver': 'nbd', 'server': {'type': 'inet', 'host': facts['address'], 'port': str(facts['port'])}}
        return found | ({'tls-creds': self.name('client'), 'tls-hostname': host} if self.directory else {})
