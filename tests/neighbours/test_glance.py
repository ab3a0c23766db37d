"""Behaviour specific to a real Glance: it refuses data, notices late that an upload broke off, or becomes
unavailable."""

import logging
import time
import tracemalloc

import pytest

from computeapi import errors
from computeapi.backends.image.glance import GlanceImages
from tests.backends.implementations import ADMIN, ALICE, BOB
from tests.backends.test_image import RAW, names
from tests.neighbours import cloud
from tests.proxy import Proxy

MIB = 2**20
TIMEOUT_SECONDS = 30


@pytest.fixture
def running():
    running = cloud.running()
    running.clean('image')
    return running


@pytest.fixture
def images(running):
    return running.translated(GlanceImages(running.conf(image='glance')))


@pytest.fixture
def proxy(running):
    """A proxy in front of Glance."""
    address = GlanceImages(running.conf(image='glance')).address(ADMIN.elevated())
    host, port = address.rpartition('/')[2].split(':')
    proxy = Proxy(host, int(port))
    yield proxy
    proxy.close()


@pytest.fixture
def behind(running, proxy):
    """The images behind the proxy."""
    text = f'[glance]\nendpoint_override = http://127.0.0.1:{proxy.port}\nconnect_retries = 0\n'
    return running.translated(GlanceImages(running.conf(text=text, image='glance')))


def settled(images, image_id):
    """The status of an image, when nothing is being uploaded."""
    deadline = time.monotonic() + TIMEOUT_SECONDS
    while (status := images.get(ADMIN, image_id).status) == 'saving' and time.monotonic() < deadline:
        time.sleep(0.1)
    return status


def upload_again(images, image_id):
    """Retries, as a task does."""
    deadline = time.monotonic() + TIMEOUT_SECONDS
    while True:
        try:
            return images.upload(ALICE, image_id, [b'whole'])
        except errors.NeighbourAway:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)


def deactivated(running, images):
    image = images.upload(ALICE, images.create(ALICE, 'one', **RAW).id, [b'data'])
    running.service('image').post(f'/images/{image.id}/actions/deactivate')
    return image.id


def test_nobody_reads_a_deactivated_image(running, images):
    image_id = deactivated(running, images)
    assert images.get(ALICE, image_id).status == 'deactivated'
    with pytest.raises(errors.Forbidden):
        images.download(ALICE, image_id)


def test_members_see_a_shared_image(running, images):
    image = images.create(ALICE, 'one', visibility='shared')
    with pytest.raises(errors.ImageNotFound):
        images.get(BOB, image.id)
    bananas = running.project_id('bananas')
    running.service('image', ALICE).post(f'/images/{image.id}/members', json={'member': bananas})
    assert images.get(BOB, image.id) == image
    assert images.get_many(BOB, [image.id]) == {image.id: image}
    assert names(images.list(BOB)) == []
    assert names(images.list(BOB, filters={'member_status': 'pending'})) == ['one']
    running.service('image', BOB).put(f'/images/{image.id}/members/{bananas}', json={'status': 'accepted'})
    assert names(images.list(BOB)) == ['one']
    with pytest.raises(errors.Forbidden):
        images.update(BOB, image.id, name='mine')


def test_this_service_fills_the_image_of_a_project(images):
    image = images.create(ALICE, 'one', **RAW)
    assert images.upload(ALICE.elevated(), image.id, [b'data']).owner == image.owner == 'apples'
    assert b''.join(images.download(ALICE, image.id)) == b'data'


@pytest.mark.parametrize('pieces', [0, 1, 5])
def test_an_upload_that_breaks_off_leaves_a_queued_image(images, pieces):
    def broken():
        yield from (bytes(MIB) for _ in range(pieces))
        raise OSError('the disk is gone')

    image = images.create(ALICE, 'one', **RAW)
    with pytest.raises(OSError, match='the disk is gone'):
        images.upload(ALICE, image.id, broken())
    assert settled(images, image.id) == 'queued'
    assert upload_again(images, image.id).size == 5


def test_an_upload_that_is_under_way_is_waited_for(images):
    image = images.create(ALICE, 'one', **RAW)

    def slow():
        yield bytes(MIB)
        deadline = time.monotonic() + TIMEOUT_SECONDS
        while images.get(ALICE, image.id).status != 'saving' and time.monotonic() < deadline:
            time.sleep(0.1)
        with pytest.raises(errors.NeighbourAway, match='does not release'):
            images.upload(ALICE, image.id, [b'quick'])

    assert images.upload(ALICE, image.id, slow()).size == MIB


def test_data_go_as_a_stream(images):
    image = images.create(ALICE, 'one', **RAW)
    images.get(ALICE, image.id)
    tracemalloc.start()
    try:
        assert images.upload(ALICE, image.id, (bytes(MIB) for _ in range(32))).size == 32 * MIB
        assert sum(map(len, images.download(ALICE, image.id))) == 32 * MIB
        assert tracemalloc.get_traced_memory()[1] < 8 * MIB
    finally:
        tracemalloc.stop()


def test_what_glance_is_asked(images, caplog):
    made = [images.create(ALICE, f'{number}').id for number in range(60)]
    images.get(ALICE, made[0])
    caplog.set_level(logging.DEBUG, 'keystoneauth')

    def asked():
        found = [record.message for record in caplog.records if record.message.startswith('REQ: ')]
        caplog.clear()
        return len(found)

    images.get(ALICE, made[0])
    assert asked() == 1
    assert len(images.get_many(ALICE, made[:50])) == 50
    assert asked() == 1
    assert len(images.get_many(ALICE, made)) == 60
    assert asked() == 2
    assert len(images.list(ALICE, filters={'owner': 'apples'})) == 60
    assert asked() == 1


# ------------------------------------------------------------------ outages


def test_while_glance_is_away_it_is_named(proxy, behind):
    image = behind.create(ALICE, 'one', **RAW)
    proxy.refuse()
    for call in (
        lambda: behind.get(ALICE, image.id),
        lambda: behind.list(ALICE),
        lambda: behind.create(ALICE, 'two'),
        lambda: behind.upload(ALICE.elevated(), image.id, [b'data']),
        lambda: behind.delete(ALICE, image.id),
    ):
        with pytest.raises(errors.NeighbourAway, match=r'^Glance is currently unavailable\.$'):
            call()
    proxy.go_on()
    assert behind.get(ALICE, image.id) == image


def test_glance_goes_away_in_an_upload(proxy, behind):
    image = behind.create(ALICE, 'one', **RAW)
    sent = []

    def data():
        for number in range(20):
            if number == 10:
                proxy.cut()
            sent.append(number)
            yield bytes(MIB)

    with pytest.raises(errors.NeighbourAway, match='^Glance'):
        behind.upload(ALICE, image.id, data())
    assert sent == sorted(set(sent))
    assert settled(behind, image.id) == 'queued'
    assert upload_again(behind, image.id).size == 5


def test_glance_goes_away_in_a_download(proxy, behind):
    image = behind.upload(ALICE, behind.create(ALICE, 'one', **RAW).id, (bytes(MIB) for _ in range(32)))
    pieces = behind.download(ALICE, image.id)
    assert next(pieces)
    proxy.cut()
    with pytest.raises(errors.NeighbourAway, match='^Glance'):
        list(pieces)
