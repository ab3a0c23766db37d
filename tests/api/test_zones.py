"""Availability zones: the API, and the service behind it."""

from datetime import datetime, timedelta

import pytest
import sqlalchemy as sa

from computeapi.compute.cells import Cells
from computeapi.compute.zones import Zones
from computeapi.db.tables.compute import aggregate_hosts, aggregates, services
from computeapi.errors import Invalid

NOW = datetime(2026, 1, 1, 12)


def service(host, binary='nova-compute', **kwargs):
    known = {'disabled': False, 'forced_down': False, 'seen_at': NOW, 'created_at': NOW}
    return {'uuid': f'{host}-{binary}', 'host': host, 'binary': binary} | known | kwargs


def add_aggregate(connection, name, metadata, *hosts):
    values = {'uuid': name, 'name': name, 'metadata': metadata, 'created_at': NOW}
    (aggregate_id,) = connection.execute(sa.insert(aggregates).values(**values)).inserted_primary_key
    rows = [{'aggregate_id': aggregate_id, 'host': host} for host in hosts]
    connection.execute(sa.insert(aggregate_hosts), rows)


@pytest.fixture
def hosts(store):
    """Three zones: nova with a host that is down, east with one of two hosts enabled, west with none enabled."""
    with store.write() as connection:
        for row in (
            service('a', seen_at=NOW - timedelta(seconds=61)),
            service('b'),
            service('c', disabled=True),
            service('d', disabled=True),
            service('controller', 'nova-scheduler'),
            service('controller', 'nova-conductor', forced_down=True),
        ):
            connection.execute(sa.insert(services).values(**row))
        add_aggregate(connection, 'fast', {'ssd': 'true'}, 'a', 'b')
        add_aggregate(connection, 'east', {'availability_zone': 'east'}, 'b', 'c')
        add_aggregate(connection, 'west', {'availability_zone': 'west'}, 'd')


@pytest.fixture
def zones(store, conf, hosts):
    zones = Zones(store, Cells(store), conf)
    zones.clock = lambda: NOW
    return zones


def test_the_zone_of_a_host(zones):
    assert [zones.of_host(host) for host in 'abcdx'] == ['nova', 'east', 'east', 'west', 'nova']


def test_members_are_up_when_they_were_heard_of(zones):
    by_name = {zone.name: zone for zone in zones.list()}
    assert list(by_name) == ['east', 'internal', 'nova', 'west']
    assert [zone.available for zone in by_name.values()] == [True, True, True, False]
    assert {(member.binary, member.up) for member in by_name['internal'].members} == {
        ('nova-scheduler', True),
        ('nova-conductor', False),
    }
    assert [member.up for member in by_name['nova'].members] == [False]


@pytest.mark.parametrize('name', ['west', 'internal', 'nowhere', ''])
def test_a_zone_for_a_server_has_an_enabled_host(zones, name):
    for usable in ('east', 'nova'):
        zones.check(usable)
    with pytest.raises(Invalid, match='^The requested availability zone is not available$'):
        zones.check(name)


def test_hosts_that_cannot_be_reached_make_no_zone_available(zones, monkeypatch):
    monkeypatch.setattr(zones.cells, 'out_of_reach', lambda: {'b': 'cell2'})
    zones.check('nova')
    with pytest.raises(Invalid):
        zones.check('east')


def test_list(api, hosts, sample, shape):
    listed = api.get('/os-availability-zone', as_='bob:project').json
    assert listed['availabilityZoneInfo'] == [
        {'zoneName': 'east', 'zoneState': {'available': True}, 'hosts': None},
        {'zoneName': 'nova', 'zoneState': {'available': True}, 'hosts': None},
        {'zoneName': 'west', 'zoneState': {'available': False}, 'hosts': None},
    ]
    assert shape(listed) == shape(sample('os-availability-zone/availability-zone-list-resp.json'))


def test_detail(api, hosts):
    east, internal, nova, west = api.get('/os-availability-zone/detail').json['availabilityZoneInfo']
    state = {'active': True, 'available': False, 'updated_at': '2026-01-01T12:00:00.000000'}
    assert east == {'zoneName': 'east', 'zoneState': {'available': True}, 'hosts': {'b': {'nova-compute': state}}}
    assert set(internal['hosts']['controller']) == {'nova-scheduler', 'nova-conductor'}
    assert set(nova['hosts']) == {'a'}
    assert west == {'zoneName': 'west', 'zoneState': {'available': False}, 'hosts': None}


def test_detail_has_the_fields_of_the_sample(api, hosts, sample):
    recorded = sample('os-availability-zone/availability-zone-detail-resp.json')['availabilityZoneInfo'][0]
    shown = api.get('/os-availability-zone/detail').json['availabilityZoneInfo'][0]
    assert set(shown) == set(recorded)
    recorded_state, shown_state = (
        next(iter(next(iter(zone['hosts'].values())).values())) for zone in (recorded, shown)
    )
    assert set(shown_state) == set(recorded_state)


def test_only_administrators_see_the_hosts(api):
    answer = api.get('/os-availability-zone/detail', as_='bob:project')
    assert answer.json['forbidden']['message'] == (
        "Policy doesn't allow os_compute_api:os-availability-zone:detail to be performed."
    )
