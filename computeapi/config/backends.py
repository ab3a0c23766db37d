"""The options of what stands behind the compute API: its backends, and those that are built in."""

import re
from collections.abc import Sequence
from typing import Any

from oslo_config import cfg, types

FUNCTION = re.compile(r'[\w.]+:\w+')


class BackendName(types.String):
    """One of `choices`, or what makes a backend that another package has: module:function."""

    def __call__(self, value: Any) -> str:
        return value if FUNCTION.fullmatch(str(value)) else super().__call__(value)


def backend(default: str, choices: Sequence[tuple[str, str]], help: str) -> cfg.Opt:
    choices = [*choices, ('module:function', 'what makes one that another package has')]
    return cfg.Opt('backend', type=BackendName(choices=choices), default=default, help=help)


HYPERVISOR = [
    backend(
        default='simulated',
        choices=[
            ('simulated', 'virtual machines that are only said to run; see [simulated]'),
            ('qemu', 'guests that run on this machine; see [qemu]'),
            ('remote', 'what the agents on other machines drive, over the message bus at `transport_url`'),
        ],
        help='The driver of the hypervisors that run servers.',
    ),
]

SIMULATED = [
    cfg.IntOpt('hosts', default=1, min=1, max=1000, help='How many simulated hosts there are.'),
    cfg.StrOpt('host_name', default='compute', regex=r'^\S+$', help='What each is called: this, and a number.'),
    cfg.StrOpt(
        'hypervisor_type',
        default='fake',
        help='What they say they are: fake, as the field calls a driver that runs nothing, or QEMU and so on where '
        'what is tried asks for it.',
    ),
    cfg.IntOpt('cells', default=1, min=1, help='Over how many cells they are spread; see `computeapi cell`.'),
    cfg.IntOpt('vcpus', default=512, min=1, help='Virtual CPUs of a simulated host.'),
    cfg.IntOpt('memory_mb', default=1024 * 1024, min=1, help='Memory of a simulated host in MiB.'),
    cfg.IntOpt('local_gb', default=64 * 1024, min=1, help='Disk of a simulated host in GiB.'),
    cfg.FloatOpt(
        'passing_seconds',
        default=0.0,
        min=0,
        help='How long a server is in each state that passes, where no other option says it: some clients wait until '
        'they have seen one.',
    ),
    cfg.FloatOpt('spawn_seconds', min=0, help='How long a simulated boot takes; unset: passing_seconds.'),
    cfg.FloatOpt('power_seconds', min=0, help='How long a start, stop or reboot takes; unset: passing_seconds.'),
    cfg.FloatOpt('migrate_seconds', min=0, help='How long a simulated migration takes; unset: passing_seconds.'),
    cfg.FloatOpt('snapshot_seconds', min=0, help='How long a simulated snapshot takes; unset: passing_seconds.'),
    cfg.ListOpt(
        'lacks',
        default=[],
        help='What the simulated hypervisor shall not be able to do, as others are: rescue_on_volume, host_power ...',
    ),
    cfg.ListOpt(
        'fail',
        default=[],
        help='Operations that fail, for tests of clients: spawn, power_on, snapshot ...; `spawn:NAME` only for '
        'servers whose name starts with NAME, `spawn@HOST` or `spawn@HOST:NAME` only on that host.',
    ),
    cfg.ListOpt(
        'hang',
        default=[],
        help='Operations that do not end, so that clients see a server on its way: in the same form. They go on when '
        'the service runs without the rule, and give up after an hour, or when the server is deleted or reset.',
    ),
    cfg.HostAddressOpt(
        'console_host',
        default='127.0.0.1',
        help='Where consoles are said to be. Nothing listens there: proxies answer for simulated servers themselves.',
    ),
    cfg.PortOpt('console_port', default=5900, help='The port of consoles, where nothing listens either.'),
    cfg.PortOpt('console_tls_port', help='The port of SPICE over TLS, if any, where nothing listens either.'),
]

IDENTITY = [
    backend(
        default='local',
        choices=[('local', 'users and projects in the database of this service'), ('keystone', 'a Keystone')],
        help='Who callers are, for the values `local` and `http_basic` of [api]auth_strategy, and '
        'which projects there are.',
    ),
    cfg.IntOpt('token_hours', default=24, min=1, help='How long a token of the built-in identity is valid.'),
    cfg.IntOpt(
        'tokens_per_user', default=5000, min=1, help='Tokens that a user can have at a time; the oldest one goes.'
    ),
    cfg.IntOpt('application_credentials_per_user', default=100, min=0, help='How many of them each user can have.'),
    cfg.StrOpt(
        'credential_key',
        secret=True,
        help='What the secrets that users store are encrypted with: 32 bytes in URL-safe base64. `serve` makes one.',
    ),
    cfg.IntOpt(
        'bcrypt_cost',
        default=9,
        min=4,
        max=20,
        help='Work that guards the passwords, twice as much with each step. 9 is 0.03 s of a processor, which every '
        'login waits for, with the openstack client every command; 12 (0.2 s) is better where people choose their '
        'passwords. A password is hashed anew when its user logs in.',
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
        help='Whether the signature of an image is verified before a host makes a disk of it: that is read from Glance '
        'once more, and must be what the certificate in the key manager ([key_manager]) says of it that the image '
        'names. Without all of its properties img_signature, img_signature_hash_method, img_signature_key_type and '
        'img_signature_certificate_uuid, nothing boots from an image.',
    ),
    cfg.BoolOpt(
        'enable_certificate_validation',
        default=False,
        help='Whether the certificate of a signature must be one that is trusted: by the server, which may name '
        'trusted_image_certificates, or else by default. Counts with verify_glance_signatures; for servers that '
        'name certificates both are done in any case.',
    ),
    cfg.ListOpt(
        'default_trusted_certificate_ids',
        default=[],
        help='The ids in the key manager of certificates that servers trust whose owners name none, and remember. '
        'Counts with verify_glance_signatures and enable_certificate_validation.',
    ),
]

NETWORK = [
    backend(
        default='local',
        choices=[
            ('local', 'networks in the database of this service, which connect nothing'),
            ('neutron', 'a Neutron'),
        ],
        help='The network service that has the ports of servers.',
    ),
]

NEUTRON = [
    cfg.IntOpt(
        'extension_sync_interval',
        default=600,
        min=1,
        help='Seconds after which Neutron is asked again for its extensions.',
    ),
    cfg.StrOpt(
        'metadata_proxy_shared_secret',
        secret=True,
        default='',
        help='What the proxy between guests and the metadata service signs with; empty: the service refuses everybody.',
    ),
]

PLACEMENT = [
    cfg.BoolOpt(
        'enabled',
        default=False,
        help='Whether a Placement service is told what hosts have and what servers hold of them, for others who read '
        'it. Which host a server goes to is decided without it.',
    ),
]


def _newest(major: str) -> cfg.Opt:
    """The option of a built-in service that has microversions."""
    return cfg.StrOpt(
        'max_microversion',
        regex=rf'^({major}\.(0|[1-9]\d*))?$',
        help='The newest microversion that clients of the built-in service are offered, as an earlier release would; '
        'unset: the newest there is.',
    )


VOLUME = [
    backend(
        default='local',
        choices=[('local', 'volumes in the database of this service, which hold no data'), ('cinder', 'a Cinder')],
        help='The block storage service that has the volumes of servers.',
    ),
    cfg.BoolOpt(
        'exported',
        default=False,
        help='Of the built-in volumes, with [hypervisor]backend = remote: whether they have data, as files in the data '
        'directory of `serve`, which the guests of agents reach at [qemu]my_ip (NBD, by qemu-storage-daemon); that '
        'takes the extra `qemu`, qemu-img and qemu-storage-daemon.',
    ),
    _newest('3'),
]

CINDER = [
    cfg.BoolOpt(
        'cross_az_attach',
        default=True,
        help='Whether servers may have volumes of other availability zones than their own; if not, volumes that are '
        'made for a server are made in its zone.',
    ),
]

SHARE = [
    backend(
        default='local',
        choices=[('local', 'shares in the database of this service, which hold no data')],
        help='The service that has the shared file systems of servers.',
    ),
    _newest('2'),
]

STANDALONE = [
    cfg.StrOpt('data_dir', default='computeapi-data', help='Where `serve` keeps its database and images.'),
    cfg.IntOpt('max_image_bytes', default=10 * 2**30, min=1, help='The largest image that can be uploaded.'),
    cfg.IntOpt('max_images', default=1000, min=-1, help='Images per project; -1: no limit.'),
    cfg.IntOpt(
        'max_connections',
        default=1000,
        min=1,
        help='Connections with `serve`; one more takes the place of that which waits for its client longest.',
    ),
    cfg.IntOpt('max_connections_per_address', default=500, min=1, help='The same, of each address.'),
    cfg.IntOpt('request_timeout', default=30, min=1, help='Seconds to send a request, or 64 KiB of a long body.'),
    cfg.IntOpt('response_timeout', default=30, min=1, help='Seconds to take an answer, or 64 KiB of a long one.'),
    cfg.IntOpt('keepalive_timeout', default=120, min=1, help='Seconds until a connection closes that nobody uses.'),
]
