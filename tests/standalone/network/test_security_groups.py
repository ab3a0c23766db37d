"""Security groups: which go together on a port, whose their rules are, and how many there can be."""

import pytest

from tests.standalone.network.kinds import fault


@pytest.fixture
def groups(create):
    """A stateful group, and a stateless one."""
    return [create('security-groups', name=str(value), stateful=value)['id'] for value in (True, False)]


def test_the_groups_of_a_port_are_all_stateful_or_all_stateless(ask, create, net, groups):
    both = {'network_id': net[0]['id'], 'security_groups': groups}
    ask('POST /ports', {'port': both}, expect=409)
    for group in groups:
        port = create('ports', network_id=net[0]['id'], security_groups=[group])
        ask(f'PUT /ports/{port["id"]}', {'port': {'security_groups': groups}}, expect=409)
        assert ask(f'GET /ports/{port["id"]}').json['port']['security_groups'] == [group]


@pytest.mark.parametrize('chosen', [0, 1])
def test_a_group_in_use_stays_as_stateful_as_it_is(ask, create, net, groups, chosen):
    group = groups[chosen]
    port = create('ports', network_id=net[0]['id'], security_groups=[group])
    path, stateful = f'/security-groups/{group}', not chosen
    changed = {'security_group': {'stateful': not stateful}}
    assert fault(ask(f'PUT {path}', changed, expect=409))[0] == 'SecurityGroupInUse'
    ask(f'PUT {path}', {'security_group': {'stateful': stateful, 'name': 'new'}}, expect=200)
    ask(f'DELETE /ports/{port["id"]}', expect=204)
    assert ask(f'PUT {path}', changed, expect=200).json['security_group']['stateful'] is not stateful


def test_a_group_is_given_once(ask, create, net, groups):
    twice = {'security_groups': [groups[0], groups[0]]}
    ask('POST /ports', {'port': {'network_id': net[0]['id'], **twice}}, expect=400)
    port = create('ports', network_id=net[0]['id'])
    ask(f'PUT /ports/{port["id"]}', {'port': twice}, expect=400)


def test_a_rule_of_an_administrator_is_in_the_group_of_another_project(ask, create):
    group = create('security-groups', name='web')['id']
    facts = {'security_group_id': group, 'direction': 'ingress', 'protocol': 'tcp'}
    ask('POST /security-group-rules', {'security_group_rule': {**facts, 'project_id': 'admin'}}, expect=400)
    rule = create('security-group-rules', by='admin', **facts)
    assert rule['project_id'] == 'admin'
    hidden = create('security-groups', by='admin', name='web')['security_group_rules'][0]['id']
    listed = [each['id'] for each in ask('GET /security-group-rules').json['security_group_rules']]
    assert rule['id'] in listed and hidden not in listed
    shown = ask(f'GET /security-groups/{group}').json['security_group']['security_group_rules']
    assert rule['id'] in [each['id'] for each in shown]
    ask(f'DELETE /security-group-rules/{hidden}', expect=404)
    ask(f'DELETE /security-group-rules/{rule["id"]}', expect=204)


def test_the_rules_of_a_new_group_are_counted(ask, create):
    create('security-groups', name='first')
    used = ask('GET /quotas/apples/details.json').json['quota']['security_group_rule']['used']
    for limit, expected in ((used + 1, 409), (used + 2, 201)):
        ask('PUT /quotas/apples', {'quota': {'security_group_rule': limit}}, by='admin', expect=200)
        ask('POST /security-groups', {'security_group': {'name': 'second'}}, expect=expected)


def test_the_first_list_of_rules_has_those_of_the_default_group(ask):
    assert len(ask('GET /security-group-rules', by='bob').json['security_group_rules']) == 4
