"""The proxy APIs for networks and floating IPs, until 2.35."""

import pytest

from computeapi.context import Context

BOB, READER, ALICE, ADMIN = 'bob:project', 'rea:project:reader', 'alice:elsewhere', 'admin:admin'
CONTEXT = Context(user_id='bob', project_id='project', roles=frozenset({'member', 'reader'}))
MISSING = '00000000-0000-4000-8000-00000000dead'


@pytest.fixture
def network(service):
    """The project's network; a public one exists, too."""
    service.networks.populate(CONTEXT, shared=False)
    return service.networks.networks(CONTEXT)[0]


@pytest.fixture
def floating(service, network):
    return service.networks.create_floating_ip(CONTEXT)


PATHS = ['/os-networks', '/os-tenant-networks', '/os-floating-ips', '/os-floating-ip-pools']


@pytest.mark.parametrize('path', PATHS)
def test_they_end_with_2_35(api, path):
    assert api.get(f'{path}?x=1', '2.35').status == 200
    assert api.get(path, '2.36').status == 404


# ------------------------------------------------------------------ networks


def test_networks_look_like_the_samples_to_administrators(api, network, sample, shape):
    shown = api.get(f'/os-networks/{network.id}', as_=ADMIN).json
    assert shape(shown) == shape(sample('os-networks/network-show-resp.json'))
    listed = api.get('/os-networks', as_=ADMIN).json
    assert shape(listed) == shape(sample('os-networks/networks-list-resp.json'))


def test_others_see_less_of_a_network(api, network):
    shown = api.get(f'/os-networks/{network.id}', as_=READER).json['network']
    assert shown.pop('id') == network.id and shown.pop('label') == 'private'
    names = ['broadcast', 'cidr', 'cidr_v6', 'dns1', 'dns2', 'gateway', 'gateway_v6', 'netmask', 'netmask_v6']
    assert shown == dict.fromkeys(names)


def test_tenant_networks_look_like_the_sample(api, network, sample, shape):
    listed = api.get('/os-tenant-networks', as_=READER).json
    assert shape(listed) == shape(sample('os-tenant-networks/networks-list-res.json'))
    shown = api.get(f'/os-tenant-networks/{network.id}', as_=READER).json
    assert shown == {'network': {'id': network.id, 'label': 'private', 'cidr': 'None'}}


@pytest.mark.parametrize('path', ['/os-networks', '/os-tenant-networks'])
def test_networks_of_a_project(api, network, path):
    assert [each['label'] for each in api.get(path, as_=BOB).json['networks']] == ['private', 'public']
    assert [each['label'] for each in api.get(path, as_=ALICE).json['networks']] == ['public']
    for wrong in (f'{path}/{network.id}', f'{path}/{MISSING}', f'{path}/9'):
        missing = {'code': 404, 'message': 'Network not found'}
        assert api.get(wrong, as_=ALICE).json == {'itemNotFound': missing}


# ------------------------------------------------------------------ floating IPs


def test_pools(api, network, sample, shape):
    pools = api.get('/os-floating-ip-pools', as_=READER).json
    assert pools == {'floating_ip_pools': [{'name': 'public'}]}
    assert shape(pools) == shape(sample('os-floating-ip-pools/floatingippools-list-resp.json'))


def test_floating_ips_look_like_the_samples(api, network, sample, shape):
    assert api.get('/os-floating-ips', as_=BOB).json == sample('os-floating-ips/floating-ips-list-empty-resp.json')
    made = api.post('/os-floating-ips', sample('os-floating-ips/floating-ips-create-req.json'), as_=BOB)
    assert made.status == 200
    assert shape(made.json) == shape(sample('os-floating-ips/floating-ips-create-resp.json'))
    shown = api.get(f'/os-floating-ips/{made.json["floating_ip"]["id"]}', as_=READER).json
    assert shown == made.json
    assert shape(shown) == shape(sample('os-floating-ips/floating-ips-get-resp.json'))
    listed = api.get('/os-floating-ips', as_=READER).json
    assert shape(listed) == shape(sample('os-floating-ips/floating-ips-list-resp.json'))


@pytest.mark.parametrize(
    ('body', 'status'),
    [
        (None, 200),
        ({}, 200),
        ({'pool': None}, 200),
        ({'pool': ''}, 200),
        ({'pool': 'public', 'other': 1}, 200),
        ({'pool': 5}, 400),
        ({'pool': 'private'}, 404),
    ],
)
def test_what_can_be_asked_for(api, network, body, status):
    assert api.post('/os-floating-ips', body, as_=BOB).status == status


def test_there_may_be_no_pool_or_an_empty_one(api, service):
    assert api.post('/os-floating-ips', as_=BOB).json['itemNotFound']['message'] == 'Floating IP pool not found.'
    create, admin = service.networks.resources.create, CONTEXT.elevated()
    pool = create(admin, 'networks', {'name': 'tiny', 'router:external': True})['id']
    create(admin, 'subnets', {'network_id': pool, 'ip_version': 4, 'cidr': '10.9.0.0/30'})
    assert api.post('/os-floating-ips', as_=BOB).status == 200
    answers = [api.post('/os-floating-ips', body, as_=BOB) for body in (None, {'pool': 'tiny'})]
    messages = [answer.json['itemNotFound']['message'] for answer in answers]
    assert messages == ['No more floating IPs available.', 'No more floating IPs in pool tiny.']


def test_who_may(api, floating):
    path = f'/os-floating-ips/{floating.id}'
    assert api.post('/os-floating-ips', as_=READER).status == 403
    assert api.delete(path, as_=READER).status == 403
    missing = {'code': 404, 'message': f'Floating IP not found for ID {floating.id}'}
    assert api.get(path, as_=ALICE).json == api.delete(path, as_=ALICE).json == {'itemNotFound': missing}


def test_floating_ips_are_deleted(api, floating):
    path = f'/os-floating-ips/{floating.id}'
    assert api.delete(path, as_=BOB).status == 202
    assert api.delete(path, as_=BOB).status == 404


def test_a_floating_ip_in_use_leaves_its_server(api, service, network, floating, servers):
    server = servers.add()
    port = service.networks.create_port(CONTEXT, network.id, server_id=server, host='compute1')
    servers.change(server, network_info=[{'port_id': port.id, 'created': True, 'mac_address': port.mac_address}])
    service.cloud.floating_ips.associate(CONTEXT, servers.get(server), floating.address)
    path = f'/os-floating-ips/{floating.id}'
    shown = api.get(path, as_=BOB).json['floating_ip']
    assert (shown['instance_id'], shown['fixed_ip']) == (server, port.fixed_ips[0]['ip_address'])

    def leading():
        return servers.get(server).network_info[0]['addresses'][0]['floating']

    assert leading() == [floating.address]
    assert api.delete(path, as_=BOB).status == 202
    assert leading() == []
