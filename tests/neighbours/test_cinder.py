"""Servers on the volumes of a real Cinder, for callers of a real Keystone."""

import contextlib
import time

import pytest
from oslo_config import cfg

from computeapi.backends.volume.cinder import CinderVolumes
from tests.backends.implementations import ADMIN, ALICE, BOB
from tests.neighbours import cloud
from tests.neighbours.compute import Compute
from tests.proxy import Proxy

HOSTS = '[simulated]\nhosts = 3\n'
QUICK = '[DEFAULT]\nblock_device_allocate_retries_interval = 1\ntask_sweep_interval = 1\n'
NEW_ROOT = {
    'boot_index': 0,
    'source_type': 'image',
    'destination_type': 'volume',
    'volume_size': 1,
    'delete_on_termination': True,
}
BLANK = {'source_type': 'blank', 'destination_type': 'volume', 'volume_size': 1, 'delete_on_termination': True}


@pytest.fixture
def running():
    running = cloud.running()
    running.clean('block-storage', 'image')
    return running


@pytest.fixture
def compute_with(running, store):
    """A function: the compute API with these options more."""
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
    """A function: the id of an image that servers boot from."""

    def make():
        glance = running.service('image', ALICE)
        body = {'name': 'base', 'disk_format': 'raw', 'container_format': 'bare'}
        image_id = glance.post('/images', json=body).json()['id']
        glance.put(f'/images/{image_id}/file', data=b'disk', headers={'Content-Type': 'application/octet-stream'})
        return image_id

    return make


class BlockStorage:
    """What there is in Cinder."""

    def __init__(self, running):
        self.mine, self.all = running.service('block-storage', ALICE), running.service('block-storage')

    def volumes(self):
        """The statuses of the project's volumes, by id."""
        return {each['id']: each['status'] for each in self.mine.get('/volumes/detail').json()['volumes']}

    def volume(self, volume_id):
        return self.all.get(f'/volumes/{volume_id}').json()['volume']

    def attachments(self, server_id):
        path = f'/attachments?all_tenants=1&instance_id={server_id}'
        return self.all.get(path, microversion='3.27').json()['attachments']

    def users(self, volume_id):
        """The hosts that use a volume."""
        return [each['host_name'] for each in self.volume(volume_id)['attachments']]

    def create(self, **facts):
        """The id of a volume that is there."""
        volume_id = self.mine.post('/volumes', json={'volume': {'size': 1, **facts}}).json()['volume']['id']
        self.settled(volume_id)
        return volume_id

    def settled(self, volume_id, *statuses):
        """Wait for the volume to be in one of these statuses, or not under way to any."""
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            status = self.volume(volume_id)['status']
            if status in statuses or not statuses and not status.endswith('ing'):
                return status
            time.sleep(0.1)
        raise TimeoutError(status)

    def empty(self):
        """Wait until the project has no volumes."""
        deadline = time.monotonic() + 30
        while left := self.volumes():
            assert time.monotonic() < deadline, left
            time.sleep(0.1)


@pytest.fixture
def cinder(running):
    return BlockStorage(running)


def on_volume(compute, image_id, *more, **facts):
    """The id of a server on a volume that is made from the image, and what became of it."""
    devices = [{**NEW_ROOT, 'uuid': image_id}, *more]
    answer = compute.create(imageRef='', block_device_mapping_v2=devices, **facts)
    assert answer.status_code == 202, answer.text
    return answer.json['server']['id']


def attached(compute, server_id):
    path = f'GET /servers/{server_id}/os-volume_attachments'
    return {each['volumeId']: each['attachment_id'] for each in compute.ask(ALICE, path).json['volumeAttachments']}


def attach(compute, server_id, volume_id):
    body = {'volumeAttachment': {'volumeId': volume_id}}
    return compute.ask(ALICE, f'POST /servers/{server_id}/os-volume_attachments', body)


def detach(compute, server_id, volume_id):
    return compute.ask(ALICE, f'DELETE /servers/{server_id}/os-volume_attachments/{volume_id}')


def delete(compute, server_id):
    assert compute.ask(ALICE, f'DELETE /servers/{server_id}').status_code == 204
    compute.gone(server_id)


# ------------------------------------------------------------------ lives of servers


def test_the_volumes_of_a_server_follow_it(compute, cinder, image):
    server_id = on_volume(compute, image(), BLANK)
    assert compute.settled(server_id)['status'] == 'ACTIVE'
    more = cinder.create()
    assert attach(compute, server_id, more).status_code == 200
    cinder.settled(more, 'in-use')

    def check(status, caller=ALICE, **action):
        assert compute.act(server_id, caller=caller, **action).status_code == 202
        assert compute.settled(server_id)['status'] == status
        host = compute.ask(ADMIN, f'GET /servers/{server_id}').json['server']['OS-EXT-SRV-ATTR:host']
        known = {each['id']: each['status'] for each in cinder.attachments(server_id)}
        assert set(known) == set(attached(compute, server_id).values()) and len(known) == 3
        assert set(known.values()) == ({'attached'} if host else {'reserved'})
        for volume_id in attached(compute, server_id):
            assert cinder.users(volume_id) == ([host] if host else [])

    other = {**{'name': 'other', 'ram': 128, 'vcpus': 1, 'disk': 1}, 'id': '2'}
    compute.ask(ADMIN, 'POST /flavors', {'flavor': other})
    check('VERIFY_RESIZE', resize={'flavorRef': '2'})
    check('ACTIVE', revertResize=None)
    check('VERIFY_RESIZE', ADMIN, migrate=None)
    assert compute.act(server_id, confirmResize=None).status_code == 204
    while compute.settled(server_id)['status'] != 'ACTIVE':
        time.sleep(0.1)
    check('ACTIVE', ADMIN, **{'os-migrateLive': {'host': None, 'block_migration': 'auto'}})
    check('SHELVED_OFFLOADED', shelve=None)
    check('ACTIVE', unshelve=None)
    assert detach(compute, server_id, more).status_code == 202
    assert cinder.settled(more, 'available') == 'available'
    delete(compute, server_id)
    assert cinder.attachments(server_id) == []
    cinder.all.delete(f'/volumes/{more}')
    cinder.empty()


def test_a_new_image_on_the_same_volume(compute, cinder, image):
    first, second = image(), image()
    server_id = on_volume(compute, first)
    assert compute.settled(server_id)['status'] == 'ACTIVE'
    [volume_id] = attached(compute, server_id)
    answer = compute.ask(ALICE, f'POST /servers/{server_id}/action', {'rebuild': {'imageRef': second}}, version='2.93')
    assert answer.status_code == 202
    assert compute.settled(server_id)['status'] == 'ACTIVE'
    assert [*attached(compute, server_id)] == [volume_id]
    volume = cinder.volume(volume_id)
    assert (volume['status'], volume['volume_image_metadata']['image_id']) == ('in-use', second)


def test_one_volume_for_several_servers(compute, cinder, image):
    volume_id, image_id = cinder.create(volume_type='multiattach'), image()
    servers = [on_volume(compute, image_id) for _ in range(2)]
    for count, server_id in enumerate(servers, 1):
        assert compute.settled(server_id)['status'] == 'ACTIVE'
        assert attach(compute, server_id, volume_id).status_code == 200
        deadline = time.monotonic() + 30
        while len(cinder.users(volume_id)) < count:
            assert time.monotonic() < deadline
            time.sleep(0.1)
    delete(compute, servers[0])
    assert cinder.settled(volume_id, 'in-use') == 'in-use'
    delete(compute, servers[1])
    assert cinder.settled(volume_id, 'available') == 'available'


def test_servers_made_of_images_of_volumes(compute, cinder, image):
    server_id = on_volume(compute, image())
    assert compute.settled(server_id)['status'] == 'ACTIVE'
    answer = compute.act(server_id, createImage={'name': 'copy'})
    assert answer.status_code == 202
    copy = compute.boot(answer.json['image_id'])
    [volume_id] = attached(compute, copy)
    [snapshot] = cinder.mine.get('/snapshots').json()['snapshots']
    assert cinder.volume(volume_id)['snapshot_id'] == snapshot['id']
    assert (snapshot['name'], snapshot['status']) == ('snapshot for copy', 'available')


# ------------------------------------------------------------------ what goes wrong


def test_without_a_key_for_tokens_the_service_does_not_start(running):
    conf = running.conf(volume='cinder')
    conf.set_override('task_token_key', [], 'service_user')
    with pytest.raises(cfg.ConfigFileValueError, match='task_token_key'):
        CinderVolumes(conf)


def test_a_volume_in_error_is_the_end_of_the_boot(compute, cinder, image):
    specs = {'volume_backend_name': 'nowhere'}
    made = cinder.all.post('/types', json={'volume_type': {'name': 'nowhere', 'extra_specs': specs}})
    type_id = made.json()['volume_type']['id']
    try:
        server_id = on_volume(compute, image(), {**BLANK, 'volume_type': 'nowhere'})
        server = compute.settled(server_id)
        assert server['status'] == 'ERROR'
        assert 'did not finish being created: its status is error' in server['fault']['message']
        assert cinder.attachments(server_id) == []
        cinder.empty()
    finally:
        cinder.all.delete(f'/types/{type_id}')


def test_a_token_that_was_revoked_makes_no_volume(running, compute_with, cinder):
    compute = compute_with('workers = 0\n')
    token = running.password_of(ALICE).get_token(running.session)
    # Nothing that Glance is asked for: the services share a cache of tokens.
    answer = compute.create(token, imageRef='', block_device_mapping_v2=[{**BLANK, 'boot_index': 0}])
    assert answer.status_code == 202
    running.session.delete(f'{running.url}/auth/tokens', headers={'X-Subject-Token': token})
    compute.service.hosts.register()
    work(compute.service)
    server = compute.settled(answer.json['server']['id'])
    assert server['status'] == 'ERROR'
    assert (
        'the token with which the server was asked for is not valid any more' in server['fault']['message']
        and cinder.volumes() == {}
    )


class Killed(BaseException):
    """The process ends in the middle of something."""


@pytest.mark.parametrize('step', ['create', 'reserve', 'complete'])
def test_a_process_that_dies_after_a_step_has_made_nothing_twice(compute_with, cinder, image, monkeypatch, step):
    compute = compute_with('workers = 0\n')
    service = compute.service
    service.hosts.register()
    server_id, method = on_volume(compute, image()), getattr(service.volumes, step)

    def killed(*arguments, **facts):
        method(*arguments, **facts)
        raise Killed

    monkeypatch.setattr(service.volumes, step, killed)
    with pytest.raises(Killed):
        work(service)
    monkeypatch.undo()
    service.platform.tasks.release_all()
    work(service)
    assert compute.settled(server_id)['status'] == 'ACTIVE'
    assert len(cinder.volumes()) == len(cinder.attachments(server_id)) == 1


def work(service):
    """Do what there is, also what waits for a volume."""
    deadline = time.monotonic() + 30
    while service.worker.step() or not service.platform.tasks.idle():
        assert time.monotonic() < deadline
        time.sleep(0.2)


def test_requests_that_cinder_refuses(running, compute, cinder, image):
    image_id, taken = image(), cinder.create()
    server_id, other = on_volume(compute, image_id), on_volume(compute, image_id)
    for each in (server_id, other):
        assert compute.settled(each)['status'] == 'ACTIVE'
    assert attach(compute, server_id, taken).status_code == 200
    cinder.settled(taken, 'in-use')
    foreign = running.service('block-storage', BOB).post('/volumes', json={'volume': {'size': 1}}).json()['volume']
    cinder.settled(foreign['id'])
    answer = attach(compute, other, taken)
    assert answer.status_code == 400 and 'Invalid input received: ' in answer.text
    assert attach(compute, server_id, taken).status_code == 400
    assert attach(compute, server_id, foreign['id']).status_code == 404
    for volume_id, words in ((foreign['id'], 'failed to get volume'), (taken, 'not bootable')):
        disk = {'boot_index': 0, 'source_type': 'volume', 'destination_type': 'volume', 'uuid': volume_id}
        answer = compute.create(imageRef='', block_device_mapping_v2=[disk])
        assert answer.status_code == 400 and words in answer.text
    disk = {**BLANK, 'boot_index': 0, 'volume_type': 'nothing'}
    assert compute.create(imageRef='', block_device_mapping_v2=[disk]).status_code == 400
    assert len(cinder.attachments(server_id)) == 2 and len(cinder.attachments(other)) == 1


def test_volumes_of_other_zones(compute_with, cinder, image):
    compute = compute_with('[cinder]\ncross_az_attach = false\n')
    server_id = on_volume(compute, image(), BLANK)
    assert compute.settled(server_id)['status'] == 'ACTIVE'
    assert {cinder.volume(each)['availability_zone'] for each in attached(compute, server_id)} == {'nova'}
    far = cinder.create(availability_zone='far')
    answer = attach(compute, server_id, far)
    assert answer.status_code == 400 and 'availability zone far' in answer.text
    assert attach(compute, server_id, cinder.create()).status_code == 200


# ------------------------------------------------------------------ the proxies


def test_the_proxies_of_volumes_and_snapshots(running, compute, cinder):
    def ask(request, json=None, caller=ALICE):
        return compute.ask(caller, request, json, version='2.35')

    made = ask('POST /os-volumes', {'volume': {'size': 1, 'display_name': 'mine', 'metadata': {'a': 'b'}}})
    assert made.status_code == 200
    volume_id = made.json['volume']['id']
    cinder.settled(volume_id)
    shown = ask(f'GET /os-volumes/{volume_id}').json['volume']
    assert (shown['displayName'], shown['metadata'], shown['status']) == ('mine', {'a': 'b'}, 'available')
    assert ask('GET /os-volumes').json['volumes'] == [shown]
    assert ask(f'GET /os-volumes/{volume_id}', caller=BOB).status_code == 404
    snapshot = ask('POST /os-snapshots', {'snapshot': {'volume_id': volume_id, 'display_name': 's'}}).json['snapshot']
    deadline = time.monotonic() + 30
    while ask(f'GET /os-snapshots/{snapshot["id"]}').json['snapshot']['status'] != 'available':
        assert time.monotonic() < deadline
    assert [each['displayName'] for each in ask('GET /os-snapshots/detail').json['snapshots']] == ['s']
    assert ask(f'DELETE /os-volumes/{volume_id}').status_code == 400
    assert ask('POST /os-volumes', {'volume': {'size': 1, 'volume_type': 'nothing'}}).status_code == 404
    cinder.all.put(f'/os-quota-sets/{running.project_id("apples")}', json={'quota_set': {'volumes': 1, 'snapshots': 1}})
    assert ask('POST /os-volumes', {'volume': {'size': 1}}).status_code == 403
    assert ask('POST /os-snapshots', {'snapshot': {'volume_id': volume_id}}).status_code == 403
    assert ask(f'DELETE /os-snapshots/{snapshot["id"]}').status_code == 202
    with contextlib.suppress(AssertionError):
        while ask(f'GET /os-snapshots/{snapshot["id"]}').status_code != 404:
            assert time.monotonic() < deadline
    assert ask(f'DELETE /os-volumes/{volume_id}').status_code == 202
    cinder.empty()


# ------------------------------------------------------------------ away


@pytest.fixture
def proxy(running):
    """Before Cinder."""
    host, port = running.service('block-storage').get_endpoint().split('/')[2].split(':')
    proxy = Proxy(host, int(port))
    yield proxy
    proxy.close()


@pytest.fixture
def behind(compute_with, proxy):
    return compute_with(
        f'[cinder]\nendpoint_override = http://127.0.0.1:{proxy.port}/v3\nconnect_retries = 0\n'
        '[DEFAULT]\nneighbour_timeout = 2\n'
    )


def test_requests_that_need_cinder_name_it_while_it_is_away(behind, proxy, cinder, image):
    server_id, more = on_volume(behind, image()), cinder.create()
    assert behind.settled(server_id)['status'] == 'ACTIVE'
    [root] = attached(behind, server_id)
    disk = {'boot_index': 0, 'source_type': 'volume', 'destination_type': 'volume', 'uuid': more}
    proxy.refuse()
    for answer in (
        behind.ask(ALICE, 'GET /os-volumes', version='2.35'),
        attach(behind, server_id, more),
        behind.create(imageRef='', block_device_mapping_v2=[disk]),
        behind.act(server_id, createImage={'name': 'copy'}),
    ):
        assert answer.status_code == 503, answer.text
        assert answer.json['serviceUnavailable']['message'] == 'Cinder is currently unavailable.'
    assert behind.ask(ALICE, 'GET /servers/detail').status_code == 200
    assert attached(behind, server_id).keys() == {root}
    proxy.go_on()
    assert cinder.volume(more)['status'] == 'available'
    assert attach(behind, server_id, more).status_code == 200
    assert cinder.settled(more, 'in-use')


def test_a_deletion_waits_for_cinder_and_can_be_asked_for_again(behind, proxy, cinder, image):
    server_id = on_volume(behind, image())
    assert behind.settled(server_id)['status'] == 'ACTIVE'
    proxy.refuse()
    assert behind.ask(ALICE, f'DELETE /servers/{server_id}').status_code == 204
    server = behind.settled(server_id)
    assert server['status'] == 'ERROR' and 'Cinder is currently unavailable' in server['fault']['message']
    proxy.go_on()
    delete(behind, server_id)
    assert cinder.attachments(server_id) == []
    cinder.empty()


def test_a_boot_that_loses_cinder_leaves_nothing_there(behind, proxy, cinder, image):
    image_id = image()
    proxy.cut_at('POST /v3/attachments', times=1000)
    server_id = on_volume(behind, image_id)
    server = behind.settled(server_id)
    assert server['status'] == 'ERROR' and 'Cinder is currently unavailable' in server['fault']['message']
    proxy.cut_at('nothing', times=0)
    cinder.empty()
    delete(behind, server_id)
