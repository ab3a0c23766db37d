"""The sections of a cloud file: where their things are stored, and how they are referred to."""

from typing import NamedTuple

from computeapi.kit.cloud_files import schema
from computeapi.kit.cloud_files.schema import VERSION, Schema
from computeapi.kit.cloud_files.server_schema import SERVER


class Section(NamedTuple):
    """schema: of one thing.  id, name, owner: the columns with the ID, the name and the project (or other owner)."""

    table: str
    schema: Schema
    text: str
    id: str = 'id'
    name: str = 'name'
    owner: str | None = 'project_id'


SECTIONS = {
    'domains': Section('identity_domains', schema.DOMAIN, 'Domains of projects and users.', owner=None),
    'projects': Section('identity_projects', schema.PROJECT_ENTRY, 'Projects.', owner='domain_id'),
    'users': Section('identity_users', schema.USER_ENTRY, 'Users and their roles.', owner='domain_id'),
    'hosts': Section('hypervisors', schema.HOST, 'Compute hosts.', 'host', 'hypervisor_hostname', None),
    'aggregates': Section('aggregates', schema.AGGREGATE, 'Host aggregates.', owner=None),
    'flavors': Section('flavors', schema.FLAVOR, 'Flavors.', 'flavorid', owner=None),
    'images': Section('images', schema.IMAGE, 'Images.', owner='owner'),
    'networks': Section('networks', schema.NETWORK, 'Networks and their subnets.'),
    'security_groups': Section('security_groups', schema.SECURITY_GROUP, 'Security groups and their rules.'),
    'routers': Section('routers', schema.ROUTER, 'Routers and the networks that they connect.'),
    'ports': Section('ports', schema.PORT, 'Ports that were not created for a server.'),
    'volume_types': Section('volume_types', schema.VOLUME_TYPE, 'Volume types.', owner=None),
    'volumes': Section('volumes', schema.VOLUME, 'Volumes.'),
    'volume_snapshots': Section('volume_snapshots', schema.VOLUME_SNAPSHOT, 'Volume snapshots.'),
    'keypairs': Section('keypairs', schema.KEYPAIR, 'Key pairs.', owner='user_id'),
    'server_groups': Section('server_groups', schema.SERVER_GROUP, 'Server groups.', 'uuid'),
    'quotas': Section('quotas', schema.QUOTA, 'Quotas of projects, and of users in projects.', 'project_id'),
    'servers': Section('servers', SERVER, 'Servers in any state, with their history.', 'uuid'),
    'floating_ips': Section('floating_ips', schema.FLOATING_IP, 'Floating IPs.', name='floating_ip_address'),
}
"""In the order in which an export writes them."""

SUBNETS = Section('subnets', schema.SUBNET, 'Subnets.')
ROLES = Section('identity_roles', schema.ROLE, 'Roles.', owner='domain_id')
REFERABLE = SECTIONS | {'subnets': SUBNETS, 'roles': ROLES}

DOCUMENT: Schema = {
    '$schema': 'https://json-schema.org/draft/2020-12/schema',
    'title': 'What a cloud has',
    'type': 'object',
    'properties': {
        'version': {'const': VERSION, 'description': 'the version of this format'},
        'replace': {
            'type': 'boolean',
            'description': 'whether to remove everything else from the cloud, except the users admin and demo, and '
            'hosts and volume types if the file has none; otherwise the file is added to it',
        },
        'seed': {'type': 'integer', 'description': 'IDs that are not given are derived from it and from names (0)'},
        'project': {'type': 'string', 'description': 'the owner of resources that name no project (admin)'},
        **{
            name: {'type': 'array', 'items': section.schema, 'description': section.text}
            for name, section in SECTIONS.items()
        },
    },
    'required': ['version'],
    'additionalProperties': False,
}
