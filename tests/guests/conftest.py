"""Drivers that run guests, all of which are stopped at the end of a test."""

import ctypes
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

from computeapi.backends.hypervisor.qemu.drivers import images_of, local_driver
from computeapi.backends.hypervisor.qemu.folder import HostFolder
from computeapi.backends.hypervisor.qemu.process import GuestProcess, exporter_of
from computeapi.backends.image.local import LocalImages
from computeapi.backends.volume.local import LocalVolumes
from computeapi.backends.volume.local.files import VolumeFiles
from computeapi.context import Context
from tests.conftest import ACTIVE
from tests.guests import boot_sector

CLONE_NEWNET = 0x40000000
LIBC = ctypes.CDLL(None, use_errno=True)
ADMIN = Context(user_id='root', project_id='admin', is_admin=True, roles=frozenset({'admin'}))


@pytest.fixture
def database():
    """The tests of guests execute the same lines on every database."""
    return 'sqlite'


@pytest.fixture
def namespace():
    """Gives this thread, and the processes that it starts, a network namespace of its own."""
    former = os.open('/proc/thread-self/ns/net', os.O_RDONLY)
    assert LIBC.unshare(CLONE_NEWNET) == 0, 'This needs root.'
    subprocess.run(['ip', 'link', 'set', 'lo', 'up'], check=True)
    yield
    assert LIBC.setns(former, CLONE_NEWNET) == 0
    os.close(former)


class Guests:
    """The images of guests, and drivers on one folder, which may follow one another."""

    def __init__(self, store, conf, folder: Path):
        self.store, self.conf, self.folder, self.state = store, conf, folder, folder / 'state'
        self.images, self.elsewhere = LocalImages(store, folder / 'images'), None
        conf.set_override('state_path', str(self.state), 'qemu')
        conf.set_override('host_name', 'compute', 'qemu')
        conf.set_override('hosts', 2, 'qemu')
        if os.geteuid() == 0:
            conf.set_override('user', 'nobody', 'qemu')
        # The boot sector ignores the power button, and does not release devices.
        conf.set_override('shutdown_timeout', 0, 'qemu')
        conf.set_override('detach_seconds', 0.1, 'qemu')

    def driver(self, **options):
        """A new driver. options: of [qemu]."""
        for name, value in options.items():
            self.conf.set_override(name, value, 'qemu')
        return local_driver(self.conf, self.images)

    def image(self, data: bytes, disk_format='raw', image_id=None, **properties):
        """Creates an image with these data; returns its ID."""
        visibility = properties.pop('visibility', 'public')
        facts = {'visibility': visibility, 'disk_format': disk_format, 'container_format': 'bare'}
        made = self.images.create(ADMIN, 'guest', image_id=image_id, properties=properties, **facts)
        self.images.upload(ADMIN, made.id, [data])
        return made.id

    def boot_sector(self, disk_format='raw', image_id=None):
        disk = boot_sector.write_disk(self.folder / f'boot.{disk_format}', disk_format=disk_format)
        return self.image(disk.read_bytes(), disk_format, image_id)

    def keep_apart(self, host):
        """Put the guests of that host on another file system, which no other host has."""
        self.elsewhere = Path(tempfile.mkdtemp(dir='/dev/shm'))
        (self.state / 'hosts').mkdir(parents=True, exist_ok=True)
        (self.state / 'hosts' / host).symlink_to(self.elsewhere)

    def folders(self):
        for host in (self.state / 'hosts').glob('*'):
            yield from HostFolder(host).all()

    def end(self):
        for folder in self.folders():
            for process in (GuestProcess(folder), exporter_of(folder)):
                process.end()
        if self.elsewhere is not None:
            shutil.rmtree(self.elsewhere)


@pytest.fixture
def guests(store, conf, tmp_path):
    """The default image of servers is a boot sector."""
    made = Guests(store, conf, tmp_path)
    made.boot_sector(image_id=ACTIVE['image_id'])
    yield made
    made.end()


@pytest.fixture
def files(guests):
    """The data of volumes."""
    return VolumeFiles(guests.folder / 'volumes', images_of(guests.conf, guests.images).file)


@pytest.fixture
def volumes(guests, files):
    made = LocalVolumes(guests.store, guests.images, files=files)
    made.populate()
    return made


@pytest.fixture
def tiny_linux(guests):
    """The ID of an image with the tiny Linux."""
    return guests.image(Path(os.environ['COMPUTEAPI_TEST_GUESTS'], 'linux.qcow2').read_bytes(), 'qcow2')
