"""The compute API on a real Keystone, Glance and Cinder, and built-in services otherwise."""

import pytest

from tests.backends.implementations import ALICE
from tests.neighbours import cloud
from tests.neighbours.cinder.servers import BlockStorage
from tests.neighbours.compute import Compute

collect_ignore_glob = [] if cloud.URL else ['test_*.py']

HOSTS = '[simulated]\nhosts = 3\n'
QUICK = '[DEFAULT]\nblock_device_allocate_retries_interval = 1\ntask_sweep_interval = 1\n'


@pytest.fixture
def running():
    running = cloud.running()
    running.clean('block-storage', 'image')
    return running


@pytest.fixture
def compute_with(running, store):
    """compute_with(options): the compute API with these further options."""
    made = []

    def make(options=''):
        made.append(Compute(running, store, HOSTS + QUICK + options, image='glance', volume='cinder'))
        return made[-1]

    yield make
    for each in made:
        each.service.stop()


@pytest.fixture
def compute(compute_with):
    return compute_with()


@pytest.fixture
def image(running):
    """image(): the ID of a bootable image."""

    def make():
        glance = running.service('image', ALICE)
        body = {'name': 'base', 'disk_format': 'raw', 'container_format': 'bare'}
        image_id = glance.post('/images', json=body).json()['id']
        glance.put(f'/images/{image_id}/file', data=b'disk', headers={'Content-Type': 'application/octet-stream'})
        return image_id

    return make


@pytest.fixture
def cinder(running):
    return BlockStorage(running)
