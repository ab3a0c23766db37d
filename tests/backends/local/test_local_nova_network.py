"""The operations of the former nova-network on the built-in networks."""

import pytest

from computeapi import errors
from computeapi.backends.network.nova_network import DNSDomain, DNSEntry, FixedIP, PoolAddress
from tests.backends.implementations import ADMIN, ALICE, BOB, OwnNetworks
from tests.backends.test_network import addresses


@pytest.fixture
def service(store):
    return OwnNetworks(store)


@pytest.fixture
def networks(service):
    return service.networks


@pytest.fixture
def make(service):
    return service.network


def test_a_reserved_address_is_given_to_no_port(networks, make):
    network = make(ALICE, '192.0.2.0/29')
    networks.reserve_fixed_ip(ALICE, '192.0.2.2')
    assert networks.fixed_ip(ALICE, '192.0.2.2') == FixedIP('192.0.2.2', '192.0.2.0/29', reserved=True)
    given = [addresses(networks.create_port(ALICE, network, server_id='s')) for _ in range(4)]
    assert given == [['192.0.2.3'], ['192.0.2.4'], ['192.0.2.5'], ['192.0.2.6']]
    with pytest.raises(errors.AddressInUse):
        networks.create_port(ALICE, network, server_id='s', fixed_ip='192.0.2.2')
    networks.unreserve_fixed_ip(ALICE, '192.0.2.2')
    assert addresses(networks.create_port(ALICE, network, server_id='s')) == ['192.0.2.2']
    assert networks.fixed_ip(ALICE, '192.0.2.2').server_id == 's'


def test_fixed_ips_of_others(networks, make):
    make(ALICE, '192.0.2.0/29', '2001:db8::/64')
    assert networks.fixed_ip(ALICE, '2001:DB8:0::1').address == '2001:db8::1'
    for use in (networks.fixed_ip, networks.reserve_fixed_ip, networks.unreserve_fixed_ip):
        with pytest.raises(errors.FixedIPNotFound):
            use(BOB, '192.0.2.2')
        with pytest.raises(errors.Invalid):
            use(BOB, 'here')


def test_addresses_are_added_to_a_pool_and_removed(networks):
    assert networks.add_pool_addresses(ADMIN, '192.0.2.0/30', pool='more', interface='eth1') == 'more'
    given = networks.create_floating_ip(ALICE, 'more')
    shown = {each.address: each for each in networks.pool_addresses(ADMIN, limit=1000) if each.pool == 'more'}
    assert shown == {
        given.address: PoolAddress(given.address, 'more', 'eth1', ALICE.project_id),
        '192.0.2.2': PoolAddress('192.0.2.2', 'more', 'eth1'),
    }
    with pytest.raises(errors.Conflict):
        networks.add_pool_addresses(ADMIN, '192.0.2.2', pool='public')
    networks.remove_pool_addresses(ADMIN, '192.0.2.0/30')
    assert [each for each in networks.pool_addresses(ADMIN, limit=1000) if each.pool == 'more'] == []
    assert networks.floating_ips(ALICE) == []
    with pytest.raises(errors.NoMoreAddresses):
        networks.create_floating_ip(ALICE, 'more')


def test_the_first_pool_gets_what_none_is_named_for(networks):
    """Addresses within a subnet but outside its pools can be added to it again."""
    assert networks.add_pool_addresses(ADMIN, '192.0.2.9') == 'public'
    networks.remove_pool_addresses(ADMIN, '203.0.113.0/24')
    assert [each.address for each in networks.pool_addresses(ADMIN, limit=9)] == ['192.0.2.9']
    networks.add_pool_addresses(ADMIN, '203.0.113.64/30')
    shown = [each.address for each in networks.pool_addresses(ADMIN, limit=2)]
    assert shown == ['203.0.113.65', '203.0.113.66']
    assert networks.create_floating_ip(ALICE).address in (*shown, '192.0.2.9')


def test_domains_and_names(networks):
    mine, all_s = DNSDomain('mine.org', 'public', ALICE.project_id), DNSDomain('all.org', 'private', None, 'nova')
    for domain in (mine, all_s, all_s):
        networks.set_dns_domain(ADMIN, domain)
    assert (networks.dns_domains(ALICE), networks.dns_domains(BOB)) == ([all_s, mine], [all_s])
    for name, address in (('web', '192.0.2.1'), ('www', '192.0.2.1'), ('www', '192.0.2.2')):
        networks.set_dns_entry(ALICE, DNSEntry('all.org', name, address))
    web, www = DNSEntry('all.org', 'web', '192.0.2.1'), DNSEntry('all.org', 'www', '192.0.2.2')
    assert networks.dns_entries(ALICE, 'all.org') == [web, www]
    assert networks.dns_entries(ALICE, 'all.org', address='192.0.2.1') == [web]
    assert networks.dns_entries(BOB, 'all.org', name='www') == []
    with pytest.raises(errors.Conflict):
        networks.set_dns_entry(BOB, web)
    with pytest.raises(errors.DNSEntryNotFound):
        networks.delete_dns_entry(BOB, 'all.org', 'web')
    with pytest.raises(errors.DNSDomainNotFound):
        networks.dns_entries(BOB, 'mine.org')
    networks.delete_dns_entry(ALICE, 'all.org', 'web')
    networks.delete_dns_domain(ADMIN, 'all.org')
    networks.set_dns_domain(ADMIN, all_s)
    assert networks.dns_entries(ADMIN, 'all.org') == []
