"""Host aggregates, and their effect on availability zones."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from threading import Barrier, BrokenBarrierError

import pytest

from computeapi.db import aggregates as rows

MEMBER = 'bob:project'


@pytest.fixture
def hosts(service):
    service.conf.set_override('hosts', 2, 'simulated')
    service.hosts.register()


@pytest.fixture
def made(api, hosts):
    return api.post('/os-aggregates', {'aggregate': {'name': 'fast', 'availability_zone': 'north'}}).json['aggregate']


@pytest.fixture
def act(api, made):
    def post(name, argument):
        return api.post(f'/os-aggregates/{made["id"]}/action', {name: argument})

    return post


@pytest.mark.parametrize(('version', 'folder'), [('2.1', ''), ('2.40', ''), ('2.41', 'v2.41/'), ('2.104', 'v2.41/')])
def test_they_look_like_the_samples(api, made, sample, shape, version, folder):
    def like(name, answer):
        assert shape(answer.json) == shape(sample(f'os-aggregates/{folder}{name}.json'))

    created = api.post('/os-aggregates', {'aggregate': {'name': 'other', 'availability_zone': 'south'}}, version)
    like('aggregate-post-resp', created)
    path = f'/os-aggregates/{made["id"]}'
    like('aggregates-get-resp', api.get(path, version))
    like('aggregates-add-host-post-resp', api.post(f'{path}/action', {'add_host': {'host': 'compute1'}}, version))


def test_a_zone_of_its_own(api, act, made):
    assert zones(api) == {'nova'}
    assert act('add_host', {'host': 'compute2'}).json['aggregate']['hosts'] == ['compute2']
    assert zones(api) == {'north', 'nova'}
    assert act('add_host', {'host': 'compute2'}).status == 409
    assert act('add_host', {'host': 'nowhere'}).status == 404
    other = api.post('/os-aggregates', {'aggregate': {'name': 'other', 'availability_zone': 'south'}}).json['aggregate']
    assert api.post(f'/os-aggregates/{other["id"]}/action', {'add_host': {'host': 'compute2'}}).status == 409
    assert api.delete(f'/os-aggregates/{made["id"]}').status == 400
    assert act('remove_host', {'host': 'compute2'}).json['aggregate']['hosts'] == []
    assert act('remove_host', {'host': 'compute2'}).status == 404
    assert api.delete(f'/os-aggregates/{made["id"]}').status == 200
    assert api.get(f'/os-aggregates/{made["id"]}').status == 404


def test_servers_stay_in_their_zone(api, act, made, servers):
    path, north = f'/os-aggregates/{made["id"]}', {'availability_zone': 'north'}
    running = servers.add(host='compute1')
    assert act('add_host', {'host': 'compute1'}).status == 409
    assert act('add_host', {'host': 'compute2'}).status == 200
    servers.change(running, host='compute2')
    assert act('remove_host', {'host': 'compute2'}).status == 409
    assert api.put(path, {'aggregate': {'availability_zone': 'south'}}).status == 400
    assert act('set_metadata', {'metadata': {'availability_zone': 'south'}}).status == 400
    assert act('set_metadata', {'metadata': north}).status == 200
    twin = api.post('/os-aggregates', {'aggregate': {'name': 'twin'} | north}).json['aggregate']
    assert api.post(f'/os-aggregates/{twin["id"]}/action', {'add_host': {'host': 'compute2'}}).status == 200
    assert act('remove_host', {'host': 'compute2'}).status == 200


def test_when_it_was_updated(api, act, made):
    """A rename is stored with its time; for other changes, only the response shows a time."""
    path = f'/os-aggregates/{made["id"]}'
    assert act('set_metadata', {'metadata': {'ssd': 'true'}}).json['aggregate']['updated_at']
    assert api.put(path, {'aggregate': {'name': 'fast'}}).json['aggregate']['updated_at'] is None
    dated = api.put(path, {'aggregate': {'name': 'faster'}}).json['aggregate']['updated_at']
    assert dated and api.get(path).json['aggregate']['updated_at'] == dated


def test_a_number_is_given_once(api, made):
    api.delete(f'/os-aggregates/{made["id"]}')
    assert api.post('/os-aggregates', {'aggregate': {'name': 'next'}}).json['aggregate']['id'] > made['id']


def test_metadata(act):
    assert act('set_metadata', {'metadata': {'ssd': 'true'}}).json['aggregate']['metadata'] == {
        'availability_zone': 'north',
        'ssd': 'true',
    }
    without = act('set_metadata', {'metadata': {'ssd': None}}).json['aggregate']
    assert 'ssd' not in without['metadata'] and without['updated_at']
    for bad in ({'availability_zone': ''}, {'a/b': 'c'}, {'': 'c'}, {'a': 1}):
        assert act('set_metadata', {'metadata': bad}).status == 400, bad


def test_updates_and_conflicts(api, made):
    path = f'/os-aggregates/{made["id"]}'
    assert api.put(path, {'aggregate': {'name': ' faster '}}).json['aggregate']['name'] == 'faster'
    assert api.put(path, {'aggregate': {'availability_zone': 'west'}}).json['aggregate']['availability_zone'] == 'west'
    for bad in ({}, {'availability_zone': ' east'}, {'availability_zone': 'a:b'}, {'unknown': 1}):
        assert api.put(path, {'aggregate': bad}).status == 400, bad
    assert api.put(path, {'aggregate': {'availability_zone': None}}).status == 400
    assert api.post('/os-aggregates', {'aggregate': {'name': 'faster'}}).status == 409
    other = api.post('/os-aggregates', {'aggregate': {'name': 'other'}}).json['aggregate']['id']
    taken = api.put(f'/os-aggregates/{other}', {'aggregate': {'name': 'faster'}})
    assert (taken.status, taken.json['conflictingRequest']['message']) == (409, 'Aggregate faster already exists.')
    assert api.get('/os-aggregates/nothing').status == 400
    assert api.get('/os-aggregates', as_=MEMBER).status == 403


@pytest.mark.several_writers
def test_one_name_given_twice_at_once(api, made):
    def create(number):
        return api.post('/os-aggregates', {'aggregate': {'name': f'new{number // 4}'}}).status

    with ThreadPoolExecutor(4) as pool:
        assert sorted(pool.map(create, range(16))) == [200] * 4 + [409] * 12


@pytest.mark.several_writers
def test_a_host_comes_into_one_zone_of_two_at_once(api, hosts, monkeypatch):
    looked, add_host = Barrier(2), rows.add_host

    def add_later(*facts):
        """Waits until the other request has checked, too, if possible."""
        with suppress(BrokenBarrierError):
            looked.wait(0.5)
        add_host(*facts)

    def add(zone):
        new = api.post('/os-aggregates', {'aggregate': {'name': zone, 'availability_zone': zone}}).json['aggregate']
        return api.post(f'/os-aggregates/{new["id"]}/action', {'add_host': {'host': 'compute1'}}).status

    monkeypatch.setattr(rows, 'add_host', add_later)
    with ThreadPoolExecutor(2) as pool:
        assert sorted(pool.map(add, ['north', 'south'])) == [200, 409]


@pytest.mark.parametrize(('id', 'status'), [('abc', 400), ('1x', 400), ('1' * 30, 404), ('-1', 404), ('99', 404)])
def test_ids_of_nothing(api, id, status):
    assert api.get(f'/os-aggregates/{id}').status == status
    gone = api.delete(f'/os-aggregates/{id}')
    assert gone.status == status
    if status == 404:
        assert gone.json['itemNotFound']['message'] == f'Aggregate {id} could not be found.'


def test_images_are_there_before_they_are_needed(api, made):
    path = f'/os-aggregates/{made["id"]}/images'
    unknown = {'cache': [{'id': '70a599e0-31e7-49b7-b260-868f441e862b'}]}
    assert api.post(path, unknown, '2.80').status == 404
    assert api.post(path, unknown, '2.81').status == 400
    assert api.post(path, {'cache': unknown['cache'] * 2}, '2.81').status == 400


def zones(api):
    return {zone['zoneName'] for zone in api.get('/os-availability-zone').json['availabilityZoneInfo']}
