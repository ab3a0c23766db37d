"""QoS policies, their rules, and their effect on networks and ports."""

import pytest
import webob

from computeapi.backends.network.local import LocalNetworks
from computeapi.standalone.network import neutron
from tests.standalone.network.conftest import authenticate
from tests.standalone.network.kinds import UNKNOWN

# For each type of rule: the body that creates one, the result, and a possible change.
RULES = {
    'minimum_bandwidth': ({'min_kbps': 1000}, {'direction': 'egress', 'min_kbps': 1000}, {'direction': 'ingress'}),
    'minimum_packet_rate': ({'min_kpps': 7}, {'direction': 'egress', 'min_kpps': 7}, {'direction': 'any'}),
    'bandwidth_limit': (
        {'max_kbps': 1000, 'direction': 'ingress'},
        {'max_kbps': 1000, 'max_burst_kbps': 0, 'direction': 'ingress'},
        {'max_burst_kbps': 5},
    ),
    'dscp_marking': ({'dscp_mark': 8}, {'dscp_mark': 8}, {'dscp_mark': 56}),
}


@pytest.fixture
def ask(store):
    """ask('POST /networks', {...}, by='alice') -> the body of the response, which must have the status `expect`."""
    app = neutron(LocalNetworks(store), authenticate)

    def ask(request, json=None, *, by='admin', expect=None):
        method, path = request.split(' ', 1)
        more = {} if json is None else {'json': json}
        req = webob.Request.blank(f'/v2.0{path}', method=method, headers={'X-Auth-Token': by}, **more)
        response = req.get_response(app)
        usual = {'POST': 201, 'DELETE': 204}.get(method, 200)
        assert response.status_code == (expect or usual), response.text
        return response.json if response.body else None

    return ask


@pytest.fixture
def create(ask):
    """create('network', name='one') -> the network."""
    paths = {'policy': 'qos/policies'}

    def create(kind, by='admin', expect=None, **kwargs):
        return ask(f'POST /{paths.get(kind, f"{kind}s")}', {kind: kwargs}, by=by, expect=expect).get(kind)

    return create


@pytest.fixture
def policy(ask, create):
    """policy({'min_kbps': 1000}, ...) -> the ID of a policy with these minimum bandwidth rules."""

    def policy(*rules):
        policy_id = create('policy', name='gold')['id']
        for rule in rules:
            ask(f'POST /qos/policies/{policy_id}/minimum_bandwidth_rules', {'minimum_bandwidth_rule': rule})
        return policy_id

    return policy


def test_a_policy_has_a_life(ask, create):
    made = create('policy', name='gold', description='first')
    assert (made['shared'], made['is_default'], made['rules'], made['tags']) == (False, False, [], [])
    path = f'/qos/policies/{made["id"]}'
    assert ask(f'GET {path}') == {'policy': made}
    assert ask('GET /qos/policies?name=gold&fields=id') == {'policies': [{'id': made['id']}]}
    assert ask(f'PUT {path}', {'policy': {'shared': True}})['policy']['shared']
    ask(f'DELETE {path}')
    ask(f'GET {path}', expect=404)


def test_clients_call_the_labels_of_policies_otherwise(ask, create):
    made = create('policy', name='gold')
    assert ask(f'PUT /policies/{made["id"]}/tags', {'tags': ['blue']}) == {'tags': ['blue']}
    assert ask(f'GET /qos/policies/{made["id"]}')['policy']['tags'] == ['blue']
    ask(f'GET /policies/{made["id"]}', expect=404)


def test_administrators_make_policies_for_others(ask, create):
    hidden, shown = create('policy', name='hidden'), create('policy', name='shown', shared=True)
    mine = create('policy', name='mine', project_id='apples')
    assert [each['name'] for each in ask('GET /qos/policies', by='alice')['policies']] == ['shown', 'mine']
    rules = f'/qos/policies/{hidden["id"]}/dscp_marking_rules'
    for request in (f'GET /qos/policies/{hidden["id"]}', f'GET {rules}'):
        ask(request, by='alice', expect=404)
    create('policy', name='x', by='alice', expect=403)
    create('policy', name='x' * 256, by='alice', expect=400)
    ask(f'POST {rules}', {'dscp_marking_rule': {'dscp_mark': 8}}, by='alice', expect=403)
    rule = ask(f'POST {rules}', {'dscp_marking_rule': {'dscp_mark': 8}})['dscp_marking_rule']
    bodies = {'policy': {'name': 'his'}, 'dscp_marking_rule': {'dscp_mark': 10}}
    for path, name in ((f'/qos/policies/{hidden["id"]}', 'policy'), (f'{rules}/{rule["id"]}', 'dscp_marking_rule')):
        ask(f'PUT {path}', {name: bodies[name]}, by='alice', expect=404)
        ask(f'DELETE {path}', by='alice', expect=404)
    ask(f'PUT /qos/policies/{mine["id"]}', {'policy': {'name': 'x' * 256}}, by='alice', expect=400)
    ask(f'PUT /qos/policies/{mine["id"]}', {'policy': {'name': 'his'}}, by='alice', expect=403)
    ask(f'DELETE /qos/policies/{mine["id"]}', by='alice', expect=403)
    create('network', by='alice', qos_policy_id=shown['id'])
    create('network', by='alice', qos_policy_id=hidden['id'], expect=404)


@pytest.mark.parametrize('kind', RULES)
def test_a_rule_has_a_life(ask, create, kind):
    asked, expected, change = RULES[kind]
    policy_id, name = create('policy', name='gold')['id'], f'{kind}_rule'
    path = f'/qos/policies/{policy_id}/{name}s'
    made = ask(f'POST {path}', {name: asked})[name]
    assert made == {'id': made['id'], **expected}
    assert ask(f'GET {path}') == {f'{name}s': [made]}
    assert ask(f'GET {path}/{made["id"]}', by='admin') == {name: made}
    inside = {'type': kind, 'qos_policy_id': policy_id, **made}
    assert ask(f'GET /qos/policies/{policy_id}')['policy']['rules'] == [inside]
    ask(f'POST {path}', {name: asked}, expect=409)
    assert ask(f'PUT {path}/{made["id"]}', {name: change}) == {name: made | change}
    for other in {*RULES} - {kind}:
        ask(f'GET /qos/policies/{policy_id}/{other}_rules/{made["id"]}', expect=404)
        assert ask(f'GET /qos/policies/{policy_id}/{other}_rules') == {f'{other}_rules': []}
    ask(f'DELETE {path}/{made["id"]}')
    ask(f'DELETE {path}/{made["id"]}', expect=404)
    ask(f'POST {path.replace(policy_id, UNKNOWN)}', {name: asked}, expect=404)


@pytest.mark.parametrize(
    ('kind', 'facts'),
    [
        ('minimum_bandwidth', {}),
        ('minimum_bandwidth', {'min_kbps': -1}),
        ('minimum_bandwidth', {'min_kbps': 2**31}),
        ('minimum_bandwidth', {'min_kbps': 1, 'direction': 'any'}),
        ('minimum_bandwidth', {'min_kbps': 1, 'max_kbps': 1}),
        ('dscp_marking', {'dscp_mark': 7}),
    ],
)
def test_what_is_no_rule(ask, create, kind, facts):
    policy_id = create('policy', name='gold')['id']
    ask(f'POST /qos/policies/{policy_id}/{kind}_rules', {f'{kind}_rule': facts}, expect=400)


def test_types_of_rules_and_extensions(ask):
    assert {each['type'] for each in ask('GET /qos/rule-types')['rule_types']} == set(RULES)
    assert ask('GET /qos/rule-types/dscp_marking')['rule_type']['type'] == 'dscp_marking'
    ask('GET /qos/rule-types/dscp_marking', by='alice', expect=403)
    ask('GET /qos/rule-types/any', expect=404)
    aliases = {each['alias'] for each in ask('GET /extensions')['extensions']}
    assert {'qos', 'qos-default', 'qos-port-network-policy', 'port-resource-request'} <= aliases


def test_a_project_has_one_default_for_its_networks(ask, create):
    first = create('policy', name='first', project_id='apples', is_default=True)['id']
    create('policy', name='second', project_id='apples', is_default=True, expect=409)
    second = create('policy', name='second', project_id='apples')['id']
    ask(f'PUT /qos/policies/{second}', {'policy': {'is_default': True}}, expect=409)
    ask(f'PUT /qos/policies/{first}', {'policy': {'is_default': True}})
    assert create('network', by='alice')['qos_policy_id'] == first
    assert create('network', by='alice', qos_policy_id=None)['qos_policy_id'] is None
    assert create('network', by='bob')['qos_policy_id'] is None


def test_a_policy_in_use_stays(ask, create, policy):
    policy_id = policy()
    network = create('network', qos_policy_id=policy_id)['id']
    port = create('port', network_id=network, qos_policy_id=policy_id)
    for path, name in ((f'/networks/{network}', 'network'), (f'/ports/{port["id"]}', 'port')):
        ask(f'DELETE /qos/policies/{policy_id}', expect=409)
        assert ask(f'PUT {path}', {name: {'qos_policy_id': None}})[name]['qos_policy_id'] is None
        ask(f'PUT {path}', {name: {'qos_policy_id': UNKNOWN}}, expect=404)
    ask(f'DELETE /qos/policies/{policy_id}')


@pytest.mark.parametrize('kind', ['network', 'port'])
def test_what_an_administrator_limits_stays_limited(ask, create, policy, kind):
    limit, other = policy(), create('policy', name='silver', shared=True)['id']
    network = create('network', by='alice')
    thing = network if kind == 'network' else create('port', by='alice', network_id=network['id'])
    path = f'/{kind}s/{thing["id"]}'
    ask(f'PUT {path}', {kind: {'qos_policy_id': limit}})
    for wanted in (None, other):
        ask(f'PUT {path}', {kind: {'qos_policy_id': wanted}}, by='alice', expect=403)
    assert ask(f'PUT {path}', {kind: {'name': 'slow'}}, by='alice')[kind]['qos_policy_id'] == limit
    ask(f'PUT {path}', {kind: {'qos_policy_id': other}})
    assert ask(f'PUT {path}', {kind: {'qos_policy_id': None}}, by='alice')[kind]['qos_policy_id'] is None


def test_what_a_port_asks_of_its_host(ask, create, policy):
    both = policy({'min_kbps': 100}, {'min_kbps': 200, 'direction': 'ingress'})
    least, nothing = policy({'min_kbps': 5}), policy({'min_kbps': 0})
    network = create('network', qos_policy_id=least)['id']

    def asked(**kwargs):
        port = create('port', network_id=network, **kwargs)
        assert port['qos_network_policy_id'] == least
        return port['resource_request']

    resources = {'NET_BW_EGR_KILOBIT_PER_SEC': 100, 'NET_BW_IGR_KILOBIT_PER_SEC': 200}
    assert asked(qos_policy_id=both) == {'required': ['CUSTOM_VNIC_TYPE_NORMAL'], 'resources': resources}
    assert asked()['resources'] == {'NET_BW_EGR_KILOBIT_PER_SEC': 5}
    rate = {'minimum_packet_rate_rule': {'min_kpps': 3, 'direction': 'any'}}
    ask(f'POST /qos/policies/{least}/minimum_packet_rate_rules', rate)
    resources = {'NET_BW_EGR_KILOBIT_PER_SEC': 5, 'NET_PACKET_RATE_KILOPACKET_PER_SEC': 3}
    assert asked()['resources'] == resources
    assert asked(**{'binding:vnic_type': 'direct-physical'})['required'] == ['CUSTOM_VNIC_TYPE_DIRECT_PHYSICAL']
    assert asked(qos_policy_id=nothing) is None
    ask(f'PUT /networks/{network}', {'network': {'shared': True}})
    assert 'resource_request' not in create('port', by='alice', network_id=network)
