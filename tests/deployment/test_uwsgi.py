"""Several processes of a real uwsgi with the configuration that comes with the service, on one database."""

import os
import re
import shutil
import signal
import socket
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import requests

from computeapi.db import schema
from computeapi.db.engine import Store
from tests.deployment.conftest import free_port

INI = Path(__file__).parents[2] / 'etc/computeapi/uwsgi.ini'
PROCESSES = 4
UWSGI = shutil.which('uwsgi', path=Path(sys.executable).parent)
CONF = """
[DEFAULT]
log_file = {folder}/computeapi.log
[api]
auth_strategy = none
[database]
connection = {url}
[standalone]
data_dir = {folder}
"""


@pytest.fixture
def database():
    return 'postgresql' if os.environ.get('COMPUTEAPI_TEST_POSTGRESQL') else 'sqlite'


@pytest.fixture
def uwsgi_of(start, database_url, tmp_path):
    """uwsgi_of(app): (Process, URL) of a uwsgi that responds."""
    store = Store(database_url)
    schema.create(store)
    store.close()
    conf = tmp_path / 'computeapi.conf'
    conf.write_text(CONF.format(folder=tmp_path, url=database_url))

    def run(app='application', processes=PROCESSES, **more):
        address = f'127.0.0.1:{free_port()}'
        environment = {
            'OS_COMPUTEAPI_CONFIG_FILES': str(conf),
            'COMPUTEAPI_LISTEN': address,
            'COMPUTEAPI_APP': app,
            **more,
            **({'COMPUTEAPI_PROCESSES': str(processes)} if processes else {}),
        }
        process = start([UWSGI, '--ini', str(INI)], environment)
        process.answer(f'http://{address}')
        return process, f'http://{address}'

    return run


@pytest.fixture
def uwsgi(uwsgi_of):
    process, url = uwsgi_of()
    yield process, url
    assert process.stop() == 0, process.log.read_text()


@pytest.fixture(params=[{}, {'COMPUTEAPI_BEHIND_PROXY': '1'}], ids=['router', 'proxy'])
def uwsgi_behind(uwsgi_of, request):
    """The same, with uwsgi's router and without it."""
    process, url = uwsgi_of(**request.param)
    yield process, url
    assert process.stop() == 0, process.log.read_text()


def make_flavor(url, name):
    flavor = {'name': name, 'id': name, 'ram': 64, 'vcpus': 1, 'disk': 1}
    return requests.post(f'{url}/v2.1/flavors', json={'flavor': flavor}, timeout=30).status_code


def test_it_answers_and_stops(uwsgi_behind, tmp_path):
    process, url = uwsgi_behind
    assert requests.get(f'{url}/healthcheck', timeout=10).status_code == 200
    assert requests.get(url, timeout=10).json()['versions']
    answer = requests.get(f'{url}/v2.1/flavors', headers={'OpenStack-API-Version': 'compute 2.61'}, timeout=10)
    assert (answer.json(), answer.headers['OpenStack-API-Version']) == ({'flavors': []}, 'compute 2.61')
    assert '"GET /v2.1/flavors" status: 200' in (tmp_path / 'computeapi.log').read_text()
    assert process.stop() == 0


def test_it_stops_where_hosts_have_agents(uwsgi_of):
    """The library for the broker is loaded in a thread that is waited for at the end."""
    url = f'rabbit://guest:guest@127.0.0.1:{free_port()}/'
    process, _ = uwsgi_of(OS_HYPERVISOR__BACKEND='remote', OS_DEFAULT__TRANSPORT_URL=url)
    assert process.stop() == 0, process.log.read_text()
    assert 'Segmentation Fault' not in process.log.read_text()


def test_other_users_reach_no_more_than_the_router(uwsgi):
    """In its own protocol, uwsgi lets anybody who can connect to a process name a file for it to execute."""
    process, url = uwsgi
    bound = re.findall(r'uwsgi socket \d+ .*bound to (.+) fd \d+', process.log.read_text())
    [path] = [Path(address.removeprefix('UNIX address ')) for address in bound]
    assert path.stat().st_mode & 0o777 == 0o600
    assert process.stop() == 0
    assert not path.exists()


def test_guests_are_answered_by_processes_of_their_own(uwsgi_of):
    process, url = uwsgi_of('metadata')
    assert requests.get(url, timeout=10).text.endswith('latest')
    assert requests.get(f'{url}/openstack', timeout=10).status_code == 400
    assert process.stop() == 0


def test_all_workers_see_the_same(uwsgi_behind, tmp_path):
    _, url = uwsgi_behind
    names = [f'flavor-{number}' for number in range(20)]
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(lambda name: make_flavor(url, name), names)) == [200] * 20
        lists = list(pool.map(lambda _: requests.get(f'{url}/v2.1/flavors', timeout=30).json(), names))
    assert all({flavor['name'] for flavor in each['flavors']} == set(names) for each in lists)
    lines = (tmp_path / 'computeapi.log').read_text().splitlines()
    assert len({line.split()[1] for line in lines}) > 1, 'One worker did everything'


def test_the_same_name_is_given_once(uwsgi):
    _, url = uwsgi
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: make_flavor(url, 'one'), range(8)))
    assert sorted(answers) == [200] + [409] * 7


def test_a_session_keeps_its_connection(uwsgi):
    _, url = uwsgi
    with requests.Session() as session:
        for number in range(60):
            flavor = {'name': f'{number}', 'ram': 64, 'vcpus': 1, 'disk': 1}
            answer = session.post(f'{url}/v2.1/flavors', json={'flavor': flavor}, timeout=30)
            assert answer.status_code == 200 and answer.headers.get('Connection') != 'close'
        pools = session.get_adapter(url).poolmanager.pools
        assert [pools[key].num_connections for key in list(pools.keys())] == [1]


def test_behind_a_proxy_a_session_is_told_that_each_connection_ends(uwsgi_of):
    process, url = uwsgi_of(COMPUTEAPI_BEHIND_PROXY='1')
    with requests.Session() as session:
        for path in ['/v2.1/flavors', '/v2.1/flavors/none'] * 30:
            assert session.get(f'{url}{path}', timeout=30).headers['Connection'] == 'close'
    assert process.stop() == 0, process.log.read_text()


def test_many_clients_that_keep_their_connections_are_answered(uwsgi, run_load):
    run_load(uwsgi[1])


@pytest.mark.parametrize(('length', 'status'), [(100_000, 400), (1_000_000, 413)])
def test_long_bodies_are_answered(uwsgi_behind, length, status):
    """As long as those with user_data, and too long, each on a separate connection, as with curl."""
    _, url = uwsgi_behind
    body = {'keypair': {'name': 'long', 'public_key': 'x' * length}}
    answers = [requests.post(f'{url}/v2.1/os-keypairs', json=body, timeout=30).status_code for _ in range(30)]
    assert answers == [status] * 30


def test_small_machines_have_fewer_processes(uwsgi_of):
    process, _ = uwsgi_of(processes=None)
    spawned = re.findall(r'spawned uWSGI worker \d+', process.log.read_text())
    assert len(spawned) == (4 if len(os.sched_getaffinity(0)) > 2 else 2)
    assert process.stop() == 0, process.log.read_text()


def test_a_mistake_in_the_configuration_is_one_line_in_the_log(uwsgi_of, tmp_path):
    policies = tmp_path / 'policy.yaml'
    policies.write_text('- a list')
    process, url = uwsgi_of(processes=1, OS_OSLO_POLICY__POLICY_FILE=str(policies))
    answer = requests.get(f'{url}/v2.1/flavors', timeout=30)
    assert (answer.status_code, answer.json()['serviceUnavailable']['code']) == (503, 503)
    lines = (tmp_path / 'computeapi.log').read_text().splitlines()
    assert lines and all('CRITICAL' in line and '[oslo_policy]policy_file' in line for line in lines)
    assert 'Traceback' not in process.log.read_text()
    assert process.stop() == 0


def test_it_reloads(uwsgi_behind, tmp_path):
    process, url = uwsgi_behind
    assert make_flavor(url, 'before') == 200
    (tmp_path / 'computeapi.conf').write_text((tmp_path / 'computeapi.conf').read_text() + '[api]\nmax_limit = 1\n')
    process.process.send_signal(signal.SIGHUP)
    while f'spawned uWSGI worker {PROCESSES}' not in process.log.read_text().partition('binary reloading')[2]:
        assert process.process.poll() is None, process.log.read_text()
        time.sleep(0.1)
    assert process.answer(f'{url}/healthcheck').status_code == 200
    assert make_flavor(url, 'after') == 200
    listed = requests.get(f'{url}/v2.1/flavors', timeout=30).json()
    assert len(listed['flavors']) == 1 and 'flavors_links' in listed


def test_a_body_that_breaks_off_comes_to_nothing(uwsgi_behind, tmp_path):
    """uwsgi reads the body first, and closes the connection after a while."""
    _, url = uwsgi_behind
    with socket.create_connection(('127.0.0.1', int(url.rpartition(':')[2])), timeout=30) as client:
        head = b'POST /v2.1/flavors HTTP/1.1\r\nHost: cloud\r\nContent-Type: application/json\r\n'
        client.sendall(head + b'Content-Length: 100\r\n\r\n{')
        assert client.recv(12) == b''
    assert 'flavors' not in (tmp_path / 'computeapi.log').read_text()
