"""Reads the documents of a server as its guest does."""

import itertools
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import orjson
from oslo_config import cfg

from computeapi.backends.hypervisor import BusAddress
from computeapi.compute.guest import ec2, openstack
from computeapi.compute.guest.facts import LATEST, Guest
from computeapi.compute.platform import Platform
from computeapi.context import Context
from computeapi.db import block_devices, server_shares, servers
from computeapi.db.servers import BlockDevice, Server
from computeapi.errors import Conflict, Invalid
from computeapi.states import ShareStatus

NETWORK_DATA = 'network_data.json'
MAX_PASSWORD_LENGTH = 1020
SEED_BYTES = 512


class Document(NamedTuple):
    """The contents of a path."""

    body: bytes
    media_type: str = 'text/plain'


def written(found: Any) -> Document:
    """The form in which the guest gets it: objects as JSON, lists of names one per line."""
    if isinstance(found, dict):
        return Document(orjson.dumps(found), 'application/json')
    if isinstance(found, list):
        found = '\n'.join(found)
    return Document(found if isinstance(found, bytes) else str(found).encode())


ROOT = written([*ec2.VERSIONS, LATEST])
"""The contents of the root, the same for every guest."""


class GuestDocuments:
    """The documents of servers, generated on request, so they are always current. Errors: NotFound."""

    def __init__(self, platform: Platform):
        self.store, self.networks, self.hypervisor = platform.store, platform.networks, platform.hypervisor
        options = platform.conf.api
        self.domain = options.dhcp_domain
        self.vendor_data = read_json(options.vendordata_jsonfile_path)

    def read(self, context: Context, server: Server, path: str) -> Document:
        """The contents of a path below the root that a guest sees; a folder is the list of the names in it."""
        segments = [segment for segment in path.split('/') if segment]
        guest = self._guest(context, server, with_networks=NETWORK_DATA in segments)
        if segments[:1] == ['openstack']:
            return written(openstack.find(guest, segments[1:]))
        return written(ec2.find(guest, segments[1:] if segments[:1] == ['ec2'] else segments))

    def drive(self, context: Context, server: Server, admin_pass: str | None = None) -> dict[str, bytes]:
        """All files of a config drive, by path."""
        guest = replace(self._guest(context, server), admin_pass=admin_pass)
        found = itertools.chain(openstack.everything(guest), ec2.everything(guest))
        return {path: written(document).body for path, document in found}

    def _guest(self, context: Context, server: Server, *, with_networks: bool = True) -> Guest:
        with self.store.read() as connection:
            disks = block_devices.of_servers(connection, [server.uuid])
            shares = server_shares.of_server(connection, server.uuid)
        ids = {entry['network_id'] for entry in server.network_info} if with_networks else ()
        networks = self.networks.networks(context.elevated(), ids) if ids else ()
        return Guest(
            server=server,
            disks=disks,
            buses=self._buses(server, disks),
            networks={network.id: network for network in networks},
            shares=[share for share in shares if share.status == ShareStatus.ACTIVE],
            domain=self.domain,
            seed=secrets.token_bytes(SEED_BYTES),
            vendor_data=self.vendor_data,
        )

    def _buses(self, server: Server, disks: Sequence[BlockDevice]) -> Mapping[str, BusAddress]:
        """The bus addresses; the host is not asked if the guest has no tagged devices."""
        tagged = any(entry.get('tag') for entry in server.network_info) or any(disk.tag for disk in disks)
        return self.hypervisor.bus_addresses(server, disks) if server.host and tagged else {}

    def set_password(self, server: Server, password: bytes) -> None:
        """Store the encrypted password that the guest generated, only if it has none yet: Conflict. Invalid."""
        text = password.decode('ascii', 'replace')
        if len(text) > MAX_PASSWORD_LENGTH:
            raise Invalid('Request is too large.')
        if not text.isascii() or '\0' in text:
            raise Invalid('The password must be encrypted, and written in ASCII.')
        if not self.store.change(servers.set_first_password, server.uuid, text or None):
            raise Conflict(f'Server {server.uuid} already has a password.')


def read_json(path: str | None) -> dict[str, Any]:
    """The object in a JSON file; empty without a path."""
    try:
        found = orjson.loads(Path(path).read_bytes()) if path else {}
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise cfg.ConfigFileValueError(f'{path} must hold a JSON object')
    return found
