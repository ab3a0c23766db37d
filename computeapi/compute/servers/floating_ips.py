"""Floating IPs and the servers that they are associated with."""

from collections.abc import Collection, Iterator
from contextlib import contextmanager

from computeapi.backends.network import FloatingIP, Port
from computeapi.compute.platform import Platform
from computeapi.compute.servers.addresses import REFRESH, Addresses
from computeapi.compute.servers.network_info import held
from computeapi.context import Context
from computeapi.db import servers
from computeapi.db.servers import Server
from computeapi.errors import (
    Conflict,
    FloatingIPInUse,
    FloatingIPNotFound,
    FloatingIPPoolNotFound,
    Invalid,
    NoMoreAddresses,
    Unreachable,
)


class FloatingIPManager:
    """Look-ups are limited to the caller's project."""

    def __init__(self, platform: Platform):
        self.networks, self.addresses = platform.networks, Addresses(platform)
        self.store, self.tasks = platform.store, platform.tasks

    def get(self, context: Context, address: str) -> FloatingIP:
        for floating_ip in self.networks.floating_ips(context, addresses=[address]):
            return floating_ip
        raise FloatingIPNotFound(f'Floating IP not found for address {address}.')

    def create(self, context: Context, pool: str | None = None) -> FloatingIP:
        """Create one from the pool of that name; FloatingIPPoolNotFound, also if the pool is exhausted. OverQuota."""
        try:
            return self.networks.create_floating_ip(context, pool)
        except NoMoreAddresses:
            where = f'in pool {pool}' if pool else 'available'
            raise FloatingIPPoolNotFound(f'No more floating IPs {where}.') from None

    def delete(self, context: Context, floating_ip_id: str) -> None:
        floating_ip = self.networks.floating_ip(context, floating_ip_id)
        with self._following(context, set(filter(None, [floating_ip.server_id]))):
            self.networks.delete_floating_ip(context, floating_ip_id)

    def server_of(self, floating_ip: FloatingIP) -> Server | None:
        """The server that the floating IP is associated with."""
        if floating_ip.server_id is None:
            return None
        return self.store.query(servers.get, floating_ip.server_id)

    def associate(self, context: Context, server: Server, address: str, fixed_address: str | None = None) -> None:
        """Associate it with this address of the server, by default its first IPv4 address, and with no other.

        FloatingIPNotFound; Invalid if there is no such address, no router, or another floating IP for the address."""
        port, fixed_address = target(held(self.networks, context, server), server, address, fixed_address)
        try:
            floating_ip = self.get(context, address)
        except FloatingIPNotFound:
            raise FloatingIPNotFound('floating IP not found') from None
        with self._following(context, {server.uuid, *filter(None, [floating_ip.server_id])}):
            try:
                self.networks.associate_floating_ip(context, address, port.id, fixed_address)
            except (FloatingIPInUse, Unreachable) as error:
                raise Invalid(
                    f'Unable to associate floating IP {address} to fixed IP {fixed_address} '
                    f'for instance {server.uuid}. Error: {error}'
                ) from None

    def dissociate(self, context: Context, server: Server, address: str) -> None:
        """Conflict if it is not associated with the server."""
        if self.get(context, address).server_id != server.uuid:
            raise not_associated(address, server.uuid)
        with self._following(context, {server.uuid}):
            self.networks.disassociate_floating_ip(context, address)

    @contextmanager
    def _following(self, context: Context, server_ids: Collection[str]) -> Iterator[None]:
        """Refresh the addresses of these servers after the block; a worker does so if this process dies."""
        with self.store.write() as connection:
            leased = [
                self.tasks.add(connection, REFRESH, server_id, context, leased=True) for server_id in sorted(server_ids)
            ]
        try:
            yield
        finally:
            self.addresses.refresh(context, server_ids)
            with self.tasks.adding() as connection:
                for task in leased:
                    self.tasks.done(connection, task)


def target(ports: Collection[Port], server: Server, address: str, wanted: str | None) -> tuple[Port, str]:
    """The port and the fixed address to associate a floating IP with."""
    if not ports:
        raise Invalid('Instance network is not ready yet')
    held = [(port, fixed['ip_address']) for port in ports for fixed in port.fixed_ips]
    if not held:
        raise Invalid('No fixed IPs associated to instance')
    for port, fixed_address in held:
        if fixed_address == wanted or (wanted is None and ':' not in fixed_address):
            return port, fixed_address
    if wanted is not None:
        raise Invalid('Specified fixed address not assigned to instance')
    raise Invalid(
        f'Unable to associate floating IP {address} to any fixed IPs for instance {server.uuid}. '
        'Instance has no fixed IPv4 addresses to associate.'
    )


def not_associated(address: str, server_id: str) -> Conflict:
    return Conflict(f'Floating IP {address} is not associated with instance {server_id}.')
