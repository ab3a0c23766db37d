"""Uniform access to every kind of resource; each call is one transaction."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime

from computeapi import errors
from computeapi.backends.network import NetworkListener
from computeapi.backends.network.local import (
    availability,
    flavors,
    floating_ips,
    networks,
    ports,
    qos,
    rbac_policies,
    routers,
    security_groups,
    subnet_pools,
    subnets,
    topology,
)
from computeapi.backends.network.local.notifications import Notifications
from computeapi.backends.rights import check_writer
from computeapi.clock import utcnow
from computeapi.context import Context
from computeapi.db import network_projects
from computeapi.db.engine import Store, conflicts, repeated
from computeapi.db.listing import WHOLE, Page
from computeapi.db.network_collection import Collection, Document, Work, set_tags
from computeapi.db.network_flavors import NETWORK_FLAVORS, SERVICE_PROFILES
from computeapi.db.networks import NETWORKS, SUBNETS
from computeapi.db.ports import PORTS, servers_on
from computeapi.db.qos import POLICIES, POLICY_RULES
from computeapi.db.rbac_policies import RBAC_POLICIES
from computeapi.db.routers import FLOATING_IPS, ROUTERS
from computeapi.db.security_groups import GROUPS, RULES
from computeapi.db.subnet_pools import ADDRESS_SCOPES, SUBNET_POOLS

MAX_TAGS = 50


def _nothing(work: Work, resource_id: str, facts: Document) -> None:
    """The default for `hold`: most resources are locked before anything else."""


@dataclass(frozen=True)
class Kind:
    """One kind of resource: its collection, and its rules.

    hold: takes the locks that a change takes before it locks the resource.
    """

    collection: Collection
    create: Callable[[Work, Document], str]
    update: Callable[[Work, str, Document], None]
    delete: Callable[[Work, str], None]
    hold: Callable[[Work, str, Document], None] = _nothing

    def check_revision(self, work: Work, resource_id: str, expected: int | None, facts: Document) -> None:
        """Raises RevisionMismatch if the resource, before this change, is not at the expected revision."""
        if expected is not None:
            self.hold(work, resource_id, facts)
            self.collection.check_revision(work, resource_id, expected)


KINDS = {
    'networks': Kind(NETWORKS, networks.create, networks.update, networks.delete, networks.hold_cloud),
    'subnets': Kind(SUBNETS, subnets.create, subnets.update, subnets.delete, subnets.hold_network),
    'address-scopes': Kind(
        ADDRESS_SCOPES, subnet_pools.create_scope, subnet_pools.update_scope, subnet_pools.delete_scope
    ),
    'subnetpools': Kind(
        SUBNET_POOLS, subnet_pools.create, subnet_pools.update, subnet_pools.delete, subnet_pools.hold_cloud
    ),
    'rbac-policies': Kind(RBAC_POLICIES, rbac_policies.create, rbac_policies.update, rbac_policies.delete),
    'flavors': Kind(NETWORK_FLAVORS, flavors.create, flavors.update, flavors.delete),
    'service_profiles': Kind(SERVICE_PROFILES, flavors.create_profile, flavors.update_profile, flavors.delete_profile),
    'ports': Kind(PORTS, ports.create, ports.update, ports.delete, ports.hold_network),
    'routers': Kind(ROUTERS, routers.create, routers.update, routers.delete),
    'qos/policies': Kind(POLICIES, qos.create, qos.update, qos.delete, qos.hold_project),
    'qos/rules': Kind(POLICY_RULES, qos.create_rule, qos.update_rule, qos.delete_rule),
    'floatingips': Kind(
        FLOATING_IPS, floating_ips.create, floating_ips.update, floating_ips.delete, floating_ips.hold_port
    ),
    'security-groups': Kind(GROUPS, security_groups.create, security_groups.update, security_groups.delete),
    'security-group-rules': Kind(
        RULES, security_groups.create_rule, security_groups.update_rule, security_groups.delete_rule
    ),
}


class Resources:
    """The built-in network service in Neutron's terms: resources are dicts, and kinds are named as in its URLs."""

    def __init__(self, store: Store, clock: Callable[[], datetime] = utcnow, listeners: Iterable[NetworkListener] = ()):
        self.store = store
        self.clock = clock
        self.notifications = Notifications(store, listeners)

    @contextmanager
    def reading(self, context: Context) -> Iterator[Work]:
        with self.store.read() as connection:
            yield Work(connection, context, self.clock)

    @contextmanager
    def changing(self, context: Context) -> Iterator[Work]:
        """A transaction, in which conflicts between requests that locks do not prevent are raised as Conflict. Raises
        Forbidden if the caller may only read."""
        check_writer(context)
        with self._making(context) as work:
            yield work

    @contextmanager
    def _making(self, context: Context) -> Iterator[Work]:
        """Like `changing`, without the check for write access: for resources that are created on first use."""
        problem = 'Another request changed the same resources at the same moment; try again.'
        with conflicts(problem), self.store.write() as connection:
            yield Work(connection, context, self.clock)

    def find(
        self,
        context: Context,
        kind: str,
        filters: Mapping[str, list[str]] | None = None,
        page: Page = WHOLE,
    ) -> list[Document]:
        if kind in ('security-groups', 'security-group-rules'):
            self.ensure_default_group(context, filters)
        with self.reading(context) as work:
            return KINDS[kind].collection.find(work, filters=filters, page=page)

    def get(self, context: Context, kind: str, resource_id: str) -> Document:
        with self.reading(context) as work:
            return KINDS[kind].collection.get(work, resource_id)

    def create(self, context: Context, kind: str, facts: Document) -> Document:
        return self.create_all(context, kind, [facts])[0]

    @repeated
    def create_all(self, context: Context, kind: str, several: Sequence[Document]) -> list[Document]:
        """Create all of them or none."""
        with self.changing(context) as work:
            ids = [KINDS[kind].create(work, facts) for facts in several]
            documents = [KINDS[kind].collection.get(work, resource_id) for resource_id in ids]
            touched = {server_id for resource_id in ids for server_id in servers_on(work, kind, resource_id)}
            notification = self.notifications.note(work, touched)
        self.notifications.send(context, notification)
        return documents

    @repeated
    def update(
        self, context: Context, kind: str, resource_id: str, facts: Document, revision: int | None = None
    ) -> Document:
        """Raises RevisionMismatch if the resource is not at the expected revision."""
        with self.changing(context) as work:
            KINDS[kind].check_revision(work, resource_id, revision, facts)
            touched = servers_on(work, kind, resource_id)
            KINDS[kind].update(work, resource_id, facts)
            document = KINDS[kind].collection.get(work, resource_id)
            notification = self.notifications.note(work, touched | servers_on(work, kind, resource_id))
        self.notifications.send(context, notification)
        return document

    @repeated
    def delete(self, context: Context, kind: str, resource_id: str, revision: int | None = None) -> None:
        """Raises RevisionMismatch like `update`."""
        with self.changing(context) as work:
            KINDS[kind].check_revision(work, resource_id, revision, {})
            notification = self.notifications.note(work, servers_on(work, kind, resource_id, ending=True))
            KINDS[kind].delete(work, resource_id)
        self.notifications.send(context, notification)

    def set_tags(self, context: Context, kind: str, resource_id: str, tags: list[str]) -> None:
        with self.changing(context) as work:
            KINDS[kind].collection.owned(work, resource_id)
            set_tags(work, resource_id, tags)

    def add_tag(self, context: Context, kind: str, resource_id: str, tag: str) -> None:
        with self.changing(context) as work:
            tags = {*KINDS[kind].collection.owned(work, resource_id)['tags'], tag}
            if len(tags) > MAX_TAGS:
                raise errors.Invalid(f'{resource_id} may have at most {MAX_TAGS} tags.')
            set_tags(work, resource_id, sorted(tags))

    def delete_tag(self, context: Context, kind: str, resource_id: str, tag: str) -> bool:
        """Returns whether the resource had the tag."""
        with self.changing(context) as work:
            tags = KINDS[kind].collection.owned(work, resource_id)['tags']
            set_tags(work, resource_id, [other for other in tags if other != tag])
            return tag in tags

    @repeated
    def add_router_interface(self, context: Context, router_id: str, facts: Document) -> Document:
        with self.changing(context) as work:
            return routers.add_interface(work, router_id, facts)

    @repeated
    def remove_router_interface(self, context: Context, router_id: str, facts: Document) -> Document:
        with self.changing(context) as work:
            return routers.remove_interface(work, router_id, facts)

    def change_routes(self, context: Context, router_id: str, routes: list[Document], *, add: bool) -> Document:
        with self.changing(context) as work:
            routers.change_routes(work, router_id, routes, add=add)
            return ROUTERS.get(work, router_id)

    def associate_profile(self, context: Context, flavor_id: str, profile_id: str) -> Document:
        with self.changing(context) as work:
            return flavors.associate(work, flavor_id, profile_id)

    def disassociate_profile(self, context: Context, flavor_id: str, profile_id: str) -> None:
        with self.changing(context) as work:
            flavors.disassociate(work, flavor_id, profile_id)

    def ip_availability(self, context: Context, filters: Mapping[str, list[str]]) -> list[Document]:
        """The number of addresses of networks, and how many are used. filters: those of networks, and `ip_version`."""
        requested = dict(filters)
        versions = requested.pop('ip_version', [])
        with self.reading(context) as work:
            return availability.of_networks(work, NETWORKS.find(work, filters=requested), versions)

    def ensure_default_group(self, context: Context, filters: Mapping[str, list[str]] | None = None) -> None:
        """Create the default group of the caller's project, or of the project that an administrator filters by."""
        requested = (filters or {}).get('project_id') or (filters or {}).get('tenant_id')
        project_id = requested[0] if requested and context.is_admin else context.project_id
        if not project_id or len(project_id) > network_projects.MAX_PROJECT_LENGTH:
            return
        with self.reading(context) as work:
            if security_groups.has_default_group(work, project_id):
                return
        with self._making(context) as work:
            security_groups.default_group(work, project_id)

    def quota_details(self, context: Context, project_id: str) -> dict[str, dict[str, int]]:
        """By resource: the limit, and how much of it is used."""
        with self.reading(context) as work:
            used = network_projects.usage(work, project_id)
            limits = network_projects.limits(work, project_id)
        return {name: {'limit': limit, 'used': used[name], 'reserved': 0} for name, limit in limits.items()}

    def quotas(self, context: Context, project_id: str) -> dict[str, int]:
        with self.reading(context) as work:
            return network_projects.limits(work, project_id)

    def all_quotas(self, context: Context) -> dict[str, dict[str, int]]:
        """By project, for the projects that have limits of their own."""
        with self.reading(context) as work:
            return network_projects.all_limits(work)

    def set_quotas(
        self, context: Context, project_id: str, limits: dict[str, int], *, check: bool = False
    ) -> dict[str, int]:
        """check: raise Invalid for a limit below the project's usage."""
        with self.changing(context) as work:
            if check:
                network_projects.check_limits(work, project_id, limits)
            network_projects.set_limits(work, project_id, limits)
            return network_projects.limits(work, project_id)

    def reset_quotas(self, context: Context, project_id: str) -> None:
        with self.changing(context) as work:
            network_projects.reset_limits(work, project_id)

    def auto_topology(self, context: Context, project_id: str) -> str:
        """The ID of the project's auto-allocated network, created with its subnet and router on first use."""
        with self._making(context) as work:
            return topology.auto_network(work, project_id)

    def check_auto_topology(self, context: Context) -> None:
        """Raises Invalid if an auto-allocated network could not be created."""
        with self.reading(context) as work:
            topology.external_network(work)

    @repeated
    def delete_auto_topology(self, context: Context, project_id: str) -> None:
        with self.changing(context) as work:
            topology.delete_auto_network(work, project_id)

    def populate(self, context: Context, *, shared: bool = True) -> None:
        """Create the initial networks in the caller's project: `public`, which is external, and `private` behind it."""
        with self.changing(context.elevated()) as work:
            topology.populate(work, shared)

    def populate_project(self, context: Context, name: str) -> None:
        """Create an initial network that belongs to the caller's project alone."""
        with self.changing(context.elevated()) as work:
            topology.populate_project(work, name)
