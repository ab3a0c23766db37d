"""Neutron v2.0 from a client's point of view: networks, subnets, ports, routers, floating IPs, security groups,
quotas."""

import itertools
import urllib.parse

import pytest
import webob

from computeapi.standalone.network import neutron
from computeapi.web.app import App
from tests.standalone.network.kinds import KINDS, UNKNOWN, fault

# Discovery


@pytest.mark.parametrize('mount', ['/networking', '/networking/'])
def test_versions_take_no_token(networks, mount):
    app = neutron(networks, None)
    req = webob.Request.blank('http://cloud:9/')
    req.script_name, req.path_info = '/networking', mount.removeprefix('/networking')
    assert req.get_response(app).json == {
        'versions': [
            {
                'id': 'v2.0',
                'status': 'CURRENT',
                'links': [{'rel': 'self', 'href': 'http://cloud:9/networking/v2.0/'}],
            }
        ]
    }


@pytest.mark.parametrize('path', ['', '/'])
def test_a_version_lists_its_resources(ask, path):
    response = ask(f'GET {path}', by=None, expect=200, base_url='http://cloud:9/networking')
    assert {resource['collection'] for resource in response.json['resources']} >= KINDS.keys()
    assert response.json['resources'][0]['links'] == [
        {'rel': 'self', 'href': 'http://cloud:9/networking/v2.0/networks'}
    ]


def test_extensions_are_listed(ask):
    aliases = [extension['alias'] for extension in ask('GET /extensions').json['extensions']]
    assert {'router', 'external-net', 'security-group', 'quotas', 'binding', 'standard-attr-tag'} <= set(aliases)
    assert 'subnet-external-network' in aliases
    # Clients offer what belongs to these only if they are listed.
    assert {'ext-gw-mode', 'security-groups-normalized-cidr', 'tag-ports-during-bulk-creation'} <= set(aliases)
    assert ask('GET /extensions/router').json['extension']['alias'] == 'router'
    ask('GET /extensions/trunk', expect=404)


def test_microversions_of_compute_mean_nothing(ask):
    headers = {'OpenStack-API-Version': 'compute 2.999', 'X-OpenStack-Nova-API-Version': 'x'}
    ask('GET /networks', expect=200, headers=headers)


@pytest.mark.parametrize('path', ['agents', 'availability_zones', 'service-providers'])
def test_there_are_no_agents(ask, path):
    assert ask(f'GET /{path}').json == {path.replace('-', '_'): []}


# Permissions


def test_a_token_is_needed(ask):
    response = ask('GET /networks', by=None, expect=401)
    assert response.json['error']['code'] == 401
    assert 'WWW-Authenticate' in response.headers
    ask('GET /networks', by='nobody', expect=401)


@pytest.mark.parametrize('kind', KINDS)
def test_readers_only_read(ask, body, kind):
    ask(f'GET /{kind}', by='reader', expect=200)
    assert fault(ask(f'POST /{kind}', body(kind), by='reader', expect=403))[0] == 'PolicyNotAuthorized'
    ask(f'DELETE /{kind}/{UNKNOWN}', by='reader', expect=403)


@pytest.mark.parametrize('kind', KINDS)
def test_everything_has_a_life(ask, body, kind):
    name, _ = KINDS[kind]
    made = ask(f'POST /{kind}', body(kind, description='one'), expect=201).json[name]
    assert made['project_id'] == made['tenant_id'] == 'apples'
    assert made['created_at'] == made['updated_at']
    path = f'/{kind}/{made["id"]}'
    assert ask(f'GET {path}').json == {name: made}
    changed = ask(f'PUT {path}', {name: {'description': 'two'}}, expect=200).json[name]
    assert changed == {**made, 'description': 'two', 'updated_at': changed['updated_at'], 'revision_number': 2}
    assert ask(f'DELETE {path}', expect=204).body == b''
    assert fault(ask(f'GET {path}', expect=404))[0].endswith('NotFound')
    ask(f'DELETE {path}', expect=404)


@pytest.mark.parametrize('kind', KINDS)
def test_what_others_have_is_not_there(ask, body, kind):
    name, _ = KINDS[kind]
    made = ask(f'POST /{kind}', body(kind), expect=201).json[name]
    path = f'/{kind}/{made["id"]}'
    ask(f'GET {path}', by='bob', expect=404)
    ask(f'PUT {path}', {name: {'description': 'mine'}}, by='bob', expect=404)
    ask(f'DELETE {path}', by='bob', expect=404)
    ask(f'PUT {path}/tags', {'tags': ['mine']}, by='bob', expect=404)
    key = f'{name}s'
    assert made['id'] not in [one['id'] for one in ask(f'GET /{kind}', by='bob').json[key]]
    assert made['id'] in [one['id'] for one in ask(f'GET /{kind}', by='admin').json[key]]
    ask(f'DELETE {path}', by='admin', expect=204)


@pytest.mark.parametrize('kind', KINDS)
@pytest.mark.parametrize('word', ['project_id', 'tenant_id'])
def test_an_administrator_makes_things_for_others(ask, body, kind, word):
    name, _ = KINDS[kind]
    made = ask(f'POST /{kind}', body(kind, **{word: 'apples'}), by='admin', expect=201).json[name]
    assert made['project_id'] == made['tenant_id'] == 'apples'
    refused = ask(f'POST /{kind}', body(kind, **{word: 'bananas'}), expect=400)
    assert word in fault(refused)[1]


def test_a_project_is_needed_to_make_something(ask, create):
    assert 'project_id' in fault(ask('POST /networks', {'network': {}}, by='system', expect=400))[1]
    assert create('networks', by='system', tenant_id='apples')['project_id'] == 'apples'
    both = {'network': {'tenant_id': 'apples', 'project_id': 'bananas'}}
    ask('POST /networks', both, by='admin', expect=400)


@pytest.mark.parametrize('kind', KINDS)
def test_several_at_once(ask, body, kind):
    name, key = KINDS[kind][0], kind.replace('-', '_')
    one = body(kind)[name]
    # Two subnets, or two rules, cannot be the same.
    other = one | {'subnets': {'cidr': '198.51.100.0/24'}, 'security-group-rules': {'protocol': 'tcp'}}.get(kind, {})
    nothing = ask(f'GET /{kind}').json[key]
    # The second is refused when the first has been created.
    ask(f'POST /{kind}', {key: [one, other | {'project_id': 'bananas'}]}, expect=400)
    assert ask(f'GET /{kind}').json[key] == nothing
    made = ask(f'POST /{kind}', {key: [one, {name: other}]}, expect=201).json[key]
    for document in made:
        assert ask(f'GET /{kind}/{document["id"]}').json[name]['id'] == document['id']
    before = len(ask(f'GET /{kind}').json[key])
    for bad in ([], {}, None, [one] * 201, [one, {'unknown': 1}], [one, 1]):
        ask(f'POST /{kind}', {key: bad}, expect=400)
    assert len(ask(f'GET /{kind}').json[key]) == before


@pytest.mark.parametrize('attribute', ['shared', 'router:external', 'is_default'])
def test_only_an_administrator_shares_networks(ask, create, attribute):
    ask('POST /networks', {'network': {attribute: True}}, expect=403)
    mine = create('networks')
    ask(f'PUT /networks/{mine["id"]}', {'network': {attribute: True}}, expect=403)


@pytest.mark.parametrize(
    ('kind', 'facts', 'attribute'),
    [
        ('network', {}, 'shared'),
        ('network', {}, 'router:external'),
        ('address_scope', {'ip_version': 4}, 'shared'),
        ('subnetpool', {'prefixes': ['10.40.0.0/16']}, 'is_default'),
    ],
)
def test_everybody_may_say_that_what_is_new_is_as_usual(ask, kind, facts, attribute):
    path = f'/{kind.replace("_", "-")}s'
    made = ask(f'POST {path}', {kind: {**facts, attribute: False}}, expect=201).json[kind]
    assert made[attribute] is False
    ask(f'PUT {path}/{made["id"]}', {kind: {attribute: False}}, expect=403)
    ask(f'POST {path}', {kind: {**facts, attribute: True}}, expect=403)


def test_what_is_shared_can_be_seen_but_not_changed(ask, create):
    shared = create('networks', by='admin', name='ours', shared=True)
    subnet = create('subnets', by='admin', network_id=shared['id'], cidr='192.0.2.0/24')
    ask(f'GET /subnets/{subnet["id"]}', expect=200)
    ask(f'PUT /networks/{shared["id"]}', {'network': {'name': 'mine'}}, expect=403)
    ask(f'DELETE /networks/{shared["id"]}', expect=403)
    ask(f'DELETE /subnets/{subnet["id"]}', expect=403)
    ask('POST /subnets', {'subnet': {'network_id': shared['id'], 'cidr': '198.51.100.0/24'}}, expect=403)


def test_where_a_port_is_bound_is_not_for_everybody(ask, create, net):
    place = {'network_id': net[0]['id'], 'binding:host_id': 'h'}
    ask('POST /ports', {'port': place}, expect=403)
    port = create('ports', by='admin', device_id='s', tenant_id='apples', **place)
    assert (port['binding:host_id'], port['binding:vif_type'], port['status']) == ('h', 'ovs', 'ACTIVE')
    assert 'binding:host_id' not in ask(f'GET /ports/{port["id"]}').json['port']
    for by, count in (('admin', 1), ('alice', 0)):
        assert len(ask('GET /ports?binding:host_id=h', by=by, expect=200).json['ports']) == count
    ask('GET /ports?sort_key=binding:host_id&sort_dir=asc', expect=400)
    unbound = ask(f'PUT /ports/{port["id"]}', {'port': {'binding:host_id': None}}, by='admin', expect=200)
    assert unbound.json['port']['binding:host_id'] == ''
    assert create('ports', by='admin', **place | {'binding:host_id': None})['binding:host_id'] == ''


# Invalid input


@pytest.mark.parametrize('raw', [b'', b'{', b'[]', b'null', b'{"net": {}}', b'{"network": []}', b'\xff'])
@pytest.mark.parametrize('request_line', ['POST /networks', f'PUT /networks/{UNKNOWN}'])
def test_a_body_must_hold_the_resource(ask, raw, request_line):
    assert fault(ask(request_line, body=raw, expect=400))[0] == 'HTTPBadRequest'


@pytest.mark.parametrize(
    'kind,attribute,value',
    [
        ('networks', 'name', 5),
        ('networks', 'name', 'x' * 256),
        ('networks', 'admin_state_up', 'perhaps'),
        ('networks', 'mtu', 'much'),
        ('networks', 'mtu', -1),
        ('networks', 'tags', 'blue'),
        ('networks', 'tags', ['a,b']),
        ('subnets', 'network_id', 'x'),
        ('subnets', 'cidr', '300.0.0.0/8'),
        ('subnets', 'cidr', '10.0.0.0'),
        ('subnets', 'cidr', 'fe80::%eth0/64'),
        ('subnets', 'ip_version', 5),
        ('subnets', 'ip_version', 6),
        ('subnets', 'gateway_ip', '192.0.2.255'),
        ('subnets', 'gateway_ip', 'here'),
        ('subnets', 'allocation_pools', [{'start': '192.0.2.9', 'end': '192.0.2.3'}]),
        ('subnets', 'allocation_pools', [{'start': '192.0.2.9'}]),
        ('subnets', 'dns_nameservers', ['x']),
        ('subnets', 'host_routes', [{'destination': 'x', 'nexthop': '192.0.2.3'}]),
        ('subnets', 'ipv6_address_mode', 'slaac'),
        ('ports', 'network_id', 'x'),
        ('ports', 'mac_address', 'x'),
        ('ports', 'fixed_ips', [{}]),
        ('ports', 'fixed_ips', '192.0.2.3'),
        ('ports', 'fixed_ips', [{'subnet_id': UNKNOWN}]),
        ('ports', 'device_owner', 'network:router_interface'),
        ('ports', 'security_groups', ['x']),
        ('ports', 'allowed_address_pairs', [{'ip_address': 'x'}]),
        ('routers', 'external_gateway_info', {'network_id': 'x'}),
        ('floatingips', 'port_id', 'x'),
        ('security-group-rules', 'direction', 'up'),
        ('security-group-rules', 'protocol', 'xtp'),
        ('security-group-rules', 'port_range_min', 'x'),
        ('security-group-rules', 'remote_ip_prefix', 'x'),
        ('security-group-rules', 'ethertype', 'IPv5'),
    ],
)
def test_bad_input_is_named(ask, body, kind, attribute, value):
    kind_of, message = fault(ask(f'POST /{kind}', body(kind, **{attribute: value}), expect=400))
    assert kind_of == 'HTTPBadRequest'
    assert attribute in message


@pytest.mark.parametrize(
    ('facts', 'word'),
    [
        ({'routes': [{}] * 10_000}, 'destination'),
        ({'external_gateway_info': {'enable_snat': True}}, 'network_id'),
        ({'external_gateway_info': {'network_id': UNKNOWN, 'external_fixed_ips': [{'hue': 1}] * 10_000}}, 'hue'),
    ],
)
def test_what_is_wrong_with_a_router_is_named(ask, create, facts, word):
    path = f'/routers/{create("routers")["id"]}'
    assert word in fault(ask(f'PUT {path}', {'router': facts}, expect=400))[1]


@pytest.mark.parametrize('kind', KINDS)
def test_unknown_attributes_are_refused(ask, body, kind):
    assert 'colour' in fault(ask(f'POST /{kind}', body(kind, colour='red'), expect=400))[1]


@pytest.mark.parametrize(
    'kind,attribute,value',
    [('subnets', 'cidr', '10.0.0.0/8'), ('ports', 'network_id', UNKNOWN), ('networks', 'tenant_id', 'apples')],
)
def test_some_attributes_stay(ask, kind, attribute, value):
    body = {KINDS[kind][0]: {attribute: value}}
    assert attribute in fault(ask(f'PUT /{kind}/{UNKNOWN}', body, expect=400))[1]


def test_numbers_and_truth_may_be_text(create):
    network = create('networks', mtu='1400', admin_state_up='False')
    assert (network['mtu'], network['admin_state_up']) == (1400, False)


@pytest.mark.parametrize('identifier', ['x', '%00', '%ff', 'x' * 300])
def test_ids_that_are_none(ask, identifier):
    assert ask(f'GET /networks/{identifier}').status_code in (400, 404)


@pytest.mark.parametrize('path', ['/trunks', '/networks/x/y', '/networks/', '/x'])
def test_paths_that_are_none(ask, path):
    ask(f'GET {path}', expect=404)


# Lists


def test_lists_are_filtered_by_any_attribute(create, names, net):
    create('networks', name='other', admin_state_up=False, mtu=1400, description='it')
    assert names('networks?name=net&name=other') == ['net', 'other']
    assert names('networks?mtu=1400') == names('networks?admin_state_up=false') == ['other']
    assert names('networks?shared=True') == ['private']
    assert names('networks?router:external=1') == ['public']
    assert names('networks?tenant_id=apples&description=it') == names('networks?project_id=apples&mtu=1400')
    assert names(f'networks?subnets={net[1]["id"]}') == ['net']
    assert names('networks?status=ACTIVE&name=net') == ['net']
    assert names('networks?name=none') == []
    assert names(f'subnets?network_id={net[0]["id"]}&ip_version=4') == ['sub']


def test_lists_of_ports_are_filtered(ask, create, names, net):
    group = create('security-groups', name='web')['id']
    one = create('ports', name='one', network_id=net[0]['id'], device_id='s', security_groups=[group])
    create('ports', name='two', network_id=net[0]['id'], device_id='t', device_owner='compute:nova')
    address = one['fixed_ips'][0]
    assert names('ports?device_id=s&device_id=t') == ['one', 'two']
    assert names('ports?device_owner=compute:nova') == ['two']
    assert names(f'ports?fixed_ips=ip_address={address["ip_address"]}') == ['one']
    assert names(f'ports?fixed_ips=subnet_id={address["subnet_id"]}') == ['one', 'two']
    for part, found in ((address['ip_address'][1:], ['one']), ('.', ['one', 'two']), ('1%', [])):
        assert names(f'ports?fixed_ips=ip_address_substr={urllib.parse.quote(part)}') == found
    assert names(f'ports?fixed_ips=ip_address_substr=.&fixed_ips=ip_address={address["ip_address"]}') == ['one']
    assert names(f'ports?mac_address={one["mac_address"]}') == names(f'ports?security_groups={group}') == ['one']
    ask('GET /ports?fixed_ips=x', expect=400)
    for count, expected in ((100, 200), (101, 400)):
        ask('GET /ports?' + '&'.join(['fixed_ips=ip_address_substr=1'] * count), expect=expected)


@pytest.mark.parametrize(
    'query', ['colour=red', 'mtu=much', 'mtu=99999999999', 'shared=perhaps', 'created_at=now', 'name=%00', 'name=%ff']
)
def test_bad_filters_are_refused(ask, query):
    ask(f'GET /networks?{query}', expect=400)


@pytest.mark.parametrize(
    'query',
    ['limit=x', 'limit=-1', 'sort_key=colour', 'sort_key=subnets', 'sort_key=name&sort_dir=up']
    + ['sort_dir=asc', '&'.join(['sort_key=name'] * 50), '&'.join(['name=a'] * 2000)],
)
def test_bad_pages_are_refused(ask, query):
    ask(f'GET /networks?{query}', expect=400)


def test_an_unknown_marker_is_not_found(ask):
    ask(f'GET /networks?limit=1&marker={UNKNOWN}', expect=404)


def test_lists_come_in_pages(ask, create):
    made = [create('networks', name=name)['name'] for name in ('c', 'a', 'b', 'a')]
    seen, path = [], '/networks?limit=2&project_id=apples&sort_key=name&sort_dir=desc'
    for _ in range(3):
        page = ask(f'GET {path}', expect=200).json
        seen += [network['name'] for network in page['networks']]
        links = {link['rel']: link['href'] for link in page.get('networks_links', ())}
        if 'next' not in links:
            break
        path = '/networks?' + urllib.parse.urlsplit(links['next']).query
    assert seen == sorted(made, reverse=True)


def test_lists_are_sorted_by_several_keys(create, names):
    for name, mtu in itertools.product('ab', (1400, 1300)):
        create('networks', name=name, mtu=mtu, description=f'{name}{mtu}')
    keys = 'sort_key=mtu&sort_dir=asc&sort_key=name&sort_dir=desc'
    assert names(f'networks?project_id=apples&{keys}') == ['b', 'a', 'b', 'a']


@pytest.mark.parametrize('path', ['networks', 'networks/{id}'])
def test_fields_are_chosen(ask, net, path):
    answer = ask(f'GET /{path.format(id=net[0]["id"])}?fields=id&fields=name', expect=200).json
    [document, *_] = answer.get('networks') or [answer['network']]
    assert set(document) == {'id', 'name'}


# Tags


@pytest.mark.parametrize('kind', KINDS)
def test_everything_has_tags(ask, body, kind):
    name, _ = KINDS[kind]
    made = ask(f'POST /{kind}', body(kind, tags=['red']), expect=201).json[name]
    assert made['tags'] == ['red']
    path = f'/{kind}/{made["id"]}/tags'
    assert ask(f'PUT {path}', {'tags': ['b', 'a', 'b']}, expect=200).json == {'tags': ['a', 'b']}
    ask(f'PUT {path}/c', expect=201)
    ask(f'PUT {path}/c', expect=201)
    ask(f'GET {path}/c', expect=204)
    ask(f'DELETE {path}/a', expect=204)
    ask(f'DELETE {path}/a', expect=404)
    ask(f'GET {path}/a', expect=404)
    assert ask(f'GET {path}').json == {'tags': ['b', 'c']}
    ask(f'DELETE {path}', expect=204)
    assert ask(f'GET /{kind}/{made["id"]}').json[name]['tags'] == []
    ask(f'PUT {path}', {'tags': ['a,b']}, expect=400)
    ask(f'PUT {path}/{"x" * 256}', expect=400)


def test_tags_one_by_one_are_as_many_as_all_at_once(ask, create):
    path = f'/networks/{create("networks")["id"]}/tags'
    ask(f'PUT {path}', {'tags': [f't{number}' for number in range(50)]}, expect=200)
    ask(f'PUT {path}/t1', expect=201)
    assert '50' in fault(ask(f'PUT {path}/more', expect=400))[1]
    assert len(ask(f'GET {path}').json['tags']) == 50


def test_lists_are_filtered_by_tags(create, names):
    for name, tags in (('none', []), ('red', ['red']), ('both', ['blue', 'red'])):
        create('networks', name=name, tags=tags)
    mine = 'networks?project_id=apples'
    assert names(f'{mine}&tags=red') == ['red', 'both']
    assert names(f'{mine}&tags=red,blue') == ['both']
    assert names(f'{mine}&tags-any=blue,green') == ['both']
    assert names(f'{mine}&not-tags=red,blue') == ['none', 'red']
    assert names(f'{mine}&not-tags-any=red,green') == ['none']


# Networks and subnets


def test_a_network_in_use_stays(ask, create, net):
    port = create('ports', network_id=net[0]['id'])
    assert fault(ask(f'DELETE /networks/{net[0]["id"]}', expect=409))[0] == 'NetworkInUse'
    assert fault(ask(f'DELETE /subnets/{net[1]["id"]}', expect=409))[0] == 'SubnetInUse'
    ask(f'DELETE /ports/{port["id"]}', expect=204)
    ask(f'DELETE /networks/{net[0]["id"]}', expect=204)
    ask(f'GET /subnets/{net[1]["id"]}', expect=404)


@pytest.mark.parametrize(('least', 'cidr'), [(68, '192.0.2.0/24'), (1280, '2001:db8::/64')])
def test_the_subnets_of_a_network_need_an_mtu(ask, create, least, cidr):
    small = create('networks', mtu=least - 1)['id']
    message = fault(ask('POST /subnets', {'subnet': {'network_id': small, 'cidr': cidr}}, expect=409))[1]
    assert str(least) in message
    ask(f'PUT /networks/{small}', {'network': {'mtu': least}}, expect=200)
    create('subnets', network_id=small, cidr=cidr)
    ask(f'PUT /networks/{small}', {'network': {'mtu': least - 1}}, expect=409)
    assert ask(f'PUT /networks/{small}', {'network': {'mtu': 0}}, expect=200).json['network']['mtu'] == 1500
    assert create('networks', mtu=0)['mtu'] == 1500


def test_sharing_ends_when_nobody_else_is_on_it(ask, create):
    shared = create('networks', by='admin', shared=True)['id']
    port = create('ports', network_id=shared)
    ask(f'PUT /networks/{shared}', {'network': {'shared': False}}, by='admin', expect=409)
    ask(f'DELETE /ports/{port["id"]}', expect=204)
    ask(f'PUT /networks/{shared}', {'network': {'shared': False}}, by='admin', expect=200)


def test_there_is_one_default_external_network(ask, create, public):
    ask(f'PUT /networks/{public}', {'network': {'is_default': True}}, by='admin', expect=200)
    create('networks', by='admin', name='new', **{'router:external': True, 'is_default': True})
    assert ask(f'GET /networks/{public}').json['network']['is_default'] is False
    [default] = ask('GET /networks?is_default=true').json['networks']
    changed = ask(f'PUT /networks/{default["id"]}', {'network': {'description': 'changed'}}, by='admin', expect=200)
    assert changed.json['network']['is_default'] is True
    ask('POST /networks', {'network': {'is_default': True}}, by='admin', expect=400)


def test_a_subnet_has_a_gateway_and_pools_around_it(net, create):
    _, subnet = net
    assert subnet['gateway_ip'] == '192.0.2.1'
    assert subnet['allocation_pools'] == [{'start': '192.0.2.2', 'end': '192.0.2.254'}]
    facts = {'network_id': net[0]['id'], 'cidr': '198.51.100.9/29', 'gateway_ip': '198.51.100.11'}
    middle = create('subnets', **facts)
    assert middle['cidr'] == '198.51.100.8/29'
    assert middle['allocation_pools'] == [
        {'start': '198.51.100.9', 'end': '198.51.100.10'},
        {'start': '198.51.100.12', 'end': '198.51.100.14'},
    ]
    closed = create('subnets', network_id=net[0]['id'], cidr='2001:db8::/64', gateway_ip=None)
    assert (closed['gateway_ip'], closed['ip_version']) == (None, 6)
    assert closed['allocation_pools'] == [{'start': '2001:db8::1', 'end': '2001:db8::ffff:ffff:ffff:ffff'}]


@pytest.mark.parametrize('cidr', ['192.0.2.128/25', '192.0.0.0/16', '192.0.2.0/24'])
def test_subnets_of_a_network_do_not_overlap(ask, net, cidr):
    refused = ask('POST /subnets', {'subnet': {'network_id': net[0]['id'], 'cidr': cidr}}, expect=400)
    assert 'overlaps' in fault(refused)[1]


@pytest.mark.parametrize(
    ('facts', 'message'),
    [
        ({'cidr': '192.0.2.0/31'}, 'Subnet has a prefix length that is incompatible with DHCP service enabled'),
        ({'cidr': '2001:db8::/127'}, 'Subnet has a prefix length that is incompatible with DHCP service enabled'),
        ({'cidr': '224.0.0.0/24'}, 'Multicast IP subnet is not supported if enable_dhcp is True'),
        ({'cidr': '127.0.3.0/24'}, 'Loopback IP subnet is not supported if enable_dhcp is True'),
        ({'cidr': '0.0.0.0/8'}, "First IP '0.0.0.0' of network is not supported if enable_dhcp is True"),
    ],
)
def test_addresses_are_given_out_where_devices_can_have_them(ask, create, facts, message):
    facts = {'network_id': create('networks')['id'], **facts}
    assert message in fault(ask('POST /subnets', {'subnet': facts}, expect=400))[1]
    subnet = create('subnets', **facts, enable_dhcp=False)
    changed = ask(f'PUT /subnets/{subnet["id"]}', {'subnet': {'enable_dhcp': True}}, expect=400)
    assert message in fault(changed)[1]
    ask(f'PUT /subnets/{subnet["id"]}', {'subnet': {'name': 'closed'}}, expect=200)


@pytest.mark.parametrize(
    ('facts', 'message'),
    [
        ({'dns_nameservers': ['192.0.2.9', '2001:db8::1']}, "dns_nameserver '2001:db8::1'"),
        ({'host_routes': [{'destination': '2001:db8::/64', 'nexthop': '192.0.2.9'}]}, "destination '2001:db8::/64'"),
        ({'host_routes': [{'destination': '10.0.0.0/8', 'nexthop': '2001:db8::1'}]}, "nexthop '2001:db8::1"),
    ],
)
def test_what_devices_of_a_subnet_are_told_is_of_its_version(ask, net, create, facts, message):
    changed = ask(f'PUT /subnets/{net[1]["id"]}', {'subnet': facts}, expect=400)
    assert message in fault(changed)[1] and "does not match the ip_version '4'" in fault(changed)[1]
    body = {'subnet': {'network_id': create('networks')['id'], 'cidr': '192.0.2.0/24', **facts}}
    assert fault(ask('POST /subnets', body, expect=400))[1] == fault(changed)[1]


def test_pools_do_not_overlap(ask, create):
    facts = {'network_id': create('networks')['id'], 'cidr': '192.0.2.0/24'}
    low, high = {'start': '192.0.2.2', 'end': '192.0.2.9'}, {'start': '192.0.2.9', 'end': '192.0.2.20'}
    ask('POST /subnets', {'subnet': {**facts, 'allocation_pools': [high, low]}}, expect=409)
    ask('POST /subnets', {'subnet': {**facts, 'allocation_pools': [low], 'gateway_ip': '192.0.2.5'}}, expect=409)


def test_a_subnet_is_rearranged(ask, create, net):
    path = f'/subnets/{net[1]["id"]}'
    pools = [{'start': '192.0.2.100', 'end': '192.0.2.101'}]
    changes = {'gateway_ip': '192.0.2.9', 'allocation_pools': pools, 'dns_nameservers': ['192.0.2.53']}
    changed = ask(f'PUT {path}', {'subnet': changes}, expect=200).json['subnet']
    assert {name: changed[name] for name in changes} == changes
    port = create('ports', network_id=net[0]['id'])
    assert port['fixed_ips'][0]['ip_address'] == '192.0.2.100'
    ask(f'PUT {path}', {'subnet': {'gateway_ip': '192.0.2.100'}}, expect=409)


# Ports


def test_a_port_gets_the_addresses_it_asks_for(ask, create, net):
    network, subnet = net
    wanted = [{'subnet_id': subnet['id']}, {'ip_address': '192.0.2.77'}]
    port = create('ports', network_id=network['id'], fixed_ips=wanted)
    first, second = (fixed['ip_address'] for fixed in port['fixed_ips'])
    assert second == '192.0.2.77'
    taken = ask('POST /ports', {'port': {'network_id': network['id'], 'fixed_ips': wanted[1:]}}, expect=409)
    assert fault(taken)[0] == 'IpAddressAlreadyAllocated'
    assert create('ports', network_id=network['id'], fixed_ips=[])['fixed_ips'] == []
    keep = {'fixed_ips': [{'ip_address': second}, {'subnet_id': subnet['id'], 'ip_address': '192.0.2.78'}]}
    changed = ask(f'PUT /ports/{port["id"]}', {'port': keep}, expect=200).json['port']
    assert [fixed['ip_address'] for fixed in changed['fixed_ips']] == [second, '192.0.2.78']
    create('ports', network_id=network['id'], fixed_ips=[{'ip_address': first}])


def test_a_full_network_has_no_more_addresses(ask, create):
    network = create('networks')['id']
    create('subnets', network_id=network, cidr='192.0.2.0/30')
    create('ports', network_id=network)
    refused = ask('POST /ports', {'port': {'network_id': network}}, expect=409)
    assert fault(refused) == (
        'IpAddressGenerationFailure',
        f'No more IP addresses available on network {network}.',
    )


def test_mac_addresses_are_told_apart(ask, create, net):
    facts = {'network_id': net[0]['id'], 'mac_address': 'FA:16:3E:00:00:01'}
    port = create('ports', **facts)
    assert port['mac_address'] == 'fa:16:3e:00:00:01'
    ask('POST /ports', {'port': facts}, expect=409)
    other = create('ports', network_id=net[0]['id'])
    taken = {'port': {'mac_address': port['mac_address']}}
    ask(f'PUT /ports/{other["id"]}', taken, by='admin', expect=409)
    ask(f'PUT /ports/{port["id"]}', {'port': {'mac_address': port['mac_address']}}, expect=200)


def test_port_security_can_be_off(ask, create, net):
    bare = create('ports', network_id=net[0]['id'], port_security_enabled=False)
    assert bare['security_groups'] == []
    group = create('security-groups', name='web')['id']
    ask(f'PUT /ports/{bare["id"]}', {'port': {'security_groups': [group]}}, expect=409)
    on = {'port': {'port_security_enabled': True, 'security_groups': [group]}}
    assert ask(f'PUT /ports/{bare["id"]}', on, expect=200).json['port']['security_groups'] == [group]
    quiet = create('networks', port_security_enabled=False)['id']
    assert create('ports', network_id=quiet)['port_security_enabled'] is False


def test_a_port_lets_other_addresses_through(create, net):
    port = create('ports', network_id=net[0]['id'], allowed_address_pairs=[{'ip_address': '10.0.0.0/8'}])
    assert port['allowed_address_pairs'] == [{'ip_address': '10.0.0.0/8', 'mac_address': port['mac_address']}]


def test_only_an_administrator_makes_ports_of_the_network(ask, create, net):
    facts = {'network_id': net[0]['id'], 'device_owner': 'network:dhcp'}
    ask('POST /ports', {'port': facts}, expect=403)
    assert create('ports', by='admin', **facts)['status'] == 'ACTIVE'


# Routers


@pytest.fixture
def router(create, public):
    return create('routers', name='way', external_gateway_info={'network_id': public})


@pytest.fixture
def plug(ask):
    def plug(router, action='add', expect=200, **target):
        path = f'/routers/{router["id"]}/{action}_router_interface'
        return ask(f'PUT {path}', target, expect=expect).json

    return plug


@pytest.mark.parametrize(
    ('name', 'value'),
    [
        ('fixed_ips', [{'ip_address': '10.0.0.77'}]),
        ('mac_address', 'fa:16:3e:00:00:01'),
        ('port_security_enabled', False),
        ('allowed_address_pairs', [{'ip_address': '10.0.0.1'}]),
    ],
)
def test_guests_on_a_network_do_not_pass_for_others(ask, create, name, value):
    [shared] = [each for each in ask('GET /networks?shared=true').json['networks'] if not each['router:external']]
    port = create('ports', network_id=shared['id'])
    wanted = {name: value, **({'security_groups': []} if name == 'port_security_enabled' else {})}
    refused = ask('POST /ports', {'port': {'network_id': shared['id'], **wanted}}, expect=403)
    assert fault(refused)[0] == 'PolicyNotAuthorized' and name in fault(refused)[1]
    ask(f'PUT /ports/{port["id"]}', {'port': wanted}, expect=403)
    ask(f'PUT /ports/{port["id"]}', {'port': {name: port[name]}}, expect=200)
    for caller in ('nova', 'admin'):
        made = create('ports', by=caller, network_id=shared['id'], **wanted)
        ask(f'DELETE /ports/{made["id"]}', by=caller, expect=204)


def test_a_router_leads_out(ask, router, public):
    gateway = router['external_gateway_info']
    assert (gateway['network_id'], gateway['enable_snat']) == (public, True)
    assert gateway['external_fixed_ips'][0]['ip_address'].startswith('203.0.113.')
    path = f'/routers/{router["id"]}'
    for nothing in ({}, None):
        cleared = ask(f'PUT {path}', {'router': {'external_gateway_info': nothing}}, expect=200).json['router']
        assert cleared['external_gateway_info'] is None
    chosen = {'enable_snat': False, 'external_fixed_ips': [{'ip_address': '203.0.113.50'}]}
    for name, value in chosen.items():
        refused = {'router': {'external_gateway_info': {'network_id': public, name: value}}}
        assert name in fault(ask(f'PUT {path}', refused, expect=403))[1]
        assert name in fault(ask('POST /routers', refused, expect=403))[1]
    chosen['network_id'] = public
    again = ask(f'PUT {path}', {'router': {'external_gateway_info': chosen}}, by='admin', expect=200).json['router']
    assert again['external_gateway_info']['external_fixed_ips'][0]['ip_address'] == '203.0.113.50'
    assert again['external_gateway_info']['enable_snat'] is False
    ask(f'PUT {path}', {'router': {'external_gateway_info': again['external_gateway_info']}}, expect=200)


def test_a_gateway_has_other_addresses_while_floating_ips_lead_through_it(ask, create, router, net, plug, public):
    plug(router, subnet_id=net[1]['id'])
    port = create('ports', network_id=net[0]['id'])
    floating = create('floatingips', floating_network_id=public, port_id=port['id'])

    def move(*addresses):
        gateway = {'network_id': public, 'external_fixed_ips': [*addresses]}
        asked = {'router': {'external_gateway_info': gateway}}
        changed = ask(f'PUT /routers/{router["id"]}', asked, by='admin', expect=200).json['router']
        return changed['external_gateway_info']['external_fixed_ips']

    [held] = router['external_gateway_info']['external_fixed_ips']
    assert move({'subnet_id': held['subnet_id']}) == [held]
    assert move(held, {'subnet_id': held['subnet_id']}) == [held], 'it names nothing new, as in Neutron'
    assert move({'ip_address': '203.0.113.50'}) == [{**held, 'ip_address': '203.0.113.50'}]
    assert ask(f'GET /floatingips/{floating["id"]}').json['floatingip']['router_id'] == router['id']
    ask(f'PUT /routers/{router["id"]}', {'router': {'external_gateway_info': {}}}, by='admin', expect=409)


def test_a_port_keeps_the_address_that_a_floating_ip_leads_to(ask, create, router, net, plug, public):
    plug(router, subnet_id=net[1]['id'])
    port = create('ports', network_id=net[0]['id'])
    floating = create('floatingips', floating_network_id=public, port_id=port['id'])
    path, other = f'/ports/{port["id"]}', {'ip_address': '192.0.2.77'}
    assert 'floating' in fault(ask(f'PUT {path}', {'port': {'fixed_ips': [other]}}, expect=400))[1]
    ask(f'PUT {path}', {'port': {'fixed_ips': [*port['fixed_ips'], other]}}, expect=200)
    assert ask(f'GET /floatingips/{floating["id"]}').json['floatingip']['port_id'] == port['id']


def test_a_gateway_is_on_an_external_network(ask, net):
    body = {'router': {'external_gateway_info': {'network_id': net[0]['id']}}}
    assert 'external' in fault(ask('POST /routers', body, expect=400))[1]


def test_a_router_joins_subnets(ask, router, net, plug):
    network, subnet = net
    interface = plug(router, subnet_id=subnet['id'])
    assert interface['id'] == router['id']
    assert (interface['subnet_id'], interface['subnet_ids']) == (subnet['id'], [subnet['id']])
    port = ask(f'GET /ports/{interface["port_id"]}').json['port']
    assert (port['device_id'], port['device_owner']) == (router['id'], 'network:router_interface')
    assert port['fixed_ips'] == [{'subnet_id': subnet['id'], 'ip_address': '192.0.2.1'}]
    assert fault(ask(f'DELETE /routers/{router["id"]}', expect=409))[0] == 'RouterInUse'
    assert fault(ask(f'DELETE /networks/{network["id"]}', expect=409))[0] == 'NetworkInUse'
    ask(f'DELETE /ports/{port["id"]}', expect=409)
    ask(f'PUT /ports/{port["id"]}', {'port': {'device_id': ''}}, expect=409)
    plug(router, subnet_id=subnet['id'], expect=400)
    assert plug(router, 'remove', subnet_id=subnet['id'])['port_id'] == port['id']
    plug(router, 'remove', subnet_id=subnet['id'], expect=404)
    ask(f'DELETE /routers/{router["id"]}', expect=204)


def test_an_interface_of_a_router_may_have_another_address(ask, router, net, plug):
    path = f'/ports/{plug(router, subnet_id=net[1]["id"])["port_id"]}'
    chosen = [{'subnet_id': net[1]['id'], 'ip_address': '192.0.2.7'}]
    assert ask(f'PUT {path}', {'port': {'fixed_ips': chosen}}, expect=200).json['port']['fixed_ips'] == chosen
    ask(f'PUT {path}', {'port': {'fixed_ips': []}}, expect=409)
    ask(f'PUT {path}', {'port': {'fixed_ips': chosen, 'device_id': ''}}, expect=409)


@pytest.mark.parametrize('mode', ['slaac', 'dhcpv6-stateless'])
def test_a_subnet_where_guests_choose_addresses_ends_with_them(ask, create, router, networks, plug, mode):
    network = create('networks')['id']
    kept = create('subnets', network_id=network, cidr='192.0.2.0/24')['id']
    modes = {'ipv6_ra_mode': mode, 'ipv6_address_mode': mode}
    subnet = create('subnets', network_id=network, ip_version=6, cidr='2001:db8::/64', **modes)['id']
    port = create('ports', network_id=network, device_id='guest')
    assert {held['subnet_id'] for held in port['fixed_ips']} == {kept, subnet}
    plug(router, subnet_id=subnet)
    assert fault(ask(f'DELETE /subnets/{subnet}', expect=409))[0] == 'SubnetInUse'
    plug(router, 'remove', subnet_id=subnet)
    told = []
    networks.resources.notifications.listeners = (lambda context, servers: told.extend(servers),)
    ask(f'DELETE /subnets/{subnet}', expect=204)
    left = ask(f'GET /ports/{port["id"]}').json['port']['fixed_ips']
    assert [held['subnet_id'] for held in left] == [kept]
    assert told == ['guest']


def test_a_router_takes_a_port(create, router, net, plug):
    port = create('ports', network_id=net[0]['id'])
    plug(router, port_id=port['id'])
    used = create('ports', network_id=net[0]['id'], device_id='s')
    plug(create('routers'), port_id=used['id'], expect=409)
    plug(router, 'remove', port_id=port['id'])


def test_subnets_of_a_router_do_not_overlap(create, router, net, plug):
    plug(router, subnet_id=net[1]['id'])
    other = create('subnets', network_id=create('networks')['id'], cidr='192.0.2.0/25')
    plug(router, subnet_id=other['id'], expect=400)


def test_an_interface_of_a_router_does_not_move_to_a_subnet_that_overlaps(ask, create, router, net, plug):
    plug(router, subnet_id=net[1]['id'])
    network = create('networks')['id']
    apart, other, same = (
        create('subnets', network_id=network, cidr=cidr)['id']
        for cidr in ('198.51.100.0/25', '198.51.100.128/25', '192.0.2.0/25')
    )
    path = f'/ports/{plug(router, subnet_id=apart)["port_id"]}'

    def move(expect, *subnets):
        body = {'port': {'fixed_ips': [{'subnet_id': subnet_id} for subnet_id in subnets]}}
        return ask(f'PUT {path}', body, expect=expect)

    assert 'overlaps' in fault(move(400, apart, same))[1]
    move(200, apart, other)
    move(200, other)


def test_a_router_joins_what_its_project_owns(ask, router, plug):
    private = ask('GET /subnets?name=private-subnet').json['subnets'][0]
    plug(router, subnet_id=private['id'], expect=400)


@pytest.mark.parametrize('target', [{}, {'subnet_id': 'x'}, {'subnet_id': UNKNOWN, 'port_id': UNKNOWN}, {'x': 1}])
def test_an_interface_needs_one_target(router, plug, target):
    plug(router, expect=400, **target)


def test_a_router_has_routes(ask, router, net, plug):
    plug(router, subnet_id=net[1]['id'])
    routes = [{'destination': '10.9.0.0/16', 'nexthop': '192.0.2.9'}]
    path = f'/routers/{router["id"]}'
    assert ask(f'PUT {path}', {'router': {'routes': routes}}, expect=200).json['router']['routes'] == routes
    bad = {'router': {'routes': [{'destination': 'x', 'nexthop': '192.0.2.9'}]}}
    assert 'routes' in fault(ask(f'PUT {path}', bad, expect=400))[1]
    away = {'router': {'routes': [{'destination': '10.9.0.0/16', 'nexthop': '198.51.100.9'}]}}
    assert 'nexthop' in fault(ask(f'PUT {path}', away, expect=400))[1]
    plug(router, 'remove', subnet_id=net[1]['id'], expect=409)
    assert ask(f'PUT {path}', {'router': {'routes': None}}, expect=200).json['router']['routes'] == []
    plug(router, 'remove', subnet_id=net[1]['id'])


def test_routes_are_added_and_removed_one_by_one(ask, router, net, plug):
    plug(router, subnet_id=net[1]['id'])
    one, two = ({'destination': f'10.{number}.0.0/16', 'nexthop': '192.0.2.9'} for number in (8, 9))
    path = f'/routers/{router["id"]}'
    for action, route, left in (('add', one, [one]), ('add', two, [one, two]), ('remove', one, [two])):
        changed = ask(f'PUT {path}/{action}_extraroutes', {'router': {'routes': [route]}}, expect=200)
        assert changed.json['router']['routes'] == left


# Floating IPs


def test_a_floating_ip_goes_through_a_router(ask, create, router, net, plug, public):
    port = create('ports', network_id=net[0]['id'], device_id='s', name='eth0')
    plug(router, subnet_id=net[1]['id'])
    floating = create('floatingips', floating_network_id=public, port_id=port['id'])
    assert (floating['status'], floating['router_id']) == ('ACTIVE', router['id'])
    assert floating['fixed_ip_address'] == port['fixed_ips'][0]['ip_address']
    assert floating['port_details']['device_id'] == 's'
    ask(f'PUT /routers/{router["id"]}', {'router': {'external_gateway_info': {}}}, expect=409)
    plug(router, 'remove', subnet_id=net[1]['id'], expect=409)
    path = f'/floatingips/{floating["id"]}'
    free = ask(f'PUT {path}', {'floatingip': {'port_id': None}}, expect=200).json['floatingip']
    assert (free['status'], free['router_id'], free['port_details'], free['fixed_ip_address']) == ('DOWN', *[None] * 3)
    plug(router, 'remove', subnet_id=net[1]['id'])


def test_an_interface_does_not_leave_what_needs_it(ask, create, router, net, plug, public):
    network, subnet = net
    other = create('subnets', network_id=network['id'], cidr='198.51.100.0/24')['id']
    port = create('ports', network_id=network['id'], fixed_ips=[{'subnet_id': subnet['id']}])
    path = f'/ports/{plug(router, subnet_id=subnet["id"])["port_id"]}'
    floating = create('floatingips', floating_network_id=public, port_id=port['id'])
    away, beside = ({'port': {'fixed_ips': [{'subnet_id': each}]}} for each in (other, subnet['id']))
    assert 'floating IPs' in fault(ask(f'PUT {path}', away, expect=409))[1]
    ask(f'PUT {path}', {'port': {'fixed_ips': [{'ip_address': '192.0.2.7'}]}}, expect=200)
    ask(f'PUT {path}', beside, expect=200)
    ask(f'DELETE /floatingips/{floating["id"]}', expect=204)
    route = {'destination': '10.9.0.0/16', 'nexthop': '192.0.2.9'}
    ask(f'PUT /routers/{router["id"]}', {'router': {'routes': [route]}}, expect=200)
    assert 'routes' in fault(ask(f'PUT {path}', away, expect=409))[1]
    ask(f'PUT /routers/{router["id"]}', {'router': {'routes': []}}, expect=200)
    ask(f'PUT {path}', away, expect=200)


def test_a_floating_ip_keeps_its_port_unless_told(ask, create, router, net, plug, public):
    port = create('ports', network_id=net[0]['id'])
    path = f'/floatingips/{create("floatingips", floating_network_id=public)["id"]}'
    nowhere = ask(f'PUT {path}', {'floatingip': {'port_id': port['id']}}, expect=404)
    assert fault(nowhere)[0] == 'ExternalGatewayForFloatingIPNotFound'
    plug(router, subnet_id=net[1]['id'])
    ask(f'PUT {path}', {'floatingip': {'port_id': port['id']}}, expect=200)
    kept = ask(f'PUT {path}', {'floatingip': {'description': 'x'}}, expect=200).json['floatingip']
    assert (kept['port_id'], kept['description']) == (port['id'], 'x')
    address = kept['floating_ip_address']
    [found] = ask(f'GET /floatingips?floating_ip_address={address}&port_id={port["id"]}').json['floatingips']
    assert found == kept


def test_an_administrator_chooses_the_address(ask, create, public):
    chosen = {'floating_network_id': public, 'floating_ip_address': '203.0.113.99'}
    ask('POST /floatingips', {'floatingip': chosen}, expect=403)
    assert create('floatingips', by='admin', **chosen)['floating_ip_address'] == '203.0.113.99'
    ask('POST /floatingips', {'floatingip': chosen}, by='admin', expect=409)


def test_a_floating_ip_comes_from_outside(ask, net):
    body = {'floatingip': {'floating_network_id': net[0]['id']}}
    assert 'external' in fault(ask('POST /floatingips', body, expect=400))[1]


# Security groups


def test_a_list_of_groups_has_the_default_one(ask, names):
    assert names('security-groups') == ['default']
    assert names('security-groups?project_id=cherries', by='admin') == ['default']
    assert names('security-groups?project_id=cherries') == []
    [group] = ask('GET /security-groups?fields=security_group_rules').json['security_groups']
    assert {rule['created_at'][-1] for rule in group['security_group_rules']} == {'Z'}


def test_a_rule_is_there_once(ask, body):
    rule = body('security-group-rules', protocol='tcp', port_range_min='80', port_range_max=80)
    made = ask('POST /security-group-rules', rule, expect=201).json['security_group_rule']
    assert (made['ethertype'], made['port_range_min']) == ('IPv4', 80)
    kind, message = fault(ask('POST /security-group-rules', rule, expect=409))
    assert (kind, made['id'] in message) == ('SecurityGroupRuleExists', True)


@pytest.mark.parametrize(
    ('protocol', 'low', 'high', 'message'),
    [
        ('tcp', -16, 80, 'Invalid value for port -16'),
        ('udp', 80, 65536, 'Invalid value for port 65536'),
        ('tcp', 0, 80, 'Invalid value for port 0'),
        ('tcp', 2**40, 80, f'Invalid value for port {2**40}'),
        ('tcp', 80, 79, 'For TCP/UDP protocols, port_range_min must be <= port_range_max'),
        ('udp', None, 6, 'For TCP/UDP protocols, port_range_min must be <= port_range_max'),
        ('icmp', 300, 1, 'Invalid value for ICMP type (port_range_min) 300. It must be 0 to 255.'),
        ('icmp', 1, 256, 'Invalid value for ICMP code (port_range_max) 256. It must be 0 to 255.'),
        ('icmp', None, 6, 'ICMP code (port-range-max) 6 is provided but ICMP type (port-range-min) is missing.'),
    ],
)
def test_ports_of_a_rule_make_sense(ask, body, protocol, low, high, message):
    rule = body('security-group-rules', protocol=protocol, port_range_min=low, port_range_max=high)
    assert fault(ask('POST /security-group-rules', rule, expect=400))[1] == message


def test_a_rule_names_groups_and_addresses_that_fit(ask, body):
    nowhere = body('security-group-rules', remote_group_id='nowhere')
    assert 'nowhere' in fault(ask('POST /security-group-rules', nowhere, expect=404))[1]
    mixed = body('security-group-rules', ethertype='IPv6', remote_ip_prefix='10.0.0.0/8')
    message = fault(ask('POST /security-group-rules', mixed, expect=400))[1]
    assert message == 'Conflicting value ethertype IPv6 for CIDR 10.0.0.0/8'


@pytest.mark.parametrize('protocol', ['icmpv6', 'ipv6-icmp', '58', 'ipv6-opts', 44])
def test_packets_of_ipv4_have_no_protocol_of_ipv6(ask, body, protocol):
    mixed = ask('POST /security-group-rules', body('security-group-rules', protocol=protocol), expect=400)
    assert fault(mixed)[1] == f'Invalid ethertype IPv4 for protocol {protocol}.'
    fits = body('security-group-rules', protocol=protocol, ethertype='IPv6')
    ask('POST /security-group-rules', fits, expect=201)


# Quotas


def test_quotas_are_shown_changed_and_reset(ask):
    usual = ask('GET /quotas/apples', expect=200).json['quota']
    assert usual == {
        'floatingip': 50,
        'network': 100,
        'port': 500,
        'rbac_policy': 10,
        'router': 10,
        'security_group': 10,
        'security_group_rule': 100,
        'subnet': 100,
        'subnetpool': -1,
    }
    changed = ask('PUT /quotas/apples', {'quota': {'port': 7, 'router': '-1'}}, by='admin', expect=200).json['quota']
    assert changed == {**usual, 'port': 7, 'router': -1} == ask('GET /quotas/apples').json['quota']
    assert ask('GET /quotas/apples/default').json['quota'] == usual
    assert ask('GET /quotas/tenant.json', expect=200).json['tenant']['tenant_id'] == 'apples'
    [listed] = ask('GET /quotas', by='admin').json['quotas']
    assert listed == {**changed, 'project_id': 'apples', 'tenant_id': 'apples'}
    ask('DELETE /quotas/apples', by='admin', expect=204)
    assert ask('GET /quotas/apples').json['quota'] == usual


@pytest.mark.parametrize('path', ['details', 'details.json'])
def test_quotas_in_detail(ask, create, path):
    create('networks')
    details = ask(f'GET /quotas/apples/{path}', expect=200).json['quota']
    assert details['network'] == {'limit': 100, 'used': 1, 'reserved': 0}
    assert details['port']['used'] == 0


def test_a_limit_below_what_is_used_is_refused_when_asked(ask, create):
    create('networks')
    for how, status in (({'check_limit': True}, 400), ({'check_limit': True, 'force': True}, 200), ({}, 200)):
        ask('PUT /quotas/apples', {'quota': {'network': 0, **how}}, by='admin', expect=status)


def test_quotas_are_set_by_administrators(ask):
    ask('PUT /quotas/apples', {'quota': {'port': 7}}, expect=403)
    ask('DELETE /quotas/apples', expect=403)
    ask('GET /quotas', expect=403)
    ask('GET /quotas/bananas', expect=403)
    ask('GET /quotas/bananas', by='admin', expect=200)
    for wrong in ({'port': -2}, {'port': 'x'}, {'port': 2**31}, {'colour': 1}):
        ask('PUT /quotas/apples', {'quota': wrong}, by='admin', expect=400)


@pytest.mark.parametrize('kind', KINDS)
def test_a_full_quota_is_a_conflict(ask, body, kind):
    name, _ = KINDS[kind]
    request = body(kind)
    ask('PUT /quotas/apples', {'quota': {name: 0}}, by='admin', expect=200)
    assert fault(ask(f'POST /{kind}', request, expect=409)) == (
        'OverQuota',
        f"Quota exceeded for resources: ['{name}'].",
    )


# Auto-allocated topologies


@pytest.mark.parametrize('project', ['apples', 'None', 'null'])
def test_an_automatic_network_is_made_once(ask, project):
    path = f'/auto-allocated-topology/{project}'
    dry = ask(f'GET {path}?fields=dry-run', expect=200).json['auto_allocated_topology']
    assert dry == {'id': 'dry-run=pass', 'tenant_id': 'apples', 'project_id': 'apples'}
    made = ask(f'GET {path}', expect=200).json['auto_allocated_topology']
    assert made == ask(f'GET {path}').json['auto_allocated_topology']
    assert ask(f'GET /networks/{made["id"]}').json['network']['project_id'] == 'apples'
    ask(f'DELETE {path}', expect=204)
    ask(f'GET /networks/{made["id"]}', expect=404)
    assert ask('GET /routers').json == {'routers': []}
    ask(f'DELETE {path}', expect=404)
    ask('GET /auto-allocated-topology/bananas', expect=404)
    ask(f'GET /auto-allocated-topology/{"9" * 256}', by='admin', expect=404)


def test_a_page_has_a_bound_in_bytes(ask, create, monkeypatch):
    monkeypatch.setattr(App, 'longest_list', 4000)
    for number in range(9):
        create('networks', name=f'n{number}', description='x' * 250)
    path, seen = '/networks?project_id=apples', []
    while path:
        page = ask(f'GET {path}')
        assert len(page.body) < 4500
        seen += [network['name'] for network in page.json['networks']]
        links = {link['rel']: link['href'] for link in page.json.get('networks_links', ())}
        path = links['next'].partition('/v2.0')[2] if 'next' in links else None
    assert sorted(seen) == [f'n{number}' for number in range(9)]


def test_tokens_for_the_system_are_refused(ask, create, public):
    ask('POST /networks', {'network': {'name': 'one', 'project_id': 'apples'}}, by='system admin', expect=403)
    for request in ('GET /networks', f'GET /networks/{public}', f'DELETE /networks/{create("networks")["id"]}'):
        ask(request, by='system admin', expect=403)
