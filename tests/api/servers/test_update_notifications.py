"""Notifications of new states, names, metadata and tags."""

import pytest

from computeapi.compute.servers.live_migration import LiveMigrations
from tests.api.servers.conftest import BOB, IMAGE
from tests.notified import data, taken

ADMIN = 'admin:admin'


@pytest.fixture
def conf(conf, request):
    """All updates are told, in the format of the parameter; or which, as (format, which)."""
    given = getattr(request, 'param', 'versioned')
    form, which = given if isinstance(given, tuple) else (given, 'vm_and_task_state')
    conf.set_override('notification_format', form, 'notifications')
    conf.set_override('notify_on_state_change', which, 'notifications')
    return conf


@pytest.fixture
def updates(store):
    """updates(): the notifications of updates since the last call."""
    return lambda: [each for each in taken(store) if each.event_type.endswith('instance.update')]


def states(notification):
    """(old_state, old_task_state), (state, new_task_state)"""
    found = data(notification)['state_update']['nova_object.data']
    assert (data(notification)['state'], data(notification)['task_state']) == (found['state'], found['new_task_state'])
    return (found['old_state'], found['old_task_state']), (found['state'], found['new_task_state'])


def test_each_state_is_told(create, settle, updates, act):
    server = create().json['server']['id']
    (made,) = updates()
    assert states(made) == (('building', 'scheduling'), ('building', 'scheduling'))
    settle()
    steps = [states(each) for each in updates()]
    assert steps[0][0] == ('building', 'scheduling') and steps[-1][1] == ('active', None)
    assert [after for _, after in steps[:-1]] == [before for before, _ in steps[1:]]
    act(server, 'os-stop')
    assert [states(each) for each in updates()] == [
        (('active', None), ('active', 'powering-off')),
        (('active', 'powering-off'), ('stopped', None)),
    ]
    act(server, 'forceDelete')
    *_, (before, after) = [states(each) for each in updates()]
    assert (before, after) == (('stopped', 'deleting'), ('deleted', None))


def test_what_an_update_says(api, server, updates, act):
    updates()
    act(server, 'os-stop')
    begun, ended = updates()
    assert (begun.publisher_id, begun.priority) == ('nova-compute:compute1', 'info')
    assert begun.context['user_id'] == ended.context['user_id'] == 'bob'
    assert data(begun)['old_display_name'] is None and data(begun)['tags'] == []
    period = data(begun)['audit_period']['nova_object.data']
    assert period['audit_period_beginning'][7:] == '-01T00:00:00Z' and period['audit_period_ending']


def test_a_reset_state_is_told(act, server, updates):
    updates()
    act(server, 'os-resetState', {'state': 'error'}, as_=ADMIN)
    assert states(updates()[0]) == (('active', None), ('error', None))


def test_a_withdrawn_live_migration_is_told(act, api, cloud, server, updates):
    act(server, 'os-migrateLive', {'host': None, 'block_migration': 'auto'}, '2.65', as_=ADMIN, work=False)
    (migration,) = api.get(f'/os-migrations?instance_uuid={server}').json['migrations']
    updates()
    assert api.delete(f'/servers/{server}/migrations/{migration["id"]}', '2.65').status == 202
    assert [states(each) for each in updates()] == [(('active', 'migrating'), ('active', None))]


def test_a_live_migration_withdrawn_after_the_server_is_being_deleted(act, api, cloud, monkeypatch, server, updates):
    """The deletion began after the request had checked the server's state."""
    act(server, 'os-migrateLive', {'host': None, 'block_migration': 'auto'}, '2.65', as_=ADMIN, work=False)
    (migration,) = api.get(f'/os-migrations?instance_uuid={server}').json['migrations']
    updates()
    abort = LiveMigrations.abort

    def delayed(*args, **options):
        api.delete(f'/servers/{server}')
        abort(*args, **options)

    monkeypatch.setattr(LiveMigrations, 'abort', delayed)
    assert api.delete(f'/servers/{server}/migrations/{migration["id"]}', '2.65').status == 202
    assert [states(each) for each in updates()] == [(('active', 'migrating'), ('active', 'deleting'))]


@pytest.mark.parametrize('conf', [('versioned', 'vm_state')], indirect=True)
def test_task_states_are_only_told_where_wanted(act, server, updates):
    updates()
    act(server, 'os-stop')
    act(server, 'createImage', {'name': 'image'})
    assert [states(each) for each in updates()] == [(('active', 'powering-off'), ('stopped', None))]


def test_names_and_metadata_are_told(api, server, updates):
    updates()
    path = f'/servers/{server}'
    assert api.put(path, {'server': {'name': 'new'}}, as_=BOB).status == 200
    (named,) = updates()
    assert (data(named)['display_name'], data(named)['old_display_name']) == ('new', 'server')
    assert (named.publisher_id, named.context['user_id']) == ('nova-api:controller', 'bob')
    assert states(named) == (('active', None), ('active', None))
    assert api.put(path, {'server': {'name': 'new', 'description': 'text'}}, '2.19', as_=BOB).status == 200
    (described,) = updates()
    assert (data(described)['display_description'], data(described)['old_display_name']) == ('text', None)
    assert api.post(f'{path}/metadata', {'metadata': {'a': 'b', 'c': 'd'}}, as_=BOB).status == 200
    assert api.put(f'{path}/metadata', {'metadata': {'a': 'c'}}, as_=BOB).status == 200
    assert api.delete(f'{path}/metadata/a', as_=BOB).status == 204
    assert [data(each)['metadata'] for each in updates()] == [{'a': 'b', 'c': 'd'}, {'a': 'c'}, {}]
    assert api.put(path, {'server': {}}, '2.19', as_=BOB).status == 200
    assert api.delete(f'{path}/metadata/a', as_=BOB).status == 404
    assert updates() == []


@pytest.mark.parametrize('conf', [('versioned', 'none')], indirect=True)
def test_tags_are_told_always_and_all_else_only_where_wanted(act, api, server, updates):
    act(server, 'os-stop')
    api.put(f'/servers/{server}', {'server': {'name': 'new'}}, as_=BOB)
    api.post(f'/servers/{server}/metadata', {'metadata': {'a': 'b'}}, as_=BOB)
    assert updates() == []
    path = f'/servers/{server}/tags'
    assert api.put(path, {'tags': ['b', 'a']}, '2.26', as_=BOB).status == 200
    assert api.put(f'{path}/c', version='2.26', as_=BOB).status == 201
    assert api.put(f'{path}/c', version='2.26', as_=BOB).status == 204
    assert api.delete(f'{path}/a', version='2.26', as_=BOB).status == 204
    assert api.delete(path, version='2.26', as_=BOB).status == 204
    assert [data(each)['tags'] for each in updates()] == [['a', 'b'], ['a', 'b', 'c'], ['b', 'c'], []]


@pytest.mark.parametrize('conf', ['unversioned'], indirect=True)
def test_unversioned_updates(api, act, server, updates):
    updates()
    act(server, 'os-stop')
    begun, ended = updates()
    assert (begun.event_type, begun.publisher_id) == ('compute.instance.update', 'compute.compute1')
    shown = begun.payload
    assert (shown['old_state'], shown['old_task_state']) == ('active', None)
    assert (shown['state'], shown['new_task_state']) == ('active', 'powering-off')
    assert shown['bandwidth'] == {} and shown['audit_period_beginning'].endswith('-01T00:00:00.000000')
    assert (ended.payload['old_task_state'], ended.payload['state']) == ('powering-off', 'stopped')
    api.put(f'/servers/{server}', {'server': {'name': 'new'}}, as_=BOB)
    (named,) = updates()
    assert (named.payload['display_name'], named.payload['old_display_name']) == ('new', 'server')
    assert named.publisher_id == 'api.controller'


@pytest.mark.parametrize('conf', [('unversioned', 'none')], indirect=True)
def test_the_use_is_told_before_it_changes(act, server, store):
    taken(store)
    act(server, 'rebuild', {'imageRef': IMAGE})
    used = taken(store)[0]
    assert (used.event_type, used.publisher_id) == ('compute.instance.exists', 'compute.compute1')
    assert used.payload['audit_period_beginning'] < used.payload['audit_period_ending']
    assert used.payload['bandwidth'] == {} and 'old_state' not in used.payload
