"""Guests on hosts with agents, while every process of the cloud is killed in turn and the broker is restarted: no guest
is lost, duplicated or left behind.

COMPUTEAPI_TEST_BOOTS and COMPUTEAPI_TEST_MOVES are the numbers of guests to boot and to move, e.g. 50 and 20.
"""

import os

import pytest

from tests import databases
from tests.guests import own_broker
from tests.guests.agents import GuestCloud

HOSTS = ('alpha', 'beta', 'gamma')
BOOTS, MOVES = (
    int(os.environ.get(f'COMPUTEAPI_TEST_{what}', default)) for what, default in (('BOOTS', 12), ('MOVES', 6))
)


@pytest.fixture
def cloud(transport_url, tmp_path):
    with databases.made(databases.SHARED, tmp_path) as url, own_broker.started() as broker:
        made = GuestCloud(tmp_path, url, HOSTS, broker)
        try:
            made.start()
            yield made
        finally:
            made.close()


def restarts(cloud):
    """Each process is killed once, and the broker is restarted in the middle."""
    first, second, third = (agent.kill_and_start for agent in cloud.agents.values())
    return first, cloud.control.kill_and_start, cloud.broker.restart, second, third


def shares(things, number):
    """This many parts of a list, of nearly equal size."""
    return [things[at::number] for at in range(number)]


def test_every_guest_boots_and_moves_once_whoever_is_killed_meanwhile(cloud):
    servers, parts = [], shares(range(BOOTS), 5)
    for part, restart in zip(parts, restarts(cloud), strict=True):
        servers += cloud.boot(len(part))
        restart()
    cloud.until(lambda: cloud.are_at_rest(servers))
    cloud.check(servers)

    former = {server: each['OS-EXT-SRV-ATTR:host'] for server, each in cloud.servers().items()}
    moving = servers[:MOVES]
    for part, restart in zip(shares(moving, 5), restarts(cloud), strict=True):
        for server in part:
            cloud.act(server, 'os-migrateLive', {'host': None, 'block_migration': 'auto'})
        restart()
    cloud.until(lambda: cloud.are_at_rest(servers))
    cloud.check(servers)
    moved = {server for server, each in cloud.servers().items() if each['OS-EXT-SRV-ATTR:host'] != former[server]}
    assert moved == set(moving)

    cloud.delete(servers)
    cloud.check([])


def test_a_guest_that_was_left_on_a_host_does_not_become_the_one_that_comes_there(cloud):
    """The host could not be told about the evacuation, and its agent has not restarted since."""
    [server] = cloud.boot(1)
    cloud.until(lambda: cloud.are_at_rest([server]))
    [(former, left)] = cloud.guests()
    cloud.force_down(former, True)
    cloud.act(server, 'evacuate', {})
    cloud.until(lambda: cloud.are_at_rest([server]))
    assert sorted(cloud.processes()) == [server, server]
    cloud.force_down(former, False)
    (left / 'left').touch()
    cloud.act(server, 'os-migrateLive', {'host': former, 'block_migration': 'auto'})
    cloud.until(lambda: cloud.are_at_rest([server]))
    assert cloud.servers()[server]['OS-EXT-SRV-ATTR:host'] == former
    assert not (left / 'left').exists()
    cloud.check([server])
