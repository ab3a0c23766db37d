"""Revision numbers, which also count the changes of what belongs to a resource."""

import pytest


@pytest.fixture
def rises(ask):
    """rises('/networks/1', 'PUT /subnets/2', {...}) -> the response, after which the network has a new revision."""

    def revision(path):
        [document] = ask(f'GET {path}', by='admin', expect=200).json.values()
        return document['revision_number']

    def rises(path, request, json=None, **others):
        before = revision(path)
        response = ask(request, json, **others)
        assert response.status_code < 300, response.text
        assert revision(path) > before
        return response.json if response.body else None

    return rises


def test_subnets_are_parts_of_a_network(create, rises):
    network = create('networks')['id']
    asked = {'subnet': {'network_id': network, 'cidr': '192.0.2.0/24'}}
    subnet = rises(f'/networks/{network}', 'POST /subnets', asked)['subnet']['id']
    rises(f'/networks/{network}', f'PUT /subnets/{subnet}', {'subnet': {'name': 'new'}})
    rises(f'/networks/{network}', f'DELETE /subnets/{subnet}')


def test_policies_that_share_a_network_are_parts_of_it(create, rises):
    network = create('networks')['id']
    facts = {'object_type': 'network', 'object_id': network, 'action': 'access_as_shared', 'target_tenant': 'bananas'}
    policy = rises(f'/networks/{network}', 'POST /rbac-policies', {'rbac_policy': facts})['rbac_policy']['id']
    changed = {'rbac_policy': {'target_tenant': 'cherries'}}
    rises(f'/networks/{network}', f'PUT /rbac-policies/{policy}', changed)
    rises(f'/networks/{network}', f'DELETE /rbac-policies/{policy}')


def test_rules_are_parts_of_a_security_group(create, rises):
    group = create('security-groups', name='web')['id']
    asked = {'security_group_rule': {'security_group_id': group, 'direction': 'ingress'}}
    path = f'/security-groups/{group}'
    rule = rises(path, 'POST /security-group-rules', asked)['security_group_rule']['id']
    rises(path, f'PUT /security-group-rules/{rule}', {'security_group_rule': {'description': 'new'}})
    rises(path, f'DELETE /security-group-rules/{rule}')


def test_rules_are_parts_of_a_qos_policy(ask, rises):
    policy = ask('POST /qos/policies', {'policy': {'name': 'gold'}}, by='admin', expect=201).json['policy']['id']
    path = f'/qos/policies/{policy}'
    rules = f'{path}/dscp_marking_rules'
    made = rises(path, f'POST {rules}', {'dscp_marking_rule': {'dscp_mark': 8}}, by='admin')
    rule = f'{rules}/{made["dscp_marking_rule"]["id"]}'
    rises(path, f'PUT {rule}', {'dscp_marking_rule': {'dscp_mark': 10}}, by='admin')
    rises(path, f'DELETE {rule}', by='admin')


def test_interfaces_are_parts_of_a_router(create, net, rises):
    router = f'/routers/{create("routers")["id"]}'
    rises(router, f'PUT {router}/add_router_interface', {'subnet_id': net[1]['id']})
    rises(router, f'PUT {router}/remove_router_interface', {'subnet_id': net[1]['id']})


def test_a_port_that_becomes_an_interface_is_changed(create, net, rises):
    router, port = create('routers')['id'], create('ports', network_id=net[0]['id'])['id']
    rises(f'/ports/{port}', f'PUT /routers/{router}/add_router_interface', {'port_id': port})
