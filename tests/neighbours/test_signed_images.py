"""Servers of signed images, with certificates in a real Barbican and images in a real Glance."""

from base64 import b64encode

import pytest

from tests.backends.implementations import ALICE, BOB
from tests.neighbours import cloud
from tests.neighbours.compute import Compute
from tests.proxy import Proxy
from tests.signing import Signer

VERIFIES = '[glance]\nverify_glance_signatures = true\n'
FAILED = 'Signature verification for the image failed: '
# More than Glance sends at a time.
DATA = bytes(range(256)) * 20_000
OTHER_DATA = b'!' + DATA[1:]
JSON_PATCH = 'application/openstack-images-v2.1-json-patch'
ROOT = Signer('root', authority=True)
OWNER = Signer('owner', ROOT)


@pytest.fixture
def running():
    running = cloud.running()
    running.clean('image')
    return running


@pytest.fixture
def keep(running):
    """keep(signer): the ID of its certificate in Barbican."""
    kept = []

    def store(signer, caller=ALICE):
        barbican = running.service('key-manager', caller)
        payload = {'payload': b64encode(signer.pem).decode(), 'payload_content_encoding': 'base64'}
        facts = {'secret_type': 'certificate', 'payload_content_type': 'application/octet-stream', **payload}
        certificate_id = barbican.post('/v1/secrets', json=facts).json()['secret_ref'].rpartition('/')[2]
        kept.append((barbican, certificate_id))
        return certificate_id

    yield store
    for barbican, certificate_id in kept:
        barbican.delete(f'/v1/secrets/{certificate_id}')


@pytest.fixture
def upload(running):
    """upload(data, properties): the ID of an image of ALICE's. later: properties set after the upload, so that Glance
    does not verify them."""
    glance = running.service('image', ALICE)

    def make(data=DATA, properties=(), later=()):
        body = {'name': 'signed', 'disk_format': 'raw', 'container_format': 'bare', **dict(properties)}
        image_id = glance.post('/images', json=body).json()['id']
        glance.put(f'/images/{image_id}/file', data=data, headers={'Content-Type': 'application/octet-stream'})
        changes = [{'op': 'add', 'path': f'/{name}', 'value': value} for name, value in dict(later).items()]
        glance.patch(f'/images/{image_id}', json=changes, headers={'Content-Type': JSON_PATCH})
        return image_id

    return make


@pytest.fixture
def compute_with(running, store):
    """compute_with(options): the compute API with these options."""
    made = []

    def make(options=VERIFIES):
        made.append(Compute(running, store, options, image='glance'))
        return made[-1]

    yield make
    for each in made:
        each.service.stop()


def outcome(compute, image_id, **kwargs):
    """The status and the fault of a server of this image."""
    answer = compute.create(imageRef=image_id, **kwargs)
    assert answer.status_code == 202, answer.text
    server = compute.settled(answer.json['server']['id'])
    return server['status'], server.get('fault', {}).get('message')


def test_what_its_owner_signed_boots_and_nothing_else(compute_with, keep, upload):
    compute, certificate_id = compute_with(), keep(OWNER)
    properties = OWNER.properties(DATA, certificate_id)
    assert outcome(compute, upload(DATA, properties)) == ('ACTIVE', None)
    changed = upload(OTHER_DATA, later=properties)
    assert outcome(compute, changed) == ('ERROR', f'{FAILED}it does not match the data.')
    foreign = upload(DATA, later=OWNER.properties(OTHER_DATA, certificate_id))
    assert outcome(compute, foreign) == ('ERROR', f'{FAILED}it does not match the data.')
    status, fault = outcome(compute, upload(DATA))
    assert status == 'ERROR' and 'Missing property: img_signature' in fault
    assert outcome(compute_with(''), changed) == ('ACTIVE', None)


def test_certificates_that_are_trusted(compute_with, keep, upload):
    image_id = upload(DATA, OWNER.properties(DATA, keep(OWNER)))
    root, other = keep(ROOT), keep(Signer('root', authority=True))
    compute = compute_with(f'{VERIFIES}enable_certificate_validation = true\n')
    assert outcome(compute, image_id, trusted_image_certificates=[other, root]) == ('ACTIVE', None)
    words = 'Image signature certificate validation failed for certificate: '
    for trusted, fault in (([other], words), (None, 'Image signature certificate validation enabled, but no trusted')):
        status, found = outcome(compute, image_id, **({'trusted_image_certificates': trusted} if trusted else {}))
        assert status == 'ERROR' and found.startswith(fault)
    defaults = f'{VERIFIES}enable_certificate_validation = true\ndefault_trusted_certificate_ids = {root}\n'
    assert outcome(compute_with(defaults), image_id) == ('ACTIVE', None)


def test_certificates_that_the_owner_of_the_server_may_not_read(compute_with, keep, upload):
    certificate_id = keep(OWNER, BOB)
    image_id = upload(DATA, later=OWNER.properties(DATA, certificate_id))
    unreadable = f'{FAILED}Unable to retrieve certificate with ID: {certificate_id}.'
    assert outcome(compute_with(), image_id) == ('ERROR', unreadable)


@pytest.fixture
def barbican(running):
    """A proxy in front of Barbican."""
    host, port = running.service('key-manager', ALICE).get_endpoint().split('/')[2].split(':')
    proxy = Proxy(host, int(port))
    yield proxy
    proxy.close()


def test_a_barbican_that_is_away_is_waited_for_and_named(compute_with, keep, upload, barbican):
    image_id = upload(DATA, OWNER.properties(DATA, keep(OWNER)))
    behind = f'{VERIFIES}[barbican]\nbarbican_endpoint = http://127.0.0.1:{barbican.port}\n'
    barbican.refuse()
    compute = compute_with(f'[DEFAULT]\nneighbour_timeout = 1\n{behind}')
    words = 'Barbican is currently unavailable. Gave up after 1 s.'
    assert outcome(compute, image_id) == ('ERROR', words)
    compute.service.stop()
    compute = compute_with(behind)
    server_id = compute.create(imageRef=image_id).json['server']['id']
    while (server := compute.ask(ALICE, f'GET /servers/{server_id}').json['server'])['status'] == 'BUILD':
        if server['OS-EXT-STS:task_state'] == 'spawning':
            barbican.go_on()
    assert server['status'] == 'ACTIVE'
