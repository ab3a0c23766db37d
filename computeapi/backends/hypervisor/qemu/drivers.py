"""Drivers as the configuration wants them."""

import socket
from dataclasses import dataclass
from pathlib import Path

from oslo_config import cfg

from computeapi.backends.hypervisor.qemu.base_images import BaseImages
from computeapi.backends.hypervisor.qemu.bridges import Bridges
from computeapi.backends.hypervisor.qemu.bridges.wires import Documents
from computeapi.backends.hypervisor.qemu.disks import VolumePath
from computeapi.backends.hypervisor.qemu.driver import QemuHypervisor
from computeapi.backends.hypervisor.qemu.host import QemuHost
from computeapi.backends.hypervisor.qemu.networks import GuestNetworks, UserMode
from computeapi.backends.image import Images


@dataclass(frozen=True)
class Around:
    """What is built in and on the same machine. wires: the network service.  volumes: where the data of volumes are."""

    wires: Documents | None = None
    volumes: VolumePath | None = None


ALONE = Around()


def local_driver(conf: cfg.ConfigOpts, images: Images, around: Around = ALONE) -> QemuHypervisor:
    """Of this machine, as one host or as several."""
    options = conf.qemu
    name, numbers = options.host_name or socket.gethostname(), range(1, options.hosts + 1)
    names = [name] if options.hosts == 1 else [f'{name}{number}' for number in numbers]
    return driver_of(conf, names, images, around)


def driver_of(conf: cfg.ConfigOpts, names: list[str], images: Images, around: Around = ALONE) -> QemuHypervisor:
    """Of these hosts; cfg.Error where no QEMU can be run."""
    options, state = conf.qemu, state_path(conf)
    networks, base_images = networks_of(options, len(names), state, around.wires), images_of(conf, images)
    return QemuHypervisor(
        QemuHost(name, state / 'hosts' / name, options, base_images, networks, around.volumes) for name in names
    )


def state_path(conf: cfg.ConfigOpts) -> Path:
    if not conf.qemu.state_path:
        raise cfg.ConfigFileValueError('[qemu]state_path is not set')
    return Path(conf.qemu.state_path).absolute()


def images_of(conf: cfg.ConfigOpts, images: Images) -> BaseImages:
    """As files, which all drivers on the machine share."""
    return BaseImages(state_path(conf) / 'images', images, conf.qemu.max_image_bytes)


def networks_of(options: cfg.ConfigOpts.GroupAttr, hosts: int, state: Path, wires: Documents | None) -> GuestNetworks:
    if options.network == 'user':
        return UserMode(way_out=options.way_out)
    if hosts > 1:
        raise cfg.ConfigFileValueError('[qemu]network: bridges are of one host, and [qemu]hosts are several')
    if wires is None:
        raise cfg.ConfigFileValueError('[qemu]network: bridges are for the built-in networks, [network]backend = local')
    return Bridges(state / 'networks', wires)
