"""The usage reports of projects."""

from datetime import datetime, timedelta

import pytest

PATH = '/os-simple-tenant-usage'
NOON = datetime(2020, 1, 10, 12)
START, END = 'start=2020-01-10T12:00:00', 'end=2020-01-10T16:00:00.0'
PERIOD = f'{START}&{END}'
BOB = 'bob:project'


@pytest.fixture
def used(servers):
    """used(first, last, ...): a server that ran between these hours after noon; last None: it is still running."""

    def add(first, last=None, **kwargs):
        ended = None if last is None else NOON + timedelta(hours=last)
        state = {} if last is None else {'vm_state': 'deleted', 'terminated_at': ended, 'deleted_at': ended}
        return servers.add(launched_at=NOON + timedelta(hours=first), **state, **kwargs)

    return add


def test_like_the_samples(api, used, sample, shape):
    used(1)
    for version, folder in (('2.1', ''), ('2.39', ''), ('2.40', 'v2.40/'), ('2.104', 'v2.40/')):
        limit = '&limit=1' if folder else ''

        def like(name, path, version=version, folder=folder, limit=limit):
            answer = api.get(f'{PATH}{path}{PERIOD}{limit}', version)
            assert shape(answer.json) == shape(
                sample(f'os-simple-tenant-usage/{folder}simple-tenant-usage-{name}.json')
            )

        like('get', '?')
        like('get-detail', '?detailed=1&')
        like('get-specific', '/project?')


def test_hours_count_within_the_time_that_is_asked_for(api, used):
    used(-10, -1, name='before')
    used(5, name='after')
    used(-2, 1, name='ended', memory_mb=100)
    used(3, name='running', vcpus=2, root_gb=3, ephemeral_gb=1)
    usage = api.get(f'{PATH}/project?{PERIOD}').json['tenant_usage']
    ended, running = usage['server_usages']
    assert (ended['name'], ended['hours'], ended['state']) == ('ended', 1.0, 'terminated')
    assert (ended['started_at'], ended['ended_at']) == ('2020-01-10T10:00:00.000000', '2020-01-10T13:00:00.000000')
    assert ended['uptime'] == 3 * 3600
    assert (running['name'], running['hours'], running['state']) == ('running', 1.0, 'active')
    assert running['local_gb'] == 4 and running['ended_at'] is None
    assert (usage['start'], usage['stop']) == ('2020-01-10T12:00:00.000000', '2020-01-10T16:00:00.000000')
    totals = [usage[f'total_{name}'] for name in ('hours', 'vcpus_usage', 'memory_mb_usage', 'local_gb_usage')]
    assert totals == [2.0, 3.0, 164.0, 5.0]


def test_all_projects(api, used):
    used(1, 2, project_id='one')
    used(1, 3, project_id='other')
    used(1, 2, project_id='one')
    found = api.get(f'{PATH}?{PERIOD}').json['tenant_usages']
    assert [(each['tenant_id'], each['total_hours']) for each in found] == [('one', 2.0), ('other', 2.0)]
    assert 'server_usages' not in found[0]
    detailed = api.get(f'{PATH}?{PERIOD}&detailed=1').json['tenant_usages']
    assert [len(each['server_usages']) for each in detailed] == [2, 1]
    for query in ('detailed=2', 'detailed=0&detailed=1'):
        assert 'server_usages' not in api.get(f'{PATH}?{PERIOD}&{query}').json['tenant_usages'][0]
    assert 'server_usages' in api.get(f'{PATH}?{PERIOD}&detailed=1&detailed=0').json['tenant_usages'][0]
    assert api.get(f'{PATH}?{PERIOD}&start=x&end=x').json['tenant_usages'] == found


def test_now_is_meant_where_no_time_is_given(api, used):
    used(1)
    usage = api.get(f'{PATH}/project').json['tenant_usage']
    assert usage['start'] == usage['stop'] and usage['total_hours'] == 0.0
    assert api.get(f'{PATH}/project?start=&{START}&end=').json['tenant_usage']['total_hours'] > 0
    assert api.get(f'{PATH}/nobody').json == {'tenant_usage': {}}


def test_the_future_does_not_count(api, used):
    used(1)
    usage = api.get(f'{PATH}/project?{START}&end=2999-01-01T00:00:00').json['tenant_usage']
    (server,) = usage['server_usages']
    assert usage['stop'] < '2999' and server['hours'] * 3600 == pytest.approx(server['uptime'], abs=2)
    coming = api.get(f'{PATH}/project?start=2998-01-01T00:00:00&end=2999-01-01T00:00:00').json['tenant_usage']
    assert coming['total_hours'] == 0.0


@pytest.mark.parametrize('path', ['?', '/project?'])
@pytest.mark.parametrize(
    'query',
    [
        'start=junk',
        'start=2020-01-10',
        'start=2020-01-10T12:00:00Z',
        'end=2020-01-10%2012:00:00',
        'start=2020-01-10T12:00:01&end=2020-01-10T12:00:00',
        'start=2020-01-10T12:00:00&end=2020-01-10T12:00:00',
        'end=2000-01-01T00:00:00',
    ],
)
def test_bad_times(api, path, query):
    assert api.get(f'{PATH}{path}{query}').status == 400


def test_pages_of_servers_from_2_40(api, used):
    ids = [used(1, 2, project_id=project) for project in ('one', 'one', 'two')]
    seen, path = [], f'{PATH}?{PERIOD}&detailed=1&limit=2'
    while path:
        page = api.get(path, '2.40').json
        seen.append([(each['tenant_id'], each['total_hours']) for each in page['tenant_usages']])
        href = page.get('tenant_usages_links', [{}])[0].get('href', '')
        path = href.partition('/v2.1')[2]
    assert seen == [[('one', 2.0)], [('two', 1.0)]]
    first = api.get(f'{PATH}/one?{PERIOD}&limit=1', '2.40').json
    assert f'{PATH}/one?' in first['tenant_usage_links'][0]['href']
    assert first['tenant_usage_links'][0]['href'].endswith(f'&marker={ids[0]}')
    rest = api.get(f'{PATH}/one?{PERIOD}&marker={ids[0]}', '2.40').json
    assert [each['instance_id'] for each in rest['tenant_usage']['server_usages']] == [ids[1]]
    assert api.get(f'{PATH}/one?{PERIOD}&limit=0', '2.40').json == {'tenant_usage': {}}
    assert api.get(f'{PATH}/one?{PERIOD}&marker={ids[2]}', '2.40').status == 400
    assert api.get(f'{PATH}?{PERIOD}&marker=junk', '2.40').status == 400


def test_no_pages_before_2_40(api, used):
    used(1, 2), used(1, 2), used(1, 2)
    assert len(api.get(f'{PATH}/project?{PERIOD}&limit=1', '2.39').json['tenant_usage']['server_usages']) == 3


@pytest.fixture
def two_at_most(conf):
    conf.set_override('max_limit', 2, 'api')


def test_as_many_as_a_page_holds_before_2_40(two_at_most, api, used):
    used(1, 2), used(1, 2), used(1, 2)
    shown = api.get(f'{PATH}/project?{PERIOD}', '2.39').json
    assert len(shown['tenant_usage']['server_usages']) == 2 and shown.keys() == {'tenant_usage'}


def test_who_may_see_it(api, legacy):
    assert api.get(f'{PATH}/project', as_=BOB).status == 200
    assert api.get(f'{PATH}/other', as_=BOB).status == 403
    assert api.get(PATH, as_=BOB).status == 403
    assert api.get(f'{PATH}?detailed=1&other=1', '2.75').status == 400
    assert api.get(f'{PATH}/project?detailed=1', '2.75').status == 400
    assert legacy.get(f'{PATH}?other=1').json == {'tenant_usages': []}
