"""Rescue: booting a server from another image while its own disk is repaired."""

import pytest

from tests.api.servers.conftest import BOB, IMAGE, ROOT_VOLUME, message

SEEN = {'hw_rescue_bus': 'usb', 'hw_rescue_device': 'disk'}


@pytest.fixture
def rescue(api, settle):
    """rescue(server, image, '2.87'): the response."""

    def post(server, image=None, version='2.87'):
        wanted = {'rescue_image_ref': image} if image else None
        answer = api.post(f'/servers/{server}/action', {'rescue': wanted}, version, as_=BOB)
        settle()
        return answer

    return post


@pytest.fixture
def on_volume(create, settle):
    """on_volume(): the ID of a running server whose root disk is a volume created from the image.  image: the one that
    the request also names."""

    def boot(image=None):
        made = create(imageRef=image, block_device_mapping_v2=[ROOT_VOLUME]).json['server']['id']
        settle()
        return made

    return boot


@pytest.mark.parametrize(
    ('version', 'properties', 'status'),
    [('2.86', SEEN, 400), ('2.87', {}, 400), ('2.87', {'hw_rescue_bus': 'usb'}, 400), ('2.87', SEEN, 200)],
)
def test_a_server_on_a_volume_needs_an_image_made_for_it(
    api, world, rescue, on_volume, server, version, properties, status
):
    image = world.image(properties=properties)
    on_a_volume = on_volume()
    answer = rescue(on_a_volume, image, version)
    assert answer.status == status
    shown = api.get(f'/servers/{on_a_volume}').json['server']['status']
    assert shown == ('RESCUE' if status == 200 else 'ACTIVE')
    if status == 400:
        reason = f'Instance {on_a_volume} cannot be rescued: Cannot rescue a volume-backed instance'
        assert answer.json['badRequest']['message'] == reason
    assert rescue(server, image, version).status == 200


def test_naming_an_image_does_not_take_a_server_off_its_volume(world, rescue, on_volume):
    server = on_volume(IMAGE)
    assert rescue(server, world.image(properties=SEEN), '2.86').status == 400
    assert rescue(server, world.image()).status == 400
    assert rescue(server, world.image(properties=SEEN)).status == 200


@pytest.fixture
def unable(service):
    service.conf.set_override('lacks', ['rescue_on_volume'], 'simulated')


def test_a_server_is_not_rescued_while_a_volume_of_its_is_not_in_use(api, world, rescue, server, settle):
    volume = world.volume()
    api.post(f'/servers/{server}/os-volume_attachments', {'volumeAttachment': {'volumeId': volume}}, as_=BOB)
    settle()
    world.volumes.reset_status(world.admin, volume, status='maintenance')
    text = f"Invalid volume: volume '{volume}' status must be 'in-use'. Currently in 'maintenance' status"
    assert message(rescue(server)) == (409, text)
    world.volumes.reset_status(world.admin, volume, status='in-use')
    assert rescue(server).status == 200


def test_a_hypervisor_that_cannot_rescue_servers_on_volumes(unable, world, rescue, on_volume, server):
    image = world.image(properties=SEEN)
    assert rescue(on_volume(), image).status == 400
    assert rescue(server, image).status == 200


def test_without_an_image_that_of_the_volume_counts(world, rescue, on_volume):
    assert rescue(on_volume()).status == 400
    world.images.update(world.bob, IMAGE, properties=SEEN)
    assert rescue(on_volume()).status == 200


def test_images_that_nothing_is_rescued_from(world, rescue, server):
    absent, empty = server, world.image(active=False)
    of_volumes = world.image(properties={'block_device_mapping': [{'boot_index': 0}]})
    for image in (absent, empty, of_volumes):
        refused = rescue(server, image)
        assert refused.json['badRequest']['message'] == f"Requested rescue image '{image}' is not supported"
