"""The options of the backends of the compute API, including the built-in ones."""

import re
from collections.abc import Sequence
from typing import Any

from oslo_config import cfg, types

from computeapi.config.host_providers import RESOURCES, TRAITS

FUNCTION = re.compile(r'[\w.]+:\w+')


class BackendName(types.String):
    """One of `choices`, or a function of another package that creates a backend: module:function."""

    def __call__(self, value: Any) -> str:
        return value if FUNCTION.fullmatch(str(value)) else super().__call__(value)


def backend(default: str, choices: Sequence[tuple[str, str]], help: str) -> cfg.Opt:
    choices = [*choices, ('module:function', 'a function of another package that creates the backend')]
    return cfg.Opt('backend', type=BackendName(choices=choices), default=default, help=help)


HYPERVISOR = [
    backend(
        default='simulated',
        choices=[
            ('simulated', 'virtual machines that exist only as records; see [simulated]'),
            ('qemu', 'guests on this machine; see [qemu]'),
            ('remote', 'hypervisors on other machines, driven by agents over the message bus at `transport_url`'),
        ],
        help='The driver of the hypervisors that run servers.',
    ),
]

SIMULATED = [
    cfg.IntOpt('hosts', default=1, min=1, max=1000, help='Number of simulated hosts.'),
    cfg.StrOpt(
        'host_name', default='compute', regex=r'^\S+$', help='Name of the simulated hosts: this, followed by a number.'
    ),
    cfg.StrOpt(
        'hypervisor_type',
        default='fake',
        help='Hypervisor type that simulated hosts report: fake, the usual name of a driver that runs nothing, or for '
        'example QEMU if the software under test requires it.',
    ),
    cfg.IntOpt(
        'cells',
        default=1,
        min=1,
        help='Number of cells that the simulated hosts are distributed over; see `computeapi cell`.',
    ),
    cfg.IntOpt('vcpus', default=512, min=1, help='Virtual CPUs of a simulated host.'),
    cfg.IntOpt('memory_mb', default=1024 * 1024, min=1, help='Memory of a simulated host in MiB.'),
    cfg.IntOpt('local_gb', default=64 * 1024, min=1, help='Disk of a simulated host in GiB.'),
    TRAITS,
    RESOURCES,
    cfg.FloatOpt(
        'passing_seconds',
        default=0.0,
        min=0,
        help='Seconds that a server stays in each transient state that no other option covers: some clients wait until '
        'they have seen one.',
    ),
    cfg.FloatOpt('spawn_seconds', min=0, help='Seconds that a simulated boot takes; unset: passing_seconds.'),
    cfg.FloatOpt(
        'power_seconds', min=0, help='Seconds that a simulated start, stop or reboot takes; unset: passing_seconds.'
    ),
    cfg.FloatOpt('migrate_seconds', min=0, help='Seconds that a simulated migration takes; unset: passing_seconds.'),
    cfg.FloatOpt('snapshot_seconds', min=0, help='Seconds that a simulated snapshot takes; unset: passing_seconds.'),
    cfg.ListOpt(
        'lacks',
        default=[],
        help='Capabilities that the simulated hypervisor lacks, as some others do: rescue_on_volume, host_power ...',
    ),
    cfg.ListOpt(
        'fail',
        default=[],
        help='Operations that fail, for testing clients: spawn, power_on, snapshot ...; `spawn:NAME` applies only to '
        'servers whose name starts with NAME, `spawn@HOST` or `spawn@HOST:NAME` only to that host.',
    ),
    cfg.ListOpt(
        'hang',
        default=[],
        help='Operations that hang, so that clients see a server in a transient state; same syntax as `fail`. They '
        'resume when the service runs without the rule, and give up after an hour, or when the server is deleted or '
        'reset.',
    ),
    cfg.HostAddressOpt(
        'console_host',
        default='127.0.0.1',
        help='Address that consoles report. Nothing listens there: console proxies answer for simulated servers '
        'themselves.',
    ),
    cfg.PortOpt('console_port', default=5900, help='Port that consoles report; nothing listens there either.'),
    cfg.PortOpt('console_tls_port', help='TLS port that SPICE consoles report, if any; nothing listens there either.'),
]

IDENTITY = [
    backend(
        default='local',
        choices=[('local', 'users and projects in the database of this service'), ('keystone', 'a Keystone')],
        help='The identity service: authenticates clients if [api]auth_strategy is `local` or `http_basic`, and knows '
        'which projects exist.',
    ),
    cfg.IntOpt(
        'token_hours', default=24, min=1, help='Hours for which a token of the built-in identity service is valid.'
    ),
    cfg.IntOpt(
        'tokens_per_user',
        default=5000,
        min=1,
        help='Maximum number of valid tokens per user; a new one replaces the oldest.',
    ),
    cfg.IntOpt(
        'application_credentials_per_user',
        default=100,
        min=0,
        help='Maximum number of application credentials per user.',
    ),
    cfg.StrOpt(
        'credential_key',
        secret=True,
        help='Key that encrypts the secrets that users store: 32 bytes in URL-safe base64. `serve` generates one.',
    ),
    cfg.IntOpt(
        'bcrypt_cost',
        default=9,
        min=4,
        max=20,
        help='Cost of password hashing; each step doubles the work. 9 takes 0.03 s of CPU time at every login, which '
        'with the openstack client is every command; 12 (0.2 s) is better if people choose their passwords. A password '
        'is rehashed when its user logs in.',
    ),
]

IMAGE = [
    backend(
        default='local',
        choices=[('local', 'images in the data directory of this service'), ('glance', 'a Glance')],
        help='The image service that servers boot from.',
    ),
]

GLANCE = [
    cfg.BoolOpt(
        'verify_glance_signatures',
        default=False,
        help='Whether the signature of an image is verified before a host creates a disk from it: the image is read '
        'from Glance once more, and its data must match the signature, by the certificate in the key manager '
        '([key_manager]) that the image names. Servers then boot only from images that have all of the properties '
        'img_signature, img_signature_hash_method, img_signature_key_type and img_signature_certificate_uuid.',
    ),
    cfg.BoolOpt(
        'enable_certificate_validation',
        default=False,
        help='Whether the certificate of a signature must be trusted: by the server, which may list '
        'trusted_image_certificates, or else by default_trusted_certificate_ids. Takes effect only with '
        'verify_glance_signatures; for servers that list certificates, signature and certificate are checked in any '
        'case.',
    ),
    cfg.ListOpt(
        'default_trusted_certificate_ids',
        default=[],
        help='IDs, in the key manager, of the certificates that are trusted for servers whose owners list none; the '
        'server keeps them. Takes effect only with verify_glance_signatures and enable_certificate_validation.',
    ),
]

NETWORK = [
    backend(
        default='local',
        choices=[
            (
                'local',
                'networks in the database of this service; how they connect guests depends on [qemu]network',
            ),
            ('neutron', 'a Neutron'),
        ],
        help='The network service that provides the ports of servers.',
    ),
]

NEUTRON = [
    cfg.IntOpt(
        'extension_sync_interval',
        default=600,
        min=1,
        help='Seconds after which Neutron is queried for its extensions again.',
    ),
    cfg.StrOpt(
        'metadata_proxy_shared_secret',
        secret=True,
        default='',
        help='Secret with which the proxy between guests and the metadata service signs requests; empty: the metadata '
        'service refuses all requests.',
    ),
]

PLACEMENT = [
    cfg.BoolOpt(
        'enabled',
        default=False,
        help='Whether the inventories of hosts and the allocations of servers are reported to a Placement service, for '
        'others that read it. The scheduler does not use it.',
    ),
]


def _newest(major: str) -> cfg.Opt:
    """The option for the newest microversion of a built-in service."""
    return cfg.StrOpt(
        'max_microversion',
        regex=rf'^({major}\.(0|[1-9]\d*))?$',
        help='The newest microversion that the built-in service offers to clients, as in an earlier release; unset: '
        'the newest supported.',
    )


VOLUME = [
    backend(
        default='local',
        choices=[
            (
                'local',
                'volumes in the database of this service; they hold data only with [hypervisor]backend = qemu or '
                '[volume]exported',
            ),
            ('cinder', 'a Cinder'),
        ],
        help='The block storage service that provides the volumes of servers.',
    ),
    cfg.BoolOpt(
        'exported',
        default=False,
        help='For the built-in volumes with [hypervisor]backend = remote: whether they hold data, in files in the data '
        'directory of `serve`, which the guests of agents reach at [qemu]my_ip (NBD, by qemu-storage-daemon). '
        'Requires the extra `qemu`, qemu-img and qemu-storage-daemon.',
    ),
    _newest('3'),
]

CINDER = [
    cfg.BoolOpt(
        'cross_az_attach',
        default=True,
        help='Whether servers may use volumes from availability zones other than their own. If false, volumes that are '
        'created for a server are created in its zone.',
    ),
]

SHARE = [
    backend(
        default='local',
        choices=[('local', 'shares in the database of this service, which hold no data')],
        help='The service that provides the shared file systems of servers.',
    ),
    _newest('2'),
]

STANDALONE = [
    cfg.StrOpt('data_dir', default='computeapi-data', help='Directory in which `serve` keeps its database and images.'),
    cfg.IntOpt('max_image_bytes', default=10 * 2**30, min=1, help='Maximum size of an uploaded image, in bytes.'),
    cfg.IntOpt('max_images', default=1000, min=-1, help='Images per project; -1: no limit.'),
    cfg.IntOpt(
        'max_connections',
        default=1000,
        min=1,
        help='Maximum number of connections to `serve`; a new one then replaces the connection that has waited longest '
        'for its client.',
    ),
    cfg.IntOpt(
        'max_connections_per_address',
        default=500,
        min=1,
        help='Maximum number of connections per client address; further ones are handled in the same way.',
    ),
    cfg.IntOpt(
        'request_timeout',
        default=30,
        min=1,
        help='Seconds in which a client must send a request, or 64 KiB of a long body: the latter in at most 5 seconds '
        'while others wait to send long bodies.',
    ),
    cfg.IntOpt(
        'response_timeout',
        default=30,
        min=1,
        help='Seconds in which a client must read a response, or 64 KiB of a long one.',
    ),
    cfg.IntOpt('keepalive_timeout', default=120, min=1, help='Seconds after which an unused connection is closed.'),
]
