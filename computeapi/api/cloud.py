"""The managers that the handlers of the API call."""

from dataclasses import dataclass

from oslo_config import cfg

from computeapi.backends.identity import Identity
from computeapi.backends.image import Images
from computeapi.backends.network import Networks
from computeapi.backends.volume import Volumes
from computeapi.compute.aggregates import AggregateManager
from computeapi.compute.cells import Cells
from computeapi.compute.consoles import Consoles
from computeapi.compute.flavors import FlavorManager
from computeapi.compute.guest.reader import GuestDocuments
from computeapi.compute.host_power import HostPower
from computeapi.compute.hypervisors import HypervisorManager
from computeapi.compute.images import ImageProxy
from computeapi.compute.keypairs import KeypairManager
from computeapi.compute.platform import Platform
from computeapi.compute.projects import KnownProjects
from computeapi.compute.quotas import Quotas
from computeapi.compute.security_groups import SecurityGroupManager
from computeapi.compute.server_groups import ServerGroupManager
from computeapi.compute.servers.actions import Actions
from computeapi.compute.servers.addresses import Addresses
from computeapi.compute.servers.attributes import ServerAttributes
from computeapi.compute.servers.changes import Changes
from computeapi.compute.servers.creation import Builder
from computeapi.compute.servers.deletion import Deletion
from computeapi.compute.servers.evacuation import Evacuations
from computeapi.compute.servers.events import ExternalEvents
from computeapi.compute.servers.fixed_ips import FixedIPManager
from computeapi.compute.servers.floating_ips import FloatingIPManager
from computeapi.compute.servers.interfaces import InterfaceManager
from computeapi.compute.servers.live_migration import LiveMigrations
from computeapi.compute.servers.locks import Locks
from computeapi.compute.servers.lookup import ServerLookup
from computeapi.compute.servers.machines import Machines
from computeapi.compute.servers.metadata import ServerMetadataManager
from computeapi.compute.servers.migration_lists import MigrationLists
from computeapi.compute.servers.rebuild import Rebuilds
from computeapi.compute.servers.rescue import Rescues
from computeapi.compute.servers.reset import Resets
from computeapi.compute.servers.resize import Resizes
from computeapi.compute.servers.security_groups import ServerSecurityGroupManager
from computeapi.compute.servers.shares import ServerShareManager
from computeapi.compute.servers.shelving import Shelves
from computeapi.compute.servers.snapshots import ServerSnapshots
from computeapi.compute.servers.tags import ServerTagManager
from computeapi.compute.servers.volume_snapshots import AssistedSnapshots
from computeapi.compute.servers.volume_swaps import VolumeSwaps
from computeapi.compute.servers.volumes import AttachedVolumes
from computeapi.compute.services import ServiceManager
from computeapi.compute.usage import UsageRecords
from computeapi.compute.usage_audits import UsageAudits
from computeapi.compute.zones import Zones


@dataclass(frozen=True)
class CloudManagers:
    """The managers of one cloud.

    max_limit: the maximum number of items in one page of a list.
    """

    conf: cfg.ConfigOpts
    max_limit: int
    # Finding, creating and changing servers.
    servers: ServerLookup
    builder: Builder
    changes: Changes
    actions: Actions
    addresses: Addresses
    attachments: AttachedVolumes
    assisted_snapshots: AssistedSnapshots
    consoles: Consoles
    deletion: Deletion
    evacuations: Evacuations
    external_events: ExternalEvents
    fixed_ips: FixedIPManager
    floating_ips: FloatingIPManager
    guests: GuestDocuments
    interfaces: InterfaceManager
    live_migrations: LiveMigrations
    locks: Locks
    machines: Machines
    migration_lists: MigrationLists
    rebuilds: Rebuilds
    rescues: Rescues
    resets: Resets
    resizes: Resizes
    server_attributes: ServerAttributes
    server_metadata: ServerMetadataManager
    server_security_groups: ServerSecurityGroupManager
    server_shares: ServerShareManager
    server_tags: ServerTagManager
    shelves: Shelves
    snapshots: ServerSnapshots
    volume_swaps: VolumeSwaps
    # What servers are created with, and where they run.
    aggregates: AggregateManager
    cells: Cells
    flavors: FlavorManager
    host_power: HostPower
    hypervisors: HypervisorManager
    keypairs: KeypairManager
    projects: KnownProjects
    quotas: Quotas
    server_groups: ServerGroupManager
    services: ServiceManager
    usage: UsageRecords
    usage_audits: UsageAudits
    zones: Zones
    # Other services, and the proxies to them.
    images: Images
    image_proxy: ImageProxy
    networks: Networks
    security_groups: SecurityGroupManager
    volumes: Volumes


def build(platform: Platform, identity: Identity | None) -> CloudManagers:
    """Build the managers. identity: where projects are looked up, if anywhere."""
    conf, store, outbox, cells = platform.conf, platform.store, platform.outbox, Cells(platform.store)
    changes, quotas, zones = Changes(platform), Quotas(store, conf), Zones(store, cells, conf)
    flavors, keypairs = FlavorManager(store, outbox), KeypairManager(store, outbox, quotas)
    groups, services = ServerGroupManager(store, outbox, quotas), ServiceManager(store, outbox, cells, conf)
    live_migrations, snapshots = LiveMigrations(changes), ServerSnapshots(changes, quotas)
    return CloudManagers(
        conf=conf,
        max_limit=conf.api.max_limit,
        servers=ServerLookup(store, cells, conf),
        builder=Builder(platform, quotas=quotas, flavors=flavors, keypairs=keypairs, zones=zones, groups=groups),
        changes=changes,
        actions=Actions(store),
        addresses=Addresses(platform),
        attachments=AttachedVolumes(changes),
        assisted_snapshots=AssistedSnapshots(platform),
        consoles=Consoles(store, conf, platform.hypervisor),
        deletion=Deletion(changes, quotas),
        evacuations=Evacuations(changes),
        external_events=ExternalEvents(changes),
        fixed_ips=FixedIPManager(platform),
        floating_ips=FloatingIPManager(platform),
        guests=GuestDocuments(platform),
        interfaces=InterfaceManager(changes),
        live_migrations=live_migrations,
        locks=Locks(changes),
        machines=Machines(changes),
        migration_lists=MigrationLists(store),
        rebuilds=Rebuilds(changes, quotas, keypairs),
        rescues=Rescues(changes),
        resets=Resets(changes),
        resizes=Resizes(changes, quotas, flavors),
        server_attributes=ServerAttributes(platform),
        server_metadata=ServerMetadataManager(platform, quotas),
        server_security_groups=ServerSecurityGroupManager(platform),
        server_shares=ServerShareManager(changes),
        server_tags=ServerTagManager(platform),
        shelves=Shelves(changes, zones, snapshots),
        snapshots=snapshots,
        volume_swaps=VolumeSwaps(changes),
        aggregates=AggregateManager(store, outbox, platform.images),
        cells=cells,
        flavors=flavors,
        host_power=HostPower(changes, services, live_migrations),
        hypervisors=HypervisorManager(store, conf),
        keypairs=keypairs,
        projects=KnownProjects(identity),
        quotas=quotas,
        server_groups=groups,
        services=services,
        usage=UsageRecords(store),
        usage_audits=UsageAudits(services),
        zones=zones,
        images=platform.images,
        image_proxy=ImageProxy(platform.images, quotas),
        networks=platform.networks,
        security_groups=SecurityGroupManager(platform.networks),
        volumes=platform.volumes,
    )
