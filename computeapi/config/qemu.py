"""The options of the driver that runs guests with QEMU."""

from oslo_config import cfg, types

QEMU = [
    cfg.StrOpt(
        'state_path',
        help='Where the guests of this machine are: a folder for each, with its disks, and one for the images that '
        'they are laid over. Unset: `qemu` in the data directory of `serve`.',
    ),
    cfg.StrOpt(
        'instances_path',
        help='Where guests and images are, if not in the state path: a file system that several machines have at the '
        'same place, e.g. by NFS, so that servers move while they run, and are evacuated, without their disks being '
        'copied. What else is in the state path is of one machine.',
    ),
    cfg.StrOpt('host_name', regex=r'^[^\s/]*$', help='What the host is called; unset: as the machine is.'),
    cfg.IntOpt(
        'hosts',
        default=1,
        min=1,
        help='As how many hosts the machine appears, each with a number behind its name, where there is more than one: '
        'to try what moves servers.',
    ),
    cfg.HostAddressOpt('my_ip', default='127.0.0.1', help='The address at which other hosts reach this one.'),
    cfg.StrOpt(
        'tls_certificates',
        help='A directory with ca-cert.pem, server-cert.pem, server-key.pem, client-cert.pem and client-key.pem: disks '
        'and memory of servers that move to another host are encrypted, and either host shows the other one a '
        'certificate of this CA, that of the server in the name of the host. All hosts have them, or none. Unset: '
        'plain TCP.',
    ),
    cfg.StrOpt(
        'user',
        help='The user that guests run as where the service is root, which the certificates in [qemu]tls_certificates '
        'must be readable for: one without rights, of which nothing else is. Unset: they run as the service does.',
    ),
    cfg.StrOpt('binary', default='qemu-system-x86_64', help='The QEMU, 7.2 or newer; qemu-img is beside it.'),
    cfg.StrOpt(
        'accelerator',
        default='tcg',
        choices=[
            ('tcg', 'software, which runs everywhere'),
            ('kvm', 'the processor, by /dev/kvm'),
            ('auto', 'the processor, if a boot sector runs on it, which is tried once; else software'),
        ],
        help='What executes the code of guests. That /dev/kvm is there does not mean that guests run on it.',
    ),
    cfg.StrOpt(
        'machine',
        default='pc',
        choices=['pc', 'q35'],
        help='The board of guests whose images do not name one in hw_machine_type.',
    ),
    cfg.StrOpt(
        'network',
        default='user',
        choices=[
            ('user', 'QEMU itself, without any privileges: each guest is alone with its address'),
            ('bridge', 'a bridge for each network, a tap for each port, dnsmasq and nftables; needs root'),
            ('ovs', 'ports of a Neutron in the Open vSwitch of the host, by os-vif; needs root'),
        ],
        help='What guests are connected by. Bridges are for built-in networks: the host is their router and answers '
        'at their floating IPs, security groups hold within ten seconds, and IPv6 is left out. With ovs all of that is '
        "Neutron's, whose agent, or the controller of OVN, runs on the host.",
    ),
    cfg.StrOpt(
        'ovsdb_connection',
        default='tcp:127.0.0.1:6640',
        help='With [qemu]network = ovs: where the database of the switch answers, as tcp:ADDRESS:PORT or unix:PATH.',
    ),
    cfg.BoolOpt(
        'volume_multipath',
        default=False,
        help='Whether volumes of a Cinder are reached by all paths there are, with multipathd.',
    ),
    cfg.ListOpt(
        'guest_subnets',
        default=['10.0.0.0/8', '100.64.0.0/10', '172.16.0.0/12', '192.168.0.0/16', '203.0.113.0/24'],
        help='With [qemu]network = bridge: what subnets of guests may be part of. Who makes a subnet has its addresses '
        'for all that is on the host: what the host calls itself, and has no way of its own to, is not among these.',
    ),
    cfg.PortOpt(
        'metadata_port',
        help='With [qemu]network = bridge: the port of 127.0.0.1 at which guests are answered who ask 169.254.169.254; '
        '`serve` has one of its own. Unset: nobody answers them.',
    ),
    cfg.BoolOpt(
        'way_out',
        default=False,
        help='With [qemu]network = user: whether guests reach what the processes of this machine reach, its services '
        'on the loopback among them. Else they have their addresses, and reach nothing.',
    ),
    cfg.ListOpt(
        'forwarded_ports',
        default=['22', '80', '443', '3389', '8080'],
        item_type=types.Port(),
        help='With [qemu]network = user, and built-in networks: the TCP ports of guests that are reached by their '
        'floating IPs, from this machine alone, as far as security groups let them: those of 203.0.113.7 are at '
        '127.0.113.7. Where guests run as a user who may not have such low ports, they are at 10000 more, 22 at 10022.',
    ),
    cfg.IntOpt('vcpus', min=1, help='Virtual CPUs of the host; unset: as many as the machine has.'),
    cfg.IntOpt('memory_mb', min=1, help='Memory of the host in MiB; unset: what the machine has.'),
    cfg.IntOpt('local_gb', min=1, help='Disk of the host in GiB; unset: that of the file system of the state path.'),
    cfg.IntOpt(
        'shutdown_timeout',
        default=60,
        min=0,
        help='Seconds for guests to shut down when their power button is pressed, before their power is cut; 0: it is '
        'cut at once. The image property os_shutdown_timeout goes before.',
    ),
    cfg.FloatOpt(
        'detach_seconds', default=20, min=0, help='Seconds for guests to let go of a device that is to be taken out.'
    ),
    cfg.IntOpt(
        'image_cache_hours',
        default=24,
        min=0,
        help='Hours for which an image is kept that no guest is laid over any more, for the next one.',
    ),
    cfg.IntOpt(
        'max_image_bytes',
        default=100 * 2**30,
        min=1,
        help='The largest image that is fetched, and the largest disk that one may become where no flavor says how '
        'large it is: that of a server in rescue, and of a flavor without a disk.',
    ),
]
