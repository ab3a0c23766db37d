"""Behaviour specific to a real Neutron: permissions for ports, several bindings, and recovery after a crash."""

import logging

import pytest

from computeapi import errors
from computeapi.context import Context
from tests.backends.implementations import ADMIN, ALICE, RealNetworks

PROFILE, VIF_TYPE, HOST = 'binding:profile', 'binding:vif_type', 'binding:host_id'


@pytest.fixture
def service():
    return RealNetworks(None)


@pytest.fixture
def networks(service):
    return service.networks


@pytest.fixture
def private(networks):
    return networks.networks(ALICE)[0].id


@pytest.fixture
def neutron(service):
    """Neutron, called as an administrator."""
    return service.cloud.service('network')


@pytest.fixture
def shown(neutron):
    """shown(port_id): the port in Neutron's format."""
    return lambda port_id: neutron.get(f'/ports/{port_id}').json()['port']


@pytest.fixture
def bindings(service, networks):
    """bindings(port_id): the hosts on which a port is bound, and whether the binding is active."""

    def read(port_id):
        own = service.own.service.session
        facts = {'service_type': 'network', 'interface': 'public'}
        answer = own.get(f'/v2.0/ports/{port_id}/bindings', endpoint_filter=facts)
        return {each['host']: each['status'] for each in answer.json()['bindings']}

    return read


def test_a_bound_port_says_where_and_whose_it_is(networks, private, shown):
    port = networks.create_port(ALICE, private, server_id='s', host='one', zone='far', hostname='web')
    facts = shown(port.id)
    assert (facts['device_id'], facts['device_owner'], facts[HOST]) == ('s', 'compute:far', 'one')
    assert (facts['dns_name'], facts[VIF_TYPE]) == ('web', 'ovs')
    assert port.status == 'ACTIVE'


def test_what_neutron_is_asked(networks, private, caplog):
    """Floating IPs only if they are wanted; the names of networks are cached for a while."""
    port = networks.create_port(ALICE, private, server_id='s')
    # The list of extensions is requested once.
    networks.ports(ALICE, server_ids=['s'], floating=True)
    caplog.set_level(logging.DEBUG, 'keystoneauth')

    def asked():
        found = [record.message for record in caplog.records if record.message.startswith('REQ: ')]
        caplog.clear()
        return len(found)

    for questions, ask in (
        (1, lambda: networks.ports(ALICE, server_ids=['s'])),
        (2, lambda: networks.ports(ALICE, server_ids=['s'], floating=True)),
        (1, lambda: [networks.port(ALICE, port.id)]),
    ):
        assert [found.id for found in ask()] == [port.id] and asked() == questions


def test_a_host_is_told_how_a_port_is_bound_there(service, networks, private, shown):
    port = networks.create_port(ALICE, private, server_id='s', host='one')
    networks.add_binding(ALICE, port.id, 'two')
    own = service.own
    for host in ('one', 'two'):
        binding = own.binding(Context().elevated(), port.id, host)
        assert (binding.vif_type, binding.network_id, binding.mtu) == ('ovs', shown(port.id)['network_id'], port.mtu)
        assert binding.vif_details['port_filter']
    with pytest.raises(errors.NotFound):
        own.binding(Context().elevated(), port.id, 'three')


def test_who_made_a_port_can_be_seen(service, networks, private):
    given = service.port(ALICE, private)
    assert networks.create_port(ALICE, private, server_id='s', host='one', key='0').made
    assert not networks.bind_port(ALICE, given, server_id='s', host='one').made


def test_a_given_port_is_as_it_was_afterwards(service, networks, private, shown):
    port_id = service.port(ALICE, private, name='mine', dns_name='')
    networks.bind_port(ALICE, port_id, server_id='s', host='one', zone='far', hostname='web')
    networks.unbind_port(ALICE, port_id)
    facts = shown(port_id)
    assert (facts['device_id'], facts['device_owner'], facts[HOST], facts['dns_name']) == ('', '', '', '')
    assert (facts[VIF_TYPE], facts[PROFILE], facts['name']) == ('unbound', {}, 'mine')


def test_a_server_without_a_host_keeps_its_port(networks, private, shown):
    port = networks.create_port(ALICE, private, server_id='s', host='one', zone='far')
    networks.bind_port(ALICE, port.id, server_id='s', host=None)
    facts = shown(port.id)
    assert (facts['device_id'], facts['device_owner'], facts[HOST]) == ('s', 'compute:far', '')


def test_who_makes_a_port_for_another_project_says_so(service, networks, private, shown):
    port = networks.create_port(ADMIN, private, server_id='s', project_id='bananas')
    assert shown(port.id)['project_id'] == service.cloud.project_id('bananas')


def test_a_port_that_nobody_noted_is_found_again(networks, private, service):
    """The process that created it died before it was bound."""
    port_id = service.port(ALICE, private, device_id='s', description='compute:0')
    found = networks.create_port(ALICE, private, server_id='s', host='one', key='0')
    assert (found.id, found.host) == (port_id, 'one')
    assert [port.id for port in networks.ports(ALICE, server_ids=['s'])] == [port_id]


def test_what_cannot_be_bound_is_an_error(service, networks, private):
    with pytest.raises(errors.PortBindingFailed, match='unbindable'):
        networks.create_port(ALICE, private, server_id='s', host='unbindable', key='0')
    [port] = networks.ports(ALICE, server_ids=['s'], key='0')
    assert networks.bind_port(ALICE, port.id, server_id='s', host='one').status == 'ACTIVE'
    with pytest.raises(errors.PortBindingFailed, match='unbindable'):
        networks.bind_port(ALICE, port.id, server_id='s', host='unbindable')


def test_a_port_goes_with_its_server(networks, private, shown, bindings):
    port = networks.create_port(ALICE, private, server_id='s', host='one')
    for _ in range(2):
        networks.add_binding(ALICE, port.id, 'two')
    assert bindings(port.id) == {'one': 'ACTIVE', 'two': 'INACTIVE'}
    assert shown(port.id)[PROFILE] == {'migrating_to': 'two'}
    for _ in range(2):
        networks.activate_binding(ALICE, port.id, 'two')
    for _ in range(2):
        networks.delete_binding(ALICE, port.id, 'one')
    assert bindings(port.id) == {'two': 'ACTIVE'}
    assert (shown(port.id)[HOST], shown(port.id)[PROFILE]) == ('two', {})


def test_a_port_stays_with_its_server(networks, private, shown, bindings):
    port = networks.create_port(ALICE, private, server_id='s', host='one')
    networks.add_binding(ALICE, port.id, 'two')
    networks.delete_binding(ALICE, port.id, 'two')
    assert bindings(port.id) == {'one': 'ACTIVE'}
    assert (shown(port.id)[HOST], shown(port.id)[PROFILE]) == ('one', {})
    with pytest.raises(errors.PortBindingFailed):
        networks.add_binding(ALICE, port.id, 'unbindable')
    assert bindings(port.id) == {'one': 'ACTIVE'}
    with pytest.raises(errors.NotFound):
        networks.activate_binding(ALICE, port.id, 'three')
