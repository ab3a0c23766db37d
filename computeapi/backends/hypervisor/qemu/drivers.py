"""Builds drivers from the configuration."""

import socket
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from ipaddress import IPv4Network
from pathlib import Path
from typing import TYPE_CHECKING

from oslo_config import cfg

from computeapi.backends.hypervisor.qemu.base_images import BaseImages
from computeapi.backends.hypervisor.qemu.bridges import Bridges
from computeapi.backends.hypervisor.qemu.bridges.wires import Documents
from computeapi.backends.hypervisor.qemu.driver import QemuHypervisor
from computeapi.backends.hypervisor.qemu.exported_volumes import ExportedVolumes
from computeapi.backends.hypervisor.qemu.exports import VolumeExports
from computeapi.backends.hypervisor.qemu.forwarding import Forwarding, lowest_port
from computeapi.backends.hypervisor.qemu.host import QemuHost
from computeapi.backends.hypervisor.qemu.networks import GuestNetworks, UserMode
from computeapi.backends.hypervisor.qemu.user import GuestUser
from computeapi.backends.hypervisor.qemu.volume_access import (
    VolumeAccess,
    VolumeConnections,
    VolumeFilesHere,
    VolumePath,
)
from computeapi.backends.image import Images

if TYPE_CHECKING:
    from computeapi.backends.hypervisor.qemu.open_vswitch import PortBindings


@dataclass(frozen=True)
class GuestServices:
    """The network and volume services around the guests.

    wires, volumes: of built-in services on the same machine: the network resources, and the paths of the volumes' data.
    bindings, connections: a Neutron and a Cinder.
    exports: the volume service of a cloud whose volumes are exported from another machine."""

    wires: Documents | None = None
    volumes: VolumePath | None = None
    bindings: 'PortBindings | None' = None
    connections: VolumeConnections | None = None
    exports: VolumeConnections | None = None


ALONE = GuestServices()


def local_driver(conf: cfg.ConfigOpts, images: Images, around: GuestServices = ALONE) -> QemuHypervisor:
    """The driver of this machine, as one host or as several."""
    options = conf.qemu
    name, numbers = options.host_name or socket.gethostname(), range(1, options.hosts + 1)
    names = [name] if options.hosts == 1 else [f'{name}{number}' for number in numbers]
    return driver_of(conf, names, images, around)


def driver_of(conf: cfg.ConfigOpts, names: list[str], images: Images, around: GuestServices = ALONE) -> QemuHypervisor:
    """The driver of these hosts; cfg.Error if no QEMU can be run as configured."""
    options, state = conf.qemu, state_path(conf)
    hosts = {name: instances_path(conf) / 'hosts' / name for name in names}
    networks, base_images = networks_of(options, hosts, state, around), images_of(conf, images)
    return QemuHypervisor(
        QemuHost(
            name,
            folder,
            options,
            base_images,
            networks,
            volumes_of(conf, name, [*hosts.values()], around),
            spice=conf.spice.enabled,
        )
        for name, folder in hosts.items()
    )


def state_path(conf: cfg.ConfigOpts) -> Path:
    if not conf.qemu.state_path:
        raise cfg.ConfigFileValueError('[qemu]state_path is not set')
    return Path(conf.qemu.state_path).absolute()


def instances_path(conf: cfg.ConfigOpts) -> Path:
    """The folder of guests and images, which other machines may share."""
    return Path(conf.qemu.instances_path).absolute() if conf.qemu.instances_path else state_path(conf)


def images_of(conf: cfg.ConfigOpts, images: Images) -> BaseImages:
    """Images as files, shared by all drivers on the machine."""
    return BaseImages(instances_path(conf) / 'images', images, conf.qemu.max_image_bytes)


def exports_of(conf: cfg.ConfigOpts, folder: Path, path_of: VolumePath) -> VolumeExports:
    """The exports of this machine's volumes to other hosts."""
    return VolumeExports(folder, path_of, conf.qemu.my_ip)


def networks_of(
    options: cfg.ConfigOpts.GroupAttr, hosts: Mapping[str, Path], state: Path, around: GuestServices
) -> GuestNetworks:
    """hosts: their folders."""
    if options.network == 'user':
        return UserMode(way_out=options.way_out, forwarding=forwarding_of(options, [*hosts.values()], around))
    if len(hosts) > 1:
        raise cfg.ConfigFileValueError(
            f'[qemu]network: {options.network} supports only one host, but [qemu]hosts names several'
        )
    if options.network == 'ovs':
        if around.bindings is None:
            raise cfg.ConfigFileValueError(
                '[qemu]network: ovs requires the networks of Neutron, [network]backend = neutron'
            )
        with host_extra('[qemu]network'):
            from computeapi.backends.hypervisor.qemu.open_vswitch import OpenVSwitch
        return OpenVSwitch(state / 'networks', around.bindings, next(iter(hosts)), options.ovsdb_connection)
    if around.wires is None:
        raise cfg.ConfigFileValueError('[qemu]network: bridge requires the built-in networks, [network]backend = local')
    return Bridges(state / 'networks', around.wires, guest_subnets_of(options), options.metadata_port)


def guest_subnets_of(options: cfg.ConfigOpts.GroupAttr) -> list[IPv4Network]:
    try:
        return [IPv4Network(text) for text in options.guest_subnets]
    except ValueError as error:
        raise cfg.ConfigFileValueError(f'[qemu]guest_subnets: {error}') from None


def forwarding_of(options: cfg.ConfigOpts.GroupAttr, hosts: Sequence[Path], around: GuestServices) -> Forwarding | None:
    """None: floating addresses are not forwarded."""
    if around.wires is None or not options.forwarded_ports:
        return None
    lowest = lowest_port(privileged=GuestUser.of(options).name is None)
    return Forwarding(hosts, around.wires, options.forwarded_ports, lowest)


def volumes_of(conf: cfg.ConfigOpts, name: str, hosts: list[Path], around: GuestServices) -> VolumeAccess:
    my_ip = conf.qemu.my_ip
    if around.exports is not None:
        return ExportedVolumes(around.exports, name, my_ip)
    if around.connections is None:
        return VolumeFilesHere(around.volumes, my_ip)
    with host_extra('[volume]backend'):
        from computeapi.backends.hypervisor.qemu.block_storage import ConnectedVolumes
    multipath = conf.qemu.volume_multipath
    return ConnectedVolumes(around.connections, name, my_ip, state_path(conf), hosts, multipath=multipath)


@contextmanager
def host_extra(option: str) -> Iterator[None]:
    """cfg.Error if the libraries are missing that hosts need for services that are not built in."""
    try:
        yield
    except ImportError as error:
        raise cfg.ConfigFileValueError(f'{option}: {error}: the extra `host` is not installed') from None
