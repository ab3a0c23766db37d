"""The proxy APIs for volumes and snapshots, until 2.35."""

import pytest

from computeapi.context import Context

BOB, READER, ALICE = 'bob:project', 'rea:project:reader', 'alice:elsewhere'
CONTEXT = Context(user_id='bob', project_id='project', roles=frozenset({'member', 'reader'}))
ADMIN = Context(user_id='admin', project_id='admin', is_admin=True)
MISSING = '00000000-0000-4000-8000-00000000dead'


@pytest.fixture
def volume(service):
    return service.volumes.create(CONTEXT, 1, name='v', description='d', metadata={'a': 'b'}).id


@pytest.fixture
def snapshot(service, volume):
    return service.volumes.create_snapshot(CONTEXT, volume, name='s', description='d').id


@pytest.mark.parametrize('path', ['/os-volumes', '/os-volumes/detail', '/os-snapshots', '/os-snapshots/detail'])
def test_they_end_with_2_35(api, path):
    assert api.get(path, '2.35').status == 200
    assert api.get(path, '2.36').json['itemNotFound']['message'] == 'The resource could not be found.'


def test_volumes_look_like_the_samples(api, service, sample, shape):
    body = sample('os-volumes/os-volumes-post-req.json')
    body['volume']['availability_zone'] = 'nova'
    made = api.post('/os-volumes', body, as_=BOB)
    assert made.status == 200
    volume = made.json['volume']
    assert volume['attachments'] == [{}]
    assert made.headers['Location'] == f'http://localhost/v2.1/os-volumes/{volume["id"]}'
    service.volumes.attach(CONTEXT, volume['id'], server_id=MISSING, device='/dev/vdb')
    shown = api.get(f'/os-volumes/{volume["id"]}', as_=READER).json
    assert shape(shown) == shape(sample('os-volumes/os-volumes-get-resp.json'))
    assert shape(api.get('/os-volumes', as_=READER).json) == shape(sample('os-volumes/os-volumes-index-resp.json'))
    detail = api.get('/os-volumes/detail', as_=READER).json
    assert shape(detail) == shape(sample('os-volumes/os-volumes-detail-resp.json'))
    assert detail['volumes'] == [shown['volume']]
    assert shown['volume']['attachments'] == [
        {'id': volume['id'], 'volumeId': volume['id'], 'serverId': MISSING, 'device': '/dev/vdb'}
    ]


@pytest.mark.parametrize(
    ('facts', 'status'),
    [
        ({}, 400),
        ({'size': 0}, 400),
        ({'size': -1}, 400),
        ({'size': 'a'}, 400),
        ({'size': '1'}, 200),
        ({'size': 1, 'metadata': []}, 400),
        ({'size': 1, 'metadata': {'a': 1}}, 400),
        ({'size': 1, 'display_name': 'x' * 256}, 400),
        ({'size': 1, 'volume_type': 'none'}, 404),
        ({'size': 1, 'snapshot_id': MISSING}, 404),
        ({'size': 1, 'snapshot_id': '', 'availability_zone': 'none'}, 404),
        ({'size': 1, 'availability_zone': 'none'}, 400),
        ({'size': 1, 'other': 1}, 400),
        ({'size': 5000}, 403),
    ],
)
def test_what_volumes_can_be_asked_for(api, facts, status):
    assert api.post('/os-volumes', {'volume': facts}, as_=BOB).status == status


def test_volumes_come_from_snapshots(api, snapshot):
    body = {'volume': {'size': 1, 'snapshot_id': snapshot}}
    assert api.post('/os-volumes', body, as_=BOB).json['volume']['snapshotId'] == snapshot


@pytest.mark.parametrize(('path', 'key'), [('/os-volumes', 'volumes'), ('/os-snapshots', 'snapshots')])
def test_pages(api, service, volume, path, key):
    for name in 'abc':
        service.volumes.create(CONTEXT, 1, name=name)
        service.volumes.create_snapshot(CONTEXT, volume, name=name)

    def names(query):
        return [each['displayName'] for each in api.get(f'{path}?{query}', as_=BOB).json[key]]

    assert names('limit=2') == ['c', 'b']
    assert names('offset=1&limit=1') == ['b']
    assert names('x=1') == names('limit=0')
    for query in ('limit=-1', 'limit=a', 'offset=-1', 'offset=a'):
        assert api.get(f'{path}?{query}', as_=BOB).status == 400


def test_volumes_are_deleted(api, service, volume):
    path = f'/os-volumes/{volume}'
    assert api.delete(path, as_=READER).status == 403
    assert api.delete(path, as_=ALICE).json['itemNotFound']['message'] == f'Volume {volume} could not be found.'
    held = service.volumes.reserve(CONTEXT, volume, MISSING)
    assert api.delete(path, as_=BOB).status == 400
    service.volumes.release(CONTEXT, held)
    assert api.delete(path, as_=BOB).status == 202
    assert api.get(path, as_=BOB).status == 404


@pytest.mark.parametrize(('volume_id', 'status'), [(MISSING, 404), ('x' * 300, 404), (5, 400), (None, 400)])
def test_snapshots_of_what_is_no_volume(api, volume_id, status):
    assert api.post('/os-snapshots', {'snapshot': {'volume_id': volume_id}}, as_=BOB).status == status


def test_who_may(api, volume, snapshot):
    assert api.post('/os-volumes', {'volume': {'size': 1}}, as_=READER).status == 403
    assert api.post('/os-snapshots', {'snapshot': {'volume_id': volume}}, as_=READER).status == 403
    assert api.delete(f'/os-snapshots/{snapshot}', as_=READER).status == 403
    assert api.get(f'/os-volumes/{volume}', as_=ALICE).status == 404
    assert api.get(f'/os-snapshots/{snapshot}', as_=ALICE).status == 404
    assert api.get('/os-volumes', as_=ALICE).json == {'volumes': []}


def test_snapshots_look_like_the_samples(api, volume, sample, shape):
    body = sample('os-snapshots/snapshot-create-req.json')
    body['snapshot']['volume_id'] = volume
    made = api.post('/os-snapshots', body, as_=BOB)
    assert made.status == 200
    assert shape(made.json) == shape(sample('os-snapshots/snapshot-create-resp.json'))
    shown = api.get(f'/os-snapshots/{made.json["snapshot"]["id"]}', as_=READER).json
    assert shape(shown) == shape(sample('os-snapshots/snapshots-show-resp.json'))
    assert shape(api.get('/os-snapshots', as_=READER).json) == shape(sample('os-snapshots/snapshots-list-resp.json'))
    detail = api.get('/os-snapshots/detail', as_=READER).json
    assert shape(detail) == shape(sample('os-snapshots/snapshots-detail-resp.json'))


@pytest.mark.parametrize(
    ('facts', 'status'),
    [
        ({'volume_id': None}, 400),
        ({'volume_id': MISSING}, 404),
        ({'force': 'maybe'}, 400),
        ({'force': 'True'}, 200),
        ({'display_name': 5}, 400),
        ({'other': 1}, 400),
    ],
)
def test_what_snapshots_can_be_asked_for(api, volume, facts, status):
    assert api.post('/os-snapshots', {'snapshot': {'volume_id': volume} | facts}, as_=BOB).status == status


def test_snapshots_of_volumes_in_use_are_forced(api, service, volume):
    service.volumes.attach(CONTEXT, volume, server_id=MISSING)
    assert api.post('/os-snapshots', {'snapshot': {'volume_id': volume}}, as_=BOB).status == 400
    assert api.post('/os-snapshots', {'snapshot': {'volume_id': volume, 'force': True}}, as_=BOB).status == 200


def test_snapshots_are_deleted(api, snapshot):
    path = f'/os-snapshots/{snapshot}'
    assert api.delete(path, as_=BOB).status == 202
    assert api.delete(path, as_=BOB).json['itemNotFound']['message'] == f'Snapshot {snapshot} could not be found.'


def test_v2_drops_unknown_keys(legacy):
    assert legacy.post('/os-volumes', {'volume': {'size': 1, 'other': 1}}, as_=BOB).status == 200
