"""A synthetic cloud: of the requested size, realistic, consistent, and reproducible."""

import multiprocessing
import random
import sqlite3
import subprocess
import sys
import time
import uuid
from collections import Counter
from contextlib import closing
from datetime import datetime
from pathlib import Path

import pytest
import yaml

from computeapi.cli import main
from computeapi.clock import utcnow
from computeapi.db.bulk import INDEXES
from computeapi.errors import Error
from computeapi.kit.cloud_files.document import CloudFileSource
from computeapi.kit.cloud_files.filling import CHUNK, drawn_ids
from computeapi.kit.cloud_files.populating import populate
from computeapi.kit.cloud_files.synthetic import SyntheticCloud
from computeapi.testing import Cloud
from tests.kit.test_cloud_files import problems

NOW = datetime(2026, 1, 31)
UNDER_WAY = ('is still', 'has power state 0', 'a task is left', 'never ended', 'has no fault')


@pytest.fixture
def populated(cloud, http):
    with cloud.tools.paused():
        populate(cloud.tools.service, SyntheticCloud(300, 8, 12, seed=3, now=utcnow()))
        cloud.tools.service.state_replaced()
    http.log_in()
    return cloud


def test_a_cloud_is_as_large_as_asked(populated, http):
    servers = []
    answer = http.get('/v2.1/servers/detail?all_tenants=1').json()
    while answer['servers']:
        servers += answer['servers']
        answer = http.get(f'/v2.1/servers/detail?all_tenants=1&marker={servers[-1]["id"]}').json()
    statuses = Counter(server['status'] for server in servers)
    owners = Counter(server['tenant_id'] for server in servers)

    assert len(servers) == 300
    assert statuses['ACTIVE'] > 230 and statuses['SHUTOFF'] > 5
    assert max(owners.values()) > 3 * min(owners.values())
    assert len({server['flavor']['original_name'] for server in servers}) > 6
    assert any(server['os-extended-volumes:volumes_attached'] for server in servers)


def test_it_is_sound_and_claims_add_up(populated, http):
    assert [each for each in problems(populated) if not any(words in each for words in UNDER_WAY)] == []
    hosts = http.get('/v2.1/os-hypervisors/detail', headers={'OpenStack-API-Version': 'compute 2.87'}).json()
    taken = [(each['memory_mb_used'], each['memory_mb']) for each in hosts['hypervisors']]
    assert len(taken) == 14 and all(used <= there for used, there in taken) and any(used for used, _ in taken)


def test_its_servers_can_be_used(populated, http):
    found = http.get('/v2.1/servers?all_tenants=1&status=ACTIVE&limit=3').json()['servers']
    for server in found:
        assert http.post(f'/v2.1/servers/{server["id"]}/action', {'os-stop': None}).status_code in (202, 409)
        assert http.delete(f'/v2.1/servers/{server["id"]}').status_code == 204


def test_the_same_seed_makes_the_same_cloud():
    first, second, other = (SyntheticCloud(50, 4, 3, seed, NOW).document() for seed in (1, 1, 2))

    assert first == second
    assert first['servers'] != other['servers']
    assert CloudFileSource(first).check() == first


def test_ids_are_uuids_that_grow():
    source = random.Random(1)
    ids = [*drawn_ids(source, 0), *drawn_ids(source, CHUNK)]

    assert ids == sorted(set(ids)) and len(ids) == 2 * CHUNK
    assert all(str(uuid.UUID(each)) == each and uuid.UUID(each).version == 4 for each in ids)


def test_a_file_can_be_made_and_loaded(cloud, http, tmp_path):
    path = tmp_path / 'cloud.yaml'
    assert main(['populate', '--servers', '40', '--projects', '3', '--hosts', '4', '--output', str(path)]) == 0
    assert len(yaml.safe_load(path.read_text())['servers']) == 40
    cloud.load(path)
    http.log_in()
    assert len(http.get('/v2.1/servers?all_tenants=1').json()['servers']) == 40


def test_a_file_can_be_printed(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(['populate', '--servers', '4', '--projects', '3', '--hosts', '4', '--output', '-']) == 0
    assert len(yaml.safe_load(capsys.readouterr().out)['servers']) == 4 and not list(tmp_path.iterdir())


def test_a_data_directory_is_filled(tmp_path, capsys):
    folder = str(tmp_path / 'data')
    assert main(['populate', '--servers', '60', '--projects', '3', '--hosts', '200', '--data-dir', folder]) == 0
    assert main(['audit', '--data-dir', folder]) == 0
    assert f'60 servers are in {folder}' in capsys.readouterr().out
    with closing(sqlite3.connect(tmp_path / 'data' / 'computeapi.db')) as database:
        [(hosts,)] = database.execute('SELECT count(*) FROM hypervisors')
        # And the one that serve simulates.
        assert hosts == 200 + 1
    assert main(['populate', '--servers', '60', '--projects', '3', '--hosts', '4', '--data-dir', folder]) == 2
    assert 'already contains a synthetic cloud' in capsys.readouterr().err


def filled(many):
    """The servers of a synthetic cloud and their volumes; many: the number from which two processes write it."""
    with Cloud() as cloud:
        with cloud.tools.paused():
            populate(cloud.tools.service, SyntheticCloud(50, 4, 3, seed=5, now=NOW), many=many)
        document = cloud.export()
    return document['servers'], document['volumes']


def test_two_processes_make_the_same():
    assert filled(many=1) == filled(many=51)


def test_indexes_are_as_they_were(cloud):
    store = cloud.tools.service.store
    before = set(store.query(lambda connection: connection.exec_driver_sql(INDEXES).all()))
    with cloud.tools.paused():
        populate(cloud.tools.service, SyntheticCloud(10, 2, 1, seed=5, now=NOW), many=1)
    assert before == set(store.query(lambda connection: connection.exec_driver_sql(INDEXES).all())) != set()


def test_when_the_other_process_dies_nothing_is_left(cloud):
    def kill(done):
        for process in multiprocessing.active_children():
            process.kill()

    before = cloud.export()
    inventory = SyntheticCloud(3 * CHUNK, 4, 300, seed=5, now=NOW)
    with cloud.tools.paused(), pytest.raises(Error, match='has died'):
        populate(cloud.tools.service, inventory, kill, many=1)
    assert cloud.export() == before and not multiprocessing.active_children()


def test_who_is_killed_leaves_no_process(tmp_path):
    arguments = ['--servers', '1000000', '--data-dir', str(tmp_path / 'data')]
    process = subprocess.Popen([sys.executable, '-m', 'computeapi', 'populate', *arguments])
    makers = []
    while len(makers) < 2:
        assert process.poll() is None
        makers = Path(f'/proc/{process.pid}/task/{process.pid}/children').read_text().split()
        time.sleep(0.1)
    process.kill()
    process.wait()
    deadline = time.monotonic() + 60
    while any(is_alive(maker) for maker in makers):
        assert time.monotonic() < deadline
        time.sleep(0.1)


def is_alive(process_id):
    try:
        return Path(f'/proc/{process_id}/stat').read_text().rpartition(')')[2].split()[0] != 'Z'
    except FileNotFoundError:
        return False
