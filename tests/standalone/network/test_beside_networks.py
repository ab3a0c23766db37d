"""Neutron v2.0 from a client's point of view: subnet pools and address scopes, sharing, revisions, segments, flavors,
IP availability."""

import pytest

from tests.standalone.network.kinds import fault


def test_the_revision_tells_whether_something_changed(ask, create):
    network = create('networks', name='one')
    path = f'/networks/{network["id"]}'
    named = {'network': {'name': 'two'}}
    first = {'If-Match': f'revision_number={network["revision_number"]}'}
    assert ask(f'PUT {path}', named, headers=first, expect=200).json['network']['revision_number'] == 2
    assert fault(ask(f'PUT {path}', named, headers=first, expect=412))[0] == 'RevisionNumberConstraintFailed'
    ask(f'DELETE {path}', headers=first, expect=412)
    ask(f'PUT {path}', named, headers={'If-Match': 'x'}, expect=400)
    ask(f'DELETE {path}', headers={'If-Match': 'revision_number=2'}, expect=204)


def test_administrators_say_how_a_network_is_made(ask, create):
    segment = {'provider:network_type': 'vlan', 'provider:physical_network': 'physnet', 'provider:segmentation_id': 7}
    ask('POST /networks', {'network': segment}, expect=403)
    network = create('networks', by='admin', shared=True, **segment)
    assert segment.items() <= network.items()
    assert not segment.keys() & ask(f'GET /networks/{network["id"]}').json['network'].keys()
    ask('POST /networks', {'network': segment}, by='admin', expect=409)
    assert create('networks', by='admin')['provider:network_type'] == 'local'


@pytest.mark.parametrize(
    'segment',
    [
        {'segmentation_id': 7},
        {'network_type': 'vlan', 'segmentation_id': 7},
        {'network_type': 'flat', 'physical_network': 'physnet', 'segmentation_id': 7},
        {'network_type': 'vxlan', 'physical_network': 'physnet'},
        {'network_type': 'carrier-pigeon'},
    ],
)
def test_parts_of_a_segment_go_together(ask, segment):
    facts = {f'provider:{name}': value for name, value in segment.items()}
    ask('POST /networks', {'network': facts}, by='admin', expect=400)


def test_an_external_network_goes_with_its_free_floating_ips(ask, create):
    outside = create('networks', by='admin', **{'router:external': True})
    create('subnets', by='admin', network_id=outside['id'], cidr='198.51.100.0/24')
    floating = create('floatingips', floating_network_id=outside['id'])
    ask(f'DELETE /networks/{outside["id"]}', by='admin', expect=204)
    ask(f'GET /floatingips/{floating["id"]}', expect=404)


def test_how_a_bound_port_is_wired_is_for_administrators(ask, create, net):
    bound = create('ports', by='admin', network_id=net[0]['id'], **{'binding:host_id': 'node'})
    assert bound['binding:vif_details'] == {'port_filter': True}
    assert 'binding:vif_details' not in create('ports', network_id=net[0]['id'])


# Subnet pools


@pytest.fixture
def take(ask, create):
    """take(pool, prefixlen=24) -> the range of a new subnet from the pool; None if another status is expected."""
    network = create('networks')

    def take(pool, expect=201, **kwargs):
        asked = {'network_id': network['id'], 'subnetpool_id': pool['id'], 'ip_version': 4, **kwargs}
        response = ask('POST /subnets', {'subnet': asked}, expect=expect)
        return response.json['subnet']['cidr'] if expect == 201 else None

    return take


def test_subnets_take_ranges_from_pools(ask, create, take):
    pool = create('subnetpools', prefixes=['10.0.0.0/23', '10.0.2.0/24'], default_prefixlen=25)
    assert pool['prefixes'] == ['10.0.0.0/23', '10.0.2.0/24']
    assert take(pool) == '10.0.0.0/25'
    assert take(pool, prefixlen=24) == '10.0.1.0/24'
    assert take(pool, prefixlen=24.0) == '10.0.2.0/24'
    assert take(pool, cidr='10.0.0.192/26') == '10.0.0.192/26'
    take(pool, cidr='10.0.0.192/26', expect=409)
    take(pool, cidr='10.9.0.0/26', expect=409)
    take(pool, prefixlen=25, expect=409)
    take(pool, prefixlen=8, expect=409)
    take(pool, prefixlen=7, expect=400)
    assert take(pool, prefixlen=26) == '10.0.0.128/26'
    ask(f'DELETE /subnetpools/{pool["id"]}', expect=400)
    ask(f'PUT /subnetpools/{pool["id"]}', {'subnetpool': {'prefixes': ['10.0.0.0/24']}}, expect=400)
    grown = ask(f'PUT /subnetpools/{pool["id"]}', {'subnetpool': {'prefixes': ['10.0.0.0/22']}}, expect=200)
    assert grown.json['subnetpool']['prefixes'] == ['10.0.0.0/22']


def test_a_project_takes_no_more_from_a_pool_than_its_quota(ask, create, take):
    pool = create('subnetpools', by='admin', prefixes=['10.0.0.0/16'], shared=True, default_quota=512)
    network = create('networks', by='bob')['id']
    create('subnets', by='bob', network_id=network, subnetpool_id=pool['id'], prefixlen=23)
    assert take(pool, prefixlen=24) == '10.0.2.0/24'
    take(pool, prefixlen=23, expect=409)
    take(pool, cidr='10.0.4.0/23', expect=409)
    assert take(pool, prefixlen=24) == '10.0.3.0/24'
    take(pool, prefixlen=32, expect=409)
    six = create('subnetpools', prefixes=['fd00::/48'], default_quota=2, min_prefixlen=60)
    take(six, ip_version=6, prefixlen=62, expect=409)
    assert take(six, ip_version=6, prefixlen=63) == 'fd00::/63'


@pytest.mark.parametrize(('prefix', 'lengths'), [('10.0.0.0/23', ('8', '8', '32')), ('fd00::/48', ('64', '64', '128'))])
def test_a_pool_that_says_no_lengths_has_those_of_its_version(ask, create, prefix, lengths):
    pool = create('subnetpools', prefixes=[prefix])
    assert (pool['default_prefixlen'], pool['min_prefixlen'], pool['max_prefixlen']) == lengths
    assert ask(f'GET /subnetpools/{pool["id"]}').json['subnetpool'] == pool


def test_there_is_a_default_pool(ask, create, net):
    asked = {'subnet': {'network_id': net[0]['id'], 'use_default_subnetpool': True, 'ip_version': 4}}
    ask('POST /subnets', asked, expect=400)
    ask('POST /subnetpools', {'subnetpool': {'prefixes': ['10.0.0.0/8'], 'is_default': True}}, expect=403)
    create('subnetpools', by='admin', prefixes=['10.0.0.0/8'], is_default=True)
    ask('POST /subnets', asked, expect=400)
    pool = create('subnetpools', by='admin', prefixes=['10.0.0.0/8'], is_default=True, shared=True)
    create('subnetpools', by='admin', prefixes=['fd00::/48'], is_default=True, shared=True)
    assert ask('POST /subnets', asked, expect=201).json['subnet']['subnetpool_id'] == pool['id']
    ask(f'PUT /subnetpools/{pool["id"]}', {'subnetpool': {'description': 'changed'}}, by='admin', expect=200)
    assert ask(f'GET /subnetpools/{pool["id"]}').json['subnetpool']['is_default']


def test_a_subnet_has_a_range_or_a_length(ask, create):
    asked = {'network_id': create('networks')['id'], 'ip_version': 4, 'cidr': '10.0.0.0/24', 'prefixlen': 24}
    ask('POST /subnets', {'subnet': asked}, expect=400)


def test_a_prefix_length_of_zero_is_not_the_default(ask, create):
    pool = create('subnetpools', prefixes=['10.0.0.0/8'], min_prefixlen=0)
    assert (pool['min_prefixlen'], pool['default_prefixlen']) == ('0', '0')
    for name in ('default_prefixlen', 'max_prefixlen'):
        ask('POST /subnetpools', {'subnetpool': {'prefixes': ['10.0.0.0/8'], name: 0}}, expect=400)


def test_a_subnet_needs_a_range_or_a_pool(ask, create):
    ask('POST /subnets', {'subnet': {'network_id': create('networks')['id'], 'ip_version': 4}}, expect=400)


@pytest.mark.parametrize(
    'facts',
    [
        {'prefixes': []},
        {'prefixes': ['x']},
        {'prefixes': ['10.0.0.0/8', 'fd00::/48']},
        {'default_prefixlen': 7},
        {'min_prefixlen': 24, 'max_prefixlen': 16},
        {'max_prefixlen': 33},
        {'address_scope_id': 'x'},
    ],
)
def test_bad_pools(ask, facts):
    ask('POST /subnetpools', {'subnetpool': {'name': 'pool', 'prefixes': ['10.0.0.0/8'], **facts}}, expect=400)


def test_pools_of_a_scope_do_not_overlap(ask, create, scope, take):
    pool = create('subnetpools', prefixes=['10.0.0.0/16'], address_scope_id=scope['id'])
    same = {'prefixes': ['10.0.4.0/24'], 'address_scope_id': scope['id']}
    ask('POST /subnetpools', {'subnetpool': same}, expect=409)
    ask('POST /subnetpools', {'subnetpool': {**same, 'prefixes': ['fd00::/48']}}, expect=400)
    take(pool, prefixlen=24)
    assert scope['id'] in [each['ipv4_address_scope'] for each in ask('GET /networks').json['networks']]
    path = f'/address-scopes/{scope["id"]}'
    ask(f'DELETE {path}', expect=409)
    ask(f'PUT {path}', {'address_scope': {'shared': True}}, expect=403)
    assert ask(f'PUT {path}', {'address_scope': {'name': 'new'}}, expect=200).json['address_scope']['name'] == 'new'
    ask(f'GET {path}', by='bob', expect=404)


# Administrators only


def test_flavors_stand_for_profiles(ask):
    asked = {'flavor': {'name': 'gold', 'service_type': 'L3_ROUTER_NAT'}}
    ask('POST /flavors', asked, expect=403)
    flavor = ask('POST /flavors', asked, by='admin', expect=201).json['flavor']
    ask('POST /service_profiles', {'service_profile': {}}, by='admin', expect=400)
    made = ask('POST /service_profiles', {'service_profile': {'metainfo': 'fast'}}, by='admin', expect=201)
    profile = made.json['service_profile']
    path = f'/flavors/{flavor["id"]}/service_profiles'
    link = {'service_profile': {'id': profile['id']}}
    ask(f'POST {path}', link, expect=403)
    assert ask(f'POST {path}', link, by='admin', expect=201).json == link
    ask(f'POST {path}', link, by='admin', expect=409)
    assert ask(f'GET /flavors/{flavor["id"]}').json['flavor']['service_profiles'] == [profile['id']]
    ask(f'DELETE /service_profiles/{profile["id"]}', by='admin', expect=409)
    ask(f'DELETE {path}/{profile["id"]}', by='admin', expect=204)
    ask(f'DELETE {path}/{profile["id"]}', by='admin', expect=404)
    ask(f'DELETE /service_profiles/{profile["id"]}', by='admin', expect=204)
    ask(f'PUT /flavors/{flavor["id"]}', {'flavor': {'enabled': False}}, by='admin', expect=200)
    ask(f'DELETE /flavors/{flavor["id"]}', by='admin', expect=204)


def test_the_room_in_a_network(ask, create, net):
    network, subnet = net
    create('ports', network_id=network['id'])
    ask('GET /network-ip-availabilities', expect=403)
    path = f'/network-ip-availabilities/{network["id"]}'
    found = ask(f'GET {path}', by='admin', expect=200).json['network_ip_availability']
    assert (found['network_name'], found['total_ips'], found['used_ips']) == ('net', 253, 1)
    [part] = found['subnet_ip_availability']
    assert (part['subnet_id'], part['cidr']) == (subnet['id'], '192.0.2.0/24')
    assert (part['total_ips'], part['used_ips']) == (253, 1)
    listed = ask('GET /network-ip-availabilities?network_name=net', by='admin').json['network_ip_availabilities']
    for version, expected in ((4, listed), (6, [])):
        query = f'/network-ip-availabilities?network_name=net&ip_version={version}'
        assert ask(f'GET {query}', by='admin').json['network_ip_availabilities'] == expected
    assert listed == [found]
    ask(f'GET /network-ip-availabilities/{"0" * 36}', by='admin', expect=404)


def test_more_addresses_are_counted_than_64_bits_hold(ask, create):
    network = create('networks', name='net')
    for cidr in ('2001:db8::/48', '2001:db8:1::/64'):
        create('subnets', network_id=network['id'], cidr=cidr, ip_version=6)
    found = ask(f'GET /network-ip-availabilities/{network["id"]}', by='admin').json['network_ip_availability']
    sizes = [subnet['total_ips'] for subnet in found['subnet_ip_availability']]
    assert sizes == [2**80 - 2, 2**64 - 2]
    assert found['total_ips'] == sum(sizes)
    assert found in ask('GET /network-ip-availabilities', by='admin').json['network_ip_availabilities']
