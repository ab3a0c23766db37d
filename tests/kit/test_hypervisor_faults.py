"""A hypervisor that fails, hangs and is slow, and what is out of reach."""

import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from computeapi.errors import NotFound
from tests.consoles.viewers import Terminal, closing
from tests.kit.conftest import HTTP


@pytest.fixture
def status(http):
    """status(server, 'ACTIVE'): its status, as soon as it is that, or what it was at the end of patience."""

    def get(server, *wanted, seconds=10.0):
        until = time.monotonic() + (seconds if wanted else 0)
        while True:
            found = http.get(f'/v2.1/servers/{server}').json()['server']['status']
            if found in wanted or time.monotonic() > until:
                return found
            time.sleep(0.01)

    return get


# ------------------------------------------------------------------ rules


def test_it_fails_for_some_servers(cloud, http, status):
    rule = cloud.faults.add(hypervisor='spawn', effect='fail', server='bad')
    good, bad = http.boot('good'), http.boot('bad-1')
    assert status(bad, 'ERROR') == 'ERROR'
    assert status(good, 'ACTIVE') == 'ACTIVE'
    # It was tried on both hosts.
    assert rule.hits == 2


def test_clients_read_what_it_says(cloud, http, status):
    server = http.boot()
    status(server, 'ACTIVE')
    cloud.faults.add(hypervisor='spawn', effect='fail', message='It burns.')
    [image] = http.get('/image/v2/images').json()['images']
    http.post(f'/v2.1/servers/{server}/action', {'rebuild': {'imageRef': image['id']}})
    assert status(server, 'ERROR') == 'ERROR'
    assert http.get(f'/v2.1/servers/{server}').json()['server']['fault']['message'] == 'It burns.'


def test_it_fails_on_one_host(cloud, http, status):
    cloud.faults.add(hypervisor='spawn', effect='fail', host='compute1')
    servers = [http.boot() for _ in range(3)]
    assert {status(server, 'ACTIVE', 'ERROR') for server in servers} == {'ACTIVE'}
    hosts = {http.get(f'/v2.1/servers/{each}').json()['server']['OS-EXT-SRV-ATTR:host'] for each in servers}
    assert hosts == {'compute2'}


def test_metadata_and_projects_choose_as_well(cloud, http, status):
    cloud.faults.add(hypervisor='spawn', effect='fail', metadata={'role': 'db'})
    cloud.faults.add(hypervisor='reboot', effect='fail', project='demo')
    one, other = http.boot(metadata={'role': 'db', 'tier': '1'}), http.boot(metadata={'role': 'web'})
    assert status(one, 'ERROR') == 'ERROR'
    assert status(other, 'ACTIVE') == 'ACTIVE'
    http.post(f'/v2.1/servers/{other}/action', {'reboot': {'type': 'HARD'}})
    assert status(other, 'ACTIVE') == 'ACTIVE'
    assert cloud.faults.list()[1].hits == 0


def test_it_fails_so_often(cloud, http, status):
    rule = cloud.faults.add(hypervisor='spawn', effect='fail', count=2)
    assert status(http.boot(), 'ERROR', 'ACTIVE') == 'ERROR'
    assert status(http.boot(), 'ERROR', 'ACTIVE') == 'ACTIVE'
    assert rule.hits == 2


def test_what_goes_wrong_with_a_deletion_does_not_with_a_move(cloud, http, status):
    """Though whatever was left of the server on the other host would go before it comes there."""
    server = http.boot()
    status(server, 'ACTIVE')
    rule = cloud.faults.add(hypervisor='destroy', effect='fail', count=1)
    http.post(f'/v2.1/servers/{server}/action', {'migrate': None})
    assert status(server, 'VERIFY_RESIZE', 'ERROR') == 'VERIFY_RESIZE'
    assert rule.hits == 0
    http.delete(f'/v2.1/servers/{server}')
    assert status(server, 'ERROR') == 'ERROR'


def test_it_hangs_until_the_rule_is_gone(cloud, http, status):
    with cloud.faults.add(hypervisor='spawn', effect='hang', count=1) as rule:
        hung, other = http.boot('one'), http.boot('other')
        until = time.monotonic() + 10
        while [status(hung), status(other)] == ['BUILD', 'BUILD'] and time.monotonic() < until:
            time.sleep(0.01)
        [waiting] = [server for server in (hung, other) if status(server) == 'BUILD']
        assert rule.hits == 1
    # It goes on at once, and not when it would have looked again.
    assert status(waiting, 'ACTIVE', seconds=3) == 'ACTIVE'


def test_it_hangs_for_a_time(cloud, http, status):
    cloud.faults.add(hypervisor='spawn', effect='hang', lasting=0.5)
    server = http.boot()
    assert status(server, 'BUILD') == 'BUILD'
    assert status(server, 'ACTIVE') == 'ACTIVE'


def test_it_is_slow_and_holds_no_worker(cloud, http, status):
    rule = cloud.faults.add(hypervisor='spawn', effect='slow', delay=0.4, jitter=0.1, server='slow')
    begun = time.monotonic()
    slow = [http.boot(f'slow-{number}') for number in range(6)]
    assert status(http.boot('quick'), 'ACTIVE') == 'ACTIVE'
    assert {status(server, 'ACTIVE') for server in slow} == {'ACTIVE'}
    assert time.monotonic() - begun >= 0.4
    # Each is one call, however often it was looked at.
    assert rule.hits == 6


def test_a_server_that_hangs_can_be_deleted(cloud, http, status):
    cloud.faults.add(hypervisor='spawn', effect='hang')
    server = http.boot()
    assert status(server, 'BUILD') == 'BUILD'
    http.delete(f'/v2.1/servers/{server}')
    until = time.monotonic() + 5
    while http.get(f'/v2.1/servers/{server}').status_code != 404 and time.monotonic() < until:
        time.sleep(0.02)
    assert http.names() == []


def test_a_live_migration_that_hangs_can_be_aborted(cloud, http, status):
    server = http.boot()
    status(server, 'ACTIVE')
    rule = cloud.faults.add(hypervisor='live_migrate', effect='hang')
    http.post(f'/v2.1/servers/{server}/action', {'os-migrateLive': {'host': None, 'block_migration': 'auto'}})
    until = time.monotonic() + 5
    while not rule.hits and time.monotonic() < until:
        time.sleep(0.01)
    [migration] = http.get(f'/v2.1/servers/{server}/migrations').json()['migrations']
    assert http.delete(f'/v2.1/servers/{server}/migrations/{migration["id"]}').status_code == 202
    assert status(server, 'ACTIVE', seconds=5) == 'ACTIVE'


# ------------------------------------------------------------------ hosts and cells


@pytest.fixture
def hypervisors(http):
    return lambda: {
        each['hypervisor_hostname']: each['state']
        for each in http.get('/v2.1/os-hypervisors/detail').json()['hypervisors']
    }


def test_a_host_is_down_at_once_and_back_again(cloud, http, hypervisors, status):
    with cloud.hosts.down('compute1'):
        assert hypervisors() == {'compute1': 'down', 'compute2': 'up'}
        cloud.tools.service.hosts.report()
        assert hypervisors()['compute1'] == 'down'
        servers = [http.boot(f'web-{number}') for number in range(3)]
        for server in servers:
            status(server, 'ACTIVE')
            found = http.get(f'/v2.1/servers/{server}').json()['server']
            assert (found['status'], found['OS-EXT-SRV-ATTR:host']) == ('ACTIVE', 'compute2')
    assert hypervisors() == {'compute1': 'up', 'compute2': 'up'}
    with pytest.raises(NotFound, match='there are compute1, compute2'):
        cloud.hosts.down('compute9')


def test_a_host_that_is_down_twice_is_so_until_the_first_ends(cloud):
    with cloud.hosts.down('compute1'):
        with cloud.hosts.down('compute1'):
            pass
        assert cloud.hosts.list() == ['compute1']
    assert cloud.hosts.list() == []


def test_what_a_host_is_told_that_is_down_waits_until_it_is_back(cloud, http, status):
    server = http.boot()
    status(server, 'ACTIVE')
    host = http.get(f'/v2.1/servers/{server}').json()['server']['OS-EXT-SRV-ATTR:host']
    cloud.hosts.down(host)
    http.post(f'/v2.1/servers/{server}/action', {'reboot': {'type': 'HARD'}})
    time.sleep(0.2)
    assert status(server) == 'HARD_REBOOT'
    cloud.hosts.up(host)
    assert status(server, 'ACTIVE', seconds=3) == 'ACTIVE'


def test_servers_are_evacuated_from_a_host_that_is_down(cloud, http, status):
    server = http.boot()
    status(server, 'ACTIVE')
    host = http.get(f'/v2.1/servers/{server}').json()['server']['OS-EXT-SRV-ATTR:host']
    with cloud.hosts.down(host):
        assert http.post(f'/v2.1/servers/{server}/action', {'evacuate': {}}).status_code == 200
        assert status(server, 'SHUTOFF') == 'SHUTOFF'
        assert http.get(f'/v2.1/servers/{server}').json()['server']['OS-EXT-SRV-ATTR:host'] != host
    assert not list(cloud.tools.service.audit.findings())


def test_a_host_stays_down_when_a_snapshot_is_restored_and_not_when_all_is_reset(cloud, http, hypervisors):
    cloud.snapshot('before')
    cloud.hosts.down('compute2')
    cloud.restore('before')
    http.log_in()
    assert hypervisors()['compute2'] == 'down'
    cloud.reset()
    http.log_in()
    assert hypervisors()['compute2'] == 'up'


def test_a_server_goes_though_its_host_is_down_and_other_work_waits_for_that(cloud, http, status):
    server = http.boot()
    status(server, 'ACTIVE')
    volume = http.post('/volume/v3/volumes', {'volume': {'size': 1}}).json()['volume']['id']
    cloud.hosts.down(http.get(f'/v2.1/servers/{server}').json()['server']['OS-EXT-SRV-ATTR:host'])
    http.post(f'/v2.1/servers/{server}/os-volume_attachments', {'volumeAttachment': {'volumeId': volume}})
    time.sleep(0.2)
    assert http.get(f'/volume/v3/volumes/{volume}').json()['volume']['status'] == 'attaching'
    http.delete(f'/v2.1/servers/{server}')
    cloud.events.wait_for(type='server.deleted', server=server, timeout=5)
    assert http.get(f'/volume/v3/volumes/{volume}').json()['volume']['status'] == 'available'


def test_a_cell_is_down(cloud, http, status):
    server = http.boot()
    status(server, 'ACTIVE')
    with cloud.cells.down('cell1'):
        assert status(server) == 'UNKNOWN'
        assert http.post(f'/v2.1/servers/{server}/action', {'os-stop': None}).status_code == 503
    assert status(server) == 'ACTIVE'
    cloud.cells.down('cell1')
    cloud.reset()
    http.log_in()
    assert status(http.boot(), 'ACTIVE') == 'ACTIVE'


@pytest.mark.parametrize('down', [True, False])
def test_a_cell_stays_as_it_is_when_a_snapshot_is_restored(cloud, http, status, down):
    server = http.boot()
    status(server, 'ACTIVE')
    then, now = (cloud.cells.up, cloud.cells.down) if down else (cloud.cells.down, cloud.cells.up)
    then('cell1')
    cloud.snapshot('before')
    now('cell1')
    cloud.restore('before')
    assert cloud.cells.list() == (['cell1'] if down else [])
    assert status(server) == ('UNKNOWN' if down else 'ACTIVE')


def test_what_a_restored_snapshot_does_not_have_is_not_down(cloud):
    cloud.snapshot('before')
    cloud.load({'version': 1, 'hosts': [{'name': 'big1', 'cell': 'cell9'}]})
    with cloud.hosts.down('big1'), cloud.cells.down('cell9'):
        cloud.restore('before')
        assert cloud.hosts.list() == cloud.cells.list() == []
    cloud.reset()


def test_a_branch_has_nothing_down(cloud, http, status):
    server = http.boot()
    status(server, 'ACTIVE')
    with cloud.cells.down('cell1'), cloud.hosts.down('compute1'), cloud.branch() as other:
        assert other.cells.list() == other.hosts.list() == []
        assert HTTP(other).get(f'/v2.1/servers/{server}').json()['server']['status'] == 'ACTIVE'


def test_what_a_file_leaves_nothing_of_is_not_down(cloud):
    with cloud.hosts.down('compute1'), cloud.cells.down('cell1'):
        cloud.load({'version': 1, 'replace': True, 'hosts': [{'name': 'big1', 'cell': 'cell9'}]})
        assert cloud.hosts.list() == cloud.cells.list() == []
    cloud.reset()


def test_what_several_take_down_at_once_is_all_down(cloud):
    for _ in range(10):
        with ThreadPoolExecutor(2) as threads:
            list(threads.map(cloud.hosts.down, ['compute1', 'compute2']))
        assert cloud.hosts.list() == ['compute1', 'compute2']
        cloud.hosts.clear()


# ------------------------------------------------------------------ neighbours


def test_a_neighbour_is_away_for_clients_and_for_compute(cloud, http):
    server = {'name': 'web', 'flavorRef': '1', 'imageRef': '70a599e0-31e7-49b7-b260-868f441e862b', 'networks': 'none'}
    with cloud.neighbours.down('image'):
        assert http.get('/image/v2/images').status_code == 503
        answer = http.post('/v2.1/servers', {'server': server})
        assert answer.status_code == 503 and 'Glance' in answer.json()['serviceUnavailable']['message']
        assert http.get('/v2.1/servers').status_code == 200
        assert http.get('/volume/v3/volumes').status_code == 200
    assert http.get('/image/v2/images').status_code == 200
    assert http.post('/v2.1/servers', {'server': server}).status_code in (202, 400)


def test_nobody_is_known_while_identity_is_away(cloud, http):
    with cloud.neighbours.down('identity'):
        assert http.get('/v2.1/servers').status_code == 503
        assert http.post('/identity/v3/auth/tokens', {}).status_code == 503
    assert http.get('/v2.1/servers').status_code == 200


def test_work_waits_for_a_neighbour_and_goes_on_at_once(cloud, http, status):
    cloud.plans.add(state='BUILD', until_told=True)
    volume = http.post('/volume/v3/volumes', {'volume': {'size': 1}}).json()['volume']['id']
    server = http.boot()
    cloud.plans.release(server)
    status(server, 'ACTIVE')
    http.post(f'/v2.1/servers/{server}/os-volume_attachments', {'volumeAttachment': {'volumeId': volume}})
    with cloud.neighbours.down('volume'):
        http.delete(f'/v2.1/servers/{server}')
        time.sleep(0.1)
        assert http.get(f'/v2.1/servers/{server}').status_code in (200, 404)
    until = time.monotonic() + 5
    while http.names() and time.monotonic() < until:
        time.sleep(0.02)
    assert http.names() == []
    assert http.get(f'/volume/v3/volumes/{volume}').json()['volume']['status'] == 'available'


@pytest.mark.parametrize(('kind', 'name'), [('hosts', 'compute1'), ('cells', 'cell1'), ('neighbours', 'network')])
def test_outages_by_the_control_api(cloud, http, kind, name):
    def down():
        return [each['name'] for each in http.control('GET', f'/{kind}').json()[kind] if each['down']]

    assert http.control('POST', f'/{kind}/{name}/down').status_code == 204
    assert down() == [name] == getattr(cloud, kind).list()
    assert http.control('POST', f'/{kind}/{name}/up').status_code == 204
    assert down() == []
    assert http.control('POST', f'/{kind}/other/down').status_code == 404


def test_consoles_on_a_host_that_is_down_do_not_answer(cloud, http, status):
    server = http.boot()
    status(server, 'ACTIVE')
    body = {'remote_console': {'protocol': 'serial', 'type': 'serial'}}
    headers = {'OpenStack-API-Version': 'compute 2.6'}
    url = http.post(f'/v2.1/servers/{server}/remote-consoles', body, headers=headers).json()['remote_console']['url']
    host = http.get(f'/v2.1/servers/{server}').json()['server']['OS-EXT-SRV-ATTR:host']
    with Terminal(url) as terminal:
        terminal.read_until('> ')
    with cloud.hosts.down(host), Terminal(url) as terminal:
        assert closing(terminal) == (1011, f'Host {host} does not respond.')
