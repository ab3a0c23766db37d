"""/metrics of real processes: several of uwsgi, `computeapi worker`, `computeapi serve`."""

import os
import re
import signal
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor

import pytest
import requests
from prometheus_client.parser import text_string_to_metric_families

from tests.deployment.conftest import free_port
from tests.deployment.test_uwsgi import PROCESSES, database, uwsgi_of  # noqa: F401
from tests.deployment.test_workers import WORKER, store, wait_until  # noqa: F401

THIS_MANY = 60


def scrape(url, **more):
    """{name: {label values: value}}, with labels in the order of their names."""
    answer = requests.get(f'{url}/metrics', timeout=30, **more)
    assert answer.status_code == 200, answer.text
    found = defaultdict(dict)
    for family in text_string_to_metric_families(answer.text):
        for sample in family.samples:
            found[sample.name][tuple(sample.labels[name] for name in sorted(sample.labels))] = sample.value
    return found


def total(url):
    """The counted requests for flavors."""
    counted = scrape(url)['computeapi_requests_total']
    return sum(value for labels, value in counted.items() if 'GET /flavors' in labels)


def ask(url):
    return requests.get(f'{url}/v2.1/flavors', timeout=30).status_code


def workers_of(uwsgi):
    """The PIDs of current and former uwsgi workers."""
    return [
        int(pid)
        for pid in re.findall(r'(?:spawned|Respawned) uWSGI worker \d+ \((?:new )?pid: (\d+)', uwsgi.log.read_text())
    ]


@pytest.fixture
def uwsgi(uwsgi_of):
    """uwsgi(): (Process, URL); it ends before its database is dropped."""
    started = []

    def run():
        started.append(uwsgi_of())
        return started[-1]

    yield run
    for process, _ in started:
        assert process.stop() == 0, process.log.read_text()


@pytest.fixture
def counting_uwsgi(uwsgi, tmp_path, monkeypatch):
    for name, value in {'ENABLED': 'true', 'DIRECTORY': str(tmp_path / 'metrics')}.items():
        monkeypatch.setenv(f'OS_METRICS__{name}', value)
    monkeypatch.setenv('OS_DEFAULT__WORKERS', '0')
    return uwsgi()


def test_counts_of_several_processes_add_up_and_outlive_them(counting_uwsgi, tmp_path):
    uwsgi, url = counting_uwsgi
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(lambda _: ask(url), range(THIS_MANY))) == [200] * THIS_MANY
    found = {total(url) for _ in range(8)}
    assert found == {THIS_MANY}
    files = {path.name for path in (tmp_path / 'metrics').glob('counter_*.db')}
    assert len(files) == PROCESSES, 'Each process counts for itself'
    first = workers_of(uwsgi)
    for pid in first[:3]:
        os.kill(pid, signal.SIGKILL)
    wait_until(lambda: len(workers_of(uwsgi)) == len(first) + 3)
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(lambda _: ask(url), range(THIS_MANY))) == [200] * THIS_MANY
    assert total(url) == 2 * THIS_MANY
    assert {path.name for path in (tmp_path / 'metrics').glob('counter_*.db')} == files


def test_without_a_directory_one_of_them_does_not_speak_for_all(uwsgi, monkeypatch):
    monkeypatch.setenv('OS_METRICS__ENABLED', 'true')
    _, url = uwsgi()
    answer = requests.get(f'{url}/metrics', timeout=30)
    assert (answer.status_code, 'directory' in answer.text) == (503, True)


def test_it_is_off_unless_it_is_asked_for(uwsgi):
    assert requests.get(f'{uwsgi()[1]}/metrics', timeout=30).status_code == 404


def test_a_worker_tells_of_its_tasks_at_a_port(store, start):
    port = free_port()
    metrics = {'OS_METRICS__ENABLED': 'true', 'OS_METRICS__WORKER_PORT': str(port), 'OS_METRICS__TOKEN': 'secret'}
    process = start(WORKER, metrics)
    url, token = f'http://127.0.0.1:{port}', {'Authorization': 'Bearer secret'}
    assert process.answer(f'{url}/metrics').status_code == 401
    wait_until(lambda: scrape(url, headers=token)['computeapi_processes'])
    found = scrape(url, headers=token)
    assert found['computeapi_tasks'] == {(): 0}
    assert requests.get(f'{url}/other', timeout=30, headers=token).status_code == 404
    second = start(WORKER, metrics)
    assert second.process.wait(40) == 2
    assert 'worker_port' in second.log.read_text()
    assert process.stop() == 0


def test_serve_tells_whoever_is_on_its_machine(serve):
    served = serve('--in-memory', '--host', '0.0.0.0')
    assert requests.get(f'{served.url}/v2.1/servers', timeout=30).status_code == 401
    with served.connect() as cloud:
        server = cloud.compute.create_server(name='one', flavor_id='1', networks='none', image_id=image(cloud))
        cloud.compute.wait_for_server(server)
    found = scrape(served.url)
    assert found['computeapi_requests_total']['none', 'none', '401'] == 1
    assert found['computeapi_task_attempts_total']['build', 'done'] == 1
    assert found['computeapi_servers'] == {('active',): 1}
    assert found['computeapi_hosts']['up',] == 1
    assert scrape(f'{served.url}/compute').keys() == found.keys()


def image(cloud):
    return next(iter(cloud.image.images())).id
