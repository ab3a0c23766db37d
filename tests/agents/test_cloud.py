"""A cloud whose hosts are other processes: what becomes of work when any of them dies, or cannot be reached.

COMPUTEAPI_TEST_OUTAGE sets the duration of a network outage in seconds, e.g. 60 with the times of a deployment:
OS_DEFAULT__REPORT_INTERVAL=10 OS_DEFAULT__SERVICE_DOWN_TIME=60 OS_DEFAULT__TASK_LEASE=12
OS_OSLO_MESSAGING_RABBIT__HEARTBEAT_TIMEOUT_THRESHOLD=20
"""

import re
import time
import uuid
from dataclasses import replace
from datetime import datetime

import pytest

from computeapi import __version__, bus, config
from computeapi.backends.hypervisor import Host
from computeapi.backends.hypervisor.remote.calls import (
    ANSWER,
    CALL,
    CONTROL,
    REPORT,
    AnswerKind,
    Call,
    Report,
    WorkClaim,
    signature,
    topic_of,
)
from computeapi.backends.hypervisor.remote.signing import key_of, sign
from computeapi.cli import main
from computeapi.db import servers as rows
from computeapi.db.engine import Store
from computeapi.db.tables.servers import domains
from tests import broker, databases
from tests.agents.cloud import MACHINE, OUTAGE, SECRET, AgentCloud
from tests.api.servers.conftest import IMAGE, NETWORK

HOSTS = ('alpha', 'beta')
LEFT = MACHINE | {'console_log': 'left behind', 'created_at': datetime(2020, 1, 1)}
ARRIVES = 'The agent of host alpha has connected'
RESIZING = ('resize_prep', 'resize_migrating', 'resize_migrated', 'resize_finish')


@pytest.fixture(scope='module')
def running(tmp_path_factory):
    """One cloud for all tests of this module; each leaves nothing behind."""
    folder = tmp_path_factory.mktemp('agents')
    with databases.made(databases.SHARED, folder) as url:
        cloud = AgentCloud(folder, url, HOSTS)
        cloud.start()
        yield cloud
        cloud.close()


@pytest.fixture
def cloud(transport_url, running):
    yield running
    # Servers deleted while their host is down remain there for a while.
    running.until(lambda: all(running.is_up(host) for host in HOSTS))
    found = running.api.get('/servers').json['servers']
    running.delete([each['id'] for each in found])
    running.check([])


def test_hosts_are_what_their_agents_say(cloud):
    hypervisors = cloud.api.get('/os-hypervisors/detail', '2.53').json['hypervisors']
    assert sorted(each['hypervisor_hostname'] for each in hypervisors) == sorted(HOSTS)
    assert {(each['vcpus'], each['host_ip'], each['state']) for each in hypervisors} == {(512, '127.0.0.1', 'up')}
    assert all(cloud.is_up(host) for host in HOSTS)
    first = {host: cloud.seen(host) for host in HOSTS}
    cloud.until(lambda: all(cloud.seen(host) > first[host] for host in HOSTS))


def test_servers_boot_move_and_go(cloud):
    servers = [*cloud.boot(2, 'alpha'), *cloud.boot(2, 'beta')]
    cloud.wait(servers)
    cloud.check(servers)
    moving, resized, stored, stopped = servers
    cloud.act(moving, 'os-migrateLive', {'host': None, 'block_migration': 'auto'}, '2.30')
    cloud.act(resized, 'resize', {'flavorRef': '2'})
    cloud.act(stored, 'createImage', {'name': 'picture'}, '2.1')
    cloud.act(stopped, 'os-stop')
    cloud.wait([resized], 'VERIFY_RESIZE')
    cloud.act(resized, 'confirmResize', status=204)
    cloud.wait([stopped], 'SHUTOFF')
    cloud.wait([moving, resized, stored])
    assert [cloud.host(server) for server in servers] == ['beta', 'beta', 'beta', 'beta']
    [image] = [each for each in cloud.world.images.list(cloud.world.admin) if each.name == 'picture']
    assert b''.join(cloud.world.images.download(cloud.world.admin, image.id)).startswith(b'simulated disk of')
    log = cloud.act(moving, 'os-getConsoleOutput', {'length': 50}, '2.1', status=200).json['output']
    assert 'booting' in log and 'ready' in log
    cloud.check(servers)


def cut(cloud):
    """The network between an agent and the broker silently stops, and comes back."""
    cloud.ways['alpha'].hold()
    yield
    cloud.ways['alpha'].go_on()


def lose(*hosts):
    """All data between these agents and the broker are lost for OUTAGE seconds; their connections stay dead
    afterwards."""

    def failure(cloud):
        for host in hosts:
            cloud.ways[host].lose()
        begun = time.monotonic()
        yield
        time.sleep(max(0, begun + OUTAGE - time.monotonic()))
        for host in hosts:
            assert (cloud.store.clock() - cloud.seen(host)).total_seconds() > OUTAGE - 1
            cloud.ways[host].go_on()

    failure.__name__ = f'lose_{"_and_".join(hosts)}'
    return failure


def refuse(cloud):
    """The broker is unreachable for agents, and then reachable again."""
    for way in cloud.ways.values():
        way.refuse()
    yield
    for way in cloud.ways.values():
        way.go_on()


def close(cloud):
    """The broker closes every connection."""
    broker.control('close_all_connections', '--vhost', broker.VHOST, 'for a test')
    yield


def kill_source(cloud):
    cloud.agents['alpha'].kill()
    yield
    cloud.agents['alpha'].start()


def kill_destination(cloud):
    cloud.agents['beta'].kill()
    yield
    cloud.agents['beta'].start()


def kill_worker(cloud):
    cloud.workers[0].kill()
    yield
    cloud.workers[0].start()


FAILURES = [cut, lose('alpha'), lose('beta'), lose(*HOSTS), refuse, close, kill_source, kill_destination, kill_worker]


@pytest.mark.parametrize('failure', FAILURES)
def test_work_goes_on_when_whoever_was_away_is_back(cloud, failure):
    """During boots, a resize and a live migration."""
    moving, resized = cloud.boot(2, 'alpha')
    cloud.wait([moving, resized])
    booting = [*cloud.boot(1, 'alpha'), *cloud.boot(1, 'beta')]
    cloud.act(moving, 'os-migrateLive', {'host': 'beta', 'block_migration': 'auto'}, '2.30')
    cloud.act(resized, 'resize', {'flavorRef': '2'})
    cloud.until(lambda: cloud.is_doing(booting[0], 'spawning') and cloud.is_doing(resized, *RESIZING))
    during = failure(cloud)
    next(during)
    first = cloud.store.clock()
    cloud.until(lambda: (cloud.store.clock() - first).total_seconds() > 3)
    next(during, None)
    cloud.wait([resized], 'VERIFY_RESIZE')
    cloud.act(resized, 'confirmResize', status=204)
    cloud.wait([moving, resized, *booting])
    assert [cloud.host(server) for server in (moving, resized, *booting)] == ['beta', 'beta', 'alpha', 'beta']
    cloud.until(lambda: all(cloud.is_up(host) for host in HOSTS))
    cloud.check([moving, resized, *booting])


def test_work_waits_while_no_host_is_heard_of(cloud):
    """A long outage of the broker does not mean that hosts are down."""
    [moving] = cloud.boot(1, 'alpha')
    cloud.wait([moving])
    for way in cloud.ways.values():
        way.refuse()
    cloud.until(lambda: not any(cloud.is_up(host) for host in HOSTS))
    [booting] = cloud.boot()
    cloud.act(moving, 'os-migrateLive', {'host': None, 'block_migration': 'auto'}, '2.34')
    waits = f'build of server {booting} waits: No compute host has reported recently.'
    cloud.until(lambda: waits in cloud.workers[0].log.read_text())
    for way in cloud.ways.values():
        way.go_on()
    cloud.wait([moving, booting])
    assert cloud.host(moving) == 'beta'
    cloud.check([moving, booting])


def test_what_was_evacuated_from_a_host_goes_when_it_is_back(cloud):
    """Even if other work was waiting for the host all the time, which delays the removal a little."""
    server, moving = cloud.boot(2, 'alpha')
    cloud.wait([server, moving])
    cloud.act(moving, 'os-migrateLive', {'host': 'beta', 'block_migration': 'auto'}, '2.30')
    cloud.agents['alpha'].kill()
    cloud.until(lambda: not cloud.is_up('alpha'))
    cloud.act(server, 'evacuate', {'host': 'beta'}, '2.29', status=200)
    cloud.wait([server])
    assert {(server, 'alpha'), (server, 'beta')} < set(cloud.places())
    cloud.agents['alpha'].start()
    cloud.until(lambda: cloud.places() == sorted([(server, 'beta'), (moving, 'beta')]))
    assert f'The virtual machine of server {server} is here, but not expected' in cloud.agents['alpha'].log.read_text()
    cloud.wait([moving])
    cloud.check([server, moving])


def test_a_server_whose_host_is_down_is_rebuilt_when_that_is_back(cloud):
    [server] = cloud.boot(1, 'alpha')
    cloud.wait([server])
    [former] = cloud.machines()['alpha']
    cloud.agents['alpha'].kill()
    cloud.until(lambda: not cloud.is_up('alpha'))
    cloud.act(server, 'rebuild', {'imageRef': IMAGE})
    # The worker has tried it, and tried it again.
    time.sleep(3)
    cloud.agents['alpha'].start()
    cloud.wait([server])
    [made] = cloud.machines()['alpha']
    assert made.created_at > former.created_at
    cloud.check([server])


def moved_while_it_runs(cloud, server):
    cloud.act(server, 'os-migrateLive', {'host': 'alpha', 'block_migration': 'auto'}, '2.30')
    cloud.wait([server])


def moved(cloud, server):
    cloud.act(server, 'migrate', {'host': 'alpha'})
    cloud.wait([server], 'VERIFY_RESIZE')
    cloud.act(server, 'confirmResize', status=204)
    cloud.wait([server])


def unshelved(cloud, server):
    cloud.act(server, 'shelve')
    cloud.wait([server], 'SHELVED_OFFLOADED')
    cloud.act(server, 'unshelve', {'host': 'alpha'}, '2.91')
    cloud.wait([server])


def evacuated(cloud, server):
    cloud.agents['beta'].kill()
    cloud.until(lambda: not cloud.is_up('beta'))
    cloud.act(server, 'evacuate', {'host': 'alpha'}, '2.29', status=200)
    cloud.wait([server])
    cloud.agents['beta'].start()
    cloud.until(lambda: cloud.places() == [(server, 'alpha')])


@pytest.mark.parametrize('come', [moved_while_it_runs, moved, unshelved, evacuated])
def test_a_machine_that_was_left_on_a_host_is_not_what_comes_there(cloud, come):
    """A host learns of this only when its agent starts; here the agent has been running since."""
    [server] = cloud.boot(1, 'beta')
    cloud.wait([server])
    own = Store(f'sqlite:///{cloud.folder}/alpha/driver.db')
    with own.write() as connection:
        connection.execute(domains.insert().values(server_id=server, host='alpha', **LEFT))
    own.close()
    come(cloud, server)
    [found] = cloud.machines()['alpha']
    assert found.created_at > LEFT['created_at'] and 'left behind' not in found.console_log
    cloud.check([server])


def test_a_server_with_a_config_drive_that_tells_of_devices_is_evacuated(cloud):
    wanted = {'config_drive': True, 'networks': [{'uuid': NETWORK, 'tag': 'outside'}]}
    [server] = cloud.boot(1, 'alpha', **wanted)
    cloud.wait([server])
    cloud.agents['alpha'].kill()
    cloud.until(lambda: not cloud.is_up('alpha'))
    cloud.act(server, 'evacuate', {'host': 'beta'}, '2.29', status=200)
    cloud.wait([server])
    cloud.agents['alpha'].start()
    cloud.until(lambda: cloud.places() == [(server, 'beta')])


def test_a_server_can_be_deleted_though_its_host_is_down(cloud):
    [server] = cloud.boot(1, 'alpha')
    cloud.wait([server])
    cloud.agents['alpha'].kill()
    cloud.until(lambda: not cloud.is_up('alpha'))
    cloud.delete([server])
    assert cloud.places() == [(server, 'alpha')]
    cloud.agents['alpha'].start()
    # The machine is not removed by the audit, which is not due for a long time.
    cloud.until(lambda: not cloud.places())
    # The worker writes this afterwards.
    repaired = f'the machine on alpha of server {server}; it is repaired'
    cloud.until(lambda: repaired in cloud.workers[0].log.read_text())


def test_a_server_can_be_deleted_though_it_was_on_its_way_to_a_host_that_is_down(cloud):
    [server] = cloud.boot(1, 'alpha')
    cloud.wait([server])
    cloud.act(server, 'os-migrateLive', {'host': 'beta', 'block_migration': 'auto'}, '2.30')
    cloud.agents['beta'].kill()
    cloud.until(lambda: not cloud.is_up('beta'))
    assert cloud.is_doing(server, 'migrating')
    cloud.delete([server])
    cloud.agents['beta'].start()


def test_an_evacuation_that_finds_no_host_is_over_though_the_server_s_own_is_down(cloud):
    [server] = cloud.boot(1, 'alpha')
    cloud.wait([server])
    [service] = [each for each in cloud.api.get('/os-services', '2.53').json['services'] if each['host'] == 'beta']
    cloud.api.put(f'/os-services/{service["id"]}', {'status': 'disabled'}, '2.53')
    cloud.agents['alpha'].kill()
    cloud.until(lambda: not cloud.is_up('alpha'))
    cloud.act(server, 'evacuate', {}, '2.29', status=200)
    cloud.wait([server], 'ERROR')
    assert cloud.show(server)['OS-EXT-STS:power_state'] == 1
    cloud.api.put(f'/os-services/{service["id"]}', {'status': 'enabled'}, '2.53')
    cloud.agents['alpha'].start()


def test_what_was_deleted_goes_though_whoever_removes_it_is_killed(cloud):
    """Either the worker when it gets the agent's report, or the agent when it is told to remove the machine."""
    servers = cloud.boot(3, 'alpha')
    cloud.wait(servers)
    agent, worker = cloud.agents['alpha'], cloud.workers[0]
    agent.kill()
    cloud.until(lambda: not cloud.is_up('alpha'))
    cloud.delete(servers)
    heard = worker.log.read_text().count(ARRIVES)
    agent.start()
    cloud.until(lambda: worker.log.read_text().count(ARRIVES) > heard)
    worker.kill_and_start()
    cloud.until(lambda: len(cloud.places()) < 3)
    agent.kill_and_start()
    cloud.until(lambda: not cloud.places())


def test_a_machine_of_nobody_is_told_of_and_left_alone(cloud):
    [server] = cloud.boot(1, 'alpha')
    cloud.wait([server])
    agent, stranger = cloud.agents['alpha'], str(uuid.uuid4())
    agent.kill()
    own = Store(f'sqlite:///{cloud.folder}/alpha/driver.db')
    with own.write() as connection:
        connection.execute(domains.insert().values(server_id=stranger, host='alpha', **MACHINE))
    agent.start()
    cloud.until(lambda: f'the machine on alpha of an unknown server {stranger}' in cloud.workers[0].log.read_text())
    cloud.until(lambda: f'The virtual machine of server {stranger} is here, but not expected' in agent.log.read_text())
    assert cloud.places() == sorted([(server, 'alpha'), (stranger, 'alpha')])
    with own.write() as connection:
        connection.execute(domains.delete().where(domains.c.server_id == stranger))
    own.close()


def test_a_host_that_was_taken_over_speaks_for_no_other_one(cloud):
    [server] = cloud.boot(1, 'beta')
    cloud.wait([server])
    [key] = cloud.workers[0].run('agent-key', 'alpha').stdout.split()
    assert key == key_of(SECRET, 'alpha') != key_of(SECRET, 'beta')
    conf = config.load([str(cloud.agents['alpha'].conf)])
    taken = bus.Bus(conf)
    host = Host('beta', 'beta', 'QEMU', 7002022, '192.0.2.66', 1, 1, 1)
    report = REPORT.write(Report(host, frozenset(), 'x', 'x', 1, 'x'))
    destroy = Call('beta', 'destroy', signature('destroy').write((cloud.service.store.query(rows.get, server),), {}))
    destroy = CALL.write(replace(destroy, claim=WorkClaim(10**6, 10**6, 'x', waits=True)))
    try:
        for mine in ((), (key,)):
            answer = taken.call(CONTROL, 'report', 10, **sign(mine, 'report', {'report': report}))
            assert answer['refused'] == 'it is not signed with the key of host beta'
            answer = taken.call(topic_of('beta'), 'tell', 10, **sign(mine, 'tell', {'call': destroy}))
            assert ANSWER.read(answer).kind is AnswerKind.NOT_YET
    finally:
        taken.close()
    found = cloud.api.get('/os-hypervisors/detail', '2.53').json['hypervisors']
    assert [each['vcpus'] for each in found] == [512, 512]
    cloud.check([server])


def test_status_says_who_is_there(cloud, capsys):
    conf = str(cloud.folder / 'api.conf')
    assert main(['status', '--config-file', conf]) == 0
    shown = capsys.readouterr().out
    assert re.search('^bus +ok +The broker responds.$', shown, re.MULTILINE)
    for host in HOSTS:
        assert re.search(
            f'^agent +alive +{host}: {__version__}, process {cloud.agents[host].process.pid} on', shown, re.M
        )


def test_a_host_that_was_forgotten_is_there_again_when_its_agent_is_heard(cloud):
    [service] = [each for each in cloud.api.get('/os-services').json['services'] if each['host'] == 'beta']
    assert cloud.api.delete(f'/os-services/{service["id"]}').status == 204
    cloud.until(lambda: cloud.is_up('beta'))
    found = cloud.api.get('/os-hypervisors', '2.53').json['hypervisors']
    assert sorted(each['hypervisor_hostname'] for each in found) == sorted(HOSTS)
