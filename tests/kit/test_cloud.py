"""A cloud inside a test: it starts, can be reset, and leaves nothing behind."""

import gc
import os
import subprocess
import sys
import threading
import weakref

import pytest
import requests
from oslo_config import cfg

from computeapi import config
from computeapi.errors import Conflict, NotFound
from computeapi.serve.http import server
from computeapi.testing import Cloud
from tests.kit.conftest import HTTP
from tests.kit.leftovers import open_files
from tests.waiting import eventually

TIMEOUT = 60
"""How long to wait for what should happen soon, in seconds."""


def test_nothing_is_left_of_a_cloud_that_has_gone():
    subprocess.run([sys.executable, '-m', 'tests.kit.leftovers'], check=True, timeout=120)


def test_a_cloud_ends_while_a_request_is_delayed(monkeypatch):
    monkeypatch.setattr(server, 'SHUTDOWN_SECONDS', TIMEOUT)
    cloud = Cloud()
    cloud.start()
    rule = cloud.faults.add(path='/', delay=3600)
    lost = in_thread(lambda: pytest.raises(requests.ConnectionError, requests.get, cloud.url))
    eventually(lambda: rule.hits)
    in_thread(cloud.stop).join(TIMEOUT / 2)
    assert repr(cloud) == '<Cloud that is not there>'
    lost.join()


def in_thread(function):
    """Run the function in a thread, which is returned."""
    thread = threading.Thread(target=function)
    thread.start()
    return thread


def test_a_reset_does_not_wait_for_an_upload_that_has_stopped(cloud, http):
    image = http.post('/image/v2/images', {'name': 'x', 'container_format': 'bare', 'disk_format': 'raw'}).json()['id']
    going_on = threading.Event()

    def half():
        yield b'x' * 500_000
        going_on.wait(TIMEOUT)
        yield b'x'

    upload = in_thread(lambda: http.upload(image, half()))
    eventually(lambda: http.get(f'/image/v2/images/{image}').json()['status'] == 'saving')
    reset = in_thread(cloud.reset)
    reset.join(TIMEOUT / 2)
    is_done = not reset.is_alive()
    going_on.set()
    upload.join()
    reset.join()
    assert is_done


def test_several_clouds_are_several():
    with Cloud() as one, Cloud() as other:
        HTTP(one).boot('alpha')
        assert HTTP(one).names() == ['alpha']
        assert HTTP(other).names() == []


def test_a_cloud_can_be_started_again():
    cloud = Cloud()
    for _ in range(2):
        cloud.start()
        assert HTTP(cloud).names() == []
        cloud.stop()
    cloud.stop()


def test_a_cloud_is_there_once():
    with Cloud() as cloud, pytest.raises(RuntimeError):
        cloud.start()


def test_a_cloud_that_is_not_there_says_so():
    cloud = Cloud()
    cloud.stop()
    for ask in (lambda: cloud.journal, cloud.reset, cloud.connection):
        with pytest.raises(RuntimeError, match='not there'):
            ask()
    with cloud:
        HTTP(cloud).boot()
        other = cloud.branch()
    for ask in (lambda: cloud.faults, cloud.reset, cloud.export, cloud.connection, other.start):
        with pytest.raises(RuntimeError, match='not there'):
            ask()
    assert cloud.journal.count('POST /servers') == 1


def test_a_process_that_is_forked_leaves_the_cloud_where_it_is():
    with Cloud() as cloud:
        child = os.fork()
        if not child:
            _ask_and_end(cloud)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
        assert HTTP(cloud).names() == ['child']
        assert cloud.clouds_yaml.exists()
        cloud.reset()
        assert HTTP(cloud).names() == []


def _ask_and_end(cloud):
    """In a child process: send a request, check that what needs the parent's threads is refused, and exit as a program
    does that cleans up. The exit status is 7."""
    status = 1
    try:
        HTTP(cloud).boot('child')
        try:
            cloud.reset()
        except RuntimeError:
            cloud.stop()
            weakref.finalize._exitfunc()
            status = 7
    finally:
        os._exit(status)


def test_a_user_that_there_is_not_is_told(cloud):
    with pytest.raises(KeyError, match='no user nobody .* there are admin, demo'):
        cloud.connection('nobody')


def test_options_are_those_of_the_configuration():
    with Cloud(hosts=3, options={('quota', 'instances'): 7}) as cloud:
        http = HTTP(cloud)
        assert len(http.get('/v2.1/os-hypervisors').json()['hypervisors']) == 3
        assert http.get('/v2.1/limits').json()['limits']['absolute']['maxTotalInstances'] == 7
    with pytest.raises(cfg.Error):
        Cloud(options={('quota', 'instances'): 'many'})
    with pytest.raises(cfg.Error, match="like \\('quota', 'instances'\\)"):
        Cloud(options={'quota.instances': 3})


def test_a_file_of_rules_is_found_where_the_test_is(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rules = {('oslo_policy', 'policy_file'): 'policy.yaml'}
    with pytest.raises(FileNotFoundError):
        Cloud(options=rules)
    (tmp_path / 'policy.yaml').write_text('"os_compute_api:servers:index": "!"\n')
    with Cloud(options=rules) as cloud:
        assert HTTP(cloud).get('/v2.1/servers').status_code == 403


def test_a_port_that_is_taken_is_told(cloud):
    with pytest.raises(OSError, match='is in use'):
        Cloud(port=int(cloud.url.rpartition(':')[2])).start()


def test_its_connections_are_those_of_its_users(cloud):
    assert cloud.connection().compute.find_flavor('m1.tiny').ram == 512
    demo = cloud.connection('demo', compute_default_microversion='2.96')
    assert [project.name for project in demo.identity.user_projects(demo.current_user_id)] == ['demo']
    with pytest.raises(KeyError):
        cloud.connection('nobody')


def test_a_process_of_many_tests_has_no_more_files_open_for_it(cloud):
    lasting, before = cloud.connection(), len(open_files())
    for _ in range(10):
        assert cloud.connection().compute.find_flavor('m1.tiny').ram == 512
        cloud.reset()
    # The cloud notices the end a moment later.
    assert len(open_files()) < before + 10
    assert lasting.compute.find_flavor('m1.tiny').ram == 512


def test_a_reset_brings_back_what_was_there_and_takes_away_what_was_made(http, cloud):
    http.boot()
    http.delete('/v2.1/flavors/1')
    [image] = http.get('/image/v2/images').json()['images']
    made = http.post('/image/v2/images', {'name': 'mine', 'disk_format': 'raw', 'container_format': 'bare'}).json()
    http.upload(made['id'], b'bits')
    http.delete(f'/image/v2/images/{image["id"]}')
    cloud.reset()
    assert http.get('/v2.1/servers').status_code == 401
    http.log_in()
    assert http.names() == []
    assert 'm1.tiny' in {flavor['name'] for flavor in http.get('/v2.1/flavors').json()['flavors']}
    assert [each['id'] for each in http.get('/image/v2/images').json()['images']] == [image['id']]
    assert http.get(f'/image/v2/images/{image["id"]}/file').status_code == 200
    assert len(os.listdir(cloud.clouds_yaml.parent / 'images')) == 1


def test_work_that_a_reset_cut_off_does_not_come_back(http, cloud):
    """Boots are in progress, and the rows of the next ones have the same numbers."""
    for _ in range(10):
        for number in range(5):
            http.boot(f'before-{number}')
        cloud.reset()
        http.log_in()
        server_id = http.boot('after')
        connection = cloud.connection()
        connection.compute.wait_for_server(connection.compute.get_server(server_id), interval=0.02)
        assert http.names() == ['after']
        assert not list(cloud.tools.service.audit.findings())


def test_hosts_are_up_whenever_the_snapshot_was_taken(http, cloud):
    cloud.reset()
    http.log_in()
    states = {each['state'] for each in http.get('/v2.1/os-hypervisors/detail').json()['hypervisors']}
    assert states == {'up'}


def test_a_snapshot_is_gone_back_to_and_left_again(http, cloud):
    http.boot('kept')
    cloud.snapshot('one')
    http.boot('lost')
    for _ in range(2):
        cloud.restore('one')
        assert http.names() == ['kept']
        http.boot('other')
    with pytest.raises(Conflict):
        cloud.snapshot('one')
    with pytest.raises(NotFound):
        cloud.restore('two')


def test_a_branch_has_the_configuration_of_its_cloud():
    conf = config.load(overrides={('quota', 'instances'): 7})
    with Cloud(conf=conf) as cloud, cloud.branch() as other:
        limits = HTTP(other).get('/v2.1/limits').json()['limits']['absolute']
        assert limits['maxTotalInstances'] == 7
        assert HTTP(cloud).boot() and HTTP(other).names() == []


def test_branches_are_as_many_as_a_test_wants(cloud):
    """The snapshot that a branch starts with lasts as long as the branch, under a name that no other snapshot can
    have."""
    folder = cloud.tools.snapshots.folder
    # An earlier test may have left branches that are not collected yet.
    gc.collect()
    names = cloud.tools.snapshots.list()
    first = {path.name for path in folder.iterdir()}
    branches = [cloud.branch() for _ in range(3)]
    cloud.reset()
    assert cloud.tools.snapshots.list() == names
    assert len(list(folder.iterdir())) == len(first) + 3
    with branches[0]:
        pass
    with branches[0] as again:
        assert HTTP(again).names() == []
    del branches, again
    gc.collect()
    assert {path.name for path in folder.iterdir()} == first


def test_a_branch_begins_with_a_snapshot_that_is_there(cloud):
    with pytest.raises(NotFound):
        cloud.branch('none')


def test_a_branch_is_a_cloud_of_its_own(http, cloud):
    http.boot('shared')
    with cloud.branch() as branch:
        there = HTTP(branch)
        there.boot('new')
        assert there.names() == ['new', 'shared']
        assert http.names() == ['shared']
        there.cloud.reset()
        there.log_in()
        assert there.names() == ['shared']
