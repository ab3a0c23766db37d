"""The schema of cloud files: it validates them, and their documentation is generated from it.

A property with `column` is stored in that column of the section's table; one with `of` refers to a thing of that
section, by its name or its ID. `default` is the value if the file has none, and an export leaves it out. Properties
without a column are handled by the module of the section.
"""

from typing import Any

from computeapi.resource_classes import SPECIAL, TRAIT

Schema = dict[str, Any]

VERSION = 1
"""The version of the format."""

STRING: Schema = {'type': ['string', 'null'], 'maxLength': 65535}
NAME: Schema = {'type': 'string', 'maxLength': 255}
FILE_NAME: Schema = {'type': 'string', 'maxLength': 64, 'pattern': r'^[A-Za-z0-9_-]+\Z'}
"""The name of something that has its own file or directory: it cannot be a path that leads elsewhere."""
MAX_INTEGER = 2**63 - 1
"""The limit of numbers in a database."""
INTEGER: Schema = {'type': ['integer', 'null'], 'minimum': -MAX_INTEGER, 'maximum': MAX_INTEGER}
AMOUNT: Schema = {'type': 'integer', 'minimum': 0, 'maximum': MAX_INTEGER}
NUMBER: Schema = {'type': 'number', 'minimum': -MAX_INTEGER, 'maximum': MAX_INTEGER}
BOOLEAN: Schema = {'type': 'boolean'}
TIME: Schema = {'type': ['string', 'null'], 'format': 'date-time'}
IP_ADDRESS: Schema = {'type': ['string', 'null'], 'format': 'ip-address'}
TEXTS: Schema = {'type': 'object', 'additionalProperties': {'type': ['string', 'number', 'boolean']}}
LABELS: Schema = {'type': 'array', 'items': {'type': 'string', 'maxLength': 255}}
OBJECT: Schema = {'type': 'object'}
OBJECTS: Schema = {'type': 'array', 'items': OBJECT}
REFERENCE: Schema = {'type': ['string', 'null']}
TRAITS: Schema = {'type': 'array', 'items': {'type': 'string', 'pattern': TRAIT}}
RESOURCES: Schema = {
    'type': 'object',
    'propertyNames': {'pattern': SPECIAL, 'maxLength': 255},
    'additionalProperties': {'type': 'integer', 'minimum': 1, 'maximum': 2**31 - 1},
}


def kept(kind: Schema, text: str = '', *, default: Any = None, column: str = '') -> Schema:
    """A property that is stored in a column, by default of the same name."""
    return kind | {'column': column, 'default': default, 'description': text}


def refers(section: str, column: str = '', text: str = '') -> Schema:
    """The name or the ID of a thing of a section; stored in a column, if one is given."""
    return REFERENCE | {'of': section, 'description': text} | ({'column': column} if column else {})


def about(kind: Schema, text: str) -> Schema:
    return kind | {'description': text}


def entry(required: tuple[str, ...] = (), /, **properties: Schema) -> Schema:
    """An object with these properties and no others; required ones cannot be null."""
    named = {
        name: schema | {'column': schema['column'] or name} if 'column' in schema else schema
        for name, schema in properties.items()
    }
    for name in required:
        if isinstance(kinds := named[name].get('type'), list):
            named[name] = named[name] | {'type': [kind for kind in kinds if kind != 'null']}
    return {'type': 'object', 'properties': named, 'required': list(required), 'additionalProperties': False}


MADE = 'default: derived from the name'
ID = kept({'type': 'string', 'minLength': 1, 'maxLength': 64}, MADE)
LABEL = kept(NAME, default='')
DESCRIPTION = kept({'type': ['string', 'null'], 'maxLength': 65535}, default='')
PROJECT = refers('projects', 'project_id', 'the owner')
USER = refers('users', 'user_id', 'the user who created it')
TIMES = {'created_at': kept(TIME), 'updated_at': kept(TIME)}
REVISED = {**TIMES, 'revision': kept(AMOUNT, default=1, column='revision_number')}
STATUS = about(NAME, 'only if it does not follow from the attachments')


def flag(default: bool) -> Schema:
    return kept(BOOLEAN, default=default)


DOMAIN = entry(('name',), id=ID, name=LABEL, description=DESCRIPTION, enabled=flag(True), tags=kept(LABELS, default=[]))
PROJECT_ENTRY = entry(
    ('name',),
    id=ID,
    name=LABEL,
    description=DESCRIPTION,
    enabled=flag(True),
    domain=refers('domains', 'domain_id', 'default: the default domain'),
    parent=about(REFERENCE | {'of': 'projects'}, 'the parent project'),
    tags=kept(LABELS, default=[]),
)
ROLE = entry(
    ('role',),
    role=about(NAME, 'created if no role has this name'),
    project=refers('projects'),
    domain=refers('domains'),
    system=about({'const': 'all'}, 'on the whole cloud'),
    inherited=BOOLEAN,
)
USER_ENTRY = entry(
    ('name',),
    id=ID,
    name=LABEL,
    description=DESCRIPTION,
    enabled=flag(True),
    domain=refers('domains', 'domain_id', 'default: the default domain'),
    default_project=refers('projects', 'default_project_id'),
    password=about(NAME, 'generated and reported if not given'),
    password_hash=about(NAME, 'a bcrypt hash, instead of a password'),
    roles=about({'type': 'array', 'items': ROLE}, 'the roles that the user has, and on what'),
    extra=kept(OBJECT, 'other attributes, such as an email address', default={}),
)
FLAVOR = entry(
    ('name',),
    id=kept(NAME, column='flavorid'),
    name=LABEL,
    description=kept(STRING),
    vcpus=kept(AMOUNT, default=1),
    ram=kept(AMOUNT, 'in MiB', default=512, column='memory_mb'),
    disk=kept(AMOUNT, 'in GiB', default=1, column='root_gb'),
    ephemeral=kept(AMOUNT, 'in GiB', default=0, column='ephemeral_gb'),
    swap=kept(AMOUNT, 'in MiB', default=0),
    rxtx_factor=kept(NUMBER, default=1.0),
    is_public=flag(True),
    disabled=flag(False),
    extra_specs=kept(TEXTS, default={}),
    access=about({'type': 'array', 'items': REFERENCE | {'of': 'projects'}}, 'projects that have access to it'),
    **TIMES,
)
OWN_FLAVOR: Schema = {'type': ['string', 'object', 'null'], 'if': {'type': 'object'}, 'then': FLAVOR}
"""The name or the ID of a flavor, or all properties of a former one."""
IMAGE = entry(
    (),
    id=kept(FILE_NAME, MADE),
    name=kept(STRING),
    project=refers('projects', 'owner', 'the owner'),
    status=kept(NAME, default='active'),
    visibility=kept(NAME, default='public'),
    size=kept(INTEGER, 'in bytes; without `data`, there is nothing to download'),
    data=about(STRING, 'in base64'),
    virtual_size=kept(INTEGER),
    min_disk=kept(AMOUNT, default=0),
    min_ram=kept(AMOUNT, default=0),
    disk_format=kept(STRING, default='qcow2'),
    container_format=kept(STRING, default='bare'),
    checksum=kept(STRING),
    os_hash_value=kept(STRING, column='hash_value'),
    protected=flag(False),
    hidden=flag(False),
    properties=TEXTS,
    tags=LABELS,
    **TIMES,
)
POOL = entry(('start', 'end'), start=IP_ADDRESS, end=IP_ADDRESS)
SUBNET = entry(
    ('cidr',),
    id=ID,
    name=LABEL,
    description=DESCRIPTION,
    project=PROJECT,
    cidr=kept(NAME),
    gateway_ip=kept(IP_ADDRESS, 'default: the first address; null: none'),
    enable_dhcp=flag(True),
    allocation_pools=kept({'type': 'array', 'items': POOL}, 'default: all addresses but the gateway'),
    dns_nameservers=kept(LABELS, default=[]),
    host_routes=kept(OBJECTS, default=[]),
    ipv6_ra_mode=kept(STRING),
    ipv6_address_mode=kept(STRING),
    tags=LABELS,
    **REVISED,
)
NETWORK = entry(
    (),
    id=ID,
    name=LABEL,
    description=DESCRIPTION,
    project=PROJECT,
    shared=flag(False),
    external=flag(False),
    is_default=flag(False),
    admin_state_up=flag(True),
    port_security_enabled=flag(True),
    mtu=kept(AMOUNT, default=1500),
    network_type=kept(NAME, default='local'),
    physical_network=kept(STRING),
    segmentation_id=kept(INTEGER),
    subnets={'type': 'array', 'items': SUBNET},
    tags=LABELS,
    **REVISED,
)
ADDRESS = entry((), subnet=refers('subnets'), ip_address=IP_ADDRESS | {'type': 'string'})
ADDRESSES = {'type': 'array', 'items': ADDRESS}
PLUG = entry(('network',), id=NAME, network=refers('networks'), mac_address=NAME, fixed_ips=ADDRESSES, **REVISED)
ROUTER = entry(
    (),
    id=ID,
    name=LABEL,
    description=DESCRIPTION,
    project=PROJECT,
    admin_state_up=flag(True),
    enable_snat=flag(True),
    routes=kept(OBJECTS, default=[]),
    gateway=about(PLUG, 'the external network that it is connected to'),
    interfaces=about({'type': 'array', 'items': PLUG}, 'the networks that it connects; default address: the gateway'),
    tags=LABELS,
    **REVISED,
)
RULE = entry(
    ('direction',),
    id=ID,
    description=DESCRIPTION,
    direction=kept({'enum': ['ingress', 'egress']}),
    ethertype=kept({'enum': ['IPv4', 'IPv6']}, default='IPv4'),
    protocol=kept(STRING),
    port_range_min=kept(INTEGER),
    port_range_max=kept(INTEGER),
    remote_ip_prefix=kept(STRING | {'format': 'ip-prefix'}),
    remote_group=refers('security_groups', 'remote_group_id'),
    **REVISED,
)
SECURITY_GROUP = entry(
    (),
    id=ID,
    name=LABEL,
    description=DESCRIPTION,
    project=PROJECT,
    stateful=flag(True),
    rules=about({'type': 'array', 'items': RULE}, 'default: all outgoing traffic is allowed'),
    tags=LABELS,
    **REVISED,
)
PORT_FACTS = {
    'mac_address': kept(NAME),
    'fixed_ips': about(ADDRESSES, 'default: one for each IP version of the network'),
    'security_groups': about(
        {'type': 'array', 'items': REFERENCE | {'of': 'security_groups'}}, 'default: the default group of the project'
    ),
    'vnic_type': kept(NAME, default='normal'),
    'admin_state_up': flag(True),
    'port_security_enabled': flag(True),
    'binding_profile': kept(OBJECT, default={}),
    'allowed_address_pairs': kept(OBJECTS, default=[]),
    'extra_dhcp_opts': kept(OBJECTS, default=[]),
    'dns_name': kept(NAME, default=''),
}
PORT = entry(
    ('network',),
    id=ID,
    name=LABEL,
    description=DESCRIPTION,
    project=PROJECT,
    network=refers('networks', 'network_id'),
    device_id=kept(NAME, 'of a device that no section describes', default=''),
    device_owner=kept(NAME, default=''),
    host=kept(NAME, default=''),
    **PORT_FACTS,
    tags=LABELS,
    **REVISED,
)
FLOATING_IP = entry(
    ('network',),
    id=ID,
    description=DESCRIPTION,
    project=PROJECT,
    network=refers('networks', 'floating_network_id', 'an external network'),
    address=kept(IP_ADDRESS | {'type': 'string'}, 'default: a free one', column='floating_ip_address'),
    port=refers('ports', 'port_id'),
    server=about(REFERENCE | {'of': 'servers'}, 'the server whose first port it leads to'),
    fixed_address=kept(IP_ADDRESS, 'default: the first address of the port', column='fixed_ip_address'),
    tags=LABELS,
    **REVISED,
)
VOLUME_TYPE = entry(
    ('name',),
    id=ID,
    name=LABEL,
    description=kept(STRING),
    is_public=flag(True),
    extra_specs=TEXTS,
    access={'type': 'array', 'items': REFERENCE | {'of': 'projects'}},
    **TIMES,
)
VOLUME = entry(
    ('size',),
    id=ID,
    name=kept(STRING),
    description=kept(STRING),
    project=PROJECT,
    user=USER,
    size=kept(AMOUNT, 'in GiB'),
    type=refers('volume_types', 'volume_type_id', 'default: the default type'),
    status=STATUS,
    bootable=flag(False),
    multiattach=flag(False),
    readonly=kept(BOOLEAN),
    availability_zone=kept(NAME, default='nova'),
    snapshot=kept(STRING, 'the ID of the snapshot that it was created from', column='snapshot_id'),
    source_volume=kept(STRING, 'the ID of the volume that it was created from', column='source_volume_id'),
    metadata=TEXTS,
    image_metadata=TEXTS,
    **TIMES,
)
VOLUME_SNAPSHOT = entry(
    ('volume',),
    id=ID,
    name=kept(STRING),
    description=kept(STRING),
    project=PROJECT,
    user=USER,
    volume=refers('volumes', 'volume_id'),
    size=kept(INTEGER, 'default: the size of the volume'),
    status=kept(NAME, default='available'),
    metadata=TEXTS,
    **TIMES,
)
HOST = entry(
    ('name',),
    name=kept(NAME, column='host'),
    hypervisor_hostname=kept(NAME, 'default: the name of the host'),
    hypervisor_type=kept(NAME, default='simulated'),
    hypervisor_version=kept(AMOUNT, default=1000),
    host_ip=kept(NAME),
    vcpus=kept(AMOUNT, default=64),
    memory_mb=kept(AMOUNT, default=256 * 1024),
    local_gb=kept(AMOUNT, default=4096),
    cpu_info=kept(OBJECT),
    cell=kept(NAME, default='cell1'),
    traits=kept(TRAITS, 'besides the standard ones of its driver', default=[]),
    resources=kept(RESOURCES, 'amounts by resource class, besides VCPU, MEMORY_MB and DISK_GB', default={}),
    zone=about(NAME, 'the availability zone; an aggregate of that name is created if none in the file has it'),
    disabled=about(BOOLEAN, 'it gets no new servers'),
    disabled_reason=STRING,
    forced_down=BOOLEAN,
    down=about(BOOLEAN, 'it is off, until `GET /os-hosts/NAME/startup` at 2.1'),
)
AGGREGATE = entry(
    ('name',),
    id=kept({'type': 'integer', 'minimum': 1}),
    uuid=kept(NAME),
    name=LABEL,
    hosts={'type': 'array', 'items': REFERENCE | {'of': 'hosts'}},
    metadata=kept(TEXTS, default={}),
    **TIMES,
)
KEYPAIR = entry(
    ('name', 'public_key'),
    name=LABEL,
    user=USER,
    type=kept({'enum': ['ssh', 'x509']}, default='ssh'),
    public_key=kept(STRING),
    fingerprint=kept(STRING),
    created_at=kept(TIME),
)
SERVER_GROUP = entry(
    ('name', 'policy'),
    id=kept(NAME, column='uuid'),
    name=LABEL,
    project=PROJECT,
    user=USER,
    policy=kept({'enum': ['affinity', 'anti-affinity', 'soft-affinity', 'soft-anti-affinity']}),
    rules=kept(OBJECT, default={}),
    created_at=kept(TIME),
)
LIMITS = {'type': 'object', 'additionalProperties': {'type': 'integer', 'minimum': -1}}
QUOTA = entry((), project=refers('projects'), user=refers('users'), compute=LIMITS, network=LIMITS, volume=LIMITS)
