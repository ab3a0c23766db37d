"""Snapshots that the hypervisor takes for the volume service."""

import json
import uuid
from urllib.parse import quote

import pytest

from computeapi.backends.hypervisor import HypervisorError
from computeapi.clock import utcnow
from computeapi.context import Context
from computeapi.db import block_devices

BOB = 'bob:project'
SNAPSHOTS = '/os-assisted-volume-snapshots'
VOLUME, SNAPSHOT = '521752a6-acf6-4b2d-bc7a-119f9148cd8c', '421752a6-acf6-4b2d-bc7a-119f9148cd8c'
INFO = '%7B%22volume_id%22%3A%22' + VOLUME + '%22%7D'


def attach(store, server_id, volume_id=VOLUME):
    device = {
        'uuid': str(uuid.uuid4()),
        'server_id': server_id,
        'source_type': 'volume',
        'destination_type': 'volume',
        'device_name': '/dev/vdb',
        'volume_id': volume_id,
        'delete_on_termination': False,
        'created_at': utcnow(),
    }
    with store.write() as connection:
        block_devices.insert(connection, device)


@pytest.fixture
def server(service, store, servers):
    """A running server with the volume; its record."""
    server = servers.get(servers.add())
    attach(store, server.uuid)
    service.hypervisor.spawn(server, [])
    return server


def console(service, server):
    """The console output of the machine after all work is done."""
    while service.worker.step():
        pass
    return service.hypervisor.console_output(server, None)


def test_the_machine_takes_it(api, service, server, sample, shape):
    folder = 'os-assisted-volume-snapshots'
    answer = api.post(SNAPSHOTS, sample(f'{folder}/snapshot-create-assisted-req.json'))
    assert answer.status == 200
    assert answer.json == sample(f'{folder}/snapshot-create-assisted-resp.json')
    assert '/dev/vdb goes on in new_file_name' in console(service, server)


def test_who_gives_the_work_no_id_gets_none(api, server):
    ids = [api.post(SNAPSHOTS, create(id=id)).json['snapshot']['id'] for id in (SNAPSHOT, None)]
    assert ids == [SNAPSHOT, None]


def test_the_machine_merges_it(api, service, server):
    assert api.delete(f'{SNAPSHOTS}/{SNAPSHOT}?delete_info={INFO}').status == 204
    assert f'/dev/vdb merged snapshot {SNAPSHOT}' in console(service, server)


def create(**kwargs):
    info = {'snapshot_id': SNAPSHOT, 'type': 'qcow2', 'new_file': 'f'} | kwargs
    return {'snapshot': {'volume_id': VOLUME, 'create_info': {k: v for k, v in info.items() if v is not None}}}


@pytest.fixture
def snapshot(service, server, store):
    """A snapshot, of a volume of the server, that is being made or deleted: reads it."""
    context = Context(user_id='alice', project_id='project', is_admin=True)
    volume = service.volumes.create(context, 1)
    attach(store, server.uuid, volume.id)
    snapshots = service.volumes.snapshots
    made = snapshots.create(context, volume.id)

    def read(status=None):
        if status:
            snapshots.change(context, made.id, lambda snapshot: {'status': status})
        return snapshots.get(context, made.id)

    return read


def fail(operation, server):
    raise HypervisorError


@pytest.mark.parametrize('fails', [False, True])
@pytest.mark.parametrize(('status', 'failed'), [('creating', 'error'), ('deleting', 'error_deleting')])
def test_the_volume_service_is_told(api, service, server, snapshot, monkeypatch, status, failed, fails):
    wanted = snapshot(status)
    if fails:
        monkeypatch.setattr(service.hypervisor.behaviour, 'fail', fail)
    if status == 'creating':
        body = {'volume_id': wanted.volume_id, 'create_info': create(snapshot_id=wanted.id)['snapshot']['create_info']}
        assert api.post(SNAPSHOTS, {'snapshot': body}).status == 200
    else:
        info = quote(json.dumps({'volume_id': wanted.volume_id}))
        assert api.delete(f'{SNAPSHOTS}/{wanted.id}?delete_info={info}').status == 204
    while service.worker.step():
        pass
    told = snapshot()
    assert (told.status, told.progress) == (failed if fails else status, '90%')


def test_a_volume_that_no_machine_uses(api, store, servers):
    message = f'No volume Block Device Mapping with id {VOLUME}.'
    for answer in (api.post(SNAPSHOTS, create()), api.delete(f'{SNAPSHOTS}/{SNAPSHOT}?delete_info={INFO}')):
        assert answer.json == {'badRequest': {'code': 400, 'message': message}}
    homeless = servers.add(host=None)
    attach(store, homeless)
    assert api.post(SNAPSHOTS, create()).json['badRequest']['message'] == f'Instance {homeless} is not ready'


def test_a_server_that_is_doing_something_else(api, store, servers):
    busy = servers.add(task_state='migrating')
    attach(store, busy)
    for answer in (api.post(SNAPSHOTS, create()), api.delete(f'{SNAPSHOTS}/{SNAPSHOT}?delete_info={INFO}')):
        assert (
            answer.status == 400
            and f'{busy} while it is in task_state migrating' in answer.json['badRequest']['message']
        )


def test_a_volume_of_several_servers(api, store, servers):
    for _ in range(2):
        attach(store, servers.add())
    assert 'several' in api.post(SNAPSHOTS, create()).json['badRequest']['message']


@pytest.mark.parametrize(
    'body',
    [
        create(type='raw'),
        create(type=None),
        create(new_file=None),
        create(snapshot_id=''),
        create(other=1),
        {'snapshot': {}},
        {'snapshot': create()['snapshot'] | {'other': 1}},
    ],
)
def test_bad_requests_are_refused(api, server, body):
    assert api.post(SNAPSHOTS, body).status == 400


@pytest.mark.parametrize(
    ('query', 'message'),
    [
        ('', "'delete_info'"),
        ('?delete_info=junk', 'Expecting value: line 1 column 1 (char 0)'),
        ('?delete_info=%7B%7D', "'volume_id'"),
        ('?delete_info=[]', "'volume_id'"),
    ],
)
def test_what_to_delete_must_be_told(api, legacy, server, query, message):
    for answer in (api.delete(f'{SNAPSHOTS}/{SNAPSHOT}{query}'), legacy.delete(f'{SNAPSHOTS}/{SNAPSHOT}{query}')):
        assert answer.json == {'badRequest': {'code': 400, 'message': message}}


def test_what_to_delete_may_be_nested_deeper_than_can_be_read(api, server):
    assert api.delete(f'{SNAPSHOTS}/{SNAPSHOT}?delete_info={"[" * 60_000}').status == 400


def test_unknown_parameters_are_refused_from_2_75(api, server):
    path = f'{SNAPSHOTS}/{SNAPSHOT}?delete_info={INFO}&other=1'
    assert (api.delete(path, '2.74').status, api.delete(path, '2.75').status) == (204, 400)


def test_they_are_for_services(api, server):
    assert api.post(SNAPSHOTS, create(), as_=BOB).status == 403
    assert api.delete(f'{SNAPSHOTS}/{SNAPSHOT}?delete_info={INFO}', as_=BOB).status == 403
