"""Servers of signed images, with signature verification and with trusted certificates."""

import uuid
from dataclasses import replace

import pytest
import requests
from castellan.common.objects.x_509 import X509

from computeapi.backends.image.glance import GlanceImages
from computeapi.backends.image.local import LocalImages
from tests.api.servers.conftest import BOB, IMAGE
from tests.backends.test_image_signatures import configured as with_key_manager
from tests.invariants import problems
from tests.signing import Signer

DATA = b'\0' * 16
FAILED = 'Signature verification for the image failed: '
UNSIGNED = f'{FAILED}Required image properties for signature verification do not exist. '
IN_MEMORY = '[key_manager]\nbackend = castellan.tests.unit.key_manager.mock_key_manager.MockKeyManager\n'
ROOT = Signer('root', authority=True)
OWNER = Signer('owner', ROOT)


class SignedImages(LocalImages):
    """The built-in images, verified like those of a Glance; records what was verified."""

    signatures = GlanceImages.signatures
    trusted_certificates = ()
    verifies = validates = False

    def __init__(self, conf, store, folder):
        super().__init__(store, folder)
        self.service = type('Service', (), {'conf': conf})
        self.looked = []

    def check_signature(self, context, image_id, trusted):
        checked = GlanceImages.check_signature(self, context, image_id, trusted)
        self.looked += [image_id] if checked else []
        return checked


@pytest.fixture
def service(service, store, tmp_path):
    """All signatures are verified."""
    images = SignedImages(with_key_manager(tmp_path, IN_MEMORY), store, tmp_path / 'images')
    images.verifies, vars(service)['images'] = True, images
    return service


@pytest.fixture
def images(service):
    return service.images


@pytest.fixture
def keep(images):
    """keep(signer): the ID of its certificate."""
    return lambda signer: images.signatures.manager.store('anybody', X509(signer.der))


@pytest.fixture
def signed(world, keep):
    """signed(...): the ID of an image signed by its owner, with these properties."""

    def make(data=DATA, signer=OWNER, **properties):
        return world.image(properties=signer.properties(data, keep(signer)) | properties)

    return make


@pytest.fixture
def shown(api):
    """shown(server): its status and the message of its fault."""

    def get(server_id):
        server = api.get(f'/servers/{server_id}', '2.104').json['server']
        return server['status'], server.get('fault', {}).get('message')

    return get


@pytest.fixture
def boot(create, settle):
    """boot(image): the ID of a server after the workers have finished."""

    def booted(image_id, version='2.90', **kwargs):
        answer = create(version, imageRef=image_id, **kwargs)
        assert answer.status == 202, answer
        settle()
        return answer.json['server']['id']

    return booted


@pytest.fixture
def act(api, settle):
    def post(server_id, version='2.90', **action):
        answer = api.post(f'/servers/{server_id}/action', action, version, as_=BOB)
        settle()
        return answer

    return post


def nothing_is_left(world):
    assert problems(world.store) == []
    assert world.networks.ports(world.admin) == []
    assert world.volumes.list(world.bob) == []


# ------------------------------------------------------------------ boot


def test_a_server_of_a_signed_image(boot, shown, signed, images):
    image_id = signed()
    assert shown(boot(image_id)) == ('ACTIVE', None)
    assert images.looked == [image_id]


def test_what_does_not_hold_is_an_error_that_leaves_nothing(boot, shown, signed, world):
    disk = {'boot_index': 0, 'source_type': 'image', 'destination_type': 'local', 'delete_on_termination': True}
    blank = {'boot_index': -1, 'source_type': 'blank', 'destination_type': 'volume', 'volume_size': 1}
    blank['delete_on_termination'] = True
    for image_id, words in ((IMAGE, UNSIGNED), (signed(b'other data'), f'{FAILED}it does not match the data.')):
        server_id = boot(image_id, block_device_mapping_v2=[disk | {'uuid': image_id}, blank])
        status, fault = shown(server_id)
        assert status == 'ERROR' and fault.startswith(words)
        nothing_is_left(world)


def test_kernel_and_ramdisk_are_booted_too(boot, shown, signed, world, images):
    kernel, ramdisk, unsigned = signed(), signed(), world.image()
    image_id = signed(kernel_id=kernel, ramdisk_id=ramdisk)
    assert shown(boot(image_id)) == ('ACTIVE', None)
    assert images.looked == [image_id, kernel, ramdisk]
    status, fault = shown(boot(signed(kernel_id=kernel, ramdisk_id=unsigned)))
    assert status == 'ERROR' and fault.startswith(UNSIGNED)


def test_what_block_storage_writes_it_looks_at_itself(boot, shown, images):
    disk = {'boot_index': 0, 'uuid': IMAGE, 'source_type': 'image', 'destination_type': 'volume', 'volume_size': 1}
    assert shown(boot('', block_device_mapping_v2=[disk])) == ('ACTIVE', None)
    assert images.looked == []


def test_who_names_certificates_has_them_validated_in_any_case(boot, shown, signed, keep, images, world):
    images.verifies = False
    assert shown(boot(IMAGE)) == ('ACTIVE', None)
    assert images.looked == []
    root, other = keep(ROOT), keep(Signer('root', authority=True))
    assert shown(boot(signed(), trusted_image_certificates=[root])) == ('ACTIVE', None)
    status, fault = shown(boot(signed(), trusted_image_certificates=[other]))
    assert status == 'ERROR' and fault.startswith('Image signature certificate validation failed for certificate: ')
    status, fault = shown(boot(IMAGE, trusted_image_certificates=[root]))
    assert status == 'ERROR' and fault.startswith(UNSIGNED)


def test_servers_remember_the_default_certificates(api, boot, create, act, shown, signed, keep, images):
    images.validates, root = True, keep(ROOT)
    status, fault = shown(boot(signed()))
    assert status == 'ERROR' and 'no trusted certificate IDs were provided' in fault
    images.trusted_certificates = (root,)

    def trusted(server_id):
        assert shown(server_id) == ('ACTIVE', None)
        return api.get(f'/servers/{server_id}', '2.63').json['server']['trusted_image_certificates']

    image_id = signed()
    assert trusted(boot(image_id)) == [root]
    more = [root, keep(Signer('more', authority=True))]
    server_id = boot(image_id, trusted_image_certificates=more)
    assert trusted(server_id) == more
    assert act(server_id, rebuild={'imageRef': image_id}).status == 202
    assert trusted(server_id) == more
    assert act(server_id, rebuild={'imageRef': image_id, 'trusted_image_certificates': None}).status == 202
    assert trusted(server_id) == [root]
    disk = {'boot_index': 0, 'uuid': IMAGE, 'source_type': 'image', 'destination_type': 'volume', 'volume_size': 1}
    refused = create('2.90', imageRef='', block_device_mapping_v2=[disk])
    assert refused.status == 400
    assert 'Image certificate validation is not supported' in refused.json['badRequest']['message']


# ------------------------------------------------------------------ operations after boot


def test_rebuilding_to_what_does_not_hold_leaves_the_machine(boot, act, shown, signed, images, world, service):
    image_id, other = signed(), signed()
    server_id = boot(image_id)
    act(server_id, rebuild={'imageRef': other})
    assert shown(server_id) == ('ACTIVE', None)
    assert images.looked == [image_id, other]
    act(server_id, rebuild={'imageRef': IMAGE})
    status, fault = shown(server_id)
    assert status == 'ERROR' and fault.startswith(UNSIGNED)
    server = service.cloud.servers.get(world.admin, server_id)
    assert server.image_id == other
    assert service.hypervisor.power_state(server) is not None


def test_the_image_of_a_rescue(boot, act, shown, signed, images):
    server_id = boot(signed())
    act(server_id, rescue={'rescue_image_ref': IMAGE})
    status, fault = shown(server_id)
    assert fault.startswith(UNSIGNED)
    server_id, image_id = boot(signed()), signed()
    act(server_id, rescue={'rescue_image_ref': image_id})
    assert shown(server_id) == ('RESCUE', None)
    assert images.looked[-1] == image_id


def test_a_shelved_server_comes_back_once_its_image_is_signed(api, boot, act, shown, signed, keep, images, world):
    server_id = boot(signed())
    act(server_id, shelve=None)
    assert shown(server_id)[0] == 'SHELVED_OFFLOADED'
    act(server_id, unshelve=None)
    assert shown(server_id)[0] == 'SHELVED_OFFLOADED'
    [action, *_] = api.get(f'/servers/{server_id}/os-instance-actions').json['instanceActions']
    assert (action['action'], action['message']) == ('unshelve', 'Error')
    assert problems(world.store) == []
    [shelved] = [each for each in images.list(world.bob) if each.name == 'server-shelved']
    data = b''.join(images.download(world.bob, shelved.id))
    images.update(world.bob, shelved.id, properties=OWNER.properties(data, keep(OWNER)))
    act(server_id, unshelve=None)
    assert shown(server_id)[0] == 'ACTIVE'


def test_an_evacuated_server_is_made_again(boot, api, settle, shown, signed, images, world):
    world.service.conf.set_override('hosts', 2, 'simulated')
    world.service.hosts.register()
    image_id = signed()
    server_id = boot(image_id)

    def evacuate():
        host = api.get(f'/servers/{server_id}').json['server']['OS-EXT-SRV-ATTR:host']
        world.down(host)
        assert api.post(f'/servers/{server_id}/action', {'evacuate': {}}, '2.90').status == 200
        settle()
        world.up(host)

    evacuate()
    assert shown(server_id) == ('ACTIVE', None)
    assert images.looked == [image_id, image_id]
    images.update(world.bob, image_id, properties={})
    evacuate()
    status, fault = shown(server_id)
    assert status == 'ERROR' and fault.startswith(UNSIGNED)


# ------------------------------------------------------------------ repetition


def test_an_image_is_read_once_for_a_task_that_waits(create, api, settle, signed, images, world, monkeypatch):
    """The task is resumed repeatedly until the network service reports the ports as plugged."""
    ports = world.networks.ports

    def unplugged(context, **kwargs):
        return [replace(each, status='DOWN') for each in ports(context, **kwargs)]

    monkeypatch.setattr(world.networks, 'ports', unplugged)
    server_id = create(imageRef=signed()).json['server']['id']
    for _ in range(3):
        settle(later=True)
    monkeypatch.undo()
    settle(later=True)
    assert api.get(f'/servers/{server_id}').json['server']['status'] == 'ACTIVE'
    assert len(images.looked) == 1


@pytest.mark.parametrize('late', [False, True])
def test_a_key_manager_that_is_away_is_waited_for(create, shown, settle, signed, images, world, monkeypatch, late):
    def refuse(*_):
        raise requests.ConnectionError('refused')

    world.service.conf.set_override('neighbour_timeout', 0 if late else 3600)
    image_id = signed()
    monkeypatch.setattr(images.signatures.manager, 'get', refuse)
    server_id = create(imageRef=image_id).json['server']['id']
    settle()
    words = 'The key manager is currently unavailable. Gave up after 0 s.'
    assert shown(server_id) == (('ERROR', words) if late else ('BUILD', None))
    monkeypatch.undo()
    settle(later=True)
    assert shown(server_id) == (('ERROR', words) if late else ('ACTIVE', None))
    if late:
        nothing_is_left(world)


def test_a_certificate_id_that_nobody_knows(boot, shown, signed):
    unknown = str(uuid.uuid4())
    status, fault = shown(boot(signed(img_signature_certificate_uuid=unknown)))
    assert (status, fault) == ('ERROR', f'{FAILED}Certificate not found with ID: {unknown}.')
