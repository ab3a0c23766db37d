"""From a request to servers that workers will boot."""

import contextlib
import functools
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TypeVar

import sqlalchemy as sa

from computeapi import randomness
from computeapi.compute.flavors import FlavorManager
from computeapi.compute.keypairs import KeypairManager
from computeapi.compute.names import MAX_NAME_LENGTH, numbered
from computeapi.compute.notifications.server_groups import of_members
from computeapi.compute.platform import Platform
from computeapi.compute.quotas import Quotas
from computeapi.compute.server_groups import ServerGroupManager
from computeapi.compute.servers import disks
from computeapi.compute.servers.config_drive import with_password
from computeapi.compute.servers.creation import boot, devices, rows
from computeapi.compute.servers.creation.boot import Source, Sources
from computeapi.compute.servers.creation.build import BUILD
from computeapi.compute.servers.creation.destinations import Destinations
from computeapi.compute.servers.creation.disks import RequestedDisks
from computeapi.compute.servers.creation.networks import RequestedNetworks
from computeapi.compute.servers.creation.request import Device, Rights, ServerRequest
from computeapi.compute.servers.creation.rows import Plan
from computeapi.compute.servers.disks import root_of
from computeapi.compute.servers.metadata import check_items
from computeapi.compute.zones import Zones
from computeapi.context import Context
from computeapi.db import actions, block_devices, server_tags
from computeapi.db import servers as stored
from computeapi.db.flavors import Flavor
from computeapi.db.servers import Server
from computeapi.errors import FlavorNotFound, Invalid, NotFound, Unavailable

T = TypeVar('T')
Look = Callable[[sa.Connection, Plan, list[Server]], T]


MAX_SERVERS = 10_000
"""The maximum number of servers per request, whatever the quotas: they are created in one transaction, which blocks
other requests."""
ROWS_PER_INSERT = 100
"""The number of servers that one statement inserts."""


class _Over(Exception):
    """Ends a dry run and rolls back its changes in the store."""


class Builder:
    """Creates servers: everything about a request is checked before anything is written, in one transaction."""

    def __init__(
        self,
        platform: Platform,
        *,
        quotas: Quotas,
        flavors: FlavorManager,
        keypairs: KeypairManager,
        zones: Zones,
        groups: ServerGroupManager,
    ):
        self.platform = platform
        self.store, self.tasks, self.clock = platform.store, platform.tasks, platform.clock
        self.quotas, self.flavors, self.keypairs = quotas, flavors, keypairs
        self.volumes = platform.volumes
        self.sources = Sources(platform.images, platform.volumes)
        conf = platform.conf
        most_local, any_zone = conf.max_local_block_devices, conf.cinder.cross_az_attach
        self.disks = RequestedDisks(platform.images, platform.volumes, most_local, any_zone)
        self.networks = RequestedNetworks(platform.networks)
        self.destinations = Destinations(platform.store, zones, groups, platform.conf.default_schedule_zone)

    def create(self, context: Context, request: ServerRequest, rights: Rights) -> Plan:
        """Create the servers, in BUILD, and return their plan. Errors: Invalid, Conflict, Forbidden, OverQuota; it is
        Invalid to name something that does not exist."""
        plan = self.possible(context, request, rights)
        self.reserve_and_write(context, plan)
        self.tasks.wake()
        return plan

    def dry_run(self, context: Context, request: ServerRequest, rights: Rights, look: Look[T]) -> T:
        """What *look* returns for the servers that `create` would create; the transaction is then rolled back. Errors:
        as for `create`.

        Volumes that the request names are not reserved."""
        plan = self.possible(context, request, rights)
        with contextlib.suppress(_Over), self.store.write() as connection:
            self.write(connection, context, plan, {})
            seen = look(connection, plan, stored.of_reservation(connection, plan.reservation_id))
            raise _Over()
        return seen

    # ------------------------------------------------------------ checks

    def possible(self, context: Context, request: ServerRequest, rights: Rights) -> Plan:
        """Like `plan`, but Invalid for a request that names something that does not exist."""
        try:
            return self.plan(context, request, rights)
        except NotFound as error:
            raise Invalid(str(error)) from None

    def plan(self, context: Context, request: ServerRequest, rights: Rights) -> Plan:
        check_count(request)
        trusted = request.trusted_image_certificates or self.sources.images.trusted_certificates
        request = replace(request, trusted_image_certificates=trusted)
        flavor = self.flavor(context, request.flavor_id)
        zone = self.destinations.zone(request)
        self.destinations.check_host(request)
        source = self.source(context, request)
        disk_config = boot.disk_config(source, request.disk_config)
        groups = self.networks.security_groups(context, request.security_groups)
        networks = self.networks.complete(context, request, rights)
        max_count = self.networks.room(context, networks, request.min_count, min(request.max_count, MAX_SERVERS))
        public_key = self.keypairs.public_key(context.user_id or '', request.key_name)
        disks = self.disks.check(context, self.devices(request, source, flavor), flavor, request.image_id, rights)
        check_items(request.metadata)
        self.quotas.check_contents(context, request.metadata, request.personality)
        boot.check(source, flavor, root_of(disks), rights)
        return Plan(
            request=request,
            flavor=flavor,
            source=source,
            devices=devices.named(disks, devices.root_name_of(source.properties)),
            networks=networks,
            security_groups=groups,
            external_networks=rights.external_networks,
            max_count=max_count,
            disk_config=disk_config,
            zone=self.disks.zone(context, disks, zone),
            group_id=self.destinations.group(context, request),
            public_key=public_key,
            first_id=randomness.new_id(),
            reservation_id=rows.reservation_id(),
        )

    def flavor(self, context: Context, flavor_id: str) -> Flavor:
        flavor = self.flavors.get(context, flavor_id)
        if flavor.disabled:
            raise FlavorNotFound(id=flavor_id)
        return flavor

    def source(self, context: Context, request: ServerRequest) -> Source:
        requested = request.devices
        if request.root_by_name:
            requested = devices.with_root(requested, devices.ROOT, None)
        return self.sources.find(context, request, requested)

    def devices(self, request: ServerRequest, source: Source, flavor: Flavor) -> list[Device]:
        planned = devices.planned(
            request.devices,
            image_id=request.image_id,
            properties=source.properties,
            flavor=flavor,
            root_by_name=request.root_by_name,
        )
        if request.max_count > 1 and any(device.volume_id for device in planned):
            raise Invalid('Cannot attach one or more volumes to multiple instances')
        return planned

    # ------------------------------------------------------------ writing

    def reserve_and_write(self, context: Context, plan: Plan) -> None:
        """Reserve the volumes that the request names and write the servers; the volumes are released if that fails."""
        volumes = {number: device.volume_id for number, device in enumerate(plan.devices) if device.volume_id}
        attachments: dict[int, str] = {}
        if not volumes:
            self.store.change(self.write, context, plan, attachments)
            return
        undo = functools.partial(disks.release, self.platform, context.elevated(), plan.first_id)
        with self.tasks.leased(BUILD, plan.first_id, context, {'reserving': True}, undo) as task:
            for number, volume_id in volumes.items():
                attachments[number] = self.volumes.reserve(context, volume_id, plan.first_id)
            with self.store.write() as connection:
                self.write(connection, context, plan, attachments)
                if not self.tasks.done(connection, task):
                    raise Unavailable()

    def write(self, connection: sa.Connection, context: Context, plan: Plan, attachments: Mapping[int, str]) -> None:
        """Write as many of the servers as the quotas allow."""
        owner = (context.project_id or '', context.user_id or '')
        count = self.quotas.reserve_servers(connection, *owner, plan.sizes, plan.request.min_count, plan.max_count)
        if plan.group_id is not None:
            self.quotas.reserve_group_members(connection, *owner, plan.group_id, count)
        for begin in range(0, count, ROWS_PER_INSERT):
            some = {
                index: randomness.new_id() if index else plan.first_id
                for index in range(count)[begin:][:ROWS_PER_INSERT]
            }
            self.write_servers(connection, context, plan, some, count, attachments)

    def write_servers(
        self,
        connection: sa.Connection,
        context: Context,
        plan: Plan,
        some: Mapping[int, str],
        count: int,
        attachments: Mapping[int, str],
    ) -> None:
        """Write those of *count* servers that have these IDs, by index."""
        now, ids = self.clock(), list(some.values())
        made = [rows.server(context, plan, server_id, index, count, now) for index, server_id in some.items()]
        stored.insert_all(connection, made)
        for number, device in enumerate(plan.devices):
            held = attachments.get(number)
            alike = [rows.block_device(device, server_id, held, now) for server_id in ids]
            block_devices.insert_all(connection, alike)
        server_tags.add(connection, ids, set(plan.request.tags))
        action_ids = actions.start_all(connection, context, ids, BUILD.name, now)
        arguments = with_password(self.platform, plan.arguments, plan.request.admin_pass)
        self.tasks.add_all(connection, BUILD, action_ids, context, arguments)
        if plan.group_id is not None:
            self.platform.outbox.add(connection, context, of_members(connection, plan.group_id, ids))
        self.platform.notifications.created(connection, context, ids)


def check_count(request: ServerRequest) -> None:
    if request.min_count > request.max_count:
        raise Invalid('min_count must be <= max_count')
    if request.min_count > MAX_SERVERS:
        raise Invalid(f'min_count must be <= {MAX_SERVERS}')
    if request.hostname and request.max_count > 1:
        raise Invalid('Unable to allocate a single hostname to multiple instances')
    if len(numbered(request.name, request.max_count - 1, request.max_count)) > MAX_NAME_LENGTH:
        raise Invalid(
            f'Invalid input for field/attribute name. With its number it has more than {MAX_NAME_LENGTH} characters.'
        )
