"""Further rules of the built-in networks: roles, quotas and ownership, also under concurrency."""

import threading
import time
from contextlib import suppress
from dataclasses import replace
from threading import Barrier, BrokenBarrierError

import pytest

from computeapi import errors
from computeapi.backends.network.local import ports as rules
from computeapi.backends.network.local import subnets as rules_of_subnets
from computeapi.backends.network.local.resources import KINDS
from computeapi.db import networks as rows
from computeapi.db import ports, routers
from computeapi.db.network_collection import Collection
from computeapi.db.ports import ROUTER_INTERFACE
from computeapi.db.routers import FLOATING_IPS
from tests.backends.implementations import ADMIN, ALICE, BOB, READER, SERVICE, OwnNetworks
from tests.backends.test_network import addresses, together


@pytest.fixture
def service(store):
    return OwnNetworks(store)


@pytest.fixture
def networks(service):
    return service.networks


@pytest.fixture
def bare(store):
    return OwnNetworks(store, bare=True).networks


@pytest.fixture
def make(service):
    return service.network


@pytest.fixture
def private(networks):
    return networks.networks(ALICE)[0].id


def test_a_port_of_another_project_is_released(networks, make):
    port = networks.create_port(ADMIN, make(ALICE, '192.0.2.0/24'), server_id='s', project_id='bananas', host='h')
    networks.unbind_port(ALICE, port.id)
    assert networks.port(BOB, port.id).device_id == ''


def test_auto_needs_an_external_network(bare):
    with pytest.raises(errors.Invalid, match='external network'):
        bare.auto_network(ALICE)


def test_the_last_place_of_a_quota_is_given_once(service, networks, private):
    service.limit('apples', port=3)
    ports, failures = together(8, lambda i: networks.create_port(ALICE, private, server_id=f's{i}'))
    assert len(ports) == 3
    assert [type(failure) for failure in failures] == [errors.OverQuota] * 5


def test_one_server_gets_the_port(service, networks, private):
    port = service.port(ALICE, private)
    bound, failures = together(8, lambda i: networks.bind_port(ALICE, port, server_id=f's{i}', host='h'))
    assert len(bound) == 1
    assert [type(failure) for failure in failures] == [errors.PortInUse] * 7


@pytest.fixture
def meet(monkeypatch):
    """meet(module, name): a caller of this function waits for a second caller to arrive, if possible."""
    together = Barrier(2)

    def meet(module, name):
        original = getattr(module, name)

        def later(*facts, **more):
            with suppress(BrokenBarrierError):
                together.wait(0.5)
            return original(*facts, **more)

        monkeypatch.setattr(module, name, later)

    return meet


@pytest.fixture
def slow_locks(monkeypatch):
    """Pauses after each lock."""
    lock = Collection.lock

    def slowly(*facts):
        found = lock(*facts)
        time.sleep(0.3)
        return found

    monkeypatch.setattr(Collection, 'lock', slowly)


def _port(service, networks, private):
    port = service.port(ALICE, private)
    return port, {'fixed_ips': [{'ip_version': 4}]}, lambda: networks.add_fixed_ip(ADMIN, port)


def _subnet(service, networks, private):
    resources = service.own.resources
    [subnet] = resources.get(ADMIN, 'networks', private)['subnets']
    return subnet, {'name': 'new'}, lambda: resources.update(ADMIN, 'subnets', subnet, {'name': 'other'})


def _floating_ip(service, networks, private):
    port, floating_ip = service.port(ALICE, private), networks.create_floating_ip(ALICE)
    networks.associate_floating_ip(ALICE, floating_ip.address, port)
    return floating_ip.id, {'port_id': port}, lambda: networks.delete_port(ALICE, port)


def _policy(service, networks, private):
    policy = service.own.resources.create(ADMIN, 'qos/policies', {'name': 'gold'})['id']
    return policy, {'is_default': True}, lambda: service.network(ADMIN, qos_policy_id=policy)


MINDED = {'ports': _port, 'subnets': _subnet, 'floatingips': _floating_ip, 'qos/policies': _policy}
"""By kind: an existing resource, a change to it, and a concurrent change by somebody else."""


@pytest.mark.several_writers
@pytest.mark.usefixtures('slow_locks')
@pytest.mark.parametrize('kind', MINDED)
def test_who_minds_the_revision_locks_in_the_order_of_others(service, networks, private, kind):
    resources = service.own.resources
    changed, facts, beside = MINDED[kind](service, networks, private)
    revision = resources.get(ADMIN, kind, changed)['revision_number']
    acts = (lambda: resources.update(ADMIN, kind, changed, facts, revision)), beside
    made, failures = together(2, lambda i: acts[i]())
    assert len(made) + len(failures) == 2
    assert {type(failure) for failure in failures} <= {errors.RevisionMismatch, errors.PortNotFound}


@pytest.mark.several_writers
@pytest.mark.usefixtures('slow_locks')
def test_an_automatic_network_goes_while_its_router_is_given_an_interface(service, networks, make):
    resources, [subnet] = service.own.resources, [{'cidr': '10.7.0.0/24'}]
    resources.auto_topology(ALICE, 'apples')
    network = resources.get(ALICE, 'networks', make(ALICE, subnet))
    [router] = resources.find(ALICE, 'routers')
    acts = (
        lambda: resources.delete_auto_topology(ALICE, 'apples'),
        lambda: resources.add_router_interface(ALICE, router['id'], {'subnet_id': network['subnets'][0]}),
    )
    _, failures = together(2, lambda i: acts[i]())
    assert {type(failure) for failure in failures} <= {errors.RouterNotFound, errors.RouterInUse}


@pytest.mark.several_writers
@pytest.mark.usefixtures('slow_locks')
def test_two_make_ports_on_the_same_networks_in_another_order(service, make):
    on, callers = [make(ADMIN, f'192.0.2.{first}/28', shared=True) for first in (16, 32)], (ALICE, BOB)
    orders = [[{'network_id': network} for network in order] for order in (on, on[::-1])]
    made, failures = together(2, lambda i: service.own.resources.create_all(callers[i], 'ports', orders[i]))
    assert [len(ports) for ports in made] == [2, 2]
    assert failures == []


EXTERNAL = {'name': 'outside', 'router:external': True, 'is_default': True}
POOL = {'prefixes': ['10.8.0.0/16'], 'is_default': True}


@pytest.mark.several_writers
@pytest.mark.parametrize(('kind', 'facts'), [('networks', EXTERNAL), ('subnetpools', POOL)])
def test_one_default_is_left_when_two_are_made_at_once(service, meet, kind, facts):
    resources, callers = service.own.resources, (ADMIN, replace(ADMIN, project_id='other'))
    meet(KINDS[kind].collection, 'insert')
    made, failures = together(2, lambda i: resources.create(callers[i], kind, facts))
    assert (len(made), failures) == (2, [])
    assert len(resources.find(ADMIN, kind, {'is_default': ['true']})) == 1


@pytest.mark.several_writers
@pytest.mark.parametrize(('kind', 'facts'), [('networks', EXTERNAL), ('subnetpools', POOL)])
def test_one_default_is_left_when_two_become_it_at_once(service, meet, kind, facts):
    resources = service.own.resources
    there = [resources.create(ADMIN, kind, {**facts, 'is_default': False}) for _ in range(2)]
    meet(KINDS[kind].collection, 'update')

    def change(i):
        return resources.update(ADMIN, kind, there[i]['id'], {'is_default': True}, there[i]['revision_number'])

    made, failures = together(2, change)
    assert (len(made), failures) == (2, [])
    assert len(resources.find(ADMIN, kind, {'is_default': ['true']})) == 1


@pytest.mark.several_writers
def test_one_network_is_on_a_segment_when_two_are_made_at_once(service, meet):
    resources, callers = service.own.resources, (ADMIN, replace(ADMIN, project_id='other'))
    segment = {'provider:network_type': 'vlan', 'provider:physical_network': 'p', 'provider:segmentation_id': 7}
    meet(KINDS['networks'].collection, 'insert')
    made, failures = together(2, lambda i: resources.create(callers[i], 'networks', {'name': 'n', **segment}))
    assert (len(made), [type(failure) for failure in failures]) == (1, [errors.Conflict])


@pytest.mark.several_writers
def test_of_two_changes_of_addresses_at_once_one_counts(service, private, meet):
    port, resources = service.port(ALICE, private), service.own.resources
    meet(rules, '_check_rights')
    wanted = [[{'ip_address': '10.0.0.77'}], [{'ip_address': '10.0.0.78'}]]
    _, failures = together(2, lambda i: resources.update(ADMIN, 'ports', port, {'fixed_ips': wanted[i]}))
    held = [held['ip_address'] for held in resources.get(ADMIN, 'ports', port)['fixed_ips']]
    assert failures == []
    assert held in (['10.0.0.77'], ['10.0.0.78'])


@pytest.mark.several_writers
def test_of_two_changes_of_security_groups_at_once_one_counts(service, networks, private, meet):
    groups = [networks.create_security_group(ALICE, name, '').id for name in 'ab']
    port = service.port(ALICE, private)
    meet(rules, '_groups')
    _, failures = together(2, lambda i: networks.set_port_security_groups(ALICE, port, [groups[i]]))
    held = service.own.resources.get(ADMIN, 'ports', port)['security_groups']
    assert failures == []
    assert held in ([groups[0]], [groups[1]])


@pytest.mark.several_writers
def test_no_floating_ip_leads_to_an_address_that_leaves_its_port_meanwhile(networks, private, meet):
    port = networks.add_fixed_ip(ALICE, networks.create_port(ALICE, private, server_id='s').id)
    leaving, floating_ip = addresses(port)[0], networks.create_floating_ip(ALICE)
    meet(routers, 'dissociate_ports')
    meet(routers, 'floating_ip_leads_to')

    def act(i):
        if i:
            return networks.remove_fixed_ip(ALICE, port.id, leaving)
        return networks.associate_floating_ip(ALICE, floating_ip.address, port.id, leaving)

    together(2, act)
    assert networks.floating_ip(ALICE, floating_ip.id).port_id is None


@pytest.mark.several_writers
def test_a_floating_ip_is_taken_from_a_port_that_goes_meanwhile(networks, private, monkeypatch):
    port, floating_ip = networks.create_port(ALICE, private, server_id='s'), networks.create_floating_ip(ALICE)
    networks.associate_floating_ip(ALICE, floating_ip.address, port.id)
    going, owned = threading.Thread(target=networks.delete_port, args=(ALICE, port.id)), FLOATING_IPS.owned

    def later(*facts):
        found = owned(*facts)
        going.start()
        going.join(0.5)
        return found

    monkeypatch.setattr(FLOATING_IPS, 'owned', later)
    networks.disassociate_floating_ip(ALICE, floating_ip.address)
    going.join()
    assert networks.floating_ip(ALICE, floating_ip.id).port_id is None
    assert networks.ports(ALICE, ids=[port.id]) == []


def _remove_interface(resources, interface):
    resources.remove_router_interface(ADMIN, interface['device_id'], {'port_id': interface['id']})


def _move_interface(resources, interface):
    other = resources.create(ADMIN, 'subnets', {'network_id': interface['network_id'], 'cidr': '198.51.100.0/24'})
    resources.update(ADMIN, 'ports', interface['id'], {'fixed_ips': [{'subnet_id': other['id']}]})


@pytest.mark.several_writers
@pytest.mark.parametrize(
    ('module', 'name', 'leave'), [(rules, 'remove', _remove_interface), (ports, 'remove_fixed_ip', _move_interface)]
)
def test_no_floating_ip_leads_through_an_interface_that_goes_meanwhile(
    service, networks, private, monkeypatch, module, name, leave
):
    port, floating_ip = networks.create_port(ALICE, private, server_id='s'), networks.create_floating_ip(ALICE)
    resources, remove = service.own.resources, getattr(module, name)
    [interface] = resources.find(ADMIN, 'ports', {'network_id': [private], 'device_owner': [ROUTER_INTERFACE]})

    def associate():
        with suppress(errors.Unreachable):
            networks.associate_floating_ip(ALICE, floating_ip.address, port.id)

    coming = threading.Thread(target=associate)

    def later(*facts):
        coming.start()
        coming.join(0.5)
        return remove(*facts)

    monkeypatch.setattr(module, name, later)
    leave(resources, interface)
    coming.join()
    assert networks.floating_ip(ALICE, floating_ip.id).port_id is None


def test_what_was_in_the_way_of_others_is_done_again(networks, private, deadlock):
    group = networks.create_security_group(ALICE, 'group', '').id

    def done(change, *facts, **more):
        deadlock()
        return change(ALICE, *facts, **more)

    port = done(networks.create_port, private, server_id='s')
    port = done(networks.add_fixed_ip, port.id)
    first, second = addresses(port)
    assert addresses(done(networks.remove_fixed_ip, port.id, second)) == [first]
    assert done(networks.set_port_security_groups, port.id, [group]).security_groups == (group,)
    done(networks.activate_binding, port.id, 'h')
    done(networks.unbind_port, port.id)
    assert done(networks.bind_port, port.id, server_id='other', host='h').id == port.id
    done(networks.delete_port, port.id)
    assert networks.ports(ALICE, ids=[port.id]) == []


@pytest.mark.several_writers
def test_the_gateway_and_the_pools_of_a_subnet_change_at_once(service, make, meet):
    network, resources = make(ALICE, '192.0.2.0/24'), service.own.resources
    subnet = resources.find(ALICE, 'subnets', {'network_id': [network]})[0]['id']
    # There is room for the new gateway in either order.
    resources.update(ALICE, 'subnets', subnet, {'allocation_pools': [{'start': '192.0.2.9', 'end': '192.0.2.99'}]})
    changes = {'gateway_ip': '192.0.2.254'}, {'allocation_pools': [{'start': '192.0.2.9', 'end': '192.0.2.19'}]}
    meet(rules_of_subnets, '_resolvers_and_routes')
    _, failures = together(2, lambda i: resources.update(ALICE, 'subnets', subnet, dict(changes[i])))
    assert failures == []
    kept = resources.get(ALICE, 'subnets', subnet)
    assert {name: kept[name] for change in changes for name in change} == {**changes[0], **changes[1]}


@pytest.mark.several_writers
def test_a_port_that_goes_while_it_is_looked_up_is_not_there(networks, private, monkeypatch):
    port, around = networks.create_port(ALICE, private, server_id='s'), routers.around_ports

    def go(*facts):
        networks.delete_port(ALICE, port.id)
        return around(*facts)

    monkeypatch.setattr(routers, 'around_ports', go)
    with pytest.raises(errors.PortNotFound):
        networks.port(ALICE, port.id)
    monkeypatch.undo()
    port = networks.create_port(ALICE, private, server_id='s')
    monkeypatch.setattr(routers, 'around_ports', go)
    assert networks.ports(ALICE, server_ids=['s']) == []


@pytest.mark.several_writers
def test_a_floating_ip_that_goes_with_its_network_while_it_is_looked_up_is_not_there(service, networks, monkeypatch):
    pool, wires = service.network(ADMIN, '198.51.100.0/24', name='pool', **{'router:external': True}), rows.wires
    floating_ip = networks.create_floating_ip(ALICE, 'pool')

    def go(*facts):
        service.own.resources.delete(ADMIN, 'networks', pool)
        return wires(*facts)

    monkeypatch.setattr(rows, 'wires', go)
    with pytest.raises(errors.FloatingIPNotFound):
        networks.floating_ip(ALICE, floating_ip.id)


def test_ports_ask_for_bandwidth(service, networks, make):
    policy, resources = service.bandwidth(100), {'NET_BW_EGR_KILOBIT_PER_SEC': 100}
    plain, policed = make(ALICE, '10.1.0.0/24'), make(ALICE, '10.2.0.0/24', qos_policy_id=policy)
    assert networks.network(ALICE, plain).resource_request is None
    assert networks.network(ALICE, policed).resource_request['resources'] == resources
    own, none = service.port(ALICE, plain, qos_policy_id=policy), service.port(ALICE, plain)
    assert networks.port(ALICE, none).resource_request is None
    for port in (networks.port(ALICE, own), networks.create_port(ALICE, policed, server_id='s')):
        assert port.resource_request['resources'] == resources


@pytest.mark.parametrize('caller', [READER, SERVICE], ids=['reader', 'service'])
def test_who_may_only_read_changes_nothing(networks, private, caller):
    group = networks.create_security_group(ALICE, 'mine', '')
    port = networks.create_port(ALICE, private, server_id='server')
    for change in (
        lambda: networks.create_port(caller, private, server_id='server'),
        lambda: networks.delete_port(caller, port.id),
        lambda: networks.set_port_security_groups(caller, port.id, []),
        lambda: networks.create_floating_ip(caller),
        lambda: networks.create_security_group(caller, 'other', ''),
        lambda: networks.create_security_group_rule(caller, group.id),
        lambda: networks.delete_security_group(caller, group.id),
    ):
        with pytest.raises(errors.Forbidden):
            change()
    assert networks.port(caller, port.id) == port
    assert {each.name for each in networks.security_groups(caller)} == {'default', 'mine'}


def test_a_rule_is_what_its_normalized_network_says(networks):
    group = networks.create_security_group(ALICE, 'web', '')
    networks.create_security_group_rule(ALICE, group.id, remote_ip_prefix='10.1.2.3/8')
    with pytest.raises(errors.SecurityGroupRuleExists):
        networks.create_security_group_rule(ALICE, group.id, remote_ip_prefix='10.0.0.0/8')


def test_without_pools_there_are_no_floating_ips(bare):
    with pytest.raises(errors.FloatingIPPoolNotFound):
        bare.create_floating_ip(ALICE)


def test_a_floating_ip_is_free_when_its_fixed_address_is_gone(networks, private):
    port = networks.create_port(ALICE, private, server_id='s')
    port = networks.add_fixed_ip(ALICE, port.id)
    floating_ip = networks.create_floating_ip(ALICE)
    last = addresses(port)[1]
    assert networks.associate_floating_ip(ALICE, floating_ip.address, port.id, last).fixed_address == last
    networks.remove_fixed_ip(ALICE, port.id, last)
    assert networks.floating_ip(ALICE, floating_ip.id) == floating_ip


def test_a_port_has_so_many_addresses(networks, private, monkeypatch):
    monkeypatch.setattr(rules, 'MAX_ADDRESSES', 2)
    port = networks.add_fixed_ip(ALICE, networks.create_port(ALICE, private, server_id='s').id)
    with pytest.raises(errors.Invalid, match='at most 2'):
        networks.add_fixed_ip(ALICE, port.id)
