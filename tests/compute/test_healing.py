"""Missed changes of servers' ports are found by checking a few servers at a time."""

import pytest

from computeapi.backends.neighbour import Refused
from computeapi.compute.servers.healing import Healing
from computeapi.context import Context
from computeapi.db import servers as rows
from computeapi.errors import NeighbourAway

BOB = Context(user_id='bob', project_id='project', roles=frozenset({'member', 'reader'}), request_id='req-1')


@pytest.fixture
def healing(service):
    return Healing(service.platform, at_once=2)


@pytest.fixture
def outdated(service, servers):
    """Servers on a host that only know the IDs of their ports."""
    service.networks.populate(BOB)
    (network,) = service.networks.networks(BOB)

    def made():
        server_id = servers.add()
        port = service.networks.create_port(BOB, network.id, server_id=server_id, host='compute1')
        entry = {'port_id': port.id, 'created': True, 'tag': None, 'mac_address': port.mac_address, 'addresses': []}
        servers.change(server_id, network_info=[entry])
        return server_id

    servers.add(host=None)
    return [made() for _ in range(3)]


def healed(servers, ids):
    return sum(bool(servers.get(server_id).network_info[0]['addresses']) for server_id in ids)


def test_it_looks_at_some_servers_after_others_and_begins_anew(healing, outdated, servers):
    for seen in (2, 3):
        healing.take_turn()
        assert healed(servers, outdated) == seen
    entry = servers.get(outdated[0]).network_info[0]
    servers.change(outdated[0], network_info=[entry | {'addresses': []}])
    for _ in range(2):
        healing.take_turn()
    assert healed(servers, outdated) == 3


def test_servers_that_cannot_be_refreshed_do_not_block_the_others(healing, outdated, servers, monkeypatch):
    refresh, broken = healing.addresses.refresh, healing.platform.store.query(rows.on_hosts, '', 2)

    def failing(context, server_ids):
        if set(server_ids) & set(broken):
            raise Refused('Neutron', 400, 'Bad request.')
        refresh(context, server_ids)

    monkeypatch.setattr(healing.addresses, 'refresh', failing)
    with pytest.raises(Refused):
        healing.take_turn()
    healing.take_turn()
    assert healed(servers, outdated) == 1


def test_while_the_network_service_is_away_it_waits(healing, outdated, servers, monkeypatch):
    def away(*args, **kwargs):
        raise NeighbourAway(name='Neutron')

    with monkeypatch.context() as broken:
        broken.setattr(healing.platform.networks, 'ports', away)
        healing.take_turn()
    healing.take_turn()
    assert healed(servers, outdated) == 2
