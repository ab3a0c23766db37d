"""Tables of servers and of what happens to them.

A record is a row; its fields are the columns of its table, except those with a default.  Sizes: memory in MiB, disks in
GiB; the IDs of servers are UUIDs as text.
"""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Annotated, Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy import Column, Table

from computeapi.db.tables import server_lists
from computeapi.db.tables.columns import (
    INDEX,
    KEY,
    UNIQUE,
    AnyText,
    BigInt,
    Number,
    NumberElsewhere,
    ShortText,
    TextId,
    UniqueId,
    table,
)
from computeapi.db.tables.compute import ComputeService
from computeapi.db.tables.types import CodePoints, Id, Text, Timestamp, metadata


@dataclass(slots=True)
class BlockDevice:
    """A disk of a server: local, or an attached volume (destination_type 'volume')."""

    id: Number
    uuid: UniqueId
    server_id: Annotated[TextId, INDEX]
    source_type: Annotated[str, Text(16)]
    destination_type: Annotated[str, Text(16)]
    boot_index: int | None
    device_name: str | None
    device_type: str | None
    disk_bus: str | None
    guest_format: str | None
    volume_size: int | None
    volume_type: str | None
    image_id: TextId | None
    snapshot_id: TextId | None
    volume_id: Annotated[TextId, INDEX] | None
    attachment_id: TextId | None
    delete_on_termination: bool
    tag: Annotated[str, Text(60)] | None
    created_at: datetime


block_devices = table('block_devices', BlockDevice)


class AttachedShare(NamedTuple):
    """A share attached to a server, with the tag by which its guest mounts it; `status` is a ShareStatus."""

    id: Number
    uuid: UniqueId
    server_id: TextId
    share_id: Annotated[TextId, INDEX]
    status: Annotated[str, Text(16)]
    tag: str
    export_location: str
    protocol: Annotated[str, Text(16)]
    created_at: datetime


server_shares = table(
    'server_shares',
    AttachedShare,
    sa.UniqueConstraint('server_id', 'share_id'),
    sa.UniqueConstraint('server_id', 'tag'),
)


@dataclass(slots=True)
class Server:
    """A server; memory in MiB, disks in GiB, times in UTC.

    `flavor` is a copy of the flavor at the time when the server got it: the fields of db.flavors.Flavor that clients
    see.
    `creator` describes the caller that requested it, by name: user_name, project_name and roles.
    `network_info` is a list of interfaces as the network service last described them: dicts with port_id, network_id,
    network_name, mac_address, status, created (whether compute created the port), tag, security_groups (names), and
    addresses: dicts with address, version (4 or 6), subnet_id and floating (a list of addresses).
    """

    id: Number
    uuid: UniqueId
    project_id: str
    user_id: str
    name: str
    description: AnyText | None
    hostname: str
    # Its state.
    vm_state: ShortText
    task_state: ShortText | None
    power_state: int
    progress: int
    locked_by: Annotated[str, Text(16)] | None
    locked_reason: str | None
    fault: dict[str, Any] | None
    # Its placement, actual and requested.
    host: str | None
    node: str | None
    availability_zone: str | None
    pinned_availability_zone: str | None
    scheduler_hints: dict[str, Any]
    server_group_id: TextId | None
    # Its configuration.
    flavor: dict[str, Any]
    vcpus: int
    memory_mb: BigInt
    root_gb: BigInt
    ephemeral_gb: BigInt
    image_id: TextId | None
    image_properties: dict[str, Any]
    shelved_image_id: TextId | None
    kernel_id: str | None
    ramdisk_id: str | None
    root_device_name: str | None
    config_drive: Annotated[str, Text(16)]
    disk_config: Annotated[str, Text(8)]
    key_name: str | None
    public_key: AnyText | None
    user_data: AnyText | None
    personality: list[dict[str, str]] | None
    metadata: dict[str, str]
    trusted_image_certificates: list[str] | None
    password: AnyText | None
    network_info: list[dict[str, Any]]
    access_ip_v4: ShortText | None
    access_ip_v6: ShortText | None
    # The request that created it.
    creator: dict[str, Any] | None
    reservation_id: TextId
    launch_index: int
    created_at: datetime
    updated_at: datetime | None
    launched_at: datetime | None
    terminated_at: datetime | None
    deleted_at: datetime | None
    # Loaded on request.
    tags: list[str] = field(default_factory=list)
    volumes: list[BlockDevice] = field(default_factory=list)
    service: ComputeService | None = None
    # Computed on request, by compute.servers.lookup.
    unreachable: bool = False
    host_status: str = ''
    domain_name: str = ''

    @property
    def disk_gb(self) -> int:
        """The disk space that the server takes on its host."""
        return self.root_gb + self.ephemeral_gb


@dataclass(slots=True)
class BriefServer:
    """The part of a server that is shown in a list without details."""

    id: int
    uuid: str
    name: str
    unreachable: bool = False


servers = table(
    'servers',
    Server,
    *server_lists.columns(),
    *server_lists.indexes(),
    # The number of claims on its work so far.
    Column('claims', sa.Integer, nullable=False, default=0, server_default='0'),
)


server_tags = Table(
    'server_tags',
    metadata,
    Column('server_id', Id(), primary_key=True),
    Column('tag', Text(80), primary_key=True),
    # The server's project and age, copied from its row, for lists of servers with the tag.
    Column('project_id', servers.c.project_id.type),
    Column('created_at', Timestamp()),
    sa.Index(None, 'tag', 'created_at', 'server_id'),
    sa.Index(None, 'project_id', 'tag', 'created_at', 'server_id'),
)


class AddressOfServer(NamedTuple):
    """An address of a server on a network, of IP `version`; network_info has all of them, too."""

    server_id: Annotated[TextId, KEY]
    address: Annotated[str, CodePoints(64), KEY]
    version: int


server_addresses = table('server_addresses', AddressOfServer, sa.Index(None, 'version', 'address', 'server_id'))


class ConsoleToken(NamedTuple):
    """The target of a console token: its holder may connect to that console while the server is on `host`."""

    hash: Annotated[TextId, KEY]
    server_id: Annotated[TextId, INDEX]
    host: str
    kind: str
    address: str
    port: int
    tls_port: int | None
    internal_access_path: str | None
    expires_at: datetime


console_tokens = table('console_tokens', ConsoleToken)


class ServerAction(NamedTuple):
    """A requested change of a server."""

    id: Number
    server_id: TextId
    action: str
    request_id: TextId
    user_id: str | None
    project_id: str | None
    start_time: datetime
    finish_time: datetime | None
    updated_at: datetime | None
    message: str | None


server_actions = table(
    'server_actions', ServerAction, sa.UniqueConstraint('server_id', 'request_id'), sa.Index(None, 'server_id', 'id')
)


class ServerActionEvent(NamedTuple):
    """A step of an action."""

    id: Number
    action_id: Annotated[NumberElsewhere, sa.ForeignKey('server_actions.id', ondelete='CASCADE'), INDEX]
    event: str
    start_time: datetime
    finish_time: datetime | None
    result: ShortText | None
    traceback: AnyText | None
    host: str | None
    details: str | None


server_action_events = table('server_action_events', ServerActionEvent)


class Migration(NamedTuple):
    """A migration; the fields are named like the columns.

    migration_type: resize, migration (cold), live-migration or evacuation.  progress: what a running live migration has
    copied, in bytes, by the API's names.  old_vm_state: the server's state before a resize.
    plugged: by port, what the network service reported about its connection while the new host prepared.
    """

    id: Number
    uuid: UniqueId
    server_id: Annotated[TextId, INDEX]
    migration_type: Annotated[str, Text(32)]
    status: ShortText
    source_host: str | None
    source_node: str | None
    dest_host: str | None
    dest_node: str | None
    dest_ip: ShortText | None
    old_flavor: dict[str, Any] | None
    new_flavor: dict[str, Any] | None
    old_vm_state: ShortText | None
    user_id: str | None
    project_id: str | None
    progress: dict[str, Any] | None
    created_at: datetime
    updated_at: datetime | None
    plugged: dict[str, Any] | None


migrations = table('migrations', Migration, sa.Index(None, 'created_at', 'id'), sa.Index(None, 'updated_at'))


class ArchivedServer(NamedTuple):
    """A deleted server with everything that belonged to it: `contents` is JSON, lists of rows by table name."""

    uuid: Annotated[TextId, KEY]
    project_id: str
    deleted_at: Annotated[datetime, INDEX]
    archived_at: datetime
    contents: AnyText


archived_servers = table('archived_servers', ArchivedServer)


class Task(NamedTuple):
    """Work to be done on a server, on whose behalf (context), and its current owner and lease.

    taken_from: the previous owner whose lease had expired, if any.
    token: the fencing token: the number of the claim among all on this server's work; later claims have higher ones.
    """

    id: Number
    kind: ShortText
    server_id: Annotated[TextId, INDEX]
    context: dict[str, Any]
    arguments: dict[str, Any]
    action_id: NumberElsewhere | None
    owner: ShortText | None
    lease_until: datetime | None
    not_before: datetime | None
    attempts: int
    created_at: datetime
    taken_from: str | None = None
    token: int = 0


# IDs are never reused: what drivers remember of a task must not apply to another one.
tasks = table('tasks', Task, shown=True)


class VirtualMachine(NamedTuple):
    """A virtual machine on a host; `power_state` in the API's numbers."""

    server_id: Annotated[TextId, KEY]
    host: Annotated[str, KEY]
    power_state: int
    console_log: AnyText
    created_at: datetime


domains = table('domains', VirtualMachine)


class NewestClaim(NamedTuple):
    """The highest fencing token that the simulated hypervisor has seen for a server."""

    server_id: Annotated[TextId, KEY]
    token: int


fences = table('fences', NewestClaim)


class HostOff(NamedTuple):
    """A host of the simulated hypervisor that was switched off."""

    host: Annotated[str, KEY]
    since: datetime


hosts_off = table('hosts_off', HostOff)


class DeclaredHost(NamedTuple):
    """A declared host of the simulated hypervisor; memory in MiB, disk in GiB. traits, resources: besides the usual."""

    id: Number
    host: Annotated[str, UNIQUE]
    cell: str
    hypervisor_hostname: str
    hypervisor_type: ShortText
    hypervisor_version: int
    host_ip: ShortText
    cpu_info: dict[str, Any]
    vcpus: int
    memory_mb: BigInt
    local_gb: BigInt
    traits: list[str] | None
    resources: dict[str, int] | None


declared_hosts = table('declared_hosts', DeclaredHost)
