"""Everything the handlers of the API can call, in one place."""

from __future__ import annotations

from oslo_config import cfg

from computeapi.backends.hypervisor import Hypervisor
from computeapi.backends.identity import Identity
from computeapi.backends.image import Images
from computeapi.backends.network import Networks
from computeapi.backends.volume import Volumes
from computeapi.compute.aggregates import AggregateManager
from computeapi.compute.consoles import Consoles
from computeapi.compute.flavors import FlavorManager
from computeapi.compute.hypervisors import HypervisorManager
from computeapi.compute.images import ImageProxy
from computeapi.compute.keypairs import KeypairManager
from computeapi.compute.quotas import Quotas
from computeapi.compute.scheduler import Scheduler
from computeapi.compute.security_groups import SecurityGroupManager
from computeapi.compute.server_groups import ServerGroupManager
from computeapi.compute.servers.actions import Actions
from computeapi.compute.servers.addresses import Addresses
from computeapi.compute.servers.attachments import Attachments
from computeapi.compute.servers.creation import Builder
from computeapi.compute.servers.diagnostics import Diagnostics
from computeapi.compute.servers.events import ExternalEvents
from computeapi.compute.servers.floating_ips import FloatingIPs
from computeapi.compute.servers.images import Snapshots
from computeapi.compute.servers.interfaces import Interfaces
from computeapi.compute.servers.life import Life
from computeapi.compute.servers.lookup import ServerManager
from computeapi.compute.servers.migration import Moves
from computeapi.compute.servers.migration_lists import MigrationLists
from computeapi.compute.servers.rebuild import Rebuilds
from computeapi.compute.servers.rescue import Rescues
from computeapi.compute.servers.security_groups import ServerSecurityGroups
from computeapi.compute.servers.shelving import Shelves
from computeapi.compute.servers.volume_snapshots import AssistedSnapshots
from computeapi.compute.services import ServiceManager
from computeapi.compute.tasks import Tasks
from computeapi.compute.usage import UsageRecords
from computeapi.compute.usage_audits import UsageAudits
from computeapi.compute.zones import Zones
from computeapi.context import Context
from computeapi.db.engine import Store
from computeapi.errors import Invalid

LONGEST_ID = 255


class Cloud:
    """The services of one cloud, on the backends that the configuration names.

    identity: None where nobody keeps projects (auth_strategy none) or they are kept elsewhere.
    """

    def __init__(
        self,
        conf: cfg.ConfigOpts,
        store: Store,
        *,
        identity: Identity | None,
        images: Images,
        networks: Networks,
        volumes: Volumes,
        hypervisor: Hypervisor,
    ):
        self.conf, self.store, self.identity = conf, store, identity
        self.images, self.networks, self.volumes, self.hypervisor = images, networks, volumes, hypervisor
        self.flavors = FlavorManager(store)
        self.quotas = Quotas(store, conf)
        self.keypairs = KeypairManager(store, self.quotas)
        self.zones = Zones(store, conf)
        self.server_groups = ServerGroupManager(store, self.quotas)
        self.aggregates = AggregateManager(store, images)
        self.services = ServiceManager(store, conf)
        self.hypervisors = HypervisorManager(store, conf)
        self.usage = UsageRecords(store)
        self.usage_audits = UsageAudits(self.services)
        self.scheduler = Scheduler(store, conf)
        self.tasks = Tasks(store, conf.task_lease)
        self.builder = Builder(
            store,
            conf,
            tasks=self.tasks,
            quotas=self.quotas,
            flavors=self.flavors,
            keypairs=self.keypairs,
            zones=self.zones,
            groups=self.server_groups,
            images=images,
            networks=networks,
            volumes=volumes,
        )
        self.servers = ServerManager(store, self.quotas, conf)
        self.addresses = Addresses(store, networks, self.tasks)
        self.server_security_groups = ServerSecurityGroups(networks, self.addresses)
        self.diagnostics = Diagnostics(store, hypervisor)
        self.actions = Actions(store)
        self.life = Life(store, self.tasks, hypervisor, self.quotas, reclaim_seconds=conf.reclaim_instance_interval)
        self.external_events = ExternalEvents(self.life, self.addresses)
        self.attachments = Attachments(self.life, volumes)
        self.interfaces = Interfaces(self)
        self.floating_ips = FloatingIPs(networks, self.addresses)
        self.security_groups = SecurityGroupManager(networks)
        self.image_proxy = ImageProxy(images, self.quotas)
        self.moves = Moves(self.life, self.quotas, conf)
        self.migration_lists = MigrationLists(store)
        self.snapshots = Snapshots(self.life, images, volumes, self.quotas)
        self.assisted_snapshots = AssistedSnapshots(store, self.tasks)
        self.shelves = Shelves(self.life, images, conf, self.moves.check_host, self.zones)
        self.rescues = Rescues(self.life, images)
        self.rebuilds = Rebuilds(self.life, self.quotas, self.keypairs, images, volumes)
        self.consoles = Consoles(store, conf, hypervisor)

    @property
    def max_limit(self) -> int:
        """The most items that one page of a list can have."""
        return self.conf.api.max_limit

    def check_project(self, context: Context, project_id: str) -> None:
        """Invalid for a project that does not exist. Without an identity service every project does; who is no
        administrator is not told which do."""
        missing = context.is_admin and self.identity is not None and not self.identity.project_exists(project_id)
        if missing or len(project_id) > LONGEST_ID:
            raise Invalid(f'Project ID {project_id} is not a valid project.')
