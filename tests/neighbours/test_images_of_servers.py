"""Servers that boot from images of a real Glance, and are saved as images, for callers of a real Keystone."""

import logging

import pytest

from tests.backends.implementations import ADMIN, ALICE, BOB
from tests.neighbours import cloud
from tests.neighbours.compute import FLAVOR, Compute
from tests.proxy import Proxy

RAW = {'disk_format': 'raw', 'container_format': 'bare'}


@pytest.fixture
def running():
    running = cloud.running()
    running.clean('image')
    return running


@pytest.fixture
def glance(running):
    return running.service('image', ALICE)


@pytest.fixture
def compute_with(running, store):
    """compute_with(options): the compute API with these further options."""
    made = []

    def make(options=''):
        made.append(Compute(running, store, options, image='glance'))
        return made[-1]

    yield make
    for each in made:
        each.service.stop()


@pytest.fixture
def compute(compute_with):
    return compute_with()


@pytest.fixture
def image_id(glance):
    """The ID of a bootable image."""
    body = {'name': 'base', 'min_disk': 1, 'hw_disk_bus': 'virtio', 'os_distro': 'none', **RAW}
    image_id = glance.post('/images', json=body).json()['id']
    glance.put(f'/images/{image_id}/file', data=b'disk', headers={'Content-Type': 'application/octet-stream'})
    return image_id


@pytest.fixture
def images(running, glance):
    """images(): the images of the project, by name."""
    path = f'/images?owner={running.project_id("apples")}'
    return lambda: {image['name']: image for image in glance.get(path).json()['images']}


def revocable(running):
    """A token of ALICE's that nobody else uses, and a function that revokes it."""
    token = running.password_of(ALICE).get_token(running.session)
    headers = {'X-Subject-Token': token}
    return token, lambda: running.session.delete(f'{running.url}/auth/tokens', headers=headers)


def test_a_server_becomes_an_image_though_the_token_ends_meanwhile(running, compute_with, glance, image_id):
    compute = compute_with('[simulated]\nsnapshot_seconds = 2\n')
    token, end = revocable(running)
    server_id = compute.boot(image_id, token)
    answer = compute.act(server_id, token, createImage={'name': 'copy', 'metadata': {'why': 'test'}})
    assert answer.status_code == 202
    end()
    compute.settled(server_id)
    copy = glance.get(f'/images/{answer.json["image_id"]}').json()
    assert (copy['status'], copy['owner'], copy['visibility']) == ('active', running.project_id('apples'), 'private')
    assert (copy['hw_disk_bus'], copy['why'], copy['image_type']) == ('virtio', 'test', 'snapshot')
    assert (copy['instance_uuid'], copy['base_image_ref'], copy['min_disk']) == (server_id, image_id, 1)


def test_a_boot_asks_for_its_image_once(compute, image_id, caplog):
    compute.boot(image_id)
    caplog.set_level(logging.DEBUG, 'keystoneauth')
    compute.boot(image_id)
    asked = [record.message for record in caplog.records if record.message.startswith('REQ: ')]
    assert len(asked) == 1 and f'/v2/images/{image_id} ' in asked[0]
    caplog.clear()
    assert compute.ask(ALICE, 'GET /servers/detail').status_code == 200
    assert not [record for record in caplog.records if record.message.startswith('REQ: ')]


def test_backups_take_turns(compute, images, image_id):
    server_id = compute.boot(image_id)
    for name in ('first', 'second', 'third'):
        backup = {'name': name, 'backup_type': 'daily', 'rotation': 2}
        assert compute.act(server_id, createBackup=backup).status_code == 202
        compute.settled(server_id)
    assert 'third' in images() and len(images()) == 3


def test_a_shelved_server_is_an_image_for_as_long(compute, images, image_id):
    server_id = compute.boot(image_id)
    compute.act(server_id, shelve=None)
    assert compute.settled(server_id)['status'] == 'SHELVED_OFFLOADED'
    assert images()['web-shelved']['status'] == 'active'
    compute.act(server_id, unshelve=None)
    assert compute.settled(server_id)['status'] == 'ACTIVE'
    assert set(images()) == {'base'}


def test_a_snapshot_that_fails_leaves_nothing(compute_with, images, image_id):
    compute = compute_with('[simulated]\nfail = snapshot\n')
    server_id = compute.boot(image_id)
    assert compute.act(server_id, createImage={'name': 'copy'}).status_code == 202
    assert compute.settled(server_id)['status'] == 'ACTIVE'
    assert set(images()) == {'base'}


def test_images_that_servers_do_not_boot_from(running, compute, glance, image_id):
    def refused(image_id):
        server = {'name': 'web', 'flavorRef': '1', 'imageRef': image_id, 'networks': 'none'}
        answer = compute.ask(ALICE, 'POST /servers', {'server': server})
        assert answer.status_code == 400
        return answer.json['badRequest']['message']

    compute.ask(ADMIN, 'POST /flavors', {'flavor': FLAVOR})
    queued = glance.post('/images', json={'name': 'queued', **RAW}).json()['id']
    foreign = running.service('image', BOB).post('/images', json={'name': 'foreign', **RAW}).json()['id']
    assert refused(queued) == f'Image {queued} is not active.'
    assert refused(foreign) == 'Can not find requested image'
    running.service('image').post(f'/images/{image_id}/actions/deactivate')
    assert refused(image_id) == f'Image {image_id} is not active.'


def test_the_proxy_of_images(running, compute, glance, image_id):
    def ask(request, caller=ALICE, version='2.35', **body):
        return compute.ask(caller, request, version=version, **body)

    [shown] = [each for each in ask('GET /images/detail').json['images'] if each['id'] == image_id]
    assert shown['status'] == 'ACTIVE' and shown['metadata'] == {'hw_disk_bus': 'virtio', 'os_distro': 'none'}
    assert shown['links'][-1]['href'].startswith(compute.service.images.address(ADMIN.elevated()))
    assert ask(f'GET /images/{image_id}').json['image'] == shown
    found = ask(
        'GET /images?name=base&status=ACTIVE&minDisk=1&property-os_distro=none&changes-since=2020-01-01T00:00:00Z'
    )
    assert [each['id'] for each in found.json['images']] == [image_id]
    path = f'/images/{image_id}/metadata'
    assert ask(f'POST {path}', json={'metadata': {'a': 'b'}}).json['metadata']['os_distro'] == 'none'
    assert ask(f'PUT {path}', json={'metadata': {'c': 'd', 'e': 'f'}}).json == {'metadata': {'c': 'd', 'e': 'f'}}
    assert ask(f'DELETE {path}/c').status_code == 204
    assert ask(f'GET {path}').json == {'metadata': {'e': 'f'}}
    assert ask(f'GET /images/{image_id}', BOB).status_code == 404
    glance.patch(
        f'/images/{image_id}',
        json=[{'op': 'replace', 'path': '/visibility', 'value': 'community'}],
        headers={'Content-Type': 'application/openstack-images-v2.1-json-patch'},
    )
    assert ask(f'POST {path}', BOB, json={'metadata': {'a': 'b'}}).status_code == 403
    assert ask(f'DELETE /images/{image_id}', BOB).status_code == 403
    assert ask(f'DELETE /images/{image_id}').status_code == 204
    assert ask(f'GET /images/{image_id}').status_code == 404
    assert ask('GET /images', version='2.36').status_code == 404


# ------------------------------------------------------------------ outages


@pytest.fixture
def proxy(running):
    """A proxy in front of Glance."""
    url = running.service('image').adapter.get_endpoint()
    host, port = url.split('/')[2].split(':')
    proxy = Proxy(host, int(port))
    yield proxy
    proxy.close()


@pytest.fixture
def behind(compute_with, proxy):
    return compute_with(f'[glance]\nendpoint_override = http://127.0.0.1:{proxy.port}\nconnect_retries = 0\n')


def test_requests_that_need_glance_name_it_while_it_is_away(behind, proxy, images, image_id):
    server_id = behind.boot(image_id)
    proxy.refuse()
    away = {'serviceUnavailable': {'code': 503, 'message': 'Glance is currently unavailable.'}}
    for answer in (
        behind.ask(ALICE, 'GET /images', version='2.35'),
        behind.act(server_id, createImage={'name': 'copy'}),
        behind.act(server_id, shelve=None),
        behind.act(server_id, rebuild={'imageRef': image_id}),
    ):
        assert (answer.status_code, answer.json) == (503, away)
    assert behind.settled(server_id)['status'] == 'ACTIVE'
    assert behind.ask(ALICE, 'GET /servers/detail').status_code == 200
    proxy.go_on()
    assert behind.act(server_id, shelve=None).status_code == 202
    assert behind.settled(server_id)['status'] == 'SHELVED_OFFLOADED'
    assert set(images()) == {'base', 'web-shelved'}


def test_an_upload_that_is_cut_is_made_again(behind, proxy, glance, image_id):
    server_id = behind.boot(image_id)
    proxy.cut_at('PUT /v2/images/')
    answer = behind.act(server_id, createImage={'name': 'copy'})
    assert answer.status_code == 202
    assert behind.settled(server_id)['status'] == 'ACTIVE'
    assert proxy.cuts == 0
    assert glance.get(f'/images/{answer.json["image_id"]}').json()['status'] == 'active'
