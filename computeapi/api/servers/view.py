"""Views of a server, at every version.

SUMMARY (lists), DETAIL (lists with details), SHOW, and the responses to an update (UPDATE) and a rebuild (REBUILD):
less than the others until 2.75, as much as SHOW from there on.
"""

from typing import Any

from computeapi.api.servers import readers
from computeapi.api.types import (
    BOOLEAN,
    DATETIME,
    INTEGER,
    LINKS,
    NULLABLE_STRING,
    OBJECT,
    STRING,
    TEXTS,
    UUID,
    date,
    exact_date,
)
from computeapi.db.servers import DOMAIN_NAME, SERVICE, TAGS, VOLUMES
from computeapi.versions import COMPUTE, Versioned, added, changed
from computeapi.web.contract import ADMIN, Field, Policy, View, absent, attr
from computeapi.web.schemas import array, closed, whole

EXTENDED = Policy(
    'os_compute_api:os-extended-server-attributes', ADMIN, 'Show where a server runs and how it was created'
)
READER_POLICIES = (readers.EXTRA_SPECS, readers.HOST_STATUS, readers.HOST_UNKNOWN)
"""The policies that readers check themselves: for `also` of every operation whose response contains a server."""

# ------------------------------------------------------------------ schemas

STRINGS = array(STRING)
NULLABLE_STRINGS = {'type': ['array', 'null'], 'items': STRING}
LINK = whole({'id': STRING, 'links': LINKS})
IMAGE = {'anyOf': [{'const': ''}, LINK]}
IMAGE_WITH_PROPERTIES = {
    'anyOf': [{'const': ''}, closed({**LINK['properties'], 'properties': TEXTS}, ['id', 'links', 'properties'])]
}
SIZES = {
    'vcpus': INTEGER,
    'ram': INTEGER,
    'disk': INTEGER,
    'ephemeral': INTEGER,
    'swap': INTEGER,
    'original_name': STRING,
}
FLAVOR = closed(SIZES | {'extra_specs': TEXTS}, SIZES)
ADDRESS = {'version': INTEGER, 'addr': STRING}
EXTENDED_ADDRESS = ADDRESS | {'OS-EXT-IPS:type': STRING, 'OS-EXT-IPS-MAC:mac_addr': NULLABLE_STRING}
FAULT = closed(
    {'code': INTEGER, 'created': DATETIME, 'message': STRING, 'details': STRING}, ['code', 'created', 'message']
)
VOLUME = {'id': STRING}
VOLUME_ON_TERMINATION = VOLUME | {'delete_on_termination': BOOLEAN}


def by_network(address: dict[str, Any]) -> dict[str, Any]:
    return {'type': 'object', 'additionalProperties': objects(address)}


def objects(properties: dict[str, Any]) -> dict[str, Any]:
    return array(whole(properties))


# ------------------------------------------------------------------ fields


def or_empty(name: str) -> Field:
    """Text that is empty if there is no value."""
    get = attr(name)
    return Field(STRING, lambda server: get(server) or '')


def administered(schema: Any, get: Any, needs: tuple[str, ...] = ()) -> Field:
    return Field(schema, get, needs=needs, policy=EXTENDED)


def since(version: str, field: Any) -> Versioned:
    """The field with its own version steps, but absent before *version*."""
    if not isinstance(field, Versioned):
        return added(version, field)
    start = COMPUTE.version(version)
    later = {str(step): value for step, value in field.steps if step > start}
    return changed({version: field.at(start)} | later)


INSIDES, WHOLE = '2.3', '2.75'
"""The versions from which administrators see internal attributes, and updates and rebuilds return the whole server."""

LINKED = {
    'id': Field(UUID, attr('uuid')),
    'name': Field(STRING, attr('name')),
    'links': Field(LINKS, readers.links, request=True),
}
SHORT = LINKED | {
    'status': Field(STRING, readers.status),
    'tenant_id': Field(STRING, attr('project_id')),
    'user_id': Field(STRING, attr('user_id')),
    'metadata': Field(TEXTS, attr('metadata')),
    'hostId': Field(STRING, readers.host_id),
    'image': changed(
        {
            '2.1': Field(IMAGE, readers.image, request=True),
            '2.98': Field(IMAGE_WITH_PROPERTIES, readers.image_with_properties, request=True),
        }
    ),
    'flavor': changed(
        {
            '2.1': Field(LINK, readers.flavor_link, request=True),
            '2.47': Field(FLAVOR, readers.flavor, request=True),
        }
    ),
    'created': date('created_at'),
    'updated': Field(DATETIME, readers.updated),
    'addresses': Field(by_network(ADDRESS), readers.plain_addresses),
    'accessIPv4': or_empty('access_ip_v4'),
    'accessIPv6': or_empty('access_ip_v6'),
    'OS-DCF:diskConfig': Field(STRING, attr('disk_config')),
    'progress': Field(INTEGER, readers.progress, optional=True),
    'fault': Field(FAULT, readers.fault, request=True, optional=True),
    'locked': added('2.9', Field(BOOLEAN, lambda server: server.locked_by is not None)),
    'description': added('2.19', Field(NULLABLE_STRING, attr('description'))),
    'tags': added('2.26', Field(STRINGS, attr('tags'), needs=(TAGS,))),
    'trusted_image_certificates': added('2.63', Field(NULLABLE_STRINGS, attr('trusted_image_certificates'))),
    'server_groups': added('2.71', Field(STRINGS, lambda server: list(filter(None, [server.server_group_id])))),
    'locked_reason': added('2.73', Field(NULLABLE_STRING, attr('locked_reason'))),
}
MORE = {
    'addresses': Field(by_network(EXTENDED_ADDRESS), readers.addresses),
    'key_name': Field(NULLABLE_STRING, attr('key_name')),
    'config_drive': Field(STRING, attr('config_drive')),
    'security_groups': Field(objects({'name': STRING}), readers.security_groups, optional=True),
    'os-extended-volumes:volumes_attached': changed(
        {
            '2.1': Field(objects(VOLUME), readers.volume_ids, needs=(VOLUMES,)),
            INSIDES: Field(objects(VOLUME_ON_TERMINATION), readers.volumes, needs=(VOLUMES,)),
        }
    ),
    'OS-EXT-AZ:availability_zone': or_empty('availability_zone'),
    'OS-EXT-STS:vm_state': Field(STRING, attr('vm_state')),
    'OS-EXT-STS:task_state': Field(NULLABLE_STRING, attr('task_state')),
    'OS-EXT-STS:power_state': Field(INTEGER, attr('power_state')),
    'OS-SRV-USG:launched_at': exact_date('launched_at'),
    'OS-SRV-USG:terminated_at': exact_date('terminated_at'),
    'OS-EXT-SRV-ATTR:host': administered(NULLABLE_STRING, attr('host')),
    'OS-EXT-SRV-ATTR:hypervisor_hostname': administered(NULLABLE_STRING, attr('node')),
    'OS-EXT-SRV-ATTR:instance_name': administered(STRING, attr('domain_name'), needs=(DOMAIN_NAME,)),
    'OS-EXT-SRV-ATTR:hostname': changed(
        {INSIDES: administered(STRING, attr('hostname')), '2.90': Field(STRING, attr('hostname'))}
    ),
    'OS-EXT-SRV-ATTR:reservation_id': added(INSIDES, administered(STRING, attr('reservation_id'))),
    'OS-EXT-SRV-ATTR:launch_index': added(INSIDES, administered(INTEGER, attr('launch_index'))),
    'OS-EXT-SRV-ATTR:kernel_id': added(INSIDES, administered(STRING, lambda server: server.kernel_id or '')),
    'OS-EXT-SRV-ATTR:ramdisk_id': added(INSIDES, administered(STRING, lambda server: server.ramdisk_id or '')),
    'OS-EXT-SRV-ATTR:root_device_name': added(INSIDES, administered(NULLABLE_STRING, attr('root_device_name'))),
    'OS-EXT-SRV-ATTR:user_data': added(INSIDES, administered(NULLABLE_STRING, attr('user_data'))),
    'host_status': added('2.16', Field(STRING, readers.host_status, needs=(SERVICE,), request=True, optional=True)),
    'pinned_availability_zone': added('2.96', Field(NULLABLE_STRING, attr('pinned_availability_zone'))),
    'scheduler_hints': added('2.100', Field(OBJECT, attr('scheduler_hints'))),
}
LATER = {name: since(WHOLE, field) for name, field in MORE.items()}
LATER['addresses'] = changed({'2.1': SHORT['addresses'], WHOLE: MORE['addresses']})

# ------------------------------------------------------------------ views


SUMMARY = View(LINKED)
SHOW = View(SHORT | MORE)
DETAIL = SHOW.without('server_groups')
UPDATE = View(SHORT | LATER)
REBUILD = View(
    UPDATE.without('OS-EXT-SRV-ATTR:user_data').fields
    | {
        'adminPass': Field(STRING, absent, optional=True),
        'key_name': added('2.54', MORE['key_name']),
        'user_data': added('2.57', Field(NULLABLE_STRING, attr('user_data'))),
    }
)
