"""POST /servers: creates servers."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from oslo_utils.uuidutils import is_uuid_like

from computeapi.api.controller import ComputeController
from computeapi.api.servers.admin_password import password_of, shown_password
from computeapi.api.servers.columns import canonical_ipv6
from computeapi.api.servers.disks import FIELDS as DISKS
from computeapi.api.servers.disks import devices_of
from computeapi.api.servers.schemas import (
    ADDRESS,
    CERTIFICATES,
    DESCRIPTION,
    DISK_CONFIG,
    FILE,
    FLAVOR_REF,
    HOSTNAME,
    IPV4,
    IPV6,
    METADATA,
    TAG,
    TAGS,
    USER_DATA,
)
from computeapi.api.types import (
    BARE_NAME,
    COUNT,
    HOST,
    LENIENT_BOOLEAN,
    LINKS,
    NAME,
    NULLABLE_UUID,
    STRING,
    UUID,
)
from computeapi.booleans import is_true
from computeapi.compute.servers.creation import NetworkRequest, Plan, Rights, ServerRequest
from computeapi.errors import Invalid
from computeapi.versions import ABSENT, added, changed, removed
from computeapi.web.contract import ADMIN, MEMBER_OR_ADMIN, Policy
from computeapi.web.controller import operation
from computeapi.web.request import Reply, Request
from computeapi.web.schemas import array, closed, lone, one_of

CREATE = Policy('os_compute_api:servers:create', MEMBER_OR_ADMIN, 'Create a server')
TRUSTED_CERTS = Policy(
    'os_compute_api:servers:create:trusted_certs', MEMBER_OR_ADMIN, 'Create a server with trusted image certificates'
)
FORCED_HOST = Policy(
    'os_compute_api:servers:create:forced_host', ADMIN, 'Create a server on a host, bypassing the scheduler'
)
REQUESTED_DESTINATION = Policy(
    'compute:servers:create:requested_destination',
    ADMIN,
    'Create a server on a requested host, if the scheduler accepts it',
)
ATTACH_VOLUME = Policy(
    'os_compute_api:servers:create:attach_volume', MEMBER_OR_ADMIN, 'Create a server with volumes attached'
)
ATTACH_NETWORK = Policy(
    'os_compute_api:servers:create:attach_network', MEMBER_OR_ADMIN, 'Create a server with networks attached'
)
ZERO_DISK_FLAVOR = Policy(
    'os_compute_api:servers:create:zero_disk_flavor', ADMIN, 'Create a server from an image with a zero-disk flavor'
)
ATTACH_EXTERNAL = Policy('network:attach_external_network', ADMIN, 'Attach a server to an external network')

DESCRIPTIONS = '2.19'

# ------------------------------------------------------------------ requests

IMAGE_OR_NONE = {'oneOf': [UUID, {'type': 'string', 'maxLength': 0}]}
INTERFACES = array(
    closed(
        {
            'fixed_ip': ADDRESS,
            'port': NULLABLE_UUID,
            'uuid': changed({'2.1': STRING, '2.37': UUID}),
            'tag': changed({'2.32': TAG, '2.37': ABSENT, '2.42': TAG}),
        }
    )
)
NETWORKS = changed({'2.1': INTERFACES, '2.37': {'oneOf': [INTERFACES, one_of('none', 'auto')]}})
GROUPS = array(closed({'name': NAME}))
SERVER = closed(
    {
        'name': NAME,
        'imageRef': IMAGE_OR_NONE,
        'flavorRef': FLAVOR_REF,
        'adminPass': STRING,
        'metadata': METADATA,
        'networks': NETWORKS,
        'OS-DCF:diskConfig': DISK_CONFIG,
        'accessIPv4': IPV4,
        'accessIPv6': IPV6,
        'personality': removed('2.57', array(FILE)),
        'availability_zone': NAME,
        **DISKS,
        'config_drive': LENIENT_BOOLEAN,
        'key_name': NAME,
        'min_count': COUNT,
        'max_count': COUNT,
        'return_reservation_id': LENIENT_BOOLEAN,
        'security_groups': GROUPS,
        'user_data': changed({'2.0': USER_DATA | {'type': ['string', 'null']}, '2.1': USER_DATA}),
        'description': added(DESCRIPTIONS, DESCRIPTION),
        'tags': added('2.52', TAGS),
        'trusted_image_certificates': added('2.63', CERTIFICATES),
        'host': added('2.74', HOST),
        'hypervisor_hostname': added('2.74', HOST),
        'hostname': HOSTNAME,
    },
    required=['name', 'flavorRef', added('2.37', 'networks')],
)
ONE_OR_MORE = {'oneOf': [UUID, array(UUID)]}
# Operators may add filters of their own, so any other hint is allowed.
HINTS = {
    'type': 'object',
    'properties': {
        'group': ONE_OR_MORE,
        'different_host': ONE_OR_MORE,
        'same_host': {'type': ['string', 'array'], 'items': UUID},
        'query': {'type': ['string', 'object']},
        'target_cell': BARE_NAME,
        'different_cell': {'type': ['string', 'array'], 'items': STRING},
        'build_near_host_ip': ADDRESS,
        'cidr': {'type': 'string', 'pattern': '^/[0-9a-f.:]+$'},
    },
    'additionalProperties': True,
}
HINT_NAMES = ('os:scheduler_hints', 'OS-SCH-HNT:scheduler_hints')
BODY = closed({'server': SERVER, **dict.fromkeys(HINT_NAMES, HINTS)}, required=['server'])

# ------------------------------------------------------------------ responses

CREATED = {'id': UUID, 'links': LINKS, 'OS-DCF:diskConfig': DISK_CONFIG, 'security_groups': GROUPS}
ANSWER = {'oneOf': [lone('server', closed(CREATED | {'adminPass': STRING}, CREATED)), lone('reservation_id', STRING)]}


class ServerCreation(ComputeController):
    """Creating servers."""

    path = '/servers'

    @operation(
        'POST',
        policy=CREATE,
        also=(
            TRUSTED_CERTS,
            FORCED_HOST,
            REQUESTED_DESTINATION,
            ATTACH_VOLUME,
            ATTACH_NETWORK,
            ZERO_DISK_FLAVOR,
            ATTACH_EXTERNAL,
        ),
        body=BODY,
        response=ANSWER,
        status=202,
        errors=(403, 409),
        behaviour={
            'described': added(DESCRIPTIONS, True),
            'multiattach_volumes': added('2.60', True),
            'ports_with_resources': added('2.72', True),
        },
    )
    def create(self, req: Request, body: Any) -> Reply | dict[str, str]:
        """Create one or several servers."""
        server, wanted = body['server'], self.server_request(req, body)
        password = password_of(self.cloud.conf, server)
        plan = self.cloud.builder.create(req.context, replace(wanted, admin_pass=password), rights_of(req))
        if is_true(server.get('return_reservation_id')):
            return {'reservation_id': plan.reservation_id}
        return self.answer(req, plan, server, password)

    def server_request(self, req: Request, body: Any) -> ServerRequest:
        """The request in the body, after a check of what the caller may ask for."""
        wanted = request_of(req, body)
        check_rights(req, wanted)
        return wanted

    def target(self, req: Request, parameters: Mapping[str, Any]) -> dict[str, Any]:
        """Policies may depend on the requested availability zone."""
        zone = parameters['body']['server'].get('availability_zone')
        return {'project_id': req.context.project_id, 'user_id': req.context.user_id, 'availability_zone': zone}

    def answer(self, req: Request, plan: Plan, server: Mapping[str, Any], password: str) -> Reply:
        """The response with the first server and the password, which is otherwise kept only for its config drive."""
        shown = {
            'id': plan.first_id,
            'links': req.links('servers', plan.first_id),
            'OS-DCF:diskConfig': plan.disk_config,
            # As requested, whatever groups these turn out to be.
            'security_groups': server.get('security_groups', [{'name': 'default'}]),
            **shown_password(self.cloud.conf, password),
        }
        return Reply({'server': shown}, {'Location': f'{req.endpoint}/servers/{plan.first_id}'})


def check_rights(req: Request, wanted: ServerRequest) -> None:
    """Check the policies for optional parts of a request."""
    if wanted.trusted_image_certificates:
        req.check(TRUSTED_CERTS)
    if wanted.forced_host or wanted.forced_node:
        req.check(FORCED_HOST)
    if wanted.host or wanted.node:
        req.check(REQUESTED_DESTINATION)
    if wanted.devices:
        req.check(ATTACH_VOLUME)
    if wanted.networks and wanted.networks != 'none':
        req.check(ATTACH_NETWORK)


def rights_of(req: Request) -> Rights:
    return Rights(
        multiattach_volumes=bool(req.behaviour.multiattach_volumes),
        ports_with_resources=bool(req.behaviour.ports_with_resources),
        flavors_without_disk=req.allows(ZERO_DISK_FLAVOR),
        external_networks=req.allows(ATTACH_EXTERNAL),
    )


def request_of(req: Request, body: Mapping[str, Any]) -> ServerRequest:
    """The body as a ServerRequest."""
    server = body['server']
    disks = devices_of(server)
    if not (server.get('imageRef') or disks):
        raise Invalid('Missing imageRef attribute')
    name = server['name'].strip()
    min_count = int(server.get('min_count', 1))
    return ServerRequest(
        name=name,
        # Before descriptions were added to the API, the name was stored in their place.
        description=server.get('description') if req.behaviour.described else name,
        flavor_id=last_part(str(server['flavorRef'])),
        image_id=server.get('imageRef') or None,
        min_count=min_count,
        max_count=int(server.get('max_count', min_count)),
        hostname=server.get('hostname'),
        networks=networks_of(server.get('networks')),
        security_groups=groups_of(server),
        key_name=server.get('key_name'),
        user_data=server.get('user_data'),
        config_drive=is_true(server.get('config_drive')),
        disk_config=server.get('OS-DCF:diskConfig'),
        metadata=server.get('metadata', {}),
        personality=server.get('personality', ()),
        tags=server.get('tags', ()),
        trusted_image_certificates=server.get('trusted_image_certificates'),
        access_ip_v4=server.get('accessIPv4'),
        access_ip_v6=canonical_ipv6(server.get('accessIPv6')),
        host=server.get('host'),
        node=server.get('hypervisor_hostname'),
        scheduler_hints=next((body[name] for name in HINT_NAMES if name in body), {}),
        **disks,
        **destination_of(server.get('availability_zone', '')),
    )


def last_part(reference: str) -> str:
    """The ID at the end of a link to a resource; also accepts a bare ID."""
    return reference.partition('?')[0].rpartition('/')[2]


def groups_of(server: Mapping[str, Any]) -> list[str]:
    return [group['name'] for group in server.get('security_groups', ()) if 'name' in group]


def networks_of(value: Any) -> Any:
    """The interfaces in order; 'auto', 'none' and None unchanged."""
    if not isinstance(value, list):
        return value
    return [interface_of(item) for item in value]


def interface_of(item: Mapping[str, Any]) -> NetworkRequest:
    """A port takes precedence over a network."""
    port_id = item.get('port')
    network_id = None if port_id else item.get('uuid')
    if network_id is not None and not is_uuid_like(network_id):
        raise Invalid(f'Bad networks format: network uuid is not in proper format ({network_id[:64]})')
    return NetworkRequest(network_id=network_id, port_id=port_id, fixed_ip=item.get('fixed_ip'), tag=item.get('tag'))


def destination_of(zone: str) -> dict[str, Any]:
    """zone, zone:host, zone:host:node or zone::node; the zone may be empty in all of them."""
    parts = zone.split(':')
    if len(parts) > 3:
        raise Invalid('Invalid input received: Unable to parse availability_zone')
    name, host, node = (part.strip() or None for part in (*parts, '', '')[:3])
    return {'availability_zone': name, 'forced_host': host, 'forced_node': node}
