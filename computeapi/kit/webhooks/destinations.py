"""Where webhooks may connect to: the loopback, and the networks that are allowed at the start of a cloud."""

import socket
import time
from collections.abc import Iterable, Iterator
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import NamedTuple, Self
from urllib.parse import urlsplit

from computeapi.errors import Invalid

MAX_URL_LENGTH = 2048
PORTS = {'http': 80, 'https': 443}


class AddressRefused(OSError):
    """No address of a host is allowed."""


class HookDestinations:
    """Which addresses are allowed. networks: besides the loopback, such as 10.1.0.0/16; Invalid."""

    def __init__(self, networks: Iterable[str] = ()):
        self.networks: list[IPv4Network | IPv6Network] = []
        for text in networks:
            try:
                self.networks.append(ip_network(text))
            except ValueError as error:
                raise Invalid(f'Webhooks cannot be allowed to go to {text}: {error}') from None

    def are_allowed(self, address: str) -> bool:
        """Whether this address is allowed. An IPv4-mapped IPv6 address counts as the IPv4 address."""
        found: IPv4Address | IPv6Address = ip_address(address)
        if isinstance(found, IPv6Address) and found.ipv4_mapped is not None:
            found = found.ipv4_mapped
        return found.is_loopback or any(found in network for network in self.networks)

    def addresses(self, target: 'HookTarget') -> Iterator[str]:
        """The addresses of the host, resolved now, that are allowed; AddressRefused if none is, OSError."""
        found = socket.getaddrinfo(target.host, target.port, type=socket.SOCK_STREAM)
        allowed = [address for *_, (address, *_) in found if self.are_allowed(str(address))]
        if not allowed:
            raise AddressRefused(
                f'{target.host} is neither on the loopback nor in a network that webhooks may lead to.'
            )
        return iter(dict.fromkeys(map(str, allowed)))

    def connect(self, target: 'HookTarget', until: float) -> socket.socket:
        """A connection to a checked address of the host; the name is not resolved again, because it might change.

        until: by time.monotonic.  The connection is not encrypted yet. Raises OSError.
        """
        failed: OSError = TimeoutError(f'{target.host} did not accept the connection in time.')
        for address in self.addresses(target):
            seconds = until - time.monotonic()
            if seconds <= 0:
                break
            try:
                return socket.create_connection((address, target.port), timeout=seconds)
            except OSError as error:
                failed = error
        raise failed


class HookTarget(NamedTuple):
    """The parts of a URL: host and port to connect to, and the path to request."""

    scheme: str
    host: str
    port: int
    authority: str
    path: str

    @classmethod
    def of(cls, url: str) -> Self:
        """Parse a URL; Invalid if it is not an HTTP URL, or contains a user."""
        try:
            parts = urlsplit(url)
            port = parts.port or PORTS.get(parts.scheme, 0)
        except ValueError as error:
            raise Invalid(f'The URL of the webhook is not valid: {error}') from None
        if parts.scheme not in PORTS or not parts.hostname:
            raise Invalid('The URL of a webhook must begin with http:// or https:// and a host.')
        if '@' in parts.netloc:
            raise Invalid('The URL of a webhook must not contain a user: everybody who can list webhooks sees it.')
        if len(url) > MAX_URL_LENGTH or not url.isascii() or not url.isprintable() or ' ' in url:
            raise Invalid(f'The URL of a webhook must have at most {MAX_URL_LENGTH} ASCII characters, and no spaces.')
        path = (parts.path or '/') + (f'?{parts.query}' if parts.query else '')
        return cls(parts.scheme, parts.hostname, port, parts.netloc, path)
