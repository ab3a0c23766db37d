"""The options of the driver that runs guests with QEMU."""

from oslo_config import cfg, types

from computeapi.config.host_providers import RESOURCES, TRAITS

QEMU = [
    cfg.StrOpt(
        'state_path',
        help='Directory of the guests of this machine: a subdirectory for each guest, with its disks, and one for the '
        'base images of these. Unset: `qemu` in the data directory of `serve`.',
    ),
    cfg.StrOpt(
        'instances_path',
        help='Directory of guests and images, if not the state path: a file system that several machines mount at the '
        'same path, e.g. over NFS, so that servers are live-migrated and evacuated without copying their disks. '
        'Everything else in the state path belongs to one machine.',
    ),
    cfg.StrOpt('host_name', regex=r'^[^\s/]*$', help='Name of the host; unset: the hostname of the machine.'),
    cfg.IntOpt(
        'hosts',
        default=1,
        min=1,
        help='Number of hosts that the machine appears as; if more than one, a number is appended to the name of each. '
        'For trying out operations that move servers.',
    ),
    cfg.HostAddressOpt('my_ip', default='127.0.0.1', help='The address at which other hosts reach this one.'),
    cfg.StrOpt(
        'tls_certificates',
        help='A directory with ca-cert.pem, server-cert.pem, server-key.pem, client-cert.pem and client-key.pem. Disks '
        'and memory of servers that move to another host are then encrypted, and the two hosts show each other '
        'certificates of this CA; that of the server must be issued for the name of the host. All hosts must have '
        'certificates, or none. Unset: plain TCP.',
    ),
    cfg.StrOpt(
        'user',
        help='The user that guests run as if the service runs as root. It must be able to read the certificates in '
        '[qemu]tls_certificates, have no privileges, and own nothing else. Unset: guests run as the user of the '
        'service.',
    ),
    cfg.StrOpt(
        'binary', default='qemu-system-x86_64', help='The QEMU binary, 7.2 or newer; qemu-img is in the same directory.'
    ),
    cfg.StrOpt(
        'accelerator',
        default='tcg',
        choices=[
            ('tcg', 'software emulation, which works everywhere'),
            ('kvm', 'the processor, through /dev/kvm'),
            ('auto', 'kvm if a boot sector runs with it, which is tried once; else tcg'),
        ],
        help='What executes the code of guests. The presence of /dev/kvm does not mean that guests run with it.',
    ),
    cfg.StrOpt(
        'machine',
        default='pc',
        choices=['pc', 'q35'],
        help='Machine type of guests whose images do not set hw_machine_type.',
    ),
    cfg.StrOpt(
        'network',
        default='user',
        choices=[
            ('user', 'QEMU user-mode networking, without any privileges: each guest is isolated, with its own address'),
            ('bridge', 'a bridge for each network, a tap device for each port, dnsmasq and nftables; needs root'),
            ('ovs', 'ports of Neutron in the Open vSwitch of the host, plugged by os-vif; needs root'),
        ],
        help='How guests are connected. `bridge` is for the built-in networks: the host is their router and answers at '
        'their floating IPs, security groups take effect within ten seconds, and IPv6 is not supported. With `ovs`, '
        'all of this is up to Neutron, whose agent, or the OVN controller, runs on the host.',
    ),
    cfg.StrOpt(
        'ovsdb_connection',
        default='tcp:127.0.0.1:6640',
        help='With [qemu]network = ovs: the address of the Open vSwitch database, as tcp:ADDRESS:PORT or unix:PATH.',
    ),
    cfg.BoolOpt(
        'volume_multipath',
        default=False,
        help='Whether Cinder volumes are attached through all available paths, with multipathd.',
    ),
    cfg.ListOpt(
        'guest_subnets',
        default=['10.0.0.0/8', '100.64.0.0/10', '172.16.0.0/12', '192.168.0.0/16', '203.0.113.0/24'],
        help='With [qemu]network = bridge: ranges in which subnets of guests may lie. The guests of a subnet receive '
        'all that the host sends to its addresses, so do not list ranges that the host itself connects to without a '
        'specific route.',
    ),
    cfg.PortOpt(
        'metadata_port',
        help='With [qemu]network = bridge: the port of 127.0.0.1 that answers the requests of guests to '
        '169.254.169.254; `serve` opens one itself. Unset: such requests are not answered.',
    ),
    cfg.BoolOpt(
        'way_out',
        default=False,
        help='With [qemu]network = user: whether guests reach everything that processes of this machine reach, '
        'including services on its loopback interface. If false, guests have their addresses, but reach nothing.',
    ),
    cfg.ListOpt(
        'forwarded_ports',
        default=['22', '80', '443', '3389', '8080'],
        item_type=types.Port(),
        help='With [qemu]network = user and the built-in networks: the TCP ports of guests that can be reached at '
        'their floating IPs, from this machine only, as far as security groups allow. Those of 203.0.113.7 are at '
        '127.0.113.7. If guests run as a user who may not bind such low ports, 10000 is added to them: 22 is at 10022.',
    ),
    cfg.IntOpt('vcpus', min=1, help='Virtual CPUs of the host; unset: the CPUs of the machine.'),
    cfg.IntOpt('memory_mb', min=1, help='Memory of the host in MiB; unset: the memory of the machine.'),
    cfg.IntOpt(
        'local_gb', min=1, help='Disk of the host in GiB; unset: the size of the file system of the state path.'
    ),
    TRAITS,
    RESOURCES,
    cfg.IntOpt(
        'shutdown_timeout',
        default=60,
        min=0,
        help='Seconds that guests have to shut down after their power button is pressed, before they are powered off; '
        '0: they are powered off immediately. The image property os_shutdown_timeout takes precedence.',
    ),
    cfg.FloatOpt(
        'detach_seconds', default=20, min=0, help='Seconds that guests have to release a device that is being detached.'
    ),
    cfg.IntOpt(
        'image_cache_hours',
        default=24,
        min=0,
        help='Hours for which an image that no guest is based on any more is cached for the next one.',
    ),
    cfg.IntOpt(
        'max_image_bytes',
        default=100 * 2**30,
        min=1,
        help='Maximum size, in bytes, of an image that is downloaded, and of a disk that is created from an image when '
        'no flavor sets its size: for a server in rescue mode, or a flavor without a disk.',
    ),
]
