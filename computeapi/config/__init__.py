"""Every option of the service, with its help.  Options that OpenStack services have, too, have the same names."""

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
from computeapi.config.compute import COMPUTE_GROUP
from computeapi.config.consoles import CONSOLES, PROXY
from computeapi.config.database import DATABASE
from computeapi.config.notifications import NOTIFICATIONS, USAGE_AUDITS
from computeapi.config.observers import METRICS, TRACING
from computeapi.config.page import UI
from computeapi.config.qemu import QEMU
from computeapi.config.quota import QUOTA
from computeapi.config.scheduler import ATTEMPTS, SCHEDULER
from computeapi.defaults import MACHINE_FILE, WORKERS

API = [
    cfg.StrOpt(
        'auth_strategy',
        default='keystone',
        choices=[
            ('none', 'no authentication: the token is user:project; for development'),
            ('http_basic', 'user name and password of the built-in identity service with every request'),
            ('local', 'tokens of the built-in identity service'),
            ('keystone', 'tokens of a Keystone service, validated by keystonemiddleware'),
        ],
        help='How clients authenticate.',
    ),
    cfg.StrOpt(
        'response_validation',
        default='ignore',
        choices=[
            ('ignore', 'responses are not checked'),
            ('warn', 'a mismatch is logged'),
            ('error', 'the client gets an error; for tests'),
        ],
        help='What to do about a response that does not match the description of the API.',
    ),
    cfg.BoolOpt(
        'list_records_by_skipping_down_cells',
        default=True,
        help='Whether lists omit the servers of a cell that is down when they cannot show them as UNKNOWN: below '
        'microversion 2.69, and with filters, sorting or paging. If false, such a request fails with 503.',
    ),
    cfg.IntOpt('max_limit', default=1000, min=1, help='Maximum number of items in one page of a list.'),
    cfg.IntOpt(
        'max_servers_looked_at',
        default=20_000,
        min=1000,
        help='Maximum number of servers, or of their names or addresses, that are examined for one page of a list '
        'filtered by something that has no index, such as a part of a name. Ten times as many are examined while no '
        'match is found. If the page is not full by then, it ends there, with a link to the next one.',
    ),
    cfg.BoolOpt(
        'enable_instance_password',
        default=True,
        help='Whether the responses to creating, rebuilding, rescuing and evacuating a server contain its '
        'administrator password. Disable this if guests ignore the password.',
    ),
    cfg.StrOpt(
        'max_microversion',
        help='The newest microversion offered to clients, e.g. 2.95, as in an earlier release; unset: the newest '
        'supported.',
    ),
    cfg.IntOpt(
        'idempotency_seconds',
        default=0,
        min=0,
        help='Seconds for which a repeated POST with the same Idempotency-Key is not executed again but gets the '
        'stored response; 0: the header is ignored. Responses are stored encrypted with the key.',
    ),
    cfg.IntOpt(
        'idempotency_keys_per_user',
        default=10000,
        min=1,
        help='Maximum number of Idempotency-Keys per user; a POST with one more is rejected.',
    ),
    cfg.StrOpt(
        'public_url',
        help='The URL at which clients reach the service, e.g. https://cloud.example.org:8774. Links, Location headers '
        'and the service catalog then use only this URL; unset: the host and port of the request.',
    ),
    cfg.StrOpt(
        'compute_link_prefix',
        help='Prefix of links to resources, instead of the URL that the client used, e.g. '
        'https://cloud.example.org/compute.',
    ),
    cfg.StrOpt(
        'glance_link_prefix',
        help='Prefix of the Location header for a new image (below 2.45); unset: /image on the host of the request.',
    ),
    cfg.StrOpt(
        'dhcp_domain',
        default='novalocal',
        help='Domain appended to the hostname of a server in the metadata that its guest reads.',
    ),
    cfg.StrOpt(
        'vendordata_jsonfile_path',
        help='A file with a JSON object that every guest reads as vendor_data.json.',
    ),
]

COMPUTE = [
    cfg.StrOpt(
        'host',
        default=socket.gethostname(),
        sample_default='name-of-the-machine',
        regex=r'^\S+$',
        help='Host of nova-conductor and nova-scheduler in `openstack compute service list`: the workers on this '
        'machine do their work. Default: the hostname of the machine; in `serve`: controller.',
    ),
    cfg.StrOpt(
        'default_availability_zone', default='nova', help='The availability zone of hosts that are in no aggregate.'
    ),
    cfg.StrOpt('default_schedule_zone', help='The availability zone of servers whose request names none; unset: any.'),
    cfg.StrOpt(
        'instance_name_template', default='instance-%08x', help='Template for the name of a server in the hypervisor.'
    ),
    cfg.IntOpt('password_length', default=12, min=8, help='Length of generated administrator passwords.'),
    cfg.IntOpt(
        'reclaim_instance_interval',
        default=0,
        min=0,
        help='Seconds during which a deleted server can be restored; a server whose host is down is deleted '
        'immediately. 0: all servers are deleted immediately.',
    ),
    cfg.BoolOpt(
        'force_config_drive',
        default=False,
        help='Whether all servers get a config drive. `serve` with QEMU guests enables this, so that they need no '
        'metadata service.',
    ),
    cfg.BoolOpt('allow_resize_to_same_host', default=False, help='Whether a resize may keep a server on its host.'),
    cfg.IntOpt(
        'max_local_block_devices',
        default=3,
        min=-1,
        help='Maximum number of disks on the host per server; -1: no limit.',
    ),
    cfg.IntOpt(
        'block_device_allocate_retries',
        default=60,
        min=0,
        help='How many times, at most, a new volume is checked until it is available.',
    ),
    cfg.IntOpt(
        'block_device_allocate_retries_interval',
        default=3,
        min=0,
        help='Seconds between two checks of a new volume, or of a volume that is being overwritten with an image.',
    ),
    cfg.IntOpt(
        'reimage_timeout_per_gb',
        default=20,
        min=1,
        help='Seconds allowed for overwriting a volume with an image, per GiB of the volume.',
    ),
    cfg.IntOpt(
        'resize_confirm_window',
        default=0,
        min=0,
        help='Seconds after which a resize is confirmed automatically; 0: never.',
    ),
    cfg.IntOpt(
        'shelved_offload_time',
        default=0,
        min=-1,
        help='Seconds until a shelved server is offloaded from its host; 0: immediately, -1: never.',
    ),
    cfg.IntOpt('report_interval', default=10, min=1, help='Seconds between two heartbeats of a host.'),
    cfg.IntOpt(
        'service_down_time',
        default=60,
        min=1,
        help='Seconds without a heartbeat after which a host is considered down.',
    ),
    cfg.IntOpt(
        'workers',
        default=WORKERS,
        min=0,
        help='Number of tasks that one process works on concurrently; 0: none, for processes that only answer requests '
        'while `computeapi worker` processes do the work.',
    ),
    cfg.BoolOpt(
        'cpu_affinity',
        default=True,
        help='Keep each process that answers requests on one CPU, if there is one on which no other such process '
        'stays. Python runs one thread of a process at a time, and switching between CPUs takes up '
        'to half of the time of short requests. Never done with [hypervisor]backend = qemu, whose guests would stay '
        'on that CPU as well. Turn it off if other software keeps processes on CPUs of its own choice.',
    ),
    cfg.IntOpt(
        'task_lease',
        default=12,
        min=1,
        help='Lease of a task in seconds: if a worker dies, its tasks are taken over after this time.',
    ),
    cfg.IntOpt(
        'audit_interval',
        default=600,
        min=0,
        help='Seconds between two audits for leftovers that no task holds, such as claims of deleted servers; 0: no '
        'audits.',
    ),
    cfg.IntOpt(
        'vif_plugging_timeout',
        default=300,
        min=0,
        help='Seconds that a server waits for the network service to report its ports as connected; 0: it does not '
        'wait.',
    ),
    cfg.BoolOpt(
        'vif_plugging_is_fatal',
        default=True,
        help='Whether a server fails if its ports are not connected within vif_plugging_timeout.',
    ),
    cfg.IntOpt(
        'heal_instance_info_cache_interval',
        default=60,
        min=0,
        help='Seconds between two comparisons of the addresses of servers with a network service that is not built in, '
        'because its events can be lost; 0: never. Each comparison covers a batch of servers, the next one the next '
        'batch.',
    ),
    cfg.IntOpt(
        'sync_power_state_interval',
        default=60,
        min=0,
        help='Seconds between two checks of the power state of servers; a server whose guest powered itself off, or '
        'that runs although it is stopped, becomes SHUTOFF; 0: never. Each check covers a batch of servers, the next '
        'one the next batch. Simulated servers are not checked.',
    ),
    cfg.IntOpt('task_timeout', default=3600, min=1, help='Seconds after which a task that has not finished fails.'),
    cfg.IntOpt(
        'min_free_disk_mb',
        default=32,
        min=0,
        help='Free space in MiB that /readyz requires on the disks that hold images and SQLite databases.',
    ),
    cfg.IntOpt(
        'neighbour_timeout',
        default=300,
        min=0,
        help='Seconds that accepted work waits for an unavailable service, such as Neutron, before it fails.',
    ),
    cfg.FloatOpt(
        'task_sweep_interval',
        default=5.0,
        min=0.1,
        help='Seconds between two polls for tasks that a process was not notified of: abandoned ones, and on MariaDB '
        'those of other processes.',
    ),
]

LOGGING = [
    cfg.BoolOpt('debug', default=False, help='Whether debug messages are logged.'),
    cfg.StrOpt('log_file', help='File to which the log is appended; unset: standard error.'),
    cfg.BoolOpt('use_json', default=False, help='Whether each line of the log is a JSON object.'),
]

WSGI = [
    cfg.StrOpt('api_paste_config', default='api-paste.ini', help='The Paste file that configures the WSGI pipeline.'),
]

GROUPS: dict[str, Sequence[cfg.Opt]] = {
    'DEFAULT': [*COMPUTE, *USAGE_AUDITS, *LOGGING, *PROXY],
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
    'notifications': NOTIFICATIONS,
    'metrics': METRICS,
    'tracing': TRACING,
    'ui': UI,
    'wsgi': WSGI,
    **CONSOLES,
}


def standard_files() -> list[str]:
    """The config files in OS_COMPUTEAPI_CONFIG_FILES, separated by `;`, or the machine's own file if it exists."""
    named = os.environ.get('OS_COMPUTEAPI_CONFIG_FILES')
    if named is not None:
        return [name for name in named.split(';') if name]
    return [MACHINE_FILE] if os.path.exists(MACHINE_FILE) else []


def load(
    files: list[str] | None = None,
    overrides: dict[tuple[str, str], object] | None = None,
    *,
    standalone: bool = False,
) -> cfg.ConfigOpts:
    """The configuration in `files` (none: the defaults). Environment variables OS_<GROUP>__<OPTION> take precedence.

    overrides: {(group, option): value}, which take precedence over both.  standalone: for a complete cloud in this
    process.  Raises cfg.Error for an invalid value.
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
            raise cfg.ConfigFileValueError(
                f"{name}: options are addressed by group and name, like ('quota', 'instances')"
            )
        group, option = name
        try:
            conf.set_override(option, value, None if group == 'DEFAULT' else group)
        except ValueError as error:
            raise cfg.ConfigFileValueError(f'{option}: {error}') from None
    if standalone:
        use_own_identity(conf)
    _read_all(conf)
    if neighbours.are_wanted(conf):
        neighbours.register(conf)
    return conf


def is_given(conf: cfg.ConfigOpts) -> bool:
    """Whether there is a config file, or a variable that names the database."""
    return bool(conf.config_file) or _variable('database', 'connection') in os.environ


def _variable(group: str, option: str) -> str:
    """The environment variable that sets an option."""
    return f'OS_{group}__{option}'.upper()


def use_own_identity(conf: cfg.ConfigOpts) -> None:
    """Authenticate clients with the built-in identity service, unless conf says otherwise."""
    conf.set_default('auth_strategy', 'local', 'api')


def _read_all(conf: cfg.ConfigOpts) -> None:
    """Fail for an invalid value now, instead of when it is first used."""
    for group, options in GROUPS.items():
        for option in options:
            try:
                getattr(conf if group == 'DEFAULT' else conf[group], option.dest)
            except cfg.ConfigSourceValueError as error:
                # Its own message shows the file as a Python object; the context is what is wrong with the value.
                variable = _variable(group, option.dest)
                where = variable if variable in os.environ else ', '.join(conf.config_file)
                raise type(error)(f'[{group}]{option.name} in {where}: {error.__context__}') from None
