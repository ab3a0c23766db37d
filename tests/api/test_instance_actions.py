"""The actions of a server, at the versions where the API changes."""

from datetime import datetime, timedelta

import pytest

from computeapi.context import Context
from computeapi.db import actions

ADMIN, BOB, ALICE = 'admin:admin', 'bob:project', 'alice:elsewhere'
NOW = datetime(2026, 1, 31, 12)


def record(store, server_id, number, name='stop', user='bob', error=None):
    """Record an action with one event, *number* minutes after NOW; returns its request ID."""
    begun, done = NOW + timedelta(minutes=number), NOW + timedelta(minutes=number, seconds=1)
    context = Context(user_id=user, project_id='project', request_id=f'req-{number}')
    with store.write() as connection:
        action_id = actions.start(connection, context, server_id, name, begun)
        event_id = actions.start_event(connection, action_id, f'compute_{name}_instance', 'compute1', begun).id
        outcome = {'result': 'Error', 'traceback': 'line 1', 'details': error} if error else {}
        actions.finish_event(connection, event_id, done, **outcome)
        actions.finish(connection, action_id, done, 'Error' if error else None)
    return context.request_id


@pytest.fixture
def path(servers, store):
    """The path of a server's actions; the server has three: req-1, req-2, req-3."""
    server_id = servers.add()
    for number, error in ((1, None), (2, 'No power'), (3, None)):
        record(store, server_id, number, error=error)
    return f'/servers/{server_id}/os-instance-actions'


def requests(answer):
    return [action['request_id'] for action in answer.json['instanceActions']]


@pytest.mark.parametrize('version', ['2.1', '2.21', '2.51', '2.58', '2.62', '2.66', '2.84'])
def test_they_look_like_the_samples(api, servers, store, sample, shape, version):
    folder = 'os-instance-actions' + ('' if version == '2.1' else f'/v{version}')
    server_id = servers.add()
    record(store, server_id, 1)
    path = f'/servers/{server_id}/os-instance-actions'
    assert shape(api.get(path, version).json) == shape(sample(f'{folder}/instance-actions-list-resp.json'))
    shown = api.get(f'{path}/req-1', version)
    assert shape(shown.json) == shape(sample(f'{folder}/instance-action-get-resp.json'))


@pytest.mark.parametrize('version', ['2.51', '2.58', '2.62', '2.66', '2.84'])
def test_others_see_less_of_events(api, path, sample, shape, version):
    shown = api.get(f'{path}/req-1', version, as_=BOB).json
    expected = sample(f'os-instance-actions/v{version}/instance-action-get-non-admin-resp.json')
    assert shape(shown) == shape(expected)


def test_below_2_51_events_are_for_administrators(api, path):
    assert 'events' not in api.get(f'{path}/req-1', '2.50', as_=BOB).json['instanceAction']
    assert 'events' in api.get(f'{path}/req-1', '2.50').json['instanceAction']


def test_a_failure_is_explained_to_administrators(api, path):
    action = api.get(f'{path}/req-2', '2.84').json['instanceAction']
    assert action['message'] == 'Error'
    (event,) = action['events']
    assert (event['result'], event['traceback'], event['details']) == ('Error', 'line 1', 'No power')
    assert event['host'] == 'compute1' and len(event['hostId']) == 56
    assert event['finish_time'] == '2026-01-31T12:02:01.000000'


def test_pages(api, path):
    assert requests(api.get(path, '2.58')) == ['req-3', 'req-2', 'req-1']
    first = api.get(f'{path}?limit=2', '2.58', as_=BOB)
    assert requests(first) == ['req-3', 'req-2']
    (link,) = first.json['links']
    assert link['rel'] == 'next' and link['href'].endswith(f'/v2.1{path}?limit=2&marker=req-2')
    rest = api.get(f'{path}?limit=2&marker=req-2', '2.58')
    assert requests(rest) == ['req-1'] and 'links' not in rest.json
    assert api.get(f'{path}?limit=0', '2.58').json == {'instanceActions': []}
    assert requests(api.get(f'{path}?limit=1', '2.57')) == ['req-3', 'req-2', 'req-1']


@pytest.mark.parametrize(
    ('query', 'expected'),
    [
        ('changes-since=2026-01-31T12:02:00Z', ['req-3', 'req-2']),
        ('changes-since=2026-01-31T13:02:01%2B01:00', ['req-3', 'req-2']),
        ('changes-before=2026-01-31T12:02:30Z', ['req-2', 'req-1']),
        ('changes-since=2026-01-31T12:02:00&changes-before=2026-01-31T12:02:30', ['req-2']),
    ],
)
def test_changes_in_a_period(api, path, query, expected):
    assert requests(api.get(f'{path}?{query}', '2.66')) == expected


@pytest.mark.parametrize(
    ('query', 'first_refused'),
    [
        ('limit=a', '2.58'),
        ('limit=1&limit=2', '2.58'),
        ('marker=', '2.58'),
        ('marker=req-unknown', '2.58'),
        ('changes-since=bad', '2.58'),
        ('changes-since=0001-01-01T00:00:00%2B14:00', '2.58'),
        ('changes-since=2026-01-31T12:02:00Z&changes-before=2026-01-31T12:01:00Z', '2.66'),
        ('unknown=1', '2.58'),
    ],
)
def test_bad_queries_are_refused(api, legacy, path, query, first_refused):
    assert api.get(f'{path}?{query}', first_refused).status == 400
    assert api.get(f'{path}?{query}', '2.57').status == 200
    assert legacy.get(f'{path}?{query}').status == 200


def test_changes_before_came_later(api, path):
    assert api.get(f'{path}?changes-before=2099-01-01T00:00:00Z', '2.65').status == 400


def test_they_outlive_the_server_from_2_21(api, path, servers):
    servers.change(path.split('/')[2], deleted_at=NOW, vm_state='deleted')
    assert api.get(path, '2.20', as_=BOB).status == api.get(f'{path}/req-1', '2.20').status == 404
    assert requests(api.get(path, '2.21', as_=BOB)) == ['req-3', 'req-2', 'req-1']
    assert api.get(f'{path}/req-1', '2.21', as_=BOB).status == 200


def test_they_belong_to_the_project_of_the_server(api, path, servers):
    assert api.get(path, as_=ALICE).status == api.get(f'{path}/req-1', as_=ALICE).status == 404
    answer = api.get(f'{path}/req-9', as_=BOB)
    assert answer.json == {'itemNotFound': {'code': 404, 'message': 'Action req-9 not found'}}
    other = servers.add()
    assert api.get(f'/servers/{other}/os-instance-actions/req-1', as_=BOB).status == 404
