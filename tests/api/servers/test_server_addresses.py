"""Server actions for fixed and floating addresses, until 2.43."""

import pytest

from computeapi.compute.servers.addresses import REFRESH

BOB, READER, ALICE = 'bob:project', 'rea:project:reader', 'alice:elsewhere'
NETWORK = '3cb9bc59-5699-4588-a4b1-b87f96708bc6'
MISSING = '00000000-0000-4000-8000-00000000dead'


@pytest.fixture
def act(api, server, settle):
    """act('addFixedIp', networkId=...): the response, after the workers have finished."""

    def post(name, version='2.1', as_=BOB, server=server, **kwargs):
        answer = api.post(f'/servers/{server}/action', {name: kwargs}, version, as_=as_)
        settle()
        return answer

    return post


@pytest.fixture
def addresses(api, server):
    """addresses('fixed'): the server's addresses of one type, as clients see them."""

    def get(kind, server=server):
        shown = api.get(f'/servers/{server}').json['server']['addresses'].values()
        return [each['addr'] for network in shown for each in network if each['OS-EXT-IPS:type'] == kind]

    return get


@pytest.fixture
def floating(world):
    """The address of a floating IP whose external network is connected to the servers' network by a router."""
    world.networks.populate(world.bob)
    resources = world.networks.resources
    [public] = resources.find(world.bob, 'networks', {'name': ['public']})
    [subnet] = resources.find(world.bob, 'subnets', {'network_id': [NETWORK]})
    router = resources.create(world.bob, 'routers', {'external_gateway_info': {'network_id': public['id']}})
    resources.add_router_interface(world.bob, router['id'], {'subnet_id': subnet['id']})
    return world.networks.create_floating_ip(world.bob).address


@pytest.mark.parametrize('name', ['addFixedIp', 'removeFixedIp', 'addFloatingIp', 'removeFloatingIp'])
def test_they_end_with_2_43(act, name):
    facts = {'networkId': NETWORK} if name == 'addFixedIp' else {'address': '10.0.0.9'}
    assert act(name, '2.44', **facts).json['itemNotFound']['message'] == 'The resource could not be found.'
    assert act(name, '2.43', server=MISSING, **facts).status == 404
    assert act(name, '2.43').status == 400
    assert act(name, '2.43', **facts, other=1).status == 400


def test_an_address_is_text(act):
    for address, text in ((None, "None is not of type 'string'"), ('x', "'x' is not valid under any of the given")):
        assert text in act('addFloatingIp', '2.43', address=address).json['badRequest']['message']


# ------------------------------------------------------------------ fixed


def test_one_more_address_and_one_less(api, act, addresses, history, server, sample):
    (first,) = addresses('fixed')
    body = sample('os-multinic/multinic-add-fixed-ip-req.json')
    assert body['addFixedIp'].keys() == {'networkId'}
    answer = act('addFixedIp', networkId=NETWORK)
    assert (answer.status, answer.text) == (202, '')
    kept, second = addresses('fixed')
    assert kept == first and second != first
    assert act('removeFixedIp', address=first).status == 202
    assert addresses('fixed') == [second]
    assert history(server) == [
        ('removeFixedIp', None, [('compute_remove_fixed_ip_from_instance', 'Success')]),
        ('addFixedIp', None, [('compute_add_fixed_ip_to_instance', 'Success')]),
    ]


@pytest.mark.parametrize(
    ('name', 'facts'),
    [
        ('addFixedIp', {'networkId': MISSING}),
        ('addFixedIp', {'networkId': 5}),
        ('removeFixedIp', {'address': '10.0.0.99'}),
    ],
)
def test_what_is_not_there_shows_later(api, act, addresses, history, server, name, facts):
    before = addresses('fixed')
    assert act(name, **facts).status == 202
    assert addresses('fixed') == before
    assert history(server)[0][:2] == (name, 'Error')
    assert api.get(f'/servers/{server}').json['server']['status'] == 'ACTIVE'


@pytest.mark.parametrize(
    ('name', 'facts'), [('addFixedIp', {'networkId': NETWORK}), ('removeFixedIp', {'address': '10.0.0.99'})]
)
def test_a_server_goes_on_with_what_it_is_doing(api, act, create, server, settle, name, facts):
    new = create().json['server']['id']
    assert act(name, server=new, **facts).status == 202
    assert api.post(f'/servers/{server}/action', {'os-stop': None}, as_=BOB).status == 202
    assert act(name, **facts).status == 202
    assert [api.get(f'/servers/{each}').json['server']['status'] for each in (new, server)] == ['ACTIVE', 'SHUTOFF']


def test_fixed_addresses_are_checked(act, server, servers):
    assert act('addFixedIp', networkId='').status == 400
    assert act('removeFixedIp', address='x').status == 400
    assert act('addFixedIp', networkId=NETWORK, as_=READER).status == 403
    assert act('removeFixedIp', address='10.0.0.2', as_=READER).status == 403
    assert act('addFixedIp', networkId=NETWORK, as_=ALICE).status == 404
    servers.change(server, locked_by='owner')
    assert act('addFixedIp', networkId=NETWORK).status == 409


def test_v2_drops_unknown_keys(legacy, server):
    body = {'addFixedIp': {'networkId': '1', 'other': 1}}
    assert legacy.post(f'/servers/{server}/action', body, as_=BOB).status == 202


@pytest.mark.parametrize('after', [False, True])
def test_a_kill_adds_one_address(act, addresses, world, die, after):
    die(world.networks, 'add_fixed_ip', lambda: act('addFixedIp', networkId=NETWORK), after)
    assert len(addresses('fixed')) == 2


@pytest.mark.parametrize('after', [False, True])
def test_a_kill_removes_the_address(act, addresses, world, die, history, server, after):
    (address,) = addresses('fixed')
    die(world.networks, 'remove_fixed_ip', lambda: act('removeFixedIp', address=address), after)
    assert addresses('fixed') == []
    assert history(server)[0][:2] == ('removeFixedIp', None)


# ------------------------------------------------------------------ floating


def test_a_floating_ip_comes_and_goes(act, addresses, floating):
    (fixed,) = addresses('fixed')
    for _ in range(2):
        answer = act('addFloatingIp', address=floating)
        assert (answer.status, answer.text) == (202, '')
        assert answer.headers['Content-Type'] == 'text/html; charset=UTF-8'
        assert addresses('floating') == [floating]
    assert act('addFloatingIp', address=floating, fixed_address=fixed).status == 202
    answer = act('removeFloatingIp', address=floating)
    assert (answer.status, answer.text) == (202, '')
    assert addresses('floating') == []


def test_a_floating_ip_moves_to_another_server(act, addresses, create, settle, floating):
    other = create().json['server']['id']
    settle()
    act('addFloatingIp', address=floating)
    assert act('addFloatingIp', address=floating, server=other).status == 202
    assert addresses('floating') == [] and addresses('floating', other) == [floating]
    answer = act('removeFloatingIp', address=floating)
    assert answer.status == 409


def test_floating_ips_that_cannot_be_added(act, api, world, addresses, floating, server, settle):
    (fixed,) = addresses('fixed')

    def refused(status, **kwargs):
        answer = act('addFloatingIp', **kwargs)
        assert answer.status == status
        return next(iter(answer.json.values()))['message']

    assert refused(404, address='1.2.3.4') == 'floating IP not found'
    text = 'Specified fixed address not assigned to instance'
    assert refused(400, address=floating, fixed_address='10.1.1.1') == text
    act('addFloatingIp', address=world.networks.create_floating_ip(world.bob).address)
    text = f'Unable to associate floating IP {floating} to fixed IP {fixed} for instance {server}. Error: '
    assert refused(400, address=floating).startswith(text)
    assert refused(400, address='x').endswith("'x' is not valid under any of the given schemas")
    act('removeFloatingIp', address=world.networks.floating_ips(world.bob)[-1].address)
    for router in world.networks.resources.find(world.bob, 'routers'):
        world.networks.resources.update(world.bob, 'routers', router['id'], {'external_gateway_info': None})
    assert refused(400, address=floating).endswith('no router connects them.')
    act('removeFixedIp', address=fixed)
    assert refused(400, address=floating) == 'No fixed IPs associated to instance'
    for port in api.get(f'/servers/{server}/os-interface', as_=BOB).json['interfaceAttachments']:
        api.delete(f'/servers/{server}/os-interface/{port["port_id"]}', as_=BOB)
    settle()
    assert refused(400, address=floating) == 'Instance network is not ready yet'


def test_floating_ips_need_ipv4(act, world, addresses, floating, api, server):
    (fixed,) = addresses('fixed')
    subnet = {'network_id': NETWORK, 'ip_version': 6, 'cidr': 'fd00::/64'}
    world.networks.resources.create(world.bob, 'subnets', subnet)
    made = api.post(f'/servers/{server}/os-interface', {'interfaceAttachment': {'net_id': NETWORK}}, as_=BOB)
    act('removeFixedIp', address=fixed)
    for each in made.json['interfaceAttachment']['fixed_ips']:
        if ':' not in each['ip_address']:
            act('removeFixedIp', address=each['ip_address'])
    assert all(':' in address for address in addresses('fixed'))
    answer = act('addFloatingIp', address=floating)
    assert answer.json['badRequest']['message'] == (
        f'Unable to associate floating IP {floating} to any fixed IPs for instance {server}. '
        'Instance has no fixed IPv4 addresses to associate.'
    )


def test_who_may(act, addresses, floating):
    assert act('addFloatingIp', address=floating, as_=READER).status == 403
    assert act('addFloatingIp', address=floating, as_=ALICE).status == 404
    act('addFloatingIp', address=floating)
    text = "Policy doesn't allow os_compute_api:os-floating-ips:remove to be performed."
    assert act('removeFloatingIp', address=floating, as_=READER).json['forbidden']['message'] == text
    assert act('removeFloatingIp', address=floating, as_=ALICE).status == 404
    assert addresses('floating') == [floating]


def test_a_floating_ip_that_leads_nowhere(act, floating, server):
    """The floating IP belongs to no project, so only administrators are told more."""
    assert act('removeFloatingIp', address=floating).status == 403
    answer = act('removeFloatingIp', address=floating, as_='admin:project:admin')
    text = f'Floating IP {floating} is not associated with instance {server}.'
    assert answer.json == {'conflictingRequest': {'code': 409, 'message': text}}


def test_the_floating_ip_is_looked_up_before_the_server(act):
    answer = act('removeFloatingIp', address='10.1.1.1', server=MISSING)
    assert answer.json['itemNotFound']['message'] == 'Floating IP not found for address 10.1.1.1.'


def test_a_worker_reads_the_addresses_when_the_request_did_not(service, world, addresses, server, servers, settle):
    """A process may die while it changes a floating IP; the worker then updates the addresses."""
    (entry,) = servers.get(server).network_info
    servers.change(server, network_info=[entry | {'addresses': []}])
    with service.store.write() as connection:
        service.platform.tasks.add(connection, REFRESH, server, world.bob, leased=True)
    settle()
    assert addresses('fixed') == []
    service.platform.tasks.release_all()
    settle()
    assert len(addresses('fixed')) == 1
