"""Notifications of the services of the cloud."""

import pytest

from tests.notified import OBJECTS, data, objects, taken


@pytest.fixture
def conf(conf, request):
    conf.set_override('notification_format', getattr(request, 'param', 'both'), 'notifications')
    return conf


@pytest.fixture
def compute(api, service, store):
    """The path of the compute service."""
    service.hosts.register()
    (found,) = api.get('/os-services?binary=nova-compute', '2.53').json['services']
    taken(store)
    return f'/os-services/{found["id"]}'


def test_new_services_are_told_once(service, store):
    service.hosts.register()
    found = taken(store)
    assert {(each.event_type, each.publisher_id, each.format) for each in found} == {
        ('service.create', 'nova-compute:compute1', 'versioned'),
        ('service.create', 'nova-conductor:controller', 'versioned'),
        ('service.create', 'nova-scheduler:controller', 'versioned'),
    }
    assert len(found) == 3
    service.hosts.register()
    service.hosts.report()
    assert taken(store) == []


def test_changes_are_told(api, compute, store):
    api.put(compute, {'status': 'disabled', 'disabled_reason': 'repairs'}, '2.53')
    api.put(compute, {'forced_down': True}, '2.53')
    api.put(compute, {'status': 'enabled'}, '2.53')
    found = taken(store)
    assert {each.event_type for each in found} == {'service.update'}
    names = ('disabled', 'disabled_reason', 'forced_down')
    assert [[data(each)[name] for name in names] for each in found] == [
        [True, 'repairs', False],
        [True, 'repairs', True],
        [False, None, True],
    ]
    assert objects(found) == {'ServiceStatusPayload': OBJECTS['ServiceStatusPayload']}
    assert (data(found[0])['binary'], data(found[0])['topic']) == ('nova-compute', 'compute')
    assert data(found[0])['last_seen_up'] and found[0].context['user_id'] == 'admin'


def test_refused_changes_are_not_told(api, compute, store):
    assert api.put(compute, {'status': 'enabled', 'disabled_reason': 'x'}, '2.53').status == 400
    assert taken(store) == []


def test_a_deletion_is_told(api, compute, store):
    assert api.delete(compute, version='2.53').status == 204
    (deleted,) = taken(store)
    assert (deleted.event_type, data(deleted)['host']) == ('service.delete', 'compute1')


@pytest.mark.parametrize('conf', ['unversioned', 'none'], indirect=True)
def test_there_are_only_versioned_ones(api, compute, store):
    api.put(compute, {'status': 'disabled'}, '2.53')
    assert taken(store) == []
