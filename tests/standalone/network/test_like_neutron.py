"""What a Neutron refuses or completes, found by sending the same requests to one."""

import pytest

from computeapi.backends.network.local import ports, subnet_pools
from tests.standalone.network.kinds import fault


@pytest.fixture
def outside(create):
    """An external network with the subnet 10.8.0.0/16."""
    network = create('networks', by='admin', **{'router:external': True})
    return network, create('subnets', by='admin', network_id=network['id'], cidr='10.8.0.0/16')


def test_the_gateway_of_a_router_does_not_overlap_with_its_interfaces(ask, create, outside):
    network = create('networks')['id']
    inside = create('subnets', network_id=network, cidr='10.8.1.0/24')
    router = create('routers')
    path, gateway = f'/routers/{router["id"]}', {'external_gateway_info': {'network_id': outside[0]['id']}}
    ask(f'PUT {path}/add_router_interface', {'subnet_id': inside['id']}, expect=200)
    message = fault(ask(f'PUT {path}', {'router': gateway}, expect=400))[1]
    assert message.startswith('Cidr 10.8.0.0/16 of subnet')
    assert ask(f'GET {path}').json['router']['external_gateway_info'] is None
    ask(f'PUT {path}/remove_router_interface', {'subnet_id': inside['id']}, expect=200)
    ask(f'PUT {path}', {'router': gateway}, expect=200)
    ask(f'PUT {path}/add_router_interface', {'subnet_id': inside['id']}, expect=400)


def test_ports_on_an_external_network_are_for_who_owns_it(ask, create, outside):
    on = {'network_id': outside[0]['id']}
    assert 'rule:create_port' in fault(ask('POST /ports', {'port': on}, expect=403))[1]
    create('ports', by='admin', **on)
    policy = {'object_type': 'network', 'object_id': outside[0]['id'], 'action': 'access_as_shared'}
    ask('POST /rbac-policies', {'rbac_policy': {**policy, 'target_tenant': 'apples'}}, by='admin', expect=201)
    create('ports', **on)
    ask('POST /ports', {'port': on}, by='bob', expect=403)


def test_subnets_of_external_networks_are_visible(ask, names, outside):
    path = f'/subnets/{outside[1]["id"]}'
    assert ask(f'GET {path}', by='bob', expect=200).json['subnet']['router:external'] is True
    ask(f'PUT {path}', {'subnet': {'name': 'mine'}}, by='bob', expect=403)
    listed = ask('GET /subnets?router:external=true', by='bob', expect=200).json['subnets']
    assert outside[1]['id'] in [subnet['id'] for subnet in listed]


@pytest.mark.parametrize('name', ['security_groups', 'allowed_address_pairs', 'extra_dhcp_opts'])
def test_null_is_an_empty_list_of_a_port(ask, create, net, name):
    port = create('ports', network_id=net[0]['id'], **{name: None})
    assert port[name] == []
    changed = ask(f'PUT /ports/{port["id"]}', {'port': {name: None}}, expect=200)
    assert changed.json['port'][name] == []


def test_null_empties_the_binding_profile_of_a_port(ask, create, net):
    port = create('ports', network_id=net[0]['id'], by='admin', **{'binding:profile': None})
    assert port['binding:profile'] == {}
    for profile in ({'hue': 'red'}, None):
        asked = {'port': {'binding:profile': profile}}
        changed = ask(f'PUT /ports/{port["id"]}', asked, by='admin', expect=200)
        assert changed.json['port']['binding:profile'] == (profile or {})
    ask(f'PUT /ports/{port["id"]}', {'port': {'binding:profile': None}}, expect=403)


def test_null_is_the_default_of_a_subnet_and_a_mac_address(create):
    network = create('networks')['id']
    given = dict.fromkeys(('allocation_pools', 'dns_nameservers', 'host_routes'))
    subnet = create('subnets', network_id=network, cidr='192.0.2.0/24', **given)
    assert subnet['allocation_pools'] == [{'start': '192.0.2.2', 'end': '192.0.2.254'}]
    assert subnet['dns_nameservers'] == subnet['host_routes'] == []
    assert create('ports', network_id=network, mac_address=None)['mac_address']


def test_dhcp_options_are_merged_by_name(ask, create, net):
    port = create('ports', network_id=net[0]['id'], extra_dhcp_opts=[{'opt_name': 'mtu', 'opt_value': '1400'}])
    mtu = {'opt_name': 'mtu', 'opt_value': '1400', 'ip_version': 4}
    assert port['extra_dhcp_opts'] == [mtu]

    def change(*options):
        changed = ask(f'PUT /ports/{port["id"]}', {'port': {'extra_dhcp_opts': options}}, expect=200)
        return changed.json['port']['extra_dhcp_opts']

    boot = {'opt_name': 'boot', 'opt_value': 'x', 'ip_version': 6}
    assert change(boot) == [mtu, boot]
    assert change() == [mtu, boot]
    assert change({'opt_name': 'mtu', 'opt_value': None}, {**boot, 'opt_value': 'y'}) == [{**boot, 'opt_value': 'y'}]


def test_address_pairs_need_port_security(ask, create, net):
    pairs = {'allowed_address_pairs': [{'ip_address': '10.0.0.1'}]}
    bare = {'network_id': net[0]['id'], 'port_security_enabled': False}
    ask('POST /ports', {'port': {**bare, **pairs}}, expect=409)
    port = create('ports', network_id=net[0]['id'], security_groups=[], **pairs)
    path = f'/ports/{port["id"]}'
    ask(f'PUT {path}', {'port': {'port_security_enabled': False}}, expect=409)
    ask(f'PUT {path}', {'port': {'port_security_enabled': False, 'allowed_address_pairs': []}}, expect=200)
    ask(f'PUT {path}', {'port': pairs}, expect=409)
    twice = {'network_id': net[0]['id'], 'allowed_address_pairs': pairs['allowed_address_pairs'] * 2}
    ask('POST /ports', {'port': twice}, expect=400)


def test_who_owns_a_port_cannot_change_its_mac_address(ask, create, net):
    port = create('ports', network_id=net[0]['id'])
    other = {'port': {'mac_address': 'fa:16:3e:00:00:09'}}
    ask(f'PUT /ports/{port["id"]}', other, expect=403)
    ask(f'PUT /ports/{port["id"]}', {'port': {'mac_address': port['mac_address'], 'name': 'same'}}, expect=200)
    ask(f'PUT /ports/{port["id"]}', other, by='admin', expect=200)


@pytest.mark.parametrize(
    ('ethertype', 'one', 'other'),
    [('IPv4', 'tcp', '6'), ('IPv4', 17, 'UDP'), ('IPv6', 'icmp', 'ipv6-icmp'), ('IPv6', 'icmpv6', '58')],
)
def test_a_protocol_by_name_and_by_number_is_one_rule(ask, create, ethertype, one, other):
    group = create('security-groups', name='web')
    rule = {'security_group_id': group['id'], 'direction': 'ingress', 'ethertype': ethertype}
    create('security-group-rules', **rule, protocol=one)
    again = ask('POST /security-group-rules', {'security_group_rule': {**rule, 'protocol': other}}, expect=409)
    assert fault(again)[0] == 'SecurityGroupRuleExists'
    create('security-group-rules', **rule, protocol='sctp')


def test_a_fixed_address_goes_with_a_port(ask, create, public):
    address = {'fixed_ip_address': '192.0.2.9'}
    ask('POST /floatingips', {'floatingip': {'floating_network_id': public, **address}}, expect=400)
    floating = create('floatingips', floating_network_id=public)
    ask(f'PUT /floatingips/{floating["id"]}', {'floatingip': address}, expect=400)


def test_an_update_of_nothing_dissociates_a_floating_ip(ask, create, public, net):
    router, port = (
        create('routers', external_gateway_info={'network_id': public}),
        create('ports', network_id=net[0]['id']),
    )
    ask(f'PUT /routers/{router["id"]}/add_router_interface', {'subnet_id': net[1]['id']}, expect=200)
    floating = create('floatingips', floating_network_id=public, port_id=port['id'])
    path = f'/floatingips/{floating["id"]}'
    kept = ask(f'PUT {path}', {'floatingip': {'description': 'web'}}, expect=200).json['floatingip']
    assert kept['port_id'] == port['id']
    free = ask(f'PUT {path}', {'floatingip': {}}, expect=200).json['floatingip']
    assert (free['port_id'], free['description']) == (None, 'web')


def test_a_port_is_the_interface_of_one_router_once(ask, create, net):
    router, port = create('routers'), create('ports', network_id=net[0]['id'])
    path = f'PUT /routers/{router["id"]}/add_router_interface'
    ask(path, {'port_id': port['id']}, expect=200)
    assert fault(ask(path, {'port_id': port['id']}, expect=409))[0] == 'PortInUse'


def test_pages_can_be_read_backwards(ask, create):
    for name in 'abcde':
        create('networks', name=name, description='paged')
    listed = '/networks?description=paged&sort_key=name&sort_dir=asc&limit=2'

    def page(path):
        found = ask(f'GET {path}', expect=200).json
        links = {link['rel']: link['href'].split('/v2.0')[1] for link in found.get('networks_links', ())}
        return [network['name'] for network in found['networks']], links

    names, links = page(listed)
    assert names == ['a', 'b']
    names, links = page(links['next'])
    assert names == ['c', 'd']
    names, further = page(links['next'])
    assert (names, set(further)) == (['e'], {'previous'})
    names, last = page(links['next'].replace('marker=', 'name=none&marker='))
    assert (names, set(last)) == ([], {'previous'})
    assert page(last['previous'].replace('name=none', ''))[0] == ['d', 'e']
    names, back = page(further['previous'])
    assert names == ['c', 'd']
    names, first = page(back['previous'])
    assert names == ['a', 'b']
    assert page(first['next'])[0] == ['c', 'd']
    names, before = page(first['previous'])
    assert (names, set(before)) == ([], {'next'})
    assert page(before['next'])[0] == ['a', 'b']
    assert set(page(f'{listed}0&page_reverse=True'.replace('=20', '=0'))[1]) == set()
    assert page(f'{listed}&page_reverse=True')[0] == ['d', 'e']
    assert 'networks_links' not in ask('GET /networks?description=paged').json


def test_what_a_subnet_or_a_router_lists_is_listed_once(ask, create, net):
    path, route = f'/subnets/{net[1]["id"]}', {'destination': '198.51.100.0/24', 'nexthop': '192.0.2.7'}
    for name, values in (('dns_nameservers', ['2001:db8::1', '2001:DB8:0::1']), ('dns_nameservers', ['192.0.2.5'] * 2)):
        ask(f'PUT {path}', {'subnet': {name: values}}, expect=400)
    assert 'more than once' in ask(f'PUT {path}', {'subnet': {'host_routes': [route] * 2}}, expect=400).text
    router = create('routers')
    ask(f'PUT /routers/{router["id"]}/add_router_interface', {'subnet_id': net[1]['id']}, expect=200)
    answer = ask(f'PUT /routers/{router["id"]}', {'router': {'routes': [route] * 2}}, expect=400)
    assert 'more than once' in answer.text


@pytest.fixture
def slaac(create, net):
    """A subnet beside 192.0.2.0/24, where devices choose their own addresses."""
    modes = {'ipv6_address_mode': 'slaac', 'ipv6_ra_mode': 'slaac'}
    return create('subnets', network_id=net[0]['id'], ip_version=6, cidr='2001:db8::/64', **modes)


def held_on(port):
    return [fixed['subnet_id'] for fixed in port['fixed_ips']]


def test_a_port_has_the_address_that_its_device_chooses_beside_others(ask, create, net, slaac):
    four, six = net[1]['id'], slaac['id']
    port = create('ports', network_id=net[0]['id'], fixed_ips=[{'subnet_id': four}])
    assert held_on(port) == [four, six]
    [own] = [fixed for fixed in port['fixed_ips'] if fixed['subnet_id'] == six]
    for wanted in ([], [own], [{'subnet_id': six}]):
        changed = ask(f'PUT /ports/{port["id"]}', {'port': {'fixed_ips': wanted}}, expect=200).json['port']
        assert changed['fixed_ips'] == [own]
    changed = ask(f'PUT /ports/{port["id"]}', {'port': {'fixed_ips': [{'subnet_id': four}]}}, expect=200).json['port']
    assert sorted(held_on(changed)) == sorted([four, six])
    chosen = [{'subnet_id': six, 'ip_address': '2001:db8::7'}]
    ask('POST /ports', {'port': {'network_id': net[0]['id'], 'fixed_ips': chosen}}, expect=400)
    made = create(
        'ports',
        network_id=net[0]['id'],
        mac_address='fa:16:3e:00:00:01',
        fixed_ips=[{'subnet_id': six, 'ip_address': '2001:db8::f816:3eff:fe00:1'}],
    )
    assert held_on(made) == [six]


def test_a_router_has_the_address_of_a_gateway_where_devices_choose_theirs(ask, create, net, slaac):
    router = create('routers')
    added = ask(f'PUT /routers/{router["id"]}/add_router_interface', {'subnet_id': slaac['id']}, expect=200).json
    port = ask(f'GET /ports/{added["port_id"]}').json['port']
    assert port['fixed_ips'] == [{'subnet_id': slaac['id'], 'ip_address': '2001:db8::1'}]


def test_lists_of_a_subnet_a_port_and_a_router_have_limits(ask, create, net):
    def put(kind, thing, name, values, expect):
        ask(f'PUT /{kind}/{thing["id"]}', {kind[:-1]: {name: values}}, expect=expect)

    routes = [{'destination': f'198.51.{number}.0/24', 'nexthop': '192.0.2.7'} for number in range(31)]
    pairs = [{'ip_address': f'192.0.2.{number}'} for number in range(11)]
    router, port = create('routers'), create('ports', network_id=net[0]['id'])
    ask(f'PUT /routers/{router["id"]}/add_router_interface', {'subnet_id': net[1]['id']}, expect=200)
    for kind, thing, name, values in (
        ('subnets', net[1], 'dns_nameservers', [f'192.0.2.{number}' for number in range(6)]),
        ('subnets', net[1], 'host_routes', routes[:21]),
        ('ports', port, 'allowed_address_pairs', pairs),
        ('routers', router, 'routes', routes),
    ):
        put(kind, thing, name, values[:-1], 200)
        put(kind, thing, name, values, 400)
    one_more = {'router': {'routes': routes[-1:]}}
    assert 'exceeds' in ask(f'PUT /routers/{router["id"]}/add_extraroutes', one_more, expect=400).text


def test_what_is_added_to_a_port_bit_by_bit_has_limits(ask, create, net, monkeypatch):
    path = f'/ports/{create("ports", network_id=net[0]["id"])["id"]}'
    monkeypatch.setattr(ports, 'MAX_OPTIONS', 2)
    for name, expect in (('a', 200), ('b', 200), ('a', 200), ('c', 400)):
        ask(f'PUT {path}', {'port': {'extra_dhcp_opts': [{'opt_name': name, 'opt_value': '1'}]}}, expect=expect)


def test_a_project_has_so_many_address_scopes(ask, create, monkeypatch):
    monkeypatch.setattr(subnet_pools, 'MAX_SCOPES', 2)
    for expect in (201, 201, 409):
        ask('POST /address-scopes', {'address_scope': {'name': 'a', 'ip_version': 4}}, expect=expect)
    ask('POST /address-scopes', {'address_scope': {'name': 'a', 'ip_version': 4}}, by='bob', expect=201)


def test_a_path_may_name_the_format(ask):
    router = ask('POST /routers.json', {'router': {'name': 'one'}}, expect=201).json['router']
    assert router in ask('GET /routers.json?name=one', expect=200).json['routers']
    ask(f'PUT /routers/{router["id"]}.json', {'router': {'name': 'two'}}, expect=200)
    ask(f'DELETE /routers/{router["id"]}.json', expect=204)
    ask('GET /routers.xml', expect=404)
