"""The clock of a cloud: what the cloud shows, compares and does according to it."""

import threading
import time
from datetime import datetime, timedelta, timezone

import pytest

from computeapi.clock import utcnow
from computeapi.errors import Invalid
from computeapi.kit.clock import CloudClock
from computeapi.testing import Cloud
from tests.kit.conftest import HTTP

NEW_YEAR = datetime(2031, 1, 1)


def until(condition):
    """Waits until the condition, a function, is true; returns its value."""
    end = time.monotonic() + 30
    while not (found := condition()):
        assert time.monotonic() < end
        time.sleep(0.01)
    return found


def server(http, server_id):
    return http.get(f'/v2.1/servers/{server_id}').json().get('server', {'status': 'GONE'})


def status(http, server_id, *wanted):
    return until(lambda: server(http, server_id)['status'] in wanted)


def test_a_frozen_clock_gives_all_times(http, cloud):
    cloud.clock.freeze(NEW_YEAR)
    http.log_in()
    server_id = http.boot()
    status(http, server_id, 'ACTIVE')
    found = server(http, server_id)
    assert found['created'] == found['updated'] == '2031-01-01T00:00:00Z'
    assert found['OS-SRV-USG:launched_at'] == '2031-01-01T00:00:00.000000'
    assert http.post('/image/v2/images', {'name': 'x'}).json()['created_at'] == '2031-01-01T00:00:00Z'
    token = http.get('/identity/v3/auth/tokens', headers={'X-Subject-Token': http.session.headers['X-Auth-Token']})
    assert token.json()['token']['expires_at'] == '2031-01-02T00:00:00.000000Z'


def test_steps_of_several_threads_add_up():
    clock, together = CloudClock(), threading.Barrier(4)
    clock.freeze(NEW_YEAR)

    def step():
        together.wait()
        for _ in range(5000):
            clock.step(1)

    threads = [threading.Thread(target=step) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert clock() == NEW_YEAR + timedelta(seconds=20000)


def test_a_token_ends_in_time(http, cloud):
    cloud.clock.step(hours=23)
    assert http.get('/v2.1/servers').status_code == 200
    cloud.clock.step(hours=2)
    assert http.get('/v2.1/servers').status_code == 401


def test_hosts_stay_up(http, cloud):
    cloud.clock.step(days=300)
    http.log_in()
    states = {each['state'] for each in http.get('/v2.1/os-hypervisors/detail').json()['hypervisors']}
    assert states == {'up'}
    status(http, http.boot(), 'ACTIVE')


def test_lists_by_time(http, cloud):
    status(http, http.boot('old'), 'ACTIVE')
    cloud.clock.step(days=1)
    http.log_in()
    http.boot('new')
    since = (cloud.clock.now() - timedelta(hours=1)).isoformat()
    found = http.get('/v2.1/servers', params={'changes-since': since}).json()['servers']
    assert [each['name'] for each in found] == ['new']


def test_usage_is_counted_by_it(http, cloud):
    status(http, http.boot(), 'ACTIVE')
    cloud.clock.step(hours=10)
    http.log_in()
    start, end = (cloud.clock.now() + timedelta(days=days) for days in (-2, 0))
    query = {'start': start.isoformat(), 'end': end.isoformat(), 'detailed': 1}
    [usage] = http.get('/v2.1/os-simple-tenant-usage', params=query).json()['tenant_usages']
    assert usage['total_hours'] == pytest.approx(10, abs=0.2)


def test_what_waits_for_its_time_is_done():
    options = {('DEFAULT', 'resize_confirm_window'): 3600, ('DEFAULT', 'reclaim_instance_interval'): 7200}
    with Cloud(hosts=2, options=options) as cloud:
        http = HTTP(cloud)
        server_id = http.boot()
        status(http, server_id, 'ACTIVE')
        http.post(f'/v2.1/servers/{server_id}/action', {'resize': {'flavorRef': '2'}})
        status(http, server_id, 'VERIFY_RESIZE')
        cloud.clock.step(hours=1, seconds=1)
        status(http, server_id, 'ACTIVE')
        http.delete(f'/v2.1/servers/{server_id}')
        status(http, server_id, 'SOFT_DELETED')
        cloud.clock.step(hours=2, seconds=1)
        status(http, server_id, 'GONE')


def test_what_takes_its_time_takes_that_of_the_cloud():
    with Cloud(options={('simulated', 'spawn_seconds'): 600}) as cloud:
        http = HTTP(cloud)
        slow = http.boot()
        until(lambda: server(http, slow)['OS-EXT-STS:task_state'] == 'spawning')
        cloud.clock.run(6000)
        status(http, slow, 'ACTIVE')


def test_a_reset_sets_it_right(http, cloud):
    cloud.clock.freeze(NEW_YEAR)
    cloud.reset()
    assert cloud.clock.rate == 1
    assert abs(cloud.clock.now() - utcnow()) < timedelta(minutes=1)


def test_a_step_is_in_seconds_or_as_it_is_said():
    clock = CloudClock()
    clock.follow(lambda: NEW_YEAR)
    clock.freeze()
    clock.step(90)
    clock.step(1, minutes=2)
    clock.step(-11)
    assert clock() == NEW_YEAR + timedelta(seconds=200)


def test_a_moment_may_say_its_zone():
    clock = CloudClock()
    clock.freeze(datetime(2030, 1, 1, 1, tzinfo=timezone(timedelta(hours=1))))
    assert clock() == datetime(2030, 1, 1)


@pytest.mark.parametrize(
    'change',
    [
        {'moment': datetime(1900, 1, 1)},
        {'moment': datetime(9999, 1, 1)},
        {'rate': -1},
        {'rate': 1e9},
        {'rate': float('nan')},
    ],
)
def test_what_is_too_much_changes_nothing(change):
    clock = CloudClock()
    clock.follow(lambda: NEW_YEAR)
    with pytest.raises(Invalid):
        clock.change(**change)
    assert (clock(), clock.rate) == (NEW_YEAR, 1)
    with pytest.raises(Invalid):
        clock.step(days=1e8)


def test_it_is_controlled_from_outside(http):
    assert http.control('PUT', '/clock', {'now': '2031-01-01T01:00:00+01:00', 'rate': 0}).json() == {
        'now': '2031-01-01T00:00:00Z',
        'rate': 0,
    }
    assert http.control('POST', '/clock/step', {'seconds': 1.5}).json()['now'] == '2031-01-01T00:00:01.500000Z'
    assert http.control('GET', '/clock').json() == {'now': '2031-01-01T00:00:01.500000Z', 'rate': 0}
    for body in (
        {'now': 'soon'},
        {'now': '2031-13-01'},
        {'rate': -1},
        {'rate': 'fast'},
        {'now': '9999-12-31T23:59:59-12:00'},
    ):
        assert http.control('PUT', '/clock', body).status_code == 400
    assert http.control('POST', '/clock/step', {'seconds': 1e300}).status_code == 400
    assert http.control('DELETE', '/clock').status_code == 204
    assert http.control('GET', '/clock').json()['rate'] == 1
