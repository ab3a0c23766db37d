"""Interfaces of existing servers: attached during the request, detached by the workers."""

import pytest

from computeapi.backends.hypervisor import Outdated
from computeapi.context import Context
from computeapi.db.tables import network as tables

BOB, READER, ALICE = 'bob:project', 'rea:project:reader', 'alice:elsewhere'
NETWORK = '3cb9bc59-5699-4588-a4b1-b87f96708bc6'
MISSING = '00000000-0000-4000-8000-00000000dead'
ADMIN = Context(user_id='admin', project_id='project').elevated()


@pytest.fixture
def path(server):
    return f'/servers/{server}/os-interface'


@pytest.fixture
def attach(api, path):
    """attach('2.49', net_id=...): the response."""

    def post(version='2.1', as_=BOB, **kwargs):
        return api.post(path, {'interfaceAttachment': kwargs}, version, as_=as_)

    return post


@pytest.fixture
def detach(api, path, settle):
    def delete(port, as_=BOB):
        answer = api.delete(f'{path}/{port}', as_=as_)
        settle()
        return answer

    return delete


@pytest.fixture
def listed(api, path):
    return lambda: [each['port_id'] for each in api.get(path).json['interfaceAttachments']]


@pytest.fixture
def addresses(api, server):
    """addresses(): the server's addresses as clients see them."""

    def get():
        networks = api.get(f'/servers/{server}').json['server']['addresses'].values()
        return [address['addr'] for network in networks for address in network]

    return get


@pytest.fixture
def ports(world):
    """ports(): the IDs of all ports of the project."""
    return lambda: {port['id'] for port in world.networks.resources.find(world.bob, 'ports')}


@pytest.fixture
def second(world):
    """Another network."""
    return world.network(subnet='10.1.0.0/24')


def port_of(answer):
    assert answer.status == 200, answer
    return answer.json['interfaceAttachment']['port_id']


# ------------------------------------------------------------------ attaching


@pytest.mark.parametrize('version', ['2.1', '2.49', '2.70'])
def test_interfaces_look_like_the_samples(api, attach, detach, world, path, sample, shape, version):
    folder = 'os-attach-interfaces' + ('' if version == '2.1' else f'/v{version}')
    facts = sample(f'{folder}/attach-interfaces-create-req.json')['interfaceAttachment']
    made = attach(version, **facts | {'port_id': world.port()})
    assert made.status == 200
    assert shape(made.json) == shape(sample(f'{folder}/attach-interfaces-create-resp.json'))
    if version == '2.49':
        return
    port = port_of(made)
    shown = api.get(f'{path}/{port}', version, as_=READER)
    assert shown.json == made.json
    assert shape(shown.json) == shape(sample(f'{folder}/attach-interfaces-show-resp.json'))
    (first,) = (each['port_id'] for each in api.get(path).json['interfaceAttachments'] if each['port_id'] != port)
    detach(first)
    assert shape(api.get(path, version).json) == shape(sample(f'{folder}/attach-interfaces-list-resp.json'))
    facts = sample(f'{folder}/attach-interfaces-create-net_id-req.json')['interfaceAttachment']
    answer = attach(version, **facts | {'net_id': NETWORK, 'fixed_ips': [{'ip_address': '10.0.0.77'}]})
    assert shape(answer.json) == shape(made.json)


def test_a_port_is_made_on_a_network(attach, listed, addresses, world, second, server, history):
    answer = attach(net_id=second, fixed_ips=[{'ip_address': '10.1.0.77'}])
    port = port_of(answer)
    held = world.networks.port(world.bob, port)
    assert (held.device_id, held.host, held.status) == (server, 'compute1', 'ACTIVE')
    assert answer.json['interfaceAttachment'] == {
        'port_id': port,
        'net_id': second,
        'mac_addr': held.mac_address,
        'port_state': 'ACTIVE',
        'fixed_ips': [{'subnet_id': held.fixed_ips[0]['subnet_id'], 'ip_address': '10.1.0.77'}],
    }
    assert listed()[1:] == [port] and addresses()[1:] == ['10.1.0.77']
    assert f'link up {held.mac_address}' in console(world, server)
    assert history(server) == [('attach_interface', None, [('compute_attach_interface', 'Success')])]


def console(world, server):
    with world.store.read() as connection:
        from computeapi.db import servers as rows

        return world.service.hypervisor.console_output(rows.get(connection, server), None)


def test_a_given_port_is_bound(attach, listed, world, server):
    port = world.port()
    assert port_of(attach(port_id=port)) == port
    assert world.networks.port(world.bob, port).device_id == server
    answer = attach(port_id=port)
    assert answer.json == {'conflictingRequest': {'code': 409, 'message': f'Port {port} is still in use.'}}
    assert listed()[1:] == [port]


def test_what_is_refused_is_an_action_too(attach, world, server, history):
    port = world.port()
    attach(port_id=port)
    assert [attach(port_id=port).status, attach(net_id=MISSING).status, attach(port_id=MISSING).status] == [
        409,
        404,
        404,
    ]
    unknown, *failed, done = history(server)
    assert unknown == ('attach_interface', None, [])
    assert failed == [('attach_interface', 'Error', [('compute_attach_interface', 'Error')])] * 2
    assert done == ('attach_interface', None, [('compute_attach_interface', 'Success')])


def test_the_only_network_is_meant(api, attach, path, listed, world):
    assert attach().status == 200
    assert api.post(path, {}, as_=BOB).status == 200
    assert len(listed()) == 3
    world.network(subnet='10.1.0.0/24')
    text = 'Multiple possible networks found, use a Network ID to be more specific.'
    assert attach().json == {'badRequest': {'code': 400, 'message': text}}


def test_a_project_without_networks(api, attach, world, server, servers, detach, listed):
    for port in listed():
        detach(port)
    world.networks.resources.delete(world.bob, 'networks', NETWORK)
    answer = attach()
    text = "No specific network was requested and none are available for project 'project'."
    assert answer.json == {'badRequest': {'code': 400, 'message': text}}


@pytest.mark.parametrize(
    ('version', 'facts', 'status'),
    [
        ('2.1', {'net_id': MISSING}, 404),
        ('2.1', {'port_id': MISSING}, 404),
        ('2.1', {'net_id': 'x'}, 400),
        ('2.1', {'port_id': 'x'}, 400),
        ('2.1', {'port_id': MISSING, 'net_id': NETWORK}, 400),
        ('2.1', {'fixed_ips': [{'ip_address': '10.0.0.9'}]}, 400),
        ('2.1', {'net_id': NETWORK, 'fixed_ips': []}, 400),
        ('2.1', {'net_id': NETWORK, 'fixed_ips': [{'ip_address': '10.0.0.8'}, {'ip_address': '10.0.0.9'}]}, 400),
        ('2.1', {'net_id': NETWORK, 'fixed_ips': [{'ip_address': 'x'}]}, 400),
        ('2.1', {'net_id': NETWORK, 'fixed_ips': [{'ip_address': '192.168.0.1'}]}, 400),
        ('2.1', {'net_id': NETWORK, 'other': 1}, 400),
        ('2.48', {'tag': 'a'}, 400),
        ('2.49', {'tag': 'a'}, 200),
        ('2.49', {'tag': 'a,b'}, 400),
    ],
)
def test_what_can_be_asked_for(attach, listed, version, facts, status):
    before = listed()
    assert attach(version, **facts).status == status
    assert len(listed()) == len(before) + (status == 200)


def test_bodies_that_say_nothing(api, path, legacy):
    assert api.post(path, {'interfaceAttachment': None}, as_=BOB).status == 400
    assert api.post(path, {'other': 1}, as_=BOB).status == 400
    assert legacy.post(path, {'interfaceAttachment': {'net_id': NETWORK, 'tag': 'a'}}, as_=BOB).status == 200


def test_addresses_run_out(attach, world, ports):
    tiny = world.network(subnet='10.9.0.0/30')
    assert attach(net_id=tiny).status == 200
    before = ports()
    answer = attach(net_id=tiny)
    text = f'No more IP addresses available on network {tiny}.'
    assert answer.json == {'badRequest': {'code': 400, 'message': text}}
    assert ports() == before


def test_an_address_that_is_taken(attach, addresses, ports, server, history):
    (taken,) = addresses()
    before = ports()
    answer = attach(net_id=NETWORK, fixed_ips=[{'ip_address': taken}])
    assert answer.json == {'conflictingRequest': {'code': 409, 'message': f'Fixed IP {taken} is already in use.'}}
    assert addresses() == [taken] and ports() == before
    assert history(server) == [('attach_interface', 'Error', [('compute_attach_interface', 'Error')])]


def test_external_networks_are_for_those_who_may(attach, world):
    facts = {'router:external': True, 'context': world.admin}
    closed = world.network(subnet='10.3.0.0/24', **facts)
    shared = world.network(subnet='10.4.0.0/24', shared=True, **facts)
    answer = attach(net_id=closed)
    text = f'It is not allowed to create an interface on external network {closed}'
    assert answer.json == {'forbidden': {'code': 403, 'message': text}}
    port = world.port(network_id=closed)
    assert attach(port_id=port).json == answer.json
    assert attach(net_id=shared).status == 200
    assert attach(net_id=closed, as_='admin:admin').status == 200
    assert attach(port_id=port, as_='admin:admin').status == 200


def test_networks_without_addresses(attach, world):
    assert attach(net_id=world.network(subnet=None)).status == 400


def test_a_port_without_addresses(api, attach, world, server):
    empty = world.network(subnet=None, name='empty')
    answer = attach(port_id=world.port(network_id=empty, fixed_ips=[]))
    assert (answer.status, answer.json['interfaceAttachment']['fixed_ips']) == (200, [])
    assert api.get(f'/servers/{server}').json['server']['addresses']['empty'] == []
    assert api.get(f'/servers/{server}/ips/empty').json == {'empty': []}


def test_who_may(api, attach, detach, path, listed, world):
    (port,) = listed()
    assert attach(as_=ALICE).status == 404
    text = "Policy doesn't allow os_compute_api:os-attach-interfaces:create to be performed."
    assert attach(as_=READER).json == {'forbidden': {'code': 403, 'message': text}}
    assert detach(port, as_=READER).status == 403
    assert detach(port, as_=ALICE).status == 404
    assert api.get(path, as_=ALICE).status == 404
    assert api.get(f'{path}/{port}', as_=ALICE).status == 404
    assert listed() == [port]


def test_ports_of_others(api, attach, path, world, server):
    elsewhere = world.port(device_id='another-server')
    text = f'Instance {server} does not have a port with id {elsewhere}'
    assert api.get(f'{path}/{elsewhere}', as_=BOB).json == {'itemNotFound': {'code': 404, 'message': text}}
    assert api.get(f'{path}/{MISSING}', as_=BOB).json['itemNotFound']['message'].startswith(f'Port id {MISSING}')
    assert attach(port_id=elsewhere).status == 409


@pytest.fixture
def lent(world):
    """A free port of another project, on a network of the caller's that is shared with it."""
    other = Context(user_id='alice', project_id='elsewhere', roles=frozenset({'member'}))
    network_id = world.network(subnet='10.8.0.0/24')
    policy = {'object_type': 'network', 'object_id': network_id, 'action': 'access_as_shared'}
    world.networks.resources.create(world.bob, 'rbac-policies', {**policy, 'target_tenant': 'elsewhere'})
    return world.networks.resources.create(other, 'ports', {'network_id': network_id})['id']


@pytest.mark.parametrize('caller', [BOB, 'admin:admin'])
def test_a_port_of_another_project_is_not_for_the_servers_of_the_networks_owner(
    attach, world, server, listed, lent, caller
):
    before = listed()
    text = f'Port {lent} not usable for instance {server}.'
    assert attach(port_id=lent, as_=caller).json == {'badRequest': {'code': 400, 'message': text}}
    assert (listed(), world.networks.port(world.admin, lent).device_id) == (before, '')


def test_a_server_does_not_boot_with_a_port_of_another_project(create, api, world, settle, lent):
    made = create(networks=[{'port': lent}]).json['server']['id']
    settle()
    shown = api.get(f'/servers/{made}').json['server']
    assert shown['status'] == 'ERROR' and f'Port {lent} not usable' in shown['fault']['message']
    assert world.networks.port(world.admin, lent).device_id == ''


@pytest.mark.parametrize('facts', [{'vm_state': 'error'}, {'task_state': 'powering-off'}, {'locked_by': 'owner'}])
def test_a_server_that_is_in_no_state_for_it(attach, detach, listed, server, servers, facts):
    (port,) = listed()
    servers.change(server, **facts)
    assert attach().status == detach(port).status == 409
    if 'vm_state' in facts:
        text = f"Cannot 'attach_interface' instance {server} while it is in vm_state error"
        assert attach().json['conflictingRequest']['message'] == text
    assert listed() == [port]


def test_lists_take_no_parameters(api, path):
    assert api.get(f'{path}?x=1', '2.101').status == 200
    assert api.get(f'{path}?x=1', '2.102').status == 400


# ------------------------------------------------------------------ virtual interfaces


@pytest.fixture
def virtual(server):
    return f'/servers/{server}/os-virtual-interfaces'


@pytest.mark.parametrize(('version', 'name'), [('2.11', 'vifs-list-resp'), ('2.12', 'v2.12/vifs-list-resp')])
def test_virtual_interfaces_look_like_the_samples(api, attach, virtual, listed, sample, shape, version, name):
    attach(net_id=NETWORK)
    shown = api.get(virtual, version, as_=READER).json
    assert shape(shown) == shape(sample(f'os-virtual-interfaces/{name}.json'))
    assert [each['id'] for each in shown['virtual_interfaces']] == listed()
    assert {each.get('net_id', NETWORK) for each in shown['virtual_interfaces']} == {NETWORK}
    second = api.get(f'{virtual}?limit=1&offset=1', version).json['virtual_interfaces']
    assert second == shown['virtual_interfaces'][1:]


def test_virtual_interfaces_of_v2(legacy, virtual, sample, shape):
    assert shape(legacy.get(virtual).json) == shape(sample('os-virtual-interfaces/vifs-list-resp-v2.json'))


def test_virtual_interfaces_end_with_2_43(api, virtual):
    assert (api.get(virtual, '2.43').status, api.get(virtual, '2.44').status) == (200, 404)
    assert api.get(virtual, '2.43', as_=ALICE).status == 404


# ------------------------------------------------------------------ detaching


def test_a_port_that_compute_made_is_deleted(attach, detach, listed, addresses, ports, second, world, server, history):
    port = port_of(attach(net_id=second))
    mac = world.networks.port(world.bob, port).mac_address
    answer = detach(port)
    assert (answer.status, answer.text) == (202, '')
    assert port not in listed() and port not in ports() and len(addresses()) == 1
    assert f'link down {mac}' in console(world, server)
    assert history(server)[0] == ('detach_interface', None, [('compute_detach_interface', 'Success')])


def test_a_port_that_was_given_is_left(attach, detach, listed, world):
    port = world.port()
    attach(port_id=port)
    detach(port)
    assert port not in listed()
    assert world.networks.port(world.bob, port).device_id == ''
    assert attach(port_id=port).status == 200


def test_a_port_that_is_not_there_shows_later(detach, listed, server, history, api):
    before = listed()
    assert detach(MISSING).status == 202
    assert listed() == before
    assert history(server)[0] == ('detach_interface', 'Error', [('compute_detach_interface', 'Error')])
    assert api.get(f'/servers/{server}').json['server']['status'] == 'ACTIVE'


def test_detaching_is_not_lost_when_the_server_goes_on_to_something_else(api, path, listed, server, settle):
    (port,) = listed()
    api.delete(f'{path}/{port}', as_=BOB)
    api.post(f'/servers/{server}/action', {'os-stop': None}, as_=BOB)
    settle()
    assert listed() == []
    assert api.get(f'/servers/{server}').json['server']['status'] == 'SHUTOFF'


def test_ports_go_with_the_server_if_compute_made_them(api, attach, server, settle, ports, world):
    given = world.port()
    attach(port_id=given)
    attach()
    api.delete(f'/servers/{server}', as_=BOB)
    settle()
    assert ports() == {given}


# ------------------------------------------------------------------ failures


@pytest.mark.parametrize('given', [False, True])
def test_what_a_host_cannot_plug_is_given_back(attach, listed, addresses, ports, world, server, history, given):
    facts = {'port_id': world.port()} if given else {}
    before = (listed(), addresses(), ports())
    world.service.conf.set_override('fail', ['plug'], 'simulated')
    assert attach(**facts).status == 500
    assert (listed(), addresses(), ports()) == before
    assert history(server) == [('attach_interface', 'Error', [('compute_attach_interface', 'Error')])]
    world.service.conf.clear_override('fail', 'simulated')
    assert attach(**facts).status == 200


def test_what_a_host_cannot_unplug_stays(detach, listed, addresses, world):
    (port,) = listed()
    world.service.conf.set_override('fail', ['unplug'], 'simulated')
    assert detach(port).status == 202
    assert listed() == [port] and len(addresses()) == 1


@pytest.mark.parametrize('after', [False, True])
@pytest.mark.parametrize(('backend', 'step'), [('networks', 'create_port'), ('hypervisor', 'plug')])
def test_a_kill_at_the_request_does_not_lose_the_port(
    attach, service, listed, addresses, ports, second, die, backend, step, after
):
    before = ports()
    die(getattr(service, backend), step, lambda: attach(net_id=second), after)
    (made,) = ports() - before
    assert listed()[1:] == [made] and len(addresses()) == 2


@pytest.mark.parametrize('after', [False, True])
@pytest.mark.parametrize(('backend', 'step'), [('hypervisor', 'unplug'), ('networks', 'delete_port')])
def test_a_kill_of_the_worker_delays_the_detachment(
    detach, service, listed, addresses, ports, die, backend, step, after
):
    (port,) = listed()
    die(getattr(service, backend), step, lambda: detach(port), after)
    assert listed() == addresses() == [] and port not in ports()


# ------------------------------------------------------------------ foreign ports with the ID of the server


@pytest.fixture
def foreign(world, server):
    """foreign(): a port of another project that claims to be the server's."""
    mallory = Context(user_id='mallory', project_id='elsewhere', roles=frozenset({'member'}))
    resources, bare = world.networks.resources, world.network(context=mallory, subnet='10.9.0.0/24')
    facts = {'device_id': server, 'device_owner': 'compute:nova', 'port_security_enabled': False}
    created = resources.create(mallory, 'ports', {'network_id': bare, 'security_groups': [], **facts})
    return lambda: resources.get(mallory, 'ports', created['id'])


def test_a_port_of_others_is_not_shown_as_the_servers(api, path, server, listed, foreign):
    intruder = foreign()['id']
    assert len(listed()) == 1 and intruder not in listed()
    assert api.get(f'{path}/{intruder}').status == 404
    groups = api.get(f'/servers/{server}/os-security-groups').json['security_groups']
    assert [group['name'] for group in groups] == ['default']


def test_a_port_of_others_is_in_nobodys_way(act, server, addresses, foreign):
    before = foreign()
    world_ip, network_id = addresses(), before['network_id']
    assert act(server, 'addSecurityGroup', {'name': 'default'}).status == 400
    assert act(server, 'removeSecurityGroup', {'name': 'default'}).status == 202
    assert act(server, 'addSecurityGroup', {'name': 'default'}).status == 202
    act(server, 'addFixedIp', {'networkId': network_id})
    act(server, 'removeFixedIp', {'address': before['fixed_ips'][0]['ip_address']})
    assert act(server, 'migrate', as_='admin:project').status == 202
    assert addresses() == world_ip
    assert foreign() == before


def test_a_port_of_others_stays_when_the_server_goes(api, server, settle, foreign):
    before = foreign()
    assert api.delete(f'/servers/{server}', as_=BOB).status == 204
    settle()
    assert api.get(f'/servers/{server}').status == 404
    assert foreign() == before


def test_a_port_that_was_given_by_others_is_the_servers(api, server, world, attach, listed, settle):
    """As earlier releases allowed."""
    given = port_of(attach(port_id=world.port()))
    with world.store.write() as connection:
        connection.execute(tables.ports.update().filter_by(id=given).values(project_id='elsewhere'))
    assert given in listed()
    api.delete(f'/servers/{server}', as_=BOB)
    settle()
    assert world.networks.port(world.admin, given).device_id == ''


def test_who_takes_too_long_leaves_it_to_a_worker(api, server, service, settle, monkeypatch):
    """The client gets a temporary error; the worker that continues keeps what was created."""

    def plug(*arguments):
        raise Outdated()

    monkeypatch.setattr(type(service.hypervisor), 'plug', plug)
    assert api.post(f'/servers/{server}/os-interface', {'interfaceAttachment': {'net_id': NETWORK}}).status == 503
    monkeypatch.undo()
    assert len(service.networks.ports(ADMIN, server_ids=[server])) == 2
    service.platform.tasks.release_all()
    settle()
    addresses = api.get(f'/servers/{server}').json['server']['addresses']
    assert len(addresses['network']) == 2
