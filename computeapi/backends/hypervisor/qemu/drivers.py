"""Drivers as the configuration wants them."""

import socket
from pathlib import Path

from oslo_config import cfg

from computeapi.backends.hypervisor.qemu.base_images import BaseImages
from computeapi.backends.hypervisor.qemu.driver import QemuHypervisor
from computeapi.backends.hypervisor.qemu.host import QemuHost
from computeapi.backends.hypervisor.qemu.networks import UserMode
from computeapi.backends.image import Images


def local_driver(conf: cfg.ConfigOpts, images: Images) -> QemuHypervisor:
    """Of this machine, as one host or as several."""
    options = conf.qemu
    name, numbers = options.host_name or socket.gethostname(), range(1, options.hosts + 1)
    names = [name] if options.hosts == 1 else [f'{name}{number}' for number in numbers]
    return driver_of(conf, names, images)


def driver_of(conf: cfg.ConfigOpts, names: list[str], images: Images) -> QemuHypervisor:
    """Of these hosts; cfg.Error where no QEMU can be run."""
    options = conf.qemu
    if not options.state_path:
        raise cfg.ConfigFileValueError('[qemu]state_path is not set')
    state, networks = Path(options.state_path).absolute(), UserMode(way_out=options.way_out)
    base_images = BaseImages(state / 'images', images, options.max_image_bytes)
    return QemuHypervisor(QemuHost(name, state / 'hosts' / name, options, base_images, networks) for name in names)
