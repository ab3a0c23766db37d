"""Resizing servers to flavors that are too small for what the server was created from."""

import pytest

from tests.api.servers.conftest import BOB, IMAGE, message

DISK = "Flavor's disk is smaller than the minimum size specified in image metadata."
MEMORY = "Flavor's memory is too small for requested image."
GIB = 2**30


@pytest.fixture
def flavors(cloud):
    """In addition to flavor 1: 64 MiB of memory, 1 GiB of disk."""
    cloud.flavor('large', memory_mb=128, root_gb=3)
    cloud.flavor('larger', memory_mb=256, root_gb=5)
    cloud.flavor('less-memory', memory_mb=64, root_gb=3)
    cloud.flavor('less-disk', memory_mb=128, root_gb=2)
    cloud.flavor('no-disk', memory_mb=128, root_gb=0)


@pytest.fixture
def boot(flavors, create, settle):
    """boot(...): the ID of a running server with flavor large."""

    def make(**kwargs):
        server = create(**{'flavorRef': 'large'} | kwargs).json['server']['id']
        settle()
        return server

    return make


@pytest.fixture
def resize(act):
    """resize(server, 'less-disk', ...): the response."""

    def post(server, flavor, confirm=False, **kwargs):
        answer = act(server, 'resize', {'flavorRef': flavor, **kwargs})
        if confirm:
            assert act(server, 'confirmResize').status == 204
        return answer

    return post


def on(volume):
    disk = {'boot_index': 0, 'uuid': volume, 'source_type': 'volume', 'destination_type': 'volume'}
    return {'imageRef': None, 'block_device_mapping_v2': [disk]}


def too_small(least, size):
    return 400, f'{DISK} Flavor disk is {size * GIB} bytes, minimum size is {least * GIB} bytes.'


def test_the_minimums_of_the_image(cloud, boot, resize, state):
    server = boot(imageRef=cloud.image(min_disk=3, min_ram=65))
    assert message(resize(server, 'less-memory')) == (400, MEMORY)
    assert message(resize(server, 'less-disk')) == too_small(3, 2)
    assert state(server)[0] == 'ACTIVE'
    assert resize(server, 'larger').status == 202


def test_they_are_those_when_the_server_was_created(cloud, boot, resize):
    """Whatever becomes of the image."""
    image = cloud.image(min_ram=65)
    server = boot(imageRef=image)
    cloud.images.delete(cloud.bob, image)
    assert message(resize(server, 'less-memory')) == (400, MEMORY)


def test_the_minimums_change_when_it_is_rebuilt(cloud, boot, resize, act):
    server = boot(imageRef=cloud.image(min_ram=65))
    assert act(server, 'rebuild', {'imageRef': IMAGE}).status == 202
    assert resize(server, 'less-memory', confirm=True).status == 202
    assert resize(server, 'larger', confirm=True).status == 202
    assert act(server, 'rebuild', {'imageRef': IMAGE}).status == 202
    assert message(resize(server, 'large')) == too_small(5, 3)


def test_a_local_disk_does_not_get_smaller_than_it_was_created(boot, resize):
    server = boot()
    assert message(resize(server, 'less-disk')) == too_small(3, 2)
    assert resize(server, 'larger', confirm=True).status == 202
    assert message(resize(server, 'less-disk')) == too_small(3, 2)
    assert resize(server, 'large').status == 202


@pytest.mark.parametrize('flavor', ['less-disk', 'no-disk'])
def test_the_size_of_a_volume_depends_on_no_flavor(cloud, boot, resize, state, flavor):
    server = boot(**on(cloud.volume(3, image_id=cloud.image(min_disk=3, min_ram=65))))
    assert message(resize(server, 'less-memory')) == (400, MEMORY)
    assert resize(server, flavor).status == 202
    assert state(server)[0] == 'VERIFY_RESIZE'


def test_a_local_disk_keeps_a_size(boot, resize):
    text = 'Server disk was unable to be resized because: Resize to zero disk flavor is not allowed.'
    assert message(resize(boot(), 'no-disk')) == (400, text)


def test_an_image_that_does_not_let_its_disk_be_resized(cloud, boot, resize):
    image = cloud.image(properties={'auto_disk_config': ' Disabled'})
    server = boot(imageRef=image)
    refused = resize(server, 'larger', **{'OS-DCF:diskConfig': 'AUTO'})
    assert message(refused) == (400, f'Requested image {image} has automatic disk resize disabled.')
    assert resize(server, 'larger', **{'OS-DCF:diskConfig': 'MANUAL'}).status == 202


@pytest.mark.parametrize(
    ('action', 'wanted'),
    [
        (('resize', {'flavorRef': 'larger'}), 'MANUAL'),
        (('resize', {'flavorRef': 'larger', 'OS-DCF:diskConfig': 'AUTO'}), 'AUTO'),
        (('migrate',), 'MANUAL'),
    ],
)
def test_automatic_disk_configuration_is_requested_each_time(api, boot, act, action, wanted):
    server = boot(**{'OS-DCF:diskConfig': 'AUTO'})
    assert act(server, *action, as_='admin:admin').status == 202
    assert api.get(f'/servers/{server}').json['server']['OS-DCF:diskConfig'] == wanted


def test_images_of_a_server_have_no_property_of_its_minimums(cloud, boot, api, settle):
    server = boot(imageRef=cloud.image(min_ram=65))
    answer = api.post(f'/servers/{server}/action', {'createImage': {'name': 'made'}}, '2.45', as_=BOB)
    settle()
    made = cloud.images.get(cloud.bob, answer.json['image_id'])
    assert not made.properties.keys() & {'min_ram', 'min_disk'}
    assert (made.min_ram, made.min_disk) == (65, 3)
