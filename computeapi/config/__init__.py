"""Every option of the service, with its help.  Names follow the field's where it has one."""

import itertools
import os
import socket
from collections.abc import Sequence

from oslo_config import cfg
from oslo_policy import opts as policy_opts

from computeapi.config import neighbours
from computeapi.config.agent import AGENT
from computeapi.config.backends import (
    CINDER,
    GLANCE,
    HYPERVISOR,
    IDENTITY,
    IMAGE,
    NETWORK,
    NEUTRON,
    PLACEMENT,
    SHARE,
    SIMULATED,
    STANDALONE,
    VOLUME,
)
from computeapi.config.consoles import CONSOLES, PROXY
from computeapi.config.observers import METRICS, TRACING
from computeapi.config.page import UI
from computeapi.config.qemu import QEMU
from computeapi.defaults import MACHINE_FILE, WORKERS

API = [
    cfg.StrOpt(
        'auth_strategy',
        default='keystone',
        choices=[
            ('none', 'no check: the token is user:project; for development'),
            ('http_basic', 'user and password of the built-in identity with every request'),
            ('local', 'tokens of the built-in identity'),
            ('keystone', 'tokens of a Keystone service, checked by keystonemiddleware'),
        ],
        help='How callers prove who they are.',
    ),
    cfg.StrOpt(
        'response_validation',
        default='ignore',
        choices=[
            ('ignore', 'answers are not looked at'),
            ('warn', 'the difference goes to the log'),
            ('error', 'the client gets an error; for tests'),
        ],
        help='What to do about an answer that differs from what the API describes.',
    ),
    cfg.BoolOpt(
        'list_records_by_skipping_down_cells',
        default=True,
        help='Whether lists leave out the servers of a cell that is down where they cannot show them as unknown: below '
        '2.69, and with filters, sorting or paging. Else such a list is refused with 503.',
    ),
    cfg.IntOpt('max_limit', default=1000, min=1, help='The most items that one page of a list can have.'),
    cfg.IntOpt(
        'max_servers_looked_at',
        default=20_000,
        min=1000,
        help='How many servers, or names or addresses of theirs, are looked at for a page of those that are sought by '
        'what has no index, such as a part of a name; ten times as many while none is found. A page that is not full '
        'by then ends there, with a link to the next one.',
    ),
    cfg.BoolOpt(
        'enable_instance_password',
        default=True,
        help="Whether the answers to creating, rebuilding, rescuing and evacuating a server tell its administrator's "
        'password: switched off where guests take no notice of it.',
    ),
    cfg.StrOpt(
        'max_microversion',
        help='The newest microversion that clients are offered, e.g. 2.95, as an earlier release would; unset: the '
        'newest there is.',
    ),
    cfg.IntOpt(
        'idempotency_seconds',
        default=0,
        min=0,
        help='Seconds for which a POST with an Idempotency-Key is not done again but answered as it was; 0: the header '
        'is not looked at. The answers are kept encrypted, by the key.',
    ),
    cfg.IntOpt(
        'idempotency_keys_per_user',
        default=10000,
        min=1,
        help='Idempotency-Keys that a user can have at a time; a POST with one more is refused.',
    ),
    cfg.StrOpt(
        'public_url',
        help='The URL that clients know the service by, e.g. https://cloud.example.org:8774. Links, Location headers '
        'and the catalog then name it and nothing else; unset: whatever host and port a request says it is for.',
    ),
    cfg.StrOpt(
        'compute_link_prefix',
        help='What links to resources start with instead of the URL that the client used, e.g. '
        'https://cloud.example.org/compute.',
    ),
    cfg.StrOpt(
        'glance_link_prefix',
        help='What the Location of a new image starts with (below 2.45); unset: /image on the host in the request.',
    ),
    cfg.StrOpt('dhcp_domain', default='novalocal', help="What follows a server's hostname in what its guest reads."),
    cfg.StrOpt(
        'vendordata_jsonfile_path',
        help='A file with a JSON object that every guest reads as vendor_data.json.',
    ),
]

DATABASE = [
    cfg.StrOpt(
        'connection',
        secret=True,
        default='sqlite:///computeapi.db',
        help='SQLAlchemy URL of the database: sqlite:///FILE, postgresql+psycopg://..., mysql+pymysql://...',
    ),
    cfg.IntOpt('max_pool_size', default=10, min=1, help='How many connections a process keeps open.'),
    cfg.FloatOpt(
        'statement_timeout',
        default=30,
        min=0,
        help='Seconds that a statement may take on PostgreSQL and MariaDB, but for those of `db upgrade`; 0: any time.',
    ),
    cfg.FloatOpt(
        'lock_timeout',
        default=20,
        min=1,
        help='Seconds to wait for what another connection has locked, on SQLite the whole file. Elsewhere, who stands '
        'still in a transaction for half as long loses it.',
    ),
    cfg.FloatOpt(
        'connect_timeout',
        default=5,
        min=0,
        help='Seconds to wait for a new connection to PostgreSQL or MariaDB; 0: as long as the system does.',
    ),
]

QUOTA = [
    cfg.IntOpt('instances', default=10, min=-1, help='Servers per project; -1: no limit.'),
    cfg.IntOpt('cores', default=20, min=-1, help='Virtual CPUs per project; -1: no limit.'),
    cfg.IntOpt('ram', default=50 * 1024, min=-1, help='Memory per project in MiB; -1: no limit.'),
    cfg.IntOpt('metadata_items', default=128, min=-1, help='Metadata items per server; -1: no limit.'),
    cfg.IntOpt('injected_files', default=5, min=-1, help='Files that can be injected per server; -1: no limit.'),
    cfg.IntOpt('injected_file_content_bytes', default=10 * 1024, min=-1, help='Bytes per injected file.'),
    cfg.IntOpt('injected_file_path_length', default=255, min=-1, help='Bytes of the path of an injected file.'),
    cfg.IntOpt('key_pairs', default=100, min=-1, help='Key pairs per user; -1: no limit.'),
    cfg.IntOpt('server_groups', default=10, min=-1, help='Server groups per project; -1: no limit.'),
    cfg.IntOpt('server_group_members', default=10, min=-1, help='Servers per server group; -1: no limit.'),
]

COMPUTE = [
    cfg.StrOpt(
        'host',
        default=socket.gethostname(),
        sample_default='name-of-the-machine',
        regex=r'^\S+$',
        help='What this machine is called in `openstack compute service list`, as nova-conductor and nova-scheduler, '
        'whose work its workers do: as it calls itself, or controller in `serve`.',
    ),
    cfg.StrOpt('default_availability_zone', default='nova', help='The zone of a host that is in no aggregate.'),
    cfg.StrOpt('default_schedule_zone', help='The zone of a server whose request names none; unset: any.'),
    cfg.StrOpt('instance_name_template', default='instance-%08x', help='The name of a server at the hypervisor.'),
    cfg.IntOpt('password_length', default=12, min=8, help='Length of the administrator passwords that are made.'),
    cfg.IntOpt(
        'reclaim_instance_interval',
        default=0,
        min=0,
        help='Seconds that a deleted server can be restored, unless its host is down; 0: it is deleted at once.',
    ),
    cfg.BoolOpt(
        'force_config_drive',
        default=False,
        help='Whether all servers get a config drive. `serve` with real guests says yes: no metadata service is asked.',
    ),
    cfg.BoolOpt('allow_resize_to_same_host', default=False, help='Whether a resize may end on the host it began on.'),
    cfg.IntOpt('max_local_block_devices', default=3, min=-1, help='Disks of the host per server; -1: no limit.'),
    cfg.IntOpt(
        'block_device_allocate_retries',
        default=60,
        min=0,
        help='How often a new volume is looked at, at most, until it is available.',
    ),
    cfg.IntOpt(
        'block_device_allocate_retries_interval',
        default=3,
        min=0,
        help='Seconds between two looks at a new volume, or at one that an image is written over.',
    ),
    cfg.IntOpt(
        'reimage_timeout_per_gb',
        default=20,
        min=1,
        help='Seconds that writing an image over a volume may take for each GiB of it.',
    ),
    cfg.IntOpt('resize_confirm_window', default=0, min=0, help='Seconds until a resize confirms itself; 0: never.'),
    cfg.IntOpt(
        'shelved_offload_time',
        default=0,
        min=-1,
        help='Seconds until a shelved server leaves its host; 0: at once, -1: never.',
    ),
    cfg.IntOpt('report_interval', default=10, min=1, help='Seconds between two signs of life of a host.'),
    cfg.IntOpt('service_down_time', default=60, min=1, help='Seconds without a sign after which a host is down.'),
    cfg.IntOpt(
        'workers',
        default=WORKERS,
        min=0,
        help='How many tasks one process works on at a time; 0: none, for processes that answer requests beside those '
        'of `computeapi worker`.',
    ),
    cfg.IntOpt('task_lease', default=12, min=1, help='Seconds until the task of a worker that died is taken over.'),
    cfg.IntOpt(
        'audit_interval',
        default=600,
        min=0,
        help='Seconds between two looks for what no task holds, such as claims of deleted servers; 0: never.',
    ),
    cfg.IntOpt(
        'vif_plugging_timeout',
        default=300,
        min=0,
        help='Seconds that a server waits for the network service to say that its ports are connected; 0: not at all.',
    ),
    cfg.BoolOpt(
        'vif_plugging_is_fatal', default=True, help='Whether a server fails whose ports are not connected in that time.'
    ),
    cfg.IntOpt(
        'heal_instance_info_cache_interval',
        default=60,
        min=0,
        help='Seconds after which the addresses of some more servers are compared with a network service that is not '
        'built in, whose events may be lost; 0: never. All of them are looked at by turns.',
    ),
    cfg.IntOpt(
        'sync_power_state_interval',
        default=60,
        min=0,
        help='Seconds after which some more servers are looked at, for those that switched themselves off, or run '
        'though they are stopped: they are SHUTOFF then; 0: never. All of them are looked at by turns; simulated ones '
        'do not.',
    ),
    cfg.IntOpt('task_timeout', default=3600, min=1, help='Seconds after which a task that does not end has failed.'),
    cfg.IntOpt(
        'min_free_disk_mb', default=32, min=0, help='MiB that the disks of images and of SQLite have left for /readyz.'
    ),
    cfg.IntOpt(
        'neighbour_timeout',
        default=300,
        min=0,
        help='Seconds that work which was accepted waits for a service that is away, such as Neutron, before it fails.',
    ),
    cfg.FloatOpt(
        'task_sweep_interval',
        default=5.0,
        min=0.1,
        help='Seconds between looks for tasks that nobody has told of: forgotten ones, and on MariaDB those of other '
        'processes.',
    ),
]

SCHEDULER = [
    cfg.ListOpt(
        'enabled_filters',
        default=[
            'ComputeFilter',
            'AvailabilityZoneFilter',
            'ComputeCapabilitiesFilter',
            'ImagePropertiesFilter',
            'SameHostFilter',
            'DifferentHostFilter',
            'ServerGroupAntiAffinityFilter',
            'ServerGroupAffinityFilter',
        ],
        help='The filters that a host must pass, in order.',
    ),
    cfg.ListOpt(
        'weight_classes',
        default=['ServerGroupSoftAffinityWeigher', 'ServerGroupSoftAntiAffinityWeigher', 'RAMWeigher', 'CPUWeigher'],
        help='What makes one host better than another, the most important first.',
    ),
    cfg.FloatOpt('cpu_allocation_ratio', default=4.0, min=0.1, help='How many times a host gives its CPUs away.'),
    cfg.FloatOpt('ram_allocation_ratio', default=1.0, min=0.1, help='How many times a host gives its memory away.'),
    cfg.FloatOpt('disk_allocation_ratio', default=1.0, min=0.1, help='How many times a host gives its disk away.'),
]

ATTEMPTS = [
    cfg.IntOpt(
        'max_attempts',
        default=3,
        min=1,
        help='On how many hosts, one after the other, a new server is tried when a host fails to boot it.',
    ),
]

COMPUTE_GROUP = [
    cfg.BoolOpt(
        'live_migration_wait_for_vif_plug',
        default=True,
        help='Whether a live migration waits, before the server is copied, until the network service says that its '
        'ports are connected on the new host, where it says so at all. How long, and what follows then, say '
        '[DEFAULT]vif_plugging_timeout and vif_plugging_is_fatal.',
    ),
]

LOGGING = [
    cfg.BoolOpt('debug', default=False, help='Whether the service says more in its log.'),
    cfg.StrOpt('log_file', help='The file that the log is added to; unset: standard error.'),
    cfg.BoolOpt('use_json', default=False, help='Whether each line of the log is a JSON object.'),
]

WSGI = [
    cfg.StrOpt('api_paste_config', default='api-paste.ini', help='The Paste file that composes the pipeline.'),
]

GROUPS: dict[str, Sequence[cfg.Opt]] = {
    'DEFAULT': [*COMPUTE, *LOGGING, *PROXY],
    'compute': COMPUTE_GROUP,
    'api': API,
    'database': DATABASE,
    'quota': QUOTA,
    'scheduler': ATTEMPTS,
    'filter_scheduler': SCHEDULER,
    'identity': IDENTITY,
    'image': IMAGE,
    'glance': GLANCE,
    'network': NETWORK,
    'neutron': NEUTRON,
    'placement': PLACEMENT,
    'volume': VOLUME,
    'cinder': CINDER,
    'share': SHARE,
    'hypervisor': HYPERVISOR,
    'simulated': SIMULATED,
    'qemu': QEMU,
    'agent': AGENT,
    'standalone': STANDALONE,
    'metrics': METRICS,
    'tracing': TRACING,
    'ui': UI,
    'wsgi': WSGI,
    **CONSOLES,
}


def standard_files() -> list[str]:
    """The files that OS_COMPUTEAPI_CONFIG_FILES names, separated by `;`, or the machine's own if there is one."""
    named = os.environ.get('OS_COMPUTEAPI_CONFIG_FILES')
    if named is not None:
        return [name for name in named.split(';') if name]
    return [MACHINE_FILE] if os.path.exists(MACHINE_FILE) else []


def load(files: list[str] | None = None, overrides: dict[tuple[str, str], object] | None = None) -> cfg.ConfigOpts:
    """The configuration in `files` (none: the defaults), with OS_<GROUP>__<OPTION> of the environment above them.

    overrides: {(group, option): value}, above both.  cfg.Error for a value that does not fit.
    """
    conf = cfg.ConfigOpts()
    for group, options in GROUPS.items():
        conf.register_opts(options, group=None if group == 'DEFAULT' else group)
    for group, options in policy_opts.list_opts():
        conf.register_opts(options, group=group)
    arguments = itertools.chain.from_iterable(('--config-file', name) for name in files or ())
    conf(list(arguments), project='computeapi', default_config_files=[], default_config_dirs=[])
    for name, value in (overrides or {}).items():
        if not isinstance(name, tuple):
            raise cfg.ConfigFileValueError(f"{name}: options are by group and name, as ('quota', 'instances')")
        group, option = name
        try:
            conf.set_override(option, value, None if group == 'DEFAULT' else group)
        except ValueError as error:
            raise cfg.ConfigFileValueError(f'{option}: {error}') from None
    _read_all(conf)
    if neighbours.are_wanted(conf):
        neighbours.register(conf)
    return conf


def _read_all(conf: cfg.ConfigOpts) -> None:
    """Fail for a value that does not fit now, not when it is first needed."""
    for group, options in GROUPS.items():
        for option in options:
            getattr(conf if group == 'DEFAULT' else conf[group], option.dest)
