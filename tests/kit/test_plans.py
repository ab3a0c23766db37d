"""States last as long as plans specify."""

import time

import pytest

from computeapi.errors import Invalid, NotFound
from computeapi.testing import Cloud
from tests.kit.conftest import HTTP


@pytest.fixture
def status(http):
    return lambda server: http.get(f'/v2.1/servers/{server}').json()['server']['status']


@pytest.fixture
def active(http, status):
    """active('web'): an active server."""

    def boot(name='web'):
        server = http.boot(name)
        until = time.monotonic() + 10
        while status(server) != 'ACTIVE' and time.monotonic() < until:
            time.sleep(0.01)
        return server

    return boot


def act(http, server, name, argument=None):
    assert http.post(f'/v2.1/servers/{server}/action', {name: argument}).status_code == 202


@pytest.mark.parametrize('facts', [{'state': 'BUILD'}, {'operation': 'spawn'}])
def test_a_state_lasts_until_it_was_read_so_often(cloud, http, status, facts):
    cloud.plans.add(**facts, reads=3)
    for name in ('one', 'two'):
        server = http.boot(name)
        time.sleep(0.1 if 'operation' in facts else 0)
        assert [status(server) for _ in range(5)] == ['BUILD', 'BUILD', 'BUILD', 'ACTIVE', 'ACTIVE']


def test_no_read_shows_a_state_that_lasts_for_none(cloud, http, status):
    cloud.plans.add(state='BUILD', reads=0)
    cloud.plans.add(state='deleting', reads=0)
    for name in ('one', 'two', 'three'):
        server = http.boot(name)
        assert status(server) == 'ACTIVE'
        assert http.delete(f'/v2.1/servers/{server}').status_code == 204
        assert http.get(f'/v2.1/servers/{server}').status_code == 404


def test_a_list_reads_all_that_are_in_it(cloud, http):
    cloud.plans.add(state='BUILD', reads=2)
    http.boot('one'), http.boot('two')
    time.sleep(0.2)
    seen = [
        sorted(each['status'] for each in http.get(path).json()['servers'])
        for path in ['/v2.1/servers/detail'] * 2 + ['/v2.1/servers/detail']
    ]
    assert seen == [['BUILD', 'BUILD'], ['BUILD', 'BUILD'], ['ACTIVE', 'ACTIVE']]


def test_reads_before_the_state_do_not_count(cloud, http, status, active):
    server = active()
    cloud.plans.add(state='REBOOT', reads=2)
    assert {status(server) for _ in range(5)} == {'ACTIVE'}
    act(http, server, 'reboot', {'type': 'SOFT'})
    assert [status(server) for _ in range(4)] == ['REBOOT', 'REBOOT', 'ACTIVE', 'ACTIVE']


def test_a_state_lasts_some_seconds_though_it_has_several_steps(cloud, http, status, active):
    server = active()
    cloud.plans.add(state='RESIZE', seconds=0.5)
    begun = time.monotonic()
    act(http, server, 'resize', {'flavorRef': '2'})
    seen = []
    while (found := status(server)) != 'VERIFY_RESIZE' and time.monotonic() - begun < 10:
        seen.append(found)
        time.sleep(0.02)
    assert set(seen) == {'RESIZE'} and 0.5 <= time.monotonic() - begun < 3


def test_a_state_lasts_until_it_is_told(cloud, http, status):
    cloud.plans.add(state='BUILD', server='web', until_told=True)
    one, two, other = http.boot('web-1'), http.boot('web-2'), http.boot('other')
    cloud.plans.release('web-1')
    assert status(one) == 'ACTIVE'
    cloud.plans.release(two)
    assert status(two) == 'ACTIVE'
    with pytest.raises(NotFound):
        release_at_once(cloud, other)


def release_at_once(cloud, server, timeout=0.05):
    """Release without waiting for work that arrives a moment later."""
    import computeapi.kit.plans as module

    before, module.RELEASE_TIMEOUT_SECONDS = module.RELEASE_TIMEOUT_SECONDS, timeout
    try:
        cloud.plans.release(server)
    finally:
        module.RELEASE_TIMEOUT_SECONDS = before


def test_all_may_be_told_at_once_by_the_control_api(http, status):
    plan = http.control('POST', '/plans', {'state': 'BUILD', 'until_told': True}).json()
    server = http.boot()
    assert http.control('GET', '/plans').json() == {'plans': [plan]}
    assert status(server) == 'BUILD'
    assert http.control('POST', '/plans/release', {}).status_code == 204
    assert status(server) == 'ACTIVE'
    assert http.control('DELETE', f'/plans/{plan["id"]}').status_code == 204
    assert http.control('DELETE', f'/plans/{plan["id"]}').status_code == 404
    http.control('POST', '/plans', {'state': 'BUILD', 'seconds': 0})
    assert http.control('DELETE', '/plans').status_code == 204
    assert http.control('GET', '/plans').json() == {'plans': []}


def test_without_the_plan_servers_go_on(cloud, http, status):
    with cloud.plans.add(state='BUILD', until_told=True):
        server = http.boot()
        time.sleep(0.1)
        assert status(server) == 'BUILD'
    assert_active_soon(status, server)


def assert_active_soon(status, server):
    until = time.monotonic() + 3
    while status(server) != 'ACTIVE':
        assert time.monotonic() < until
        time.sleep(0.01)


def test_a_task_state_is_a_state(cloud, http, active):
    server = active()
    cloud.plans.add(state='powering-off', until_told=True)
    act(http, server, 'os-stop')

    def shown():
        found = http.get(f'/v2.1/servers/{server}').json()['server']
        return found['status'], found['OS-EXT-STS:task_state']

    assert shown() == ('ACTIVE', 'powering-off')
    cloud.plans.release('web')
    assert shown() == ('SHUTOFF', None)


def test_a_plan_counts_and_not_what_the_hypervisor_takes():
    with Cloud(options={('simulated', 'passing_seconds'): 3600.0}) as cloud:
        http = HTTP(cloud)
        cloud.plans.add(state='BUILD', reads=1)
        server = http.boot()
        statuses = [http.get(f'/v2.1/servers/{server}').json()['server']['status'] for _ in range(2)]
        http.session.close()
    assert statuses == ['BUILD', 'ACTIVE']


def test_a_server_is_deleted_while_its_state_lasts(cloud, http):
    cloud.plans.add(state='BUILD', until_told=True)
    server = http.boot()
    time.sleep(0.1)
    assert http.delete(f'/v2.1/servers/{server}').status_code == 204
    until = time.monotonic() + 3
    while http.names():
        assert time.monotonic() < until
        time.sleep(0.01)
    with pytest.raises(NotFound):
        release_at_once(cloud, None)


@pytest.mark.parametrize(
    'facts',
    [
        {'seconds': 1},
        {'state': 'BUILD'},
        {'state': 'BUILD', 'operation': 'spawn', 'seconds': 1},
        {'state': 'BUILD', 'seconds': 1, 'reads': 1},
        {'state': 'FLYING', 'seconds': 1},
        {'operation': 'fly', 'seconds': 1},
        {'state': 'BUILD', 'reads': -1},
        {'state': 'BUILD', 'until_told': False},
    ],
)
def test_what_does_not_fit_is_refused(cloud, facts):
    with pytest.raises(Invalid) as refused:
        cloud.plans.add(**facts)
    assert 'TaskState' not in str(refused.value)
    assert cloud.plans.list() == []


def test_what_waits_in_a_snapshot_waits_for_what_there_is_now(cloud, http, status):
    """In the snapshot, the server waits until a time in the distant future."""
    plan = cloud.plans.add(state='BUILD', until_told=True)
    server = http.boot()
    told = cloud.events.wait_for(server=server, task_state='spawning', timeout=5).id
    time.sleep(0.2)
    cloud.snapshot('waiting')
    cloud.plans.release('web')
    cloud.events.wait_for(server=server, status='ACTIVE', since=told, timeout=5)
    cloud.restore('waiting')
    assert status(server) == 'BUILD'
    cloud.plans.release('web')
    assert cloud.events.wait_for(server=server, status='ACTIVE', timeout=5)
    plan.remove()
    cloud.restore('waiting')
    assert cloud.events.wait_for(server=server, status='ACTIVE', timeout=5)
