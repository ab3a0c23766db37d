"""One host: the location of its guests, its resources, and the queries that concern all of them."""

import os
import re
import shutil
import subprocess
from pathlib import Path

from oslo_config import cfg

from computeapi.backends.hypervisor import Host
from computeapi.backends.hypervisor.qemu import accelerator
from computeapi.backends.hypervisor.qemu.base_images import BaseImages
from computeapi.backends.hypervisor.qemu.command_line import processor
from computeapi.backends.hypervisor.qemu.console_log import ConsoleLog
from computeapi.backends.hypervisor.qemu.folder import HostFolder
from computeapi.backends.hypervisor.qemu.networks import GuestNetworks
from computeapi.backends.hypervisor.qemu.process import GuestProcess, exporter_of
from computeapi.backends.hypervisor.qemu.tls import HostCertificates
from computeapi.backends.hypervisor.qemu.user import GuestUser
from computeapi.backends.hypervisor.qemu.volume_access import VolumeAccess

MIB, GIB = 2**20, 2**30


class QemuHost:
    """options: the group [qemu].  spice: whether guests have SPICE servers."""

    def __init__(
        self,
        name: str,
        folder: Path,
        options: cfg.ConfigOpts.GroupAttr,
        images: BaseImages,
        networks: GuestNetworks,
        volumes: VolumeAccess,
        *,
        spice: bool = False,
    ):
        self.name, self.options, self.images, self.networks, self.volumes = name, options, images, networks, volumes
        self.folder, self.spice = HostFolder(folder), spice
        self.version = version_of(options.binary)
        if spice:
            check_spice(options.binary)
        self.user = GuestUser.of(options)
        self.certificates = HostCertificates.of(options, self.user)
        self.accelerator = accelerator.chosen(
            options.accelerator, options.binary, self.version, Path(options.state_path)
        )
        self.folder.guests.mkdir(mode=0o711, parents=True, exist_ok=True)
        self.folder.forget()

    def facts(self) -> Host:
        options = self.options
        memory = os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') // MIB
        return Host(
            name=self.name,
            hypervisor_hostname=self.name,
            hypervisor_type='QEMU',
            hypervisor_version=self.version,
            host_ip=options.my_ip,
            vcpus=options.vcpus or os.cpu_count() or 1,
            memory_mb=options.memory_mb or memory,
            local_gb=options.local_gb or max(1, shutil.disk_usage(self.folder.path).total // GIB),
            cpu_info={'arch': 'x86_64', 'model': processor(self.accelerator)},
            traits=options.traits,
            resources=options.resources,
        )

    def machines(self) -> list[tuple[str, str]]:
        return [(folder.server_id, self.name) for folder in self.folder.all()]

    def laid_over(self) -> set[str]:
        """The images that guests need, including those of the other hosts that share the folder."""
        hosts = [HostFolder(path) for path in self.folder.path.parent.iterdir()]
        guests = [folder.read() for host in hosts for folder in host.all()]
        return {path for guest in guests if guest is not None for path in guest.laid_over()}

    def tidy(self) -> None:
        """Trim the logs of guests, and remove images that are no longer used."""
        for folder in self.folder.all():
            ConsoleLog(folder).trim()
            for process in (GuestProcess(folder), exporter_of(folder)):
                process.trim()
        self.images.tidy(self.laid_over, self.options.image_cache_hours)


def version_of(binary: str) -> int:
    """As the API field encodes it: 7002022 for 7.2.22; cfg.Error if QEMU is not installed."""
    try:
        output = subprocess.run([binary, '--version'], capture_output=True, text=True, timeout=30).stdout
    except OSError as error:
        raise cfg.ConfigFileValueError(f'[qemu]binary: {binary} cannot be run: {error.strerror}') from None
    numbers = re.search(r'version (\d+)\.(\d+)\.(\d+)', output)
    if numbers is None or shutil.which('qemu-img') is None:
        raise cfg.ConfigFileValueError(f'[qemu]binary: {binary} is not QEMU, or qemu-img is not installed')
    major, minor, micro = map(int, numbers.groups())
    return major * 10**6 + minor * 1000 + micro


def check_spice(binary: str) -> None:
    """cfg.Error if this QEMU does not support SPICE, which is a separate module on many systems."""
    asked = subprocess.run([binary, '-spice', 'help'], capture_output=True, text=True, timeout=30)
    if 'disable-ticketing' not in asked.stdout:
        raise cfg.ConfigFileValueError(f'[spice]enabled: {binary} has no SPICE, or its module is not installed')
