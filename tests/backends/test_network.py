"""The behaviour of every network backend for compute, also under concurrency."""

import threading
import uuid
from ipaddress import ip_address, ip_network

import pytest

from computeapi import errors
from tests.backends.implementations import ADMIN, ALICE, BOB, NETWORK

UNKNOWN = '5b3f1c5e-0000-4000-8000-000000000000'


@pytest.fixture(params=NETWORK)
def implementation(request):
    return request.param


@pytest.fixture
def service(implementation, store):
    """The implementation with an external network `public` and a shared network `private`."""
    return implementation(store)


@pytest.fixture
def networks(service):
    return service.networks


@pytest.fixture
def unshared(implementation, store):
    """An implementation whose network `private` is for administrators."""
    return implementation(store, shared=False).networks


@pytest.fixture
def make(service):
    """make(ALICE, '10.1.0.0/24', ...) -> the ID of a network of hers with these subnets."""
    return service.network


@pytest.fixture
def private(networks):
    return networks.networks(ALICE)[0].id


def names(found):
    return [network.name for network in found]


def addresses(port):
    return [fixed['ip_address'] for fixed in port.fixed_ips]


# Networks


def test_a_server_can_be_put_on_own_and_shared_networks(networks, make):
    make(ALICE, name='hers')
    make(BOB, name='his')
    assert names(networks.networks(ALICE)) == ['private', 'hers']
    assert names(networks.networks(ADMIN)) == ['private']


def test_networks_by_id_are_those_that_the_caller_sees(networks, make):
    ids = [make(ALICE, name='hers'), make(BOB, name='his'), networks.floating_ip_pools(ALICE)[0].id, UNKNOWN]
    assert names(networks.networks(ALICE, ids)) == ['public', 'hers']
    assert names(networks.networks(ADMIN, ids)) == ['public', 'hers', 'his']
    assert networks.networks(ALICE, []) == []


def test_a_network_brings_its_subnets(networks, private):
    network = networks.network(BOB, private)
    assert (network.name, network.shared, network.external) == ('private', True, False)
    assert network.mtu > 1000
    [subnet] = network.subnets
    assert (subnet['cidr'], subnet['ip_version'], subnet['gateway_ip']) == ('10.0.0.0/16', 4, '10.0.0.1')
    assert subnet['dns_nameservers'] == []


def test_networks_of_others_are_not_there(networks, make):
    his = make(BOB)
    for network_id in (his, UNKNOWN, 'x'):
        with pytest.raises(errors.NetworkNotFound, match=network_id):
            networks.network(ALICE, network_id)


def test_auto_means_the_only_network(networks, private):
    assert networks.auto_network(ALICE).id == private


def test_auto_makes_a_network_with_a_way_out_once(unshared):
    network = unshared.auto_network(ALICE)
    assert network == unshared.auto_network(ALICE)
    assert network.project_id == 'apples'
    assert unshared.auto_network(BOB).id != network.id
    port = unshared.create_port(ALICE, network.id, server_id='s')
    assert unshared.associate_floating_ip(ALICE, unshared.create_floating_ip(ALICE).address, port.id).server_id == 's'


def test_auto_is_no_choice_between_two(networks, make):
    make(ALICE)
    with pytest.raises(errors.MultipleNetworks):
        networks.auto_network(ALICE)


# Ports


def test_a_port_belongs_to_its_server(networks, private):
    port = networks.create_port(ALICE, private, server_id='s', host='h', name='eth0', hostname='box')
    assert port == networks.port(ADMIN, port.id)
    assert (port.network_id, port.network_name, port.project_id) == (private, 'private', 'apples')
    assert (port.device_id, port.device_owner, port.host, port.name) == ('s', 'compute:nova', 'h', 'eth0')
    assert (port.status, port.resource_request) == ('ACTIVE', None)
    assert port.mac_address.startswith('fa:16:3e:')
    assert ip_address(addresses(port)[0]) in ip_network('10.0.0.0/16')
    assert port.security_groups == (networks.security_groups(ALICE)[0].id,)


def test_a_port_without_a_host_is_down(networks, private):
    assert networks.create_port(ALICE, private, server_id='s').status == 'DOWN'


def test_a_port_gets_an_address_of_each_version(networks, make):
    both = make(ALICE, '192.0.2.0/29', '2001:db8::/64')
    four, six = addresses(networks.create_port(ALICE, both, server_id='s'))
    assert ip_address(four) in ip_network('192.0.2.0/29')
    assert ip_address(six) in ip_network('2001:db8::/64')


def test_a_stateless_address_follows_from_the_mac_address(networks, make):
    slaac = {'cidr': '2001:db8::/64', 'ipv6_address_mode': 'slaac', 'ipv6_ra_mode': 'slaac'}
    port = networks.create_port(ALICE, make(ALICE, slaac), server_id='s')
    tail = int(ip_address(addresses(port)[0])) & (2**64 - 1)
    octets = bytes.fromhex(port.mac_address.replace(':', ''))
    assert tail.to_bytes(8, 'big') == bytes([octets[0] ^ 2]) + octets[1:3] + b'\xff\xfe' + octets[3:]


def test_a_network_without_subnets_gives_no_address(networks, make):
    assert networks.create_port(ALICE, make(ALICE), server_id='s').fixed_ips == ()


def test_an_address_may_be_chosen_once(networks, make):
    network = make(ALICE, '10.0.0.0/16')
    assert addresses(networks.create_port(ALICE, network, server_id='s', fixed_ip='10.0.7.7')) == ['10.0.7.7']
    with pytest.raises(errors.AddressInUse, match=r'10\.0\.7\.7'):
        networks.create_port(ADMIN, network, server_id='t', fixed_ip='10.0.7.7')


def test_guests_on_a_network_choose_no_address(networks, private):
    with pytest.raises(errors.Forbidden, match='fixed_ips:ip_address'):
        networks.create_port(ALICE, private, server_id='s', fixed_ip='10.0.7.7')
    assert networks.ports(ALICE, server_ids=['s']) == []


@pytest.mark.parametrize('address', ['10.9.0.1', '10.0.0.0', '10.0.255.255', 'fe80::1', 'here', ''.join(['1'] * 99)])
def test_an_address_must_be_one_of_the_network(networks, private, address):
    with pytest.raises(errors.Invalid):
        networks.create_port(ADMIN, private, server_id='s', fixed_ip=address)


def test_an_address_that_was_freed_can_be_given_again(networks, make):
    tiny = make(ALICE, '192.0.2.0/30')
    for _ in range(3):
        port = networks.create_port(ALICE, tiny, server_id='s')
        assert addresses(port) == ['192.0.2.2']
        with pytest.raises(errors.NoMoreAddresses, match=tiny):
            networks.create_port(ALICE, tiny, server_id='t')
        networks.delete_port(ALICE, port.id)


def test_a_full_subnet_gives_way_to_the_next(networks, make):
    two = make(ALICE, '192.0.2.0/30', '198.51.100.0/30')
    ports = [networks.create_port(ALICE, two, server_id='s') for _ in range(2)]
    assert sorted(map(addresses, ports)) == [['192.0.2.2'], ['198.51.100.2']]


def test_making_a_port_again_returns_it(networks, private):
    port = networks.create_port(ALICE, private, server_id='s', key='0')
    assert networks.create_port(ALICE, private, server_id='s', key='0') == port
    assert networks.quotas(ALICE, 'apples')['ports']['in_use'] == 1


def test_a_port_is_found_by_what_it_was_made_for(networks, private):
    ports = [networks.create_port(ALICE, private, server_id=server, key=key) for server in 'st' for key in '01']
    assert len({port.id for port in ports}) == 4
    assert networks.ports(ALICE, server_ids=['s'], key='1') == [ports[1]]
    assert networks.ports(ALICE, server_ids=['s', 't'], key='0') == [ports[0], ports[2]]
    assert networks.ports(ALICE, server_ids=['s'], key='2') == networks.ports(BOB, server_ids=['s'], key='0') == []


def test_ports_are_found_by_their_addresses(networks, make, private):
    held = networks.create_port(ALICE, private, server_id='s')
    address = held.fixed_ips[0]['ip_address']
    assert networks.ports(ALICE, addresses=[address, '192.0.2.99']) == [held]
    assert networks.ports(ALICE, addresses=['192.0.2.99']) == networks.ports(BOB, addresses=[address]) == []


def test_ports_of_others_are_not_there(networks, private):
    port = networks.create_port(ALICE, private, server_id='s')
    for act in (
        lambda: networks.port(BOB, port.id),
        lambda: networks.bind_port(BOB, port.id, server_id='t', host='h'),
        lambda: networks.set_port_security_groups(BOB, port.id, []),
    ):
        with pytest.raises(errors.PortNotFound, match=port.id):
            act()
    networks.delete_port(BOB, port.id)
    networks.unbind_port(BOB, port.id)
    assert networks.ports(BOB, ids=[port.id]) == networks.ports(BOB, server_ids=['s']) == []
    assert networks.ports(ADMIN, ids=[port.id]) == [port]


def test_a_port_on_a_network_of_another_cannot_be_made(networks, make):
    with pytest.raises(errors.NetworkNotFound):
        networks.create_port(ALICE, make(BOB, '192.0.2.0/24'), server_id='s')


def test_the_binding_of_a_port_is_told_where_it_has_what_it_asks_for(service, networks, private):
    port_id, (old, new) = service.port(ALICE, private), 2 * [str(uuid.uuid4())]
    for allocation in (old, {'group': new}, None, old):
        networks.bind_port(ALICE, port_id, server_id='s', host='h', allocation=allocation)
        assert service.profile(port_id) == ({'allocation': allocation} if allocation else {})
    networks.unbind_port(ALICE, port_id)
    assert service.profile(port_id) == {}


def test_a_port_is_bound_to_one_server(service, networks, private):
    port_id = service.port(ALICE, private)
    bound = networks.bind_port(ALICE, port_id, server_id='s', host='h')
    assert (bound.device_id, bound.host, bound.status, bound.device_owner) == ('s', 'h', 'ACTIVE', 'compute:nova')
    assert networks.bind_port(ALICE, port_id, server_id='s', host='other').host == 'other'
    with pytest.raises(errors.PortInUse, match=port_id):
        networks.bind_port(ALICE, port_id, server_id='t', host='h')
    networks.unbind_port(ALICE, port_id)
    free = networks.port(ALICE, port_id)
    assert (free.device_id, free.host, free.status, free.device_owner) == ('', None, 'DOWN', '')
    assert networks.bind_port(ALICE, port_id, server_id='t', host=None).status == 'DOWN'


def test_what_is_gone_can_go_again(networks, private):
    port = networks.create_port(ALICE, private, server_id='s')
    networks.delete_port(ALICE, port.id)
    networks.delete_port(ALICE, port.id)
    networks.unbind_port(ALICE, port.id)
    assert networks.ports(ALICE, server_ids=['s']) == []


def test_ports_of_servers_come_oldest_first(service, networks, private):
    made = []
    for server in ('b', 'a', 'b', 'c'):
        made.append(networks.create_port(ALICE, private, server_id=server))
        service.pause()
    assert networks.ports(ALICE, server_ids=['a', 'b']) == made[:3]
    assert networks.ports(ALICE, ids=[made[3].id, made[0].id, UNKNOWN]) == [made[0], made[3]]
    assert networks.ports(ALICE, server_ids=[]) == networks.ports(ALICE, ids=[]) == []


def test_a_server_gets_one_more_address_and_gives_it_back(networks, make):
    port = networks.create_port(ALICE, make(ALICE, '10.0.0.0/16'), server_id='s', fixed_ip='10.0.7.7')
    held = set(addresses(networks.add_fixed_ip(ALICE, port.id)))
    [second] = held - {'10.0.7.7'}
    assert ip_address(second) in ip_network('10.0.0.0/16') and len(held) == 2
    for _ in range(2):
        assert addresses(networks.remove_fixed_ip(ALICE, port.id, '10.0.7.7')) == [second]
    with pytest.raises(errors.PortNotFound):
        networks.add_fixed_ip(BOB, port.id)


# Security groups


def test_a_project_has_a_default_group(networks):
    [group] = networks.security_groups(ALICE)
    assert (group.name, group.project_id) == ('default', 'apples')
    rules = {(rule['direction'], rule['ethertype'], rule['remote_group_id']) for rule in group.rules}
    assert rules == {
        ('egress', 'IPv4', None),
        ('egress', 'IPv6', None),
        ('ingress', 'IPv4', group.id),
        ('ingress', 'IPv6', group.id),
    }
    assert networks.security_groups(ALICE) == [group]
    assert networks.security_groups(BOB)[0].id != group.id


def test_groups_are_made_changed_and_deleted(networks):
    group = networks.create_security_group(ALICE, 'web', 'for the web')
    assert networks.security_group(ALICE, group.id) == group
    assert [rule['direction'] for rule in group.rules] == ['egress', 'egress']
    changed = networks.update_security_group(ALICE, group.id, name='shop', description='')
    assert (changed.name, changed.description) == ('shop', '')
    assert {g.name for g in networks.security_groups(ALICE)} == {'default', 'shop'}
    assert [g.name for g in networks.security_groups(ALICE, ids=[group.id])] == ['shop']
    networks.delete_security_group(ALICE, group.id)
    with pytest.raises(errors.SecurityGroupNotFound, match=group.id):
        networks.security_group(ALICE, group.id)


def test_the_default_group_stays(networks):
    [group] = networks.security_groups(ALICE)
    with pytest.raises(errors.Conflict, match='already exists'):
        networks.create_security_group(ALICE, 'default', '')
    with pytest.raises(errors.Conflict):
        networks.update_security_group(ALICE, group.id, name='other')
    with pytest.raises(errors.Conflict):
        networks.delete_security_group(ALICE, group.id)


def test_groups_are_found_by_name_or_id(networks):
    web, other = (networks.create_security_group(ALICE, name, '') for name in ('web', 'other'))
    found = networks.security_groups(ALICE, names_or_ids=['other', web.id, 'default', 'other'])
    assert [group.name for group in found] == ['other', 'web', 'default']
    with pytest.raises(errors.SecurityGroupNotFound, match='nothing'):
        networks.security_groups(ALICE, names_or_ids=['web', 'nothing'])
    with pytest.raises(errors.SecurityGroupNotFound):
        networks.security_groups(BOB, names_or_ids=[web.id])
    networks.create_security_group(ALICE, 'web', '')
    with pytest.raises(errors.Conflict, match='web'):
        networks.security_groups(ALICE, names_or_ids=['web'])


def test_groups_have_names_for_those_who_see_them(networks):
    web = networks.create_security_group(ALICE, 'web', '')
    [default] = networks.security_groups(ALICE, names_or_ids=['default'])
    ids = [web.id, default.id]
    assert networks.security_group_names(ALICE, ids) == {web.id: 'web', default.id: 'default'}
    assert networks.security_group_names(ALICE, [web.id]) == {web.id: 'web'}
    assert networks.security_group_names(BOB, ids) == {}
    assert networks.security_group_names(ALICE, []) == {}


def test_groups_of_others_are_not_there(networks):
    group = networks.create_security_group(ALICE, 'web', '')
    rule = networks.create_security_group_rule(ALICE, group.id, protocol='tcp', port_range_min=80, port_range_max=80)
    for act in (
        lambda: networks.security_group(BOB, group.id),
        lambda: networks.update_security_group(BOB, group.id, name='mine'),
        lambda: networks.delete_security_group(BOB, group.id),
        lambda: networks.create_security_group_rule(BOB, group.id, protocol='tcp'),
        lambda: networks.delete_security_group_rule(BOB, rule['id']),
    ):
        with pytest.raises((errors.NotFound, errors.Forbidden)):
            act()
    assert networks.security_groups(BOB, ids=[group.id]) == []


def test_rules_come_and_go(networks):
    group = networks.create_security_group(ALICE, 'web', '')
    rule = networks.create_security_group_rule(
        ALICE, group.id, protocol='TCP', port_range_min=80, port_range_max=81, remote_ip_prefix='10.1.2.3/8'
    )
    assert (rule['direction'], rule['ethertype'], rule['protocol']) == ('ingress', 'IPv4', 'tcp')
    assert (rule['remote_ip_prefix'], rule['normalized_cidr']) == ('10.1.2.3/8', '10.0.0.0/8')
    assert rule['id'] in [r['id'] for r in networks.security_group(ALICE, group.id).rules]
    with pytest.raises(errors.SecurityGroupRuleExists, match=rule['id']):
        networks.create_security_group_rule(
            ALICE, group.id, protocol='tcp', port_range_min=80, port_range_max=81, remote_ip_prefix='10.1.2.3/8'
        )
    networks.delete_security_group_rule(ALICE, rule['id'])
    with pytest.raises(errors.SecurityGroupRuleNotFound, match=rule['id']):
        networks.delete_security_group_rule(ALICE, rule['id'])


@pytest.mark.parametrize(
    'facts',
    [
        {'protocol': 'xtp'},
        {'protocol': '256'},
        {'port_range_min': 1, 'port_range_max': 2},
        {'protocol': 'tcp', 'port_range_min': 3, 'port_range_max': 2},
        {'protocol': 'tcp', 'port_range_min': 1},
        {'protocol': 'udp', 'port_range_min': 1, 'port_range_max': 65536},
        {'protocol': 'icmp', 'port_range_max': 0},
        {'protocol': 'icmp', 'port_range_min': 256},
        {'protocol': 'gre', 'port_range_min': 1, 'port_range_max': 2},
        {'remote_ip_prefix': '300.1.1.1/8'},
        {'remote_ip_prefix': '::/0'},
        {'ethertype': 'IPv5'},
    ],
    ids=str,
)
def test_a_rule_must_make_sense(networks, facts):
    group = networks.create_security_group(ALICE, 'web', '')
    with pytest.raises(errors.Invalid):
        networks.create_security_group_rule(ALICE, group.id, **facts)


def test_a_group_that_protects_a_port_stays(networks, private):
    group = networks.create_security_group(ALICE, 'web', '')
    port = networks.create_port(ALICE, private, server_id='s', security_groups=[group.id])
    assert port.security_groups == (group.id,)
    with pytest.raises(errors.SecurityGroupInUse, match=group.id):
        networks.delete_security_group(ALICE, group.id)
    assert networks.set_port_security_groups(ALICE, port.id, []).security_groups == ()
    networks.delete_security_group(ALICE, group.id)


def test_a_port_is_protected_by_groups_of_its_project(networks, private):
    his = networks.create_security_group(BOB, 'web', '')
    with pytest.raises(errors.SecurityGroupNotFound, match=his.id):
        networks.create_port(ALICE, private, server_id='s', security_groups=[his.id])
    port = networks.create_port(ALICE, private, server_id='s')
    with pytest.raises(errors.SecurityGroupNotFound, match=his.id):
        networks.set_port_security_groups(ALICE, port.id, [his.id])


def test_a_group_takes_the_rules_that_let_its_members_in_along(networks):
    web, shop = (networks.create_security_group(ALICE, name, '') for name in ('web', 'shop'))
    networks.create_security_group_rule(ALICE, shop.id, remote_group_id=web.id)
    networks.delete_security_group(ALICE, web.id)
    assert {rule['remote_group_id'] for rule in networks.security_group(ALICE, shop.id).rules} == {None}


# Floating IPs


def test_a_floating_ip_leads_to_a_server(networks, private):
    port = networks.create_port(ALICE, private, server_id='s')
    free = networks.create_floating_ip(ALICE)
    pool = networks.floating_ip_pools(ALICE)[0].subnets
    assert any(ip_address(free.address) in ip_network(subnet['cidr']) for subnet in pool)
    assert (free.network_name, free.status, free.server_id, free.port_id) == ('public', 'DOWN', None, None)
    used = networks.associate_floating_ip(ALICE, free.address, port.id)
    assert (used.port_id, used.server_id) == (port.id, 's')
    assert used.fixed_address == addresses(port)[0]
    assert networks.floating_ip(ALICE, free.id) == used
    [led_to] = networks.ports(ALICE, ids=[port.id], floating=True)
    assert led_to.floating_ips == (free.address,)
    assert networks.disassociate_floating_ip(ALICE, free.address) == free
    [led_to] = networks.ports(ALICE, server_ids=['s'], floating=True)
    assert led_to.floating_ips == ()


def test_a_floating_ip_is_free_when_its_port_is_gone(networks, private):
    port = networks.create_port(ALICE, private, server_id='s')
    floating_ip = networks.create_floating_ip(ALICE)
    networks.associate_floating_ip(ALICE, floating_ip.address, port.id)
    networks.delete_port(ALICE, port.id)
    assert networks.floating_ip(ALICE, floating_ip.id) == floating_ip


def test_a_floating_ip_moves_to_another_port(networks, private):
    ports = [networks.create_port(ALICE, private, server_id=server) for server in 'st']
    address = networks.create_floating_ip(ALICE).address
    for port in ports:
        assert networks.associate_floating_ip(ALICE, address, port.id).server_id == port.device_id


def test_an_address_has_one_floating_ip(networks, private):
    port = networks.create_port(ALICE, private, server_id='s')
    one, two = (networks.create_floating_ip(ALICE).address for _ in range(2))
    networks.associate_floating_ip(ALICE, one, port.id)
    with pytest.raises(errors.FloatingIPInUse, match=two):
        networks.associate_floating_ip(ALICE, two, port.id)
    networks.associate_floating_ip(ALICE, one, port.id)


def test_which_fixed_address_must_be_clear(networks, private, make):
    port = networks.create_port(ALICE, private, server_id='s')
    address = networks.create_floating_ip(ALICE).address
    with pytest.raises(errors.Invalid):
        networks.associate_floating_ip(ALICE, address, port.id, '10.0.99.99')
    networks.add_fixed_ip(ADMIN, port.id)
    with pytest.raises(errors.Invalid, match='multiple'):
        networks.associate_floating_ip(ALICE, address, port.id)
    bare = networks.create_port(ALICE, make(ALICE), server_id='s')
    with pytest.raises(errors.Invalid, match='no fixed'):
        networks.associate_floating_ip(ALICE, address, bare.id)


def test_pools_are_external_networks(networks):
    [pool] = networks.floating_ip_pools(ALICE)
    assert (pool.name, pool.external) == ('public', True)
    assert networks.create_floating_ip(ALICE, 'public').network_id == pool.id
    assert networks.create_floating_ip(ALICE, pool.id).network_id == pool.id
    for unknown in ('private', 'nothing', ''):
        with pytest.raises(errors.FloatingIPPoolNotFound):
            networks.create_floating_ip(ALICE, unknown)


def test_floating_ips_of_others_are_not_there(networks, private):
    floating_ip = networks.create_floating_ip(ALICE)
    port = networks.create_port(BOB, private, server_id='s')
    for act in (
        lambda: networks.floating_ip(BOB, floating_ip.id),
        lambda: networks.delete_floating_ip(BOB, floating_ip.id),
        lambda: networks.associate_floating_ip(BOB, floating_ip.address, port.id),
        lambda: networks.disassociate_floating_ip(BOB, floating_ip.address),
    ):
        with pytest.raises(errors.FloatingIPNotFound):
            act()
    assert networks.floating_ips(BOB) == networks.floating_ips(BOB, addresses=[floating_ip.address]) == []
    with pytest.raises(errors.PortNotFound):
        networks.associate_floating_ip(ALICE, floating_ip.address, port.id)


def test_floating_ips_by_address(networks):
    one, two = networks.create_floating_ip(ALICE), networks.create_floating_ip(ALICE)
    assert networks.floating_ips(ALICE) == [one, two]
    assert networks.floating_ips(ALICE, addresses=[two.address, '192.0.2.1']) == [two]
    networks.delete_floating_ip(ALICE, one.id)
    assert networks.floating_ips(ALICE) == [two]


# Quotas


def test_quotas_are_counted_in_the_words_of_compute(networks, private):
    networks.create_port(ALICE, private, server_id='s')
    networks.create_floating_ip(ALICE)
    quotas = networks.quotas(ALICE, 'apples')
    assert {name: quota['in_use'] for name, quota in quotas.items()} == {
        'floating_ips': 1,
        'networks': 0,
        'ports': 1,
        'security_groups': 1,
        'security_group_rules': 4,
    }
    assert all(quota['limit'] == -1 or quota['limit'] >= quota['in_use'] for quota in quotas.values())


def test_a_full_quota_says_no(service, networks, private):
    service.limit('apples', port=1, floatingip=1, security_group=2, security_group_rule=6)
    networks.create_port(ALICE, private, server_id='s')
    networks.create_floating_ip(ALICE)
    group = networks.create_security_group(ALICE, 'web', '')
    for resource, act in (
        ('port', lambda: networks.create_port(ALICE, private, server_id='s')),
        ('floatingip', lambda: networks.create_floating_ip(ALICE)),
        ('security_group', lambda: networks.create_security_group(ALICE, 'shop', '')),
        ('security_group_rule', lambda: networks.create_security_group_rule(ALICE, group.id)),
    ):
        with pytest.raises(errors.OverQuota, match=f"'{resource}'"):
            act()
    networks.create_port(BOB, private, server_id='s')


# Concurrency


def together(count, act):
    """The results and errors of act(i) in `count` threads that start at the same moment."""
    results, failures = [], []
    barrier = threading.Barrier(count)

    def run(i):
        barrier.wait()
        try:
            results.append(act(i))
        except errors.Error as error:
            failures.append(error)

    threads = [threading.Thread(target=run, args=(i,)) for i in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results, failures


def test_no_address_is_given_twice(networks, make):
    """20 servers of two projects compete for the 14 addresses of a subnet, one of which is the gateway's."""
    small = make(ADMIN, '192.0.2.0/28', shared=True)
    callers = (ALICE, BOB)
    ports, failures = together(20, lambda i: networks.create_port(callers[i % 2], small, server_id=f's{i}'))
    given = [addresses(port)[0] for port in ports]
    assert len(given) == len(set(given)) == 13
    assert len({port.mac_address for port in ports}) == 13
    assert [type(failure) for failure in failures] == [errors.NoMoreAddresses] * 7


def test_a_project_gets_one_default_group(networks):
    found, failures = together(8, lambda i: networks.security_groups(ALICE))
    assert failures == []
    assert len({group.id for groups in found for group in groups}) == 1


def test_a_project_gets_one_automatic_network(unshared):
    found, failures = together(6, lambda i: unshared.auto_network(ALICE))
    assert failures == []
    assert len({network.id for network in found}) == 1


def test_one_floating_ip_gets_the_address(networks, private):
    port = networks.create_port(ALICE, private, server_id='s')
    free = [networks.create_floating_ip(ALICE).address for _ in range(6)]
    used, failures = together(6, lambda i: networks.associate_floating_ip(ALICE, free[i], port.id))
    assert len(used) == 1
    assert [type(failure) for failure in failures] == [errors.FloatingIPInUse] * 5
