"""Fixed addresses and the servers that have them."""

from typing import NamedTuple

from computeapi.backends.network.nova_network import FixedIP
from computeapi.compute.platform import Platform
from computeapi.context import Context
from computeapi.db import servers
from computeapi.db.servers import Server


class FixedAddress(NamedTuple):
    """A fixed address and its server."""

    fixed_ip: FixedIP
    server: Server | None


class FixedIPManager:
    """Look-ups are limited to the networks that the caller may use."""

    def __init__(self, platform: Platform):
        self.networks, self.store = platform.networks, platform.store

    def get(self, context: Context, address: str) -> FixedAddress:
        fixed_ip = self.networks.fixed_ip(context, address)
        server_id = fixed_ip.server_id
        return FixedAddress(fixed_ip, None if server_id is None else self.store.query(servers.get, server_id))
