"""The compute API: one module (or package) per resource, and CONTROLLERS, the list of all resources."""

import functools

from oslo_policy.policy import RuleDefault

from computeapi.api.aggregates import Aggregates
from computeapi.api.controller import ComputeController
from computeapi.api.extensions import Extensions
from computeapi.api.fixed_ips import FixedIPs
from computeapi.api.flavors import FlavorAccess, FlavorExtraSpecs, Flavors
from computeapi.api.floating_ip_dns import FloatingIPDNS
from computeapi.api.floating_ips_bulk import FloatingIPsBulk
from computeapi.api.gone import BareMetalNodes, GoneResources, RefusedRequests
from computeapi.api.hosts import Hosts
from computeapi.api.hypervisors import Hypervisors
from computeapi.api.images import ImageMetadata, ProxiedImages
from computeapi.api.keypairs import Keypairs
from computeapi.api.migrations import Migrations
from computeapi.api.networks import FloatingIPPools, FloatingIPs, ProxiedNetworks, TenantNetworks
from computeapi.api.other_services import AssistedVolumeSnapshots, ServerExternalEvents
from computeapi.api.quotas import Limits, QuotaClassSets, QuotaSets
from computeapi.api.security_groups import SecurityGroupRules, SecurityGroups
from computeapi.api.server_groups import ServerGroups
from computeapi.api.servers import Servers
from computeapi.api.servers.addresses import FloatingIPRemoval, ServerAddresses, ServerIPs
from computeapi.api.servers.consoles import ConsoleAuthTokens, RDPConsoles, RemoteConsoles, ServerConsoles
from computeapi.api.servers.create import ServerCreation
from computeapi.api.servers.deletion import ServerDeletion
from computeapi.api.servers.evacuation import ServerEvacuation
from computeapi.api.servers.instance_actions import InstanceActions
from computeapi.api.servers.interfaces import ServerInterfaces, VirtualInterfaces
from computeapi.api.servers.live_migration import ServerLiveMigration, ServerMigrations
from computeapi.api.servers.locks import ServerLocks
from computeapi.api.servers.machines import ServerDiagnostics, ServerMachines, ServerPassword
from computeapi.api.servers.metadata import ServerMetadata
from computeapi.api.servers.power import ServerPower, ServerStarts
from computeapi.api.servers.rebuild import ServerRebuild
from computeapi.api.servers.rescue import ServerRescue
from computeapi.api.servers.reset import ServerReset
from computeapi.api.servers.resize import ServerResize
from computeapi.api.servers.security_groups import ServerSecurityGroups
from computeapi.api.servers.shares import ServerShares
from computeapi.api.servers.shelving import ServerShelving
from computeapi.api.servers.snapshots import ServerImages
from computeapi.api.servers.tags import ServerTags
from computeapi.api.servers.topology import ServerTopology
from computeapi.api.servers.volume_attachments import VolumeAttachments
from computeapi.api.services import Services
from computeapi.api.usage import InstanceUsageAuditLog, SimpleTenantUsage
from computeapi.api.version_documents import Versions
from computeapi.api.volumes import ProxiedVolumes, Snapshots
from computeapi.api.volumes_boot import VOLUMES_BOOT
from computeapi.api.zones import AvailabilityZones
from computeapi.web.contract import Operation
from computeapi.web.policy import defaults

CONTROLLERS: tuple[type[ComputeController], ...] = (
    Versions,
    Extensions,
    Flavors,
    FlavorExtraSpecs,
    FlavorAccess,
    Limits,
    Servers,
    ServerCreation,
    ServerDeletion,
    ServerStarts,
    ServerPower,
    ServerLocks,
    ServerReset,
    ServerMachines,
    ServerRescue,
    ServerResize,
    ServerLiveMigration,
    ServerEvacuation,
    ServerShelving,
    ServerRebuild,
    ServerImages,
    ServerConsoles,
    RDPConsoles,
    RemoteConsoles,
    ServerMetadata,
    ServerTags,
    ServerIPs,
    ServerAddresses,
    FloatingIPRemoval,
    ServerInterfaces,
    VirtualInterfaces,
    VolumeAttachments,
    ServerDiagnostics,
    ServerTopology,
    ServerPassword,
    ServerShares,
    InstanceActions,
    ServerSecurityGroups,
    ServerMigrations,
    Migrations,
    Aggregates,
    AvailabilityZones,
    BareMetalNodes,
    ConsoleAuthTokens,
    Hosts,
    Hypervisors,
    InstanceUsageAuditLog,
    Keypairs,
    QuotaClassSets,
    QuotaSets,
    ServerGroups,
    Services,
    SimpleTenantUsage,
    ServerExternalEvents,
    AssistedVolumeSnapshots,
    *VOLUMES_BOOT,
    ProxiedImages,
    ImageMetadata,
    ProxiedNetworks,
    TenantNetworks,
    FixedIPs,
    FloatingIPPools,
    FloatingIPs,
    FloatingIPsBulk,
    FloatingIPDNS,
    SecurityGroups,
    SecurityGroupRules,
    ProxiedVolumes,
    Snapshots,
    GoneResources,
    RefusedRequests,
)
"""All resources, in the order of their URLs."""


def operations() -> list[Operation]:
    """Every operation of the API: routes, policies, OpenAPI and history are derived from this table."""
    return [operation for controller in CONTROLLERS for operation in controller.operations]


@functools.cache
def rules() -> list[RuleDefault]:
    """Every policy rule with its default, for the entry point that oslo.policy's tools use."""
    return defaults(operations())
