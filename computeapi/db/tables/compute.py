"""Tables of the compute service, except those of servers.

A record is a row; its fields are the columns of its table, except those with a default.  Sizes: memory in MiB, disks in
GiB; the IDs of servers are UUIDs as text.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Annotated, Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy import Column, Table

from computeapi.db.tables.columns import INDEX, KEY, UNIQUE, AnyText, BigInt, Number, ShortText, TextId, UniqueId, table
from computeapi.db.tables.types import BigInteger, Id, Text, Timestamp, metadata

ZONE = 'availability_zone'


class Flavor(NamedTuple):
    """A flavor; memory and swap in MiB, disks in GiB."""

    id: Number
    flavorid: Annotated[str, UNIQUE]
    name: Annotated[str, UNIQUE]
    description: AnyText | None
    memory_mb: BigInt
    vcpus: int
    root_gb: BigInt
    ephemeral_gb: BigInt
    swap: BigInt
    rxtx_factor: float
    disabled: bool
    is_public: bool
    extra_specs: dict[str, str]
    created_at: datetime
    updated_at: datetime | None


flavors = table('flavors', Flavor, shown=True)


flavor_projects = Table(
    'flavor_projects',
    metadata,
    Column('flavor_id', BigInteger, sa.ForeignKey('flavors.id', ondelete='CASCADE'), primary_key=True),
    Column('project_id', Text(255), primary_key=True),
)


@dataclass(frozen=True, slots=True)
class Keypair:
    """A public key, under the name that its user gave it.

    private_key: only set on a pair that was just generated; it is not stored.
    """

    id: Number
    user_id: str
    name: str
    type: Annotated[str, Text(16)]
    fingerprint: str
    public_key: AnyText
    created_at: datetime
    private_key: str | None = field(default=None, repr=False)


keypairs = table('keypairs', Keypair, sa.UniqueConstraint('user_id', 'name'), shown=True)


# A limit of one project (user_id '') or of one user in it.
quotas = Table(
    'quotas',
    metadata,
    Column('project_id', Text(255), primary_key=True),
    Column('user_id', Text(255), primary_key=True, server_default=''),
    Column('resource', Text(64), primary_key=True),
    Column('hard_limit', sa.Integer, nullable=False),
)

quota_classes = Table(
    'quota_classes',
    metadata,
    Column('class_name', Text(255), primary_key=True),
    Column('resource', Text(64), primary_key=True),
    Column('hard_limit', sa.Integer, nullable=False),
)

# A row to lock while the usage of a project (or of a user, for key pairs) is read and increased.
quota_locks = Table('quota_locks', metadata, Column('project_id', Text(255), primary_key=True))

# A user's usage of a resource in a project or a server group: see db/quota_usages.py.
quota_usages = Table(
    'quota_usages',
    metadata,
    Column('holder_id', Text(255), primary_key=True),
    Column('user_id', Text(255), primary_key=True),
    Column('resource', Text(64), primary_key=True),
    Column('amount', sa.BigInteger, nullable=False),
)


class ComputeService(NamedTuple):
    """A service on a host; the fields are named like the columns. `seen_at`: its latest heartbeat."""

    id: Number
    uuid: UniqueId
    host: str
    binary: ShortText
    disabled: bool
    disabled_reason: str | None
    forced_down: bool
    seen_at: datetime | None
    created_at: datetime
    updated_at: datetime | None


services = table('services', ComputeService, sa.UniqueConstraint('host', 'binary'), shown=True)


class Cell(NamedTuple):
    """A cell, which may be unreachable together with all its hosts."""

    id: Number
    uuid: UniqueId
    name: Annotated[str, UNIQUE]
    down: bool
    hosts: Sequence[str] = ()


cells = table('cells', Cell)


class Usage(NamedTuple):
    """The usage of a hypervisor. workload: the number of its servers with a task in progress."""

    vcpus: int = 0
    memory_mb: int = 0
    disk_gb: int = 0
    servers: int = 0
    workload: int = 0


class HostedServer(NamedTuple):
    """A server on a hypervisor; domain_name, its name there, is computed by compute.hypervisors."""

    id: int
    uuid: str
    domain_name: str = ''


@dataclass(slots=True)
class ComputeNode:
    """The resources of a compute host, and their usage: the sum of its allocations, always up to date."""

    id: Number
    uuid: UniqueId
    host: str
    cell: str | None
    hypervisor_hostname: Annotated[str, UNIQUE]
    hypervisor_type: ShortText
    hypervisor_version: int
    host_ip: ShortText
    cpu_info: dict[str, Any]
    vcpus: int
    memory_mb: BigInt
    local_gb: BigInt
    started_at: datetime
    used_vcpus: int
    used_memory_mb: int
    used_disk_gb: int
    service: ComputeService
    # Loaded on request; `servers` is None otherwise.
    usage: Usage = Usage()
    servers: list[HostedServer] | None = None
    # Computed by compute.hypervisors.
    up: bool = False
    uptime: str | None = None

    @property
    def free_memory_mb(self) -> int:
        return self.memory_mb - self.usage.memory_mb

    @property
    def free_disk_gb(self) -> int:
        return self.local_gb - self.usage.disk_gb


hypervisors = table(
    'hypervisors',
    ComputeNode,
    Column('created_at', Timestamp(), nullable=False),
    Column('updated_at', Timestamp()),
    Column('used_vcpus', sa.Integer, nullable=False, default=0, server_default='0'),
    Column('used_memory_mb', sa.BigInteger, nullable=False, default=0, server_default='0'),
    Column('used_disk_gb', sa.BigInteger, nullable=False, default=0, server_default='0'),
    # The operator's: a list of traits, and amounts by resource class.
    Column('traits', sa.JSON(none_as_null=True)),
    Column('resources', sa.JSON(none_as_null=True)),
    sa.Index(None, 'host'),
    without=['used_vcpus', 'used_memory_mb', 'used_disk_gb', 'service'],
    shown=True,
)


# What a server, or its migration, holds of a host. `flavors`: what its flavor holds of the host's providers besides its
# sizes, by flavor, provider and resource class; a server that is resized on its host has two flavors. `ports`: what its
# ports hold of the host's child providers in Placement, by port: the resources by provider and class, and the
# allocation for Neutron.
allocations = Table(
    'allocations',
    metadata,
    Column('server_id', Id(), primary_key=True),
    Column('host', Text(255), primary_key=True),
    Column('vcpus', sa.Integer, nullable=False),
    Column('memory_mb', sa.BigInteger, nullable=False),
    Column('disk_gb', sa.BigInteger, nullable=False),
    Column('flavors', sa.JSON(none_as_null=True)),
    Column('ports', sa.JSON(none_as_null=True)),
    sa.Index(None, 'host'),
)


@dataclass(slots=True)
class Aggregate:
    """A host aggregate; its metadata describe its hosts, `availability_zone` is their zone."""

    id: Number
    uuid: UniqueId
    name: Annotated[str, UNIQUE]
    metadata: dict[str, str]
    created_at: datetime
    updated_at: datetime | None
    hosts: list[str] = field(default_factory=list)

    @property
    def availability_zone(self) -> str | None:
        return self.metadata.get(ZONE)


aggregates = table('aggregates', Aggregate, shown=True)


aggregate_hosts = Table(
    'aggregate_hosts',
    metadata,
    Column('aggregate_id', BigInteger, sa.ForeignKey('aggregates.id', ondelete='CASCADE'), primary_key=True),
    Column('host', Text(255), primary_key=True),
)


class ServerGroup(NamedTuple):
    """A server group; its members are the IDs of its servers, if loaded."""

    id: Number
    uuid: UniqueId
    project_id: Annotated[str, INDEX]
    user_id: str
    name: str
    policy: ShortText
    rules: dict[str, Any]
    created_at: datetime
    members: Sequence[str] = ()


server_groups = table('server_groups', ServerGroup)


class Process(NamedTuple):
    """A process of this service: how many tasks it works on at a time, and its latest heartbeat.

    id: the owner of the tasks that it has claimed.  binary: computeapi-api, -worker or -serve.
    host: the name of its machine among control services.
    """

    id: Annotated[TextId, KEY]
    binary: ShortText
    host: str
    pid: int
    workers: int
    started_at: datetime
    seen_at: datetime


processes = table('processes', Process)


class Agent(NamedTuple):
    """The agent of a host, as it last reported.

    capabilities: the names of its driver's capabilities.  connector: the host's connector properties for block storage.
    id, pid, machine: of its process.  release: of this service.
    """

    host: Annotated[str, KEY]
    id: TextId
    release: ShortText
    pid: int
    machine: str
    capabilities: list[str]
    connector: dict[str, Any]
    started_at: datetime
    seen_at: datetime


agents = table('agents', Agent)


class PlacementChange(NamedTuple):
    """A pending update of Placement for a host (by the UUID of its hypervisor), an aggregate, a server, or a consumer
    that is no longer known.

    change_id: of the latest pending change; None: nothing is pending, but the row remembers a migration.
    move_id: the UUID of the migration for which Placement holds something for the server.
    attempts: how often the update failed.  due_at: when it may be tried, by this or another process; None: at once.
    """

    kind: Annotated[str, Text(16), KEY]
    id: Annotated[TextId, KEY]
    change_id: TextId | None
    move_id: TextId | None
    attempts: int
    due_at: datetime | None


placement_changes = table('placement_changes', PlacementChange)


class WaitingNotification(NamedTuple):
    """A notification that waits to be sent.

    format: versioned or unversioned.  priority: info or error.  lease_until: set on the first one while a process is
    sending.
    """

    id: Number
    message_id: TextId
    created_at: datetime
    format: Annotated[str, Text(16)]
    priority: Annotated[str, Text(16)]
    publisher_id: str
    event_type: str
    context: dict[str, Any]
    payload: dict[str, Any]
    lease_until: Annotated[datetime, INDEX] | None


notifications = table('notifications', WaitingNotification, shown=True)


class IdempotencyKey(NamedTuple):
    """A request that a client can safely repeat with the same key.

    id, fingerprint: hashes of the user's key, and of the request.  changed: whether the request has changed anything.
    holder: the process that handles it, or did, which is considered dead after `lease_until`.  answer: encrypted; None:
    not available yet.
    """

    id: Annotated[ShortText, KEY]
    user_id: str
    fingerprint: ShortText
    holder: TextId
    changed: bool
    lease_until: datetime
    expires_at: Annotated[datetime, INDEX]
    answer: AnyText | None


idempotency_keys = table('idempotency_keys', IdempotencyKey, sa.Index(None, 'user_id', 'expires_at'))


class CloudCount(NamedTuple):
    """Statistics of the whole cloud, which take too long to compute for each request.

    due_at: when they may be computed again.
    """

    name: Annotated[ShortText, KEY]
    contents: dict[str, Any] | None
    counted_at: datetime | None
    due_at: datetime


counts = table('counts', CloudCount)
