"""New servers as rows."""

import re
import string
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from computeapi import randomness
from computeapi.backends.hypervisor import PowerState
from computeapi.compute.names import numbered
from computeapi.compute.servers.creation.boot import Source, min_sizes
from computeapi.compute.servers.creation.devices import path_of
from computeapi.compute.servers.creation.networks import RequestedInterfaces
from computeapi.compute.servers.creation.request import Device, ServerRequest
from computeapi.context import Context
from computeapi.db.flavors import Flavor, snapshot
from computeapi.states import TaskState, VMState

MAX_PROPERTY_LENGTH = 255
MAX_HOSTNAME_LENGTH = 63
GAP, STRANGE = re.compile(r'[\s_.]'), re.compile(r'[^A-Za-z0-9-]')
PLAIN = re.compile(r'[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?')
"""Names that are valid hostnames as they are, as most names."""


@dataclass(frozen=True)
class Plan:
    """A request that passed all checks, with everything that it names looked up.

    max_count: the maximum number of servers.  first_id: the ID of the first one, known before it exists.
    """

    request: ServerRequest
    flavor: Flavor
    source: Source
    devices: Sequence[Device]
    networks: RequestedInterfaces
    security_groups: Sequence[str]
    external_networks: bool
    max_count: int
    disk_config: str
    zone: str | None
    group_id: str | None
    public_key: str | None
    first_id: str
    reservation_id: str

    @property
    def sizes(self) -> dict[str, int]:
        """What one server uses of the quotas."""
        return {'cores': self.flavor.vcpus, 'ram': self.flavor.memory_mb}

    @property
    def arguments(self) -> dict[str, Any]:
        """What the worker must know in addition to the row."""
        request = self.request
        return {
            'networks': self.networks,
            'security_groups': list(self.security_groups),
            'external_networks': self.external_networks,
            'host': request.forced_host or request.host,
            'node': request.forced_node or request.node,
            'forced_host': bool(request.forced_host or request.forced_node),
        }


def server(context: Context, plan: Plan, server_id: str, index: int, count: int, now: datetime) -> dict[str, Any]:
    """The row of one of *count* servers."""
    request = plan.request
    name = numbered(request.name, index, count)
    return {
        'uuid': server_id,
        'project_id': context.project_id,
        'user_id': context.user_id,
        'name': name,
        'description': request.description,
        'hostname': request.hostname or hostname(name, server_id),
        'creator': creator(context),
        'reservation_id': plan.reservation_id,
        'launch_index': index,
        'created_at': now,
        **beginning(),
        **wishes(request),
        **resources(plan.flavor),
        **origin(plan),
        # Until it has a host, a server shows the zone that was asked for.
        'availability_zone': request.availability_zone or plan.zone,
        'pinned_availability_zone': plan.zone,
        'server_group_id': plan.group_id,
        'public_key': plan.public_key,
        'disk_config': plan.disk_config,
    }


def creator(context: Context) -> dict[str, Any]:
    """The caller, by name, for images of the server."""
    names = {'user_name': context.user_name, 'project_name': context.project_name}
    return names | {'roles': sorted(context.roles)}


def beginning() -> dict[str, Any]:
    return {
        'vm_state': VMState.BUILDING,
        'task_state': TaskState.SCHEDULING,
        'power_state': PowerState.NOSTATE,
        'progress': 0,
        'network_info': [],
    }


def wishes(request: ServerRequest) -> dict[str, Any]:
    """What is stored as requested."""
    certificates = request.trusted_image_certificates
    return {
        'config_drive': 'True' if request.config_drive else '',
        'key_name': request.key_name,
        'user_data': request.user_data,
        'personality': [dict(file) for file in request.personality] or None,
        'metadata': dict(request.metadata),
        'trusted_image_certificates': list(certificates) if certificates else None,
        'access_ip_v4': request.access_ip_v4,
        'access_ip_v6': request.access_ip_v6,
        'scheduler_hints': hints(request.scheduler_hints),
    }


def hints(requested: Mapping[str, Any]) -> dict[str, Any]:
    """Each hint is stored as a list, because most of them may have several values."""
    return {name: value if isinstance(value, (list, dict)) else [value] for name, value in requested.items()}


def resources(flavor: Flavor) -> dict[str, Any]:
    sizes = {name: getattr(flavor, name) for name in ('vcpus', 'memory_mb', 'root_gb', 'ephemeral_gb')}
    return {'flavor': snapshot(flavor), **sizes}


def origin(plan: Plan) -> dict[str, Any]:
    """What the server boots from."""
    name = plan.source.properties.get('root_device_name')
    return {
        'image_id': plan.request.image_id,
        'root_device_name': path_of(name),
        **remembered(plan.source, plan.flavor.root_gb),
    }


def remembered(source: Source, root_gb: int) -> dict[str, Any]:
    """What a server keeps of the image that it boots from, whatever happens to the image; root_gb: of its flavor."""
    properties = {name: str(value)[:MAX_PROPERTY_LENGTH] for name, value in source.kept_properties.items()}
    sizes = {name: str(size) for name, size in min_sizes(source, root_gb).items() if size}
    return {
        'image_properties': properties | sizes,
        'kernel_id': source.properties.get('kernel_id'),
        'ramdisk_id': source.properties.get('ramdisk_id'),
    }


def block_device(device: Device, server_id: str, attachment_id: str | None, now: datetime) -> dict[str, Any]:
    """The row of a disk; attachment_id: that of a volume that is already reserved for the server."""
    facts = {name: value for name, value in vars(device).items() if name != 'no_device'}
    more = {'uuid': randomness.new_id(), 'server_id': server_id, 'attachment_id': attachment_id, 'created_at': now}
    return facts | more


# ------------------------------------------------------------------ names


def hostname(name: str, server_id: str) -> str:
    """The name in the form of a hostname (RFC 1123); if no character is left, one made from the ID."""
    if PLAIN.fullmatch(name):
        return name
    allowed = STRANGE.sub('', GAP.sub('-', name)).lower().strip('-')
    return allowed[:MAX_HOSTNAME_LENGTH].rstrip('-') or f'Server-{server_id}'


def reservation_id() -> str:
    """The ID that all servers of one request share."""
    return 'r-' + ''.join(randomness.choice(string.ascii_lowercase + string.digits) for _ in range(8))
