"""SIGKILL in the middle of work: after a restart all servers settle, and nothing is lost or duplicated."""

import os
import random
import time

import pytest

from computeapi import states
from computeapi.db.engine import Store
from tests.clients.load import DELAYS, Load, wait_idle
from tests.invariants import problems

SETTLED = ('ACTIVE', 'ERROR')


def boot(service, session, name):
    flavor = session.get(f'{service.url}/v2.1/flavors').json()['flavors'][0]['id']
    image = session.get(f'{service.url}/image/v2/images').json()['images'][0]['id']
    body = {'server': {'name': name, 'flavorRef': flavor, 'imageRef': image, 'networks': 'auto'}}
    answer = session.post(f'{service.url}/v2.1/servers', json=body)
    assert answer.status_code == 202, answer.text
    return answer.json()['server']['id']


def statuses(service, session):
    listed = session.get(f'{service.url}/v2.1/servers/detail').json()['servers']
    return {each['id']: each['status'] for each in listed}


def wait_settled(service, session, seconds=60):
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        found = statuses(service, session)
        if all(status in SETTLED for status in found.values()):
            return found
        time.sleep(0.1)
    raise AssertionError(found)


def test_ten_boots_survive(serve):
    service = serve(OS_SIMULATED__SPAWN_SECONDS='0.3')
    session = service.session()
    made = [boot(service, session, f'server{number}') for number in range(10)]
    assert 'BUILD' in statuses(service, session).values()
    service.kill()
    service.start()
    session = service.session()
    found = wait_settled(service, session)
    assert sorted(found) == sorted(made)
    assert set(found.values()) == {'ACTIVE'}
    ports = session.get(f'{service.url}/networking/v2.0/ports').json()['ports']
    assert sorted(port['device_id'] for port in ports if port['device_owner'].startswith('compute')) == sorted(made)


def test_deletes_survive(serve):
    service = serve(OS_SIMULATED__SPAWN_SECONDS='0.2')
    session = service.session()
    made = [boot(service, session, f'server{number}') for number in range(6)]
    for each in made:
        assert session.delete(f'{service.url}/v2.1/servers/{each}').status_code == 204
    service.kill()
    service.start()
    session = service.session()
    until = time.monotonic() + 60
    while statuses(service, session) and time.monotonic() < until:
        time.sleep(0.1)
    assert statuses(service, session) == {}
    ports = session.get(f'{service.url}/networking/v2.0/ports').json()['ports']
    assert [port for port in ports if port['device_owner'].startswith('compute')] == []
    limits = session.get(f'{service.url}/v2.1/limits').json()['limits']['absolute']
    assert limits['totalInstancesUsed'] == limits['totalCoresUsed'] == 0


ROUNDS = int(os.environ.get('COMPUTEAPI_TEST_KILL_ROUNDS', 3))
SEED = os.environ.get('COMPUTEAPI_TEST_KILL_SEED', '1')


@pytest.fixture
def killed(serve, database, database_url):
    """A service with three hosts, and its store: with SQLite it is the only process, otherwise its leases must
    expire."""
    shared = {'OS_DATABASE__CONNECTION': database_url, 'OS_DEFAULT__TASK_LEASE': '2'}
    service = serve('--hosts', '3', **DELAYS, **({} if database == 'sqlite' else shared))
    url = f'sqlite:///{service.data}/computeapi.db' if database == 'sqlite' else database_url
    store = Store(url)
    yield service, store
    store.close()


def test_a_mixed_load_survives(killed):
    """COMPUTEAPI_TEST_KILL_ROUNDS=20 kills it more often, COMPUTEAPI_TEST_KILL_SEED=... at other moments."""
    service, store = killed
    chance = random.Random(SEED)
    for number in range(ROUNDS):
        if number:
            service.start()
        load = Load(service, f'{SEED} {number}')
        with load.going():
            time.sleep(chance.uniform(0.3, 1.5))
            service.kill()
        service.start()
        session = service.session()
        wait_idle(store)
        shown = session.get(f'{service.url}/v2.1/servers/detail').json()['servers']
        assert {each['status'] for each in shown} <= set(states.STATUS.values()), (SEED, number)
        assert [each['id'] for each in shown if each['OS-EXT-STS:task_state']] == [], (SEED, number)
        limits = session.get(f'{service.url}/v2.1/limits').json()['limits']['absolute']
        assert limits['totalInstancesUsed'] == len(shown), (SEED, number)
        service.stop()
        assert load.wrong == [], (SEED, number)
        assert problems(store) == [], (SEED, number)
        assert list((service.data / 'images').glob('*.part')) == [], (SEED, number)
