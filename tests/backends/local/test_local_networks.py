"""Features of the built-in networks beyond the Protocol: initial networks, and the cost of queries."""

from ipaddress import IPv4Network

import pytest

from computeapi import errors
from computeapi.backends.network.local import LocalNetworks
from tests.backends.implementations import ADMIN, ALICE, BOB
from tests.backends.test_network import names
from tests.databases import listened


@pytest.fixture
def networks(store):
    """The service with an external network `public` and a shared network `private`."""
    networks = LocalNetworks(store)
    networks.populate(ADMIN)
    return networks


@pytest.fixture
def bare(store):
    """The service without any networks."""
    return LocalNetworks(store)


@pytest.fixture
def private(networks):
    return networks.networks(ALICE)[0].id


def test_populating_twice_changes_nothing(networks):
    before = networks.networks(ALICE), networks.floating_ip_pools(ALICE)
    networks.populate(ADMIN)
    assert (networks.networks(ALICE), networks.floating_ip_pools(ALICE)) == before


def test_a_private_network_need_not_be_shared(bare):
    bare.populate(ADMIN, shared=False)
    assert bare.networks(ALICE) == []
    assert names(bare.networks(ADMIN)) == ['private']


def test_many_ports_take_as_many_queries_as_one(networks, private, asked):
    networks.create_port(ALICE, private, server_id='s0')
    asked.clear()
    networks.ports(ALICE, server_ids=['s0'])
    one = len(asked)
    for i in range(1, 8):
        networks.create_port(ALICE, private, server_id=f's{i}')
    asked.clear()
    assert len(networks.ports(ALICE, server_ids=[f's{i}' for i in range(8)])) == 8
    assert len(asked) == one


def test_networks_their_tags_and_their_subnets_are_a_query_each(networks, private, asked):
    networks.resources.set_tags(ADMIN, 'networks', private, ['red'])
    asked.clear()
    assert [each['tags'] for each in networks.resources.find(ALICE, 'networks', {'id': [private]})] == [['red']]
    assert len(networks.resources.find(ALICE, 'networks')) == 2
    assert sum(each.startswith('SELECT') for each in asked) == 6


def test_tags_are_not_looked_for_where_there_are_none(networks, asked):
    asked.clear()
    assert [each['tags'] for each in networks.resources.find(ALICE, 'networks')] == [[], []]
    assert sum(each.startswith('SELECT') for each in asked) == 2


def test_a_port_is_made_by_no_more_statements_on_a_network_with_many(networks, private, asked):
    networks.resources.set_quotas(ADMIN, 'apples', {'port': -1})
    networks.create_port(ALICE, private, server_id='s0', key='0')
    counts = set()
    for i in range(1, 80):
        asked.clear()
        networks.create_port(ALICE, private, server_id=f's{i}', key='0')
        counts.add(len(asked))
    assert len(counts) == 1


@pytest.fixture
def steps(store):
    """steps(act, *arguments): how much work SQLite did for a call, whatever connections that used."""

    def counted(act, *arguments):
        done, drivers = [], []

        def count(connection, *rest):
            drivers.append(connection.connection.dbapi_connection)
            drivers[-1].set_progress_handler(lambda: done.append(1), 10)

        with listened(store.engine, 'before_cursor_execute', count):
            act(*arguments)
        for driver in drivers:
            driver.set_progress_handler(None, 0)
        return len(done)

    return counted


@pytest.mark.parametrize('database', ['sqlite'])
def test_a_router_goes_without_a_look_at_the_floating_ips_of_others(networks, private, steps):
    resources, public = networks.resources, networks.floating_ip_pools(ALICE)[0].id
    routers = [resources.create(BOB, 'routers', {'external_gateway_info': {'network_id': public}})['id'] for _ in 'ab']
    few = steps(resources.delete, BOB, 'routers', routers[0])
    for i in range(20):
        port = networks.create_port(ALICE, private, server_id=f's{i}')
        networks.associate_floating_ip(ALICE, networks.create_floating_ip(ALICE).address, port.id)
    assert 0 < steps(resources.delete, BOB, 'routers', routers[1]) < 2 * few


@pytest.mark.parametrize('database', ['sqlite'])
def test_a_list_of_floating_ips_looks_at_each_port_of_their_subnet_once(networks, private, steps):
    networks.resources.set_quotas(ADMIN, 'apples', {'port': -1, 'floatingip': -1})

    def steps_with(count):
        for i in range(count):
            port = networks.create_port(ALICE, private, server_id=f's{i}')
            networks.associate_floating_ip(ALICE, networks.create_floating_ip(ALICE).address, port.id)
        assert all(each['router_id'] for each in networks.resources.find(ALICE, 'floatingips'))
        return steps(networks.resources.find, ALICE, 'floatingips')

    few = steps_with(20)
    assert 0 < steps_with(60) < 8 * few


def test_an_automatic_network_has_a_router(bare):
    bare.populate(ADMIN, shared=False)
    bare.auto_network(ALICE)
    [router] = bare.resources.find(ALICE, 'routers')
    assert router['external_gateway_info']['network_id'] == bare.floating_ip_pools(ALICE)[0].id


def test_quotas_have_the_limits_of_a_new_neutron(networks, private):
    networks.create_port(ALICE, private, server_id='s')
    networks.create_floating_ip(ALICE)
    assert networks.quotas(ALICE, 'apples') == {
        'floating_ips': {'limit': 50, 'in_use': 1},
        'networks': {'limit': 100, 'in_use': 0},
        'ports': {'limit': 500, 'in_use': 1},
        'security_groups': {'limit': 10, 'in_use': 1},
        'security_group_rules': {'limit': 100, 'in_use': 4},
    }


def test_what_a_port_is_for_is_of_one_project(networks, private):
    networks.create_port(ALICE, private, server_id='s', key='0')
    with pytest.raises(errors.Conflict):
        networks.create_port(BOB, private, server_id='s', key='0')


def test_pools_of_many_prefixes_are_compared_with_few_others(networks, monkeypatch):
    """Neighbouring prefixes contain each other, or are adjacent, in any order; each is only compared with the next
    one."""
    resources, looks, overlaps = networks.resources, [], IPv4Network.overlaps
    monkeypatch.setattr(IPv4Network, 'overlaps', lambda *pair: looks.append(pair) or overlaps(*pair))
    scope = resources.create(ALICE, 'address-scopes', {'name': 'scope', 'ip_version': 4})['id']

    def make(*prefixes):
        facts = {'prefixes': prefixes, 'default_prefixlen': 32, 'address_scope_id': scope}
        return resources.create(ALICE, 'subnetpools', facts)

    make(*(f'10.0.{number}.0/24' for number in range(199, 0, -2)))
    make(*(f'10.0.{number}.0/24' for number in range(0, 200, 2)))
    assert len(looks) == 199
    for prefix in ('10.0.198.7/32', '10.0.0.0/8', '10.0.199.0/24', '10.0.4.0/22'):
        with pytest.raises(errors.Conflict, match='overlap'):
            make(prefix)
    make('10.0.200.0/24', '9.0.0.0/24')
