"""Sharing what a project has: with everybody, or by RBAC policies with some."""

import pytest


def share(ask, kind, thing, target='bananas', by='alice', **others):
    policy = {'object_type': kind, 'object_id': thing['id'], 'action': 'access_as_shared', 'target_tenant': target}
    return ask('POST /rbac-policies', {'rbac_policy': policy}, by=by, **others)


@pytest.fixture
def shared(ask):
    """shared('network', network) -> the path of the policy that shares alice's network with bob's project."""

    def shared(*given, **others):
        return f'/rbac-policies/{share(ask, *given, **others, expect=201).json["rbac_policy"]["id"]}'

    return shared


@pytest.fixture
def policy(ask):
    """A QoS policy of alice's project."""
    asked = {'policy': {'name': 'gold', 'project_id': 'apples'}}
    return ask('POST /qos/policies', asked, by='admin', expect=201).json['policy']


def test_a_network_is_shared_with_one_project(ask, create, net):
    network, subnet = net
    share(ask, 'network', network, by='bob', expect=404)
    share(ask, 'network', network, '*', expect=403)
    policy = share(ask, 'network', network, expect=201).json['rbac_policy']
    share(ask, 'network', network, expect=409)
    ask(f'GET /networks/{network["id"]}', by='bob', expect=200)
    ask(f'GET /subnets/{subnet["id"]}', by='bob', expect=200)
    ask(f'PUT /networks/{network["id"]}', {'network': {'name': 'his'}}, by='bob', expect=403)
    port = create('ports', by='bob', network_id=network['id'])
    path = f'/rbac-policies/{policy["id"]}'
    ask(f'GET {path}', by='bob', expect=404)
    ask(f'DELETE {path}', expect=409)
    ask(f'DELETE /ports/{port["id"]}', by='bob', expect=204)
    moved = ask(f'PUT {path}', {'rbac_policy': {'target_tenant': 'cherries'}}, expect=200).json['rbac_policy']
    assert moved['target_tenant'] == 'cherries'
    ask(f'GET /networks/{network["id"]}', by='bob', expect=404)
    ask(f'DELETE {path}', expect=204)


def test_pools_and_scopes_are_shared_with_everybody(ask, create, scope):
    pool = create('subnetpools', prefixes=['10.0.0.0/16'])
    for kind, path, thing in (('subnetpool', 'subnetpools', pool), ('address_scope', 'address-scopes', scope)):
        ask(f'GET /{path}/{thing["id"]}', by='bob', expect=404)
        share(ask, kind, thing, '*', by='admin', expect=201)
        ask(f'GET /{path}/{thing["id"]}', by='bob', expect=200)
        ask(f'DELETE /{path}/{thing["id"]}', expect=204)
        assert ask(f'GET /rbac-policies?object_id={thing["id"]}', by='admin').json == {'rbac_policies': []}


def test_a_policy_is_what_it_says_and_no_more(ask, create, shared):
    policy = ask(f'GET {shared("network", create("networks"))}').json['rbac_policy']
    said = {'object_type', 'object_id', 'action', 'target_tenant'}
    assert policy.keys() == {'id', 'project_id', 'tenant_id', *said}
    path = f'/rbac-policies/{policy["id"]}'
    ask(f'GET {path}/tags', expect=404)
    ask('GET /rbac-policies?tags=x', expect=400)
    ask(f'DELETE {path}', headers={'If-Match': 'revision_number=1'}, expect=412)


def test_who_something_is_shared_with_sees_that(ask, create, names, shared):
    network = create('networks', name='ours')
    create('subnets', name='part', network_id=network['id'], cidr='192.0.2.0/24')
    path = f'/networks/{network["id"]}'
    shared('network', network)
    assert ask(f'GET {path}', by='bob').json['network']['shared'] is True
    assert ask(f'GET {path}').json['network']['shared'] is False
    assert names('networks?shared=true', by='bob') == ['private', 'ours']
    assert names('networks?shared=true') == ['private']
    assert names('subnets?shared=true', by='bob') == ['private-subnet', 'part']
    assert names('subnets?shared=false') == ['public-subnet', 'part']
    ask('GET /subnets?shared=perhaps', expect=400)


def test_only_who_owns_something_shares_it(ask, create, shared):
    network = create('networks')
    shared('network', network)
    share(ask, 'network', network, 'cherries', by='bob', expect=400)
    share(ask, 'network', network, 'cherries', by='admin', expect=201)


@pytest.fixture
def used(ask, create, net, scope, policy):
    """used('network') -> something of alice's, its kind, and a function that creates what depends on it as bob."""
    pool = create('subnetpools', prefixes=['10.0.0.0/16'])
    things = {'network': net[0], 'qos_policy': policy, 'address_scope': scope, 'subnetpool': pool}

    def use(kind):
        match kind:
            case 'network':
                return f'ports/{create("ports", by="bob", network_id=net[0]["id"])["id"]}'
            case 'qos_policy':
                return f'networks/{create("networks", by="bob", qos_policy_id=policy["id"])["id"]}'
            case 'address_scope':
                facts = {'prefixes': ['10.9.0.0/16'], 'address_scope_id': scope['id']}
                return f'subnetpools/{create("subnetpools", by="bob", **facts)["id"]}'
        home = create('networks', by='bob')['id']
        facts = {'network_id': home, 'subnetpool_id': pool['id'], 'prefixlen': 24}
        return f'subnets/{create("subnets", by="bob", **facts)["id"]}'

    return things, use


@pytest.mark.parametrize('kind', ['network', 'qos_policy', 'address_scope', 'subnetpool'])
def test_sharing_ends_when_nobody_uses_it(ask, used, shared, kind):
    things, use = used
    path = shared(kind, things[kind])
    user = use(kind)
    elsewhere = {'rbac_policy': {'target_tenant': 'cherries'}}
    ask(f'DELETE {path}', expect=409)
    ask(f'PUT {path}', elsewhere, expect=409)
    with_all = shared(kind, things[kind], '*', by='admin')
    ask(f'DELETE {path}', expect=204)
    ask(f'DELETE {with_all}', by='admin', expect=409)
    path = shared(kind, things[kind])
    ask(f'DELETE {with_all}', by='admin', expect=204)
    ask(f'DELETE /{user}', by='bob', expect=204)
    ask(f'PUT {path}', elsewhere, expect=200)
    ask(f'DELETE {path}', expect=204)


def test_a_policy_is_not_needed_by_what_is_shared_with_everybody(ask, create, shared):
    network = create('networks', by='admin', shared=True)
    path = shared('network', network, by='admin')
    create('ports', by='bob', network_id=network['id'])
    ask(f'PUT {path}', {'rbac_policy': {'target_tenant': 'cherries'}}, by='admin', expect=200)
    ask(f'DELETE {path}', by='admin', expect=204)


SHARED = {
    'network': ('network', 'networks', {}),
    'subnetpool': ('subnetpool', 'subnetpools', {'prefixes': ['10.0.0.0/16']}),
    'address_scope': ('address_scope', 'address-scopes', {'ip_version': 4}),
    'qos_policy': ('policy', 'qos/policies', {}),
}
"""By type of object: its name, its path, and what one has."""


@pytest.mark.parametrize('kind', SHARED)
def test_what_is_shared_with_everybody_has_a_policy(ask, kind):
    name, path, facts = SHARED[kind]
    body = {name: {'name': 'x', 'shared': True, **facts}}
    thing = ask(f'POST /{path}', body, by='admin', expect=201).json[name]['id']
    [policy] = ask(f'GET /rbac-policies?object_id={thing}', by='admin').json['rbac_policies']
    said = {'object_type': kind, 'action': 'access_as_shared', 'target_tenant': '*', 'project_id': 'admin'}
    assert said.items() <= policy.items()
    ask(f'GET /{path}/{thing}', expect=200)
    ask(f'DELETE /rbac-policies/{policy["id"]}', by='admin', expect=204)
    ask(f'GET /{path}/{thing}', expect=404)
    assert ask(f'GET /{path}/{thing}', by='admin').json[name]['shared'] is False


def test_a_policy_for_everybody_becomes_one_for_some(ask, create, names):
    network = create('networks', by='admin', name='ours', shared=True)
    port = create('ports', by='bob', network_id=network['id'])
    [policy] = ask(f'GET /rbac-policies?object_id={network["id"]}', by='admin').json['rbac_policies']
    path = f'PUT /rbac-policies/{policy["id"]}'
    ask(path, {'rbac_policy': {'target_tenant': 'bananas'}}, by='admin', expect=409)
    ask(f'DELETE /ports/{port["id"]}', by='bob', expect=204)
    for target, seen in (('bananas', False), ('*', True)):
        ask(path, {'rbac_policy': {'target_tenant': target}}, by='admin', expect=200)
        assert ('ours' in names('networks'), 'ours' in names('networks', by='bob')) == (seen, True)


@pytest.mark.parametrize('target', ['*', 'bananas'])
def test_what_is_no_longer_shared_with_everybody_stays_so_with_some(ask, policy, shared, target):
    path = f'/qos/policies/{policy["id"]}'
    rbac = shared('qos_policy', policy, target, by='admin')
    for value in (True, False):
        changed = ask(f'PUT {path}', {'policy': {'shared': value}}, by='admin', expect=200)
        assert changed.json['policy']['shared'] is value
    remains = target != '*'
    ask(f'GET {path}', by='bob', expect=200 if remains else 404)
    ask(f'GET {rbac}', by='admin', expect=200 if remains else 404)


def test_a_policy_that_others_use_stays_shared(ask, create, policy):
    path = f'/qos/policies/{policy["id"]}'
    ask(f'PUT {path}', {'policy': {'shared': True}}, by='admin', expect=200)
    network = create('networks', by='bob', qos_policy_id=policy['id'])
    ask(f'PUT {path}', {'policy': {'shared': False}}, by='admin', expect=409)
    ask(f'DELETE /networks/{network["id"]}', by='bob', expect=204)
    ask(f'PUT {path}', {'policy': {'shared': False}}, by='admin', expect=200)


def test_a_pool_is_shared_with_who_sees_its_scope(ask, create, scope, shared):
    pool = create('subnetpools', prefixes=['10.0.0.0/16'], address_scope_id=scope['id'])
    share(ask, 'subnetpool', pool, expect=400)
    shared('address_scope', scope)
    share(ask, 'subnetpool', pool, 'cherries', expect=400)
    share(ask, 'subnetpool', pool, expect=201)


def test_a_pool_in_the_scope_of_another_project_is_for_administrators(ask, create, scope, shared):
    pool = create('subnetpools', by='bob', prefixes=['10.0.0.0/16'])
    path, wider = f'/subnetpools/{pool["id"]}', {'subnetpool': {'prefixes': ['10.0.0.0/15']}}
    ask(f'PUT {path}', {'subnetpool': {'address_scope_id': scope['id']}}, by='admin', expect=200)
    ask(f'PUT {path}', wider, by='bob', expect=400)
    ask(f'PUT {path}', wider, by='admin', expect=200)


def test_ports_on_a_network_are_for_who_owns_it_too(ask, create, public, net, shared):
    shared('network', net[0])
    port = create('ports', by='bob', network_id=net[0]['id'], name='guest')
    path = f'/ports/{port["id"]}'
    assert ask(f'GET {path}', expect=200).json['port']['name'] == 'guest'
    assert port['id'] in [each['id'] for each in ask('GET /ports').json['ports']]
    ask(f'PUT {path}', {'port': {'name': 'mine'}}, expect=403)
    floating = create('floatingips', floating_network_id=public)
    ask(f'PUT /floatingips/{floating["id"]}', {'floatingip': {'port_id': port['id']}}, expect=400)
    own = create('ports', network_id=net[0]['id'])
    ask(f'GET /ports/{own["id"]}', by='bob', expect=404)
    ask(f'DELETE {path}', expect=204)


@pytest.fixture
def opened(ask, outside):
    """opened(target) -> the policy that opens the external network to a project."""

    def opened(target, **others):
        policy = {'object_type': 'network', 'object_id': outside, 'action': 'access_as_external'}
        body = {'rbac_policy': policy | {'target_tenant': target}}
        return ask('POST /rbac-policies', body, by='admin', **{'expect': 201, **others}).json.get('rbac_policy')

    return opened


@pytest.fixture
def outside(create):
    network = create('networks', by='admin', name='outside', **{'router:external': True})['id']
    create('subnets', by='admin', network_id=network, cidr='10.8.0.0/24')
    return network


def test_routers_of_a_project_that_a_network_is_shared_with_lead_to_it(ask, create, net, shared):
    """But not those of everybody whom it is shared with."""
    network, subnet = net
    add = f'PUT /routers/{create("routers", by="bob")["id"]}/add_router_interface'
    everybody = shared('network', network, '*', by='admin')
    ask(add, {'subnet_id': subnet['id']}, by='bob', expect=400)
    ask(f'PUT {everybody}', {'rbac_policy': {'target_tenant': 'bananas'}}, by='admin', expect=200)
    port = ask(add, {'subnet_id': subnet['id']}, by='bob', expect=200).json
    assert port['project_id'] == 'bananas'
    ask(f'DELETE {everybody}', by='admin', expect=409)


def test_an_external_network_is_for_everybody_or_for_some(ask, create, names, outside, opened):
    [policy] = ask(f'GET /rbac-policies?object_id={outside}', by='admin').json['rbac_policies']
    assert (policy['action'], policy['target_tenant']) == ('access_as_external', '*')
    opened('*', expect=409)
    path = f'/rbac-policies/{policy["id"]}'
    router = create('routers', by='bob', external_gateway_info={'network_id': outside})
    for change in ({'target_tenant': 'apples'}, None):
        ask(*((f'PUT {path}', {'rbac_policy': change}) if change else (f'DELETE {path}',)), by='admin', expect=409)
    moved = {'rbac_policy': {'target_tenant': 'bananas'}}
    assert ask(f'PUT {path}', moved, by='admin', expect=200).json['rbac_policy']['target_tenant'] == 'bananas'
    ask(f'PUT {path}', {'rbac_policy': {'target_tenant': '*'}}, by='admin', expect=200)
    own = opened('bananas')
    ask(f'PUT {path}', {'rbac_policy': {'target_tenant': 'cherries'}}, by='admin', expect=200)
    assert ('outside' in names('networks'), 'outside' in names('networks', by='bob')) == (False, True)
    ask('POST /routers', {'router': {'external_gateway_info': {'network_id': outside}}}, expect=404)
    ask(f'DELETE /rbac-policies/{own["id"]}', by='admin', expect=409)
    ask(f'DELETE /routers/{router["id"]}', by='bob', expect=204)
    for each in (own['id'], policy['id']):
        assert ask(f'GET /networks/{outside}', by='admin').json['network']['router:external']
        ask(f'DELETE /rbac-policies/{each}', by='admin', expect=204)
    assert not ask(f'GET /networks/{outside}', by='admin').json['network']['router:external']


def test_a_policy_makes_a_network_external(ask, net):
    policy = {'object_type': 'network', 'object_id': net[0]['id'], 'action': 'access_as_external'}
    body = {'rbac_policy': policy | {'target_tenant': 'bananas'}}
    ask('POST /rbac-policies', body, by='bob', expect=404)
    made = ask('POST /rbac-policies', body, expect=201).json['rbac_policy']
    assert ask(f'GET /networks/{net[0]["id"]}', by='bob').json['network']['router:external']
    ask('POST /ports', {'port': {'network_id': net[0]['id']}}, by='bob', expect=403)
    ask(f'DELETE /rbac-policies/{made["id"]}', expect=204)
    ask(f'GET /networks/{net[0]["id"]}', by='bob', expect=404)
    ask('POST /rbac-policies', {'rbac_policy': body['rbac_policy'] | {'object_type': 'subnetpool'}}, expect=404)


def test_a_network_that_is_no_longer_external_has_no_such_policies(ask, outside, opened):
    opened('bananas')
    ask(f'PUT /networks/{outside}', {'network': {'router:external': False}}, by='admin', expect=200)
    assert ask(f'GET /rbac-policies?object_id={outside}', by='admin').json == {'rbac_policies': []}
    ask(f'PUT /networks/{outside}', {'network': {'router:external': True}}, by='admin', expect=200)
    assert len(ask(f'GET /rbac-policies?object_id={outside}', by='admin').json['rbac_policies']) == 1
