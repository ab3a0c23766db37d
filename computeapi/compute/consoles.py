"""Consoles of servers: the URLs of their proxies, and the targets of console tokens."""

import hashlib
import socket
import uuid
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import timedelta
from urllib.parse import urlencode

from oslo_config import cfg

from computeapi.backends.hypervisor import CONSOLES, Console, Hypervisor, HypervisorError, require
from computeapi.compute.servers.changes import not_ready, refusal
from computeapi.compute.tasks.transition import Requirement
from computeapi.db import consoles, servers
from computeapi.db.consoles import ConsoleToken
from computeapi.db.engine import Store
from computeapi.db.servers import Server
from computeapi.errors import ConsoleTokenNotFound, Invalid
from computeapi.states import TaskState, VMState

Place = tuple[str, str | None]
"""The UUID of a server, and a host."""

OFF = frozenset(
    {
        VMState.STOPPED,
        VMState.SUSPENDED,
        VMState.SHELVED,
        VMState.SHELVED_OFFLOADED,
        VMState.SOFT_DELETED,
        VMState.DELETED,
    }
)
"""The states of servers whose consoles are closed."""
GOING_AWAY = frozenset({TaskState.DELETING, TaskState.MIGRATING})
"""What a server must not be doing when a console is opened, because its address is about to change."""


@dataclass(frozen=True)
class Proxy:
    """The options of a protocol: their group, and for each console type the option with the URL of its proxy."""

    group: str
    urls: Mapping[str, str]


PROXIES = {
    'vnc': Proxy('vnc', {'novnc': 'novncproxy_base_url'}),
    'spice': Proxy('spice', {'spice-html5': 'html5proxy_base_url', 'spice-direct': 'spice_direct_proxy_base_url'}),
    'rdp': Proxy('rdp', {'rdp-html5': 'html5_proxy_base_url'}),
    'serial': Proxy('serial_console', {'serial': 'base_url'}),
    'mks': Proxy('mks', {'webmks': 'mksproxy_base_url'}),
}
PROTOCOLS = {kind: protocol for protocol, proxy in PROXIES.items() for kind in proxy.urls}
"""The protocol of each console type."""


class Consoles:
    """The URL of a console gives access for a limited time, and is the only protection."""

    def __init__(self, store: Store, conf: cfg.ConfigOpts, hypervisor: Hypervisor):
        self.store, self.conf, self.hypervisor, self.clock = store, conf, hypervisor, store.clock

    def open(self, server: Server, protocol: str, kind: str) -> str:
        """The URL of a console of that type, with a token; Conflict if the server has no host or is about to leave it,
        Invalid for a type that the protocol or the cloud does not offer, NotSupported for one that the driver lacks."""
        if server.host is None:
            raise not_ready(server)
        if server.task_state in GOING_AWAY:
            raise refusal(server, server.uuid, Requirement(f'get_{protocol}_console'))
        base = self.base_url(protocol, kind)
        require(self.hypervisor, CONSOLES[protocol], server.host)
        address = self.hypervisor.console(server, protocol)
        token = str(uuid.uuid4())
        now = self.clock()
        expires_at = now + timedelta(seconds=self.conf.consoleauth.token_ttl)
        with self.store.write() as connection:
            consoles.delete_expired(connection, server.uuid, now)
            consoles.insert(
                connection, ConsoleToken(hash_of(token), server.uuid, server.host, kind, *address, expires_at)
            )
        return url_of(base, kind, token)

    def base_url(self, protocol: str, kind: str) -> str:
        if not self.offers(protocol):
            raise Invalid(f'Unavailable console type {kind}.')
        proxy = PROXIES[protocol]
        if kind not in proxy.urls:
            raise Invalid(f'Invalid console type {kind}')
        return str(self.conf[proxy.group][proxy.urls[kind]])

    def offers(self, protocol: str) -> bool:
        """Whether consoles of this protocol are enabled."""
        return bool(self.conf[PROXIES[protocol].group].enabled)

    def find(self, token: str) -> ConsoleToken:
        """The target of the token; ConsoleTokenNotFound."""
        found = self.store.query(consoles.get, hash_of(token), self.clock())
        if found is None:
            raise ConsoleTokenNotFound()
        return found

    def enter(self, token: str, kind: str) -> ConsoleToken:
        """Like `find`, for a console of that type; ConsoleTokenNotFound also for a token of another type."""
        found = self.find(token)
        if found.kind != kind:
            raise ConsoleTokenNotFound()
        return found

    def connect(self, token: ConsoleToken) -> socket.socket:
        """A new connection to the target of the token only; HypervisorError, NotSupported."""
        server = self.store.query(servers.get, token.server_id)
        if server is None or not self.open_places({(server.uuid, token.host)}):
            raise HypervisorError('The server is no longer running there.')
        console = Console(token.address, token.port, token.tls_port, token.internal_access_path)
        return self.hypervisor.connect(server, PROTOCOLS[token.kind], console)

    def open_places(self, places: Collection[Place]) -> set[Place]:
        """The subset of the places where the server still is, in a state in which its consoles may be open."""
        found = self.store.query(consoles.places, {server_id for server_id, _ in places})
        return {(server_id, host) for server_id, host, vm_state in found if vm_state not in OFF} & set(places)


def hash_of(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()


def url_of(base: str, kind: str, token: str) -> str:
    """noVNC accepts only the query parameter `path` and forwards it to the proxy; the others send their own query."""
    query = {'path': f'?token={token}'} if kind == 'novnc' else {'token': token}
    return f'{base}{"&" if "?" in base else "?"}{urlencode(query)}'
