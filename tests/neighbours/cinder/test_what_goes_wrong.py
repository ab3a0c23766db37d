"""The effects when a real Cinder refuses, fails or is away, and when a process dies while it calls Cinder."""

import time

import pytest
from oslo_config import cfg

from computeapi.backends.volume.cinder import CinderVolumes
from tests.backends.implementations import ALICE, BOB
from tests.neighbours.cinder.servers import BLANK, attach, attached, delete, on_volume
from tests.proxy import Proxy


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
    # Avoids requests to Glance: the services share a token cache.
    answer = compute.create(token, imageRef='', block_device_mapping_v2=[{**BLANK, 'boot_index': 0}])
    assert answer.status_code == 202
    running.session.delete(f'{running.url}/auth/tokens', headers={'X-Subject-Token': token})
    compute.service.hosts.register()
    work(compute.service)
    server = compute.settled(answer.json['server']['id'])
    assert server['status'] == 'ERROR'
    assert 'the token of the request is no longer valid' in server['fault']['message'] and cinder.volumes() == {}


class Killed(BaseException):
    """The process dies in the middle of an operation."""


@pytest.mark.parametrize('step', ['create', 'reserve', 'complete'])
def test_a_process_that_dies_after_a_step_has_made_nothing_twice(compute_with, cinder, image, monkeypatch, step):
    compute = compute_with('workers = 0\n')
    service = compute.service
    service.hosts.register()
    server_id, method = on_volume(compute, image()), getattr(service.volumes, step)

    def killed(*args, **kwargs):
        method(*args, **kwargs)
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
    """Process all tasks, including those that wait for a volume."""
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
    assert answer.status_code == 400 and f'already attached to instances: {server_id}' in answer.text
    answer = attach(compute, other, cinder.reserved())
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


# ------------------------------------------------------------------ outages


@pytest.fixture
def proxy(running):
    """A proxy in front of Cinder."""
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
