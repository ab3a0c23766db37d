"""Drivers as the configuration wants them."""

import socket
from pathlib import Path

from oslo_config import cfg

from computeapi.backends.hypervisor.qemu.base_images import BaseImages
from computeapi.backends.hypervisor.qemu.bridges import Bridges
from computeapi.backends.hypervisor.qemu.bridges.wires import Documents
from computeapi.backends.hypervisor.qemu.driver import QemuHypervisor
from computeapi.backends.hypervisor.qemu.host import QemuHost
from computeapi.backends.hypervisor.qemu.networks import GuestNetworks, UserMode
from computeapi.backends.image import Images


def local_driver(conf: cfg.ConfigOpts, images: Images, wires: Documents | None = None) -> QemuHypervisor:
    """Of this machine, as one host or as several. wires: the network service, where it is one that can be wired."""
    options = conf.qemu
    name, numbers = options.host_name or socket.gethostname(), range(1, options.hosts + 1)
    names = [name] if options.hosts == 1 else [f'{name}{number}' for number in numbers]
    return driver_of(conf, names, images, wires)


def driver_of(conf: cfg.ConfigOpts, names: list[str], images: Images, wires: Documents | None = None) -> QemuHypervisor:
    """Of these hosts; cfg.Error where no QEMU can be run."""
    options = conf.qemu
    if not options.state_path:
        raise cfg.ConfigFileValueError('[qemu]state_path is not set')
    state = Path(options.state_path).absolute()
    networks = networks_of(options, len(names), state, wires)
    base_images = BaseImages(state / 'images', images, options.max_image_bytes)
    return QemuHypervisor(QemuHost(name, state / 'hosts' / name, options, base_images, networks) for name in names)


def networks_of(options: cfg.ConfigOpts.GroupAttr, hosts: int, state: Path, wires: Documents | None) -> GuestNetworks:
    if options.network == 'user':
        return UserMode(way_out=options.way_out)
    if hosts > 1:
        raise cfg.ConfigFileValueError('[qemu]network: bridges are of one host, and [qemu]hosts are several')
    if wires is None:
        raise cfg.ConfigFileValueError('[qemu]network: bridges are for the built-in networks, [network]backend = local')
    return Bridges(state / 'networks', wires)
