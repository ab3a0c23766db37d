"""The APIs of the former nova-network, until 2.35: fixed IPs, pools of floating IPs, and DNS."""

import pytest

from computeapi.context import Context
from computeapi.errors import AddressInUse

BOB, READER, ALICE = 'bob:project', 'rea:project:reader', 'alice:elsewhere'
CONTEXT = Context(user_id='bob', project_id='project', roles=frozenset({'member', 'reader'}))
ADDRESS = '/os-fixed-ips/10.0.0.45'
DOMAIN = '/os-floating-ip-dns/domain1.example.org'
ENTRY = f'{DOMAIN}/entries/instance1'


@pytest.fixture(autouse=True)
def network(service):
    """The project's network, 10.0.0.0/16, which is reachable from 203.0.113.0/24."""
    service.networks.populate(CONTEXT, shared=False)
    return service.networks.networks(CONTEXT)[0]


@pytest.fixture
def boot(service, network, servers):
    """boot('10.0.0.45') -> the ID of a server with a port that has this address, by default any."""

    def boot(address=None):
        server = servers.add(hostname='compute.host.pvt', host='host')
        port = service.networks.create_port(CONTEXT, network.id, server_id=server, host='host', fixed_ip=address)
        servers.change(server, network_info=[{'port_id': port.id, 'created': True, 'mac_address': port.mac_address}])
        return server

    return boot


def message(answer):
    [fault] = answer.json.values()
    return answer.status, fault['message']


@pytest.mark.parametrize('path', [ADDRESS, '/os-floating-ips-bulk', '/os-floating-ip-dns'])
def test_they_end_with_2_35(api, legacy, path):
    assert api.get(path, '2.35').status == legacy.get(path).status == 200
    assert api.get(path, '2.36').status == 404


# ------------------------------------------------------------------ fixed IPs


@pytest.mark.parametrize(('version', 'folder'), [('2.3', 'os-fixed-ips'), ('2.4', 'os-fixed-ips/v2.4')])
def test_a_fixed_ip_looks_like_the_samples(api, boot, sample, shape, version, folder):
    boot('10.0.0.45')
    shown = api.get(ADDRESS, version).json
    assert shape(shown) == shape(sample(f'{folder}/fixedips-get-resp.json'))
    reserved = {'reserved': False} if version == '2.4' else {}
    used = {'address': '10.0.0.45', 'cidr': '10.0.0.0/16', 'host': 'host', 'hostname': 'compute.host.pvt'}
    assert shown['fixed_ip'] == used | reserved
    assert api.post(f'{ADDRESS}/action', sample(f'{folder}/fixedip-post-req.json'), version).status == 202


def test_a_reserved_address_is_given_to_nobody(api, service, network, boot):
    def reserved():
        return api.get(ADDRESS, '2.4').json['fixed_ip']['reserved']

    for _ in range(2):
        assert api.post(f'{ADDRESS}/action', {'reserve': None}).status == 202
        assert reserved()
    with pytest.raises(AddressInUse, match=r'10\.0\.0\.45 already allocated'):
        boot('10.0.0.45')
    for _ in range(2):
        assert api.post(f'{ADDRESS}/action', {'unreserve': None}).status == 202
        assert not reserved()
    boot('10.0.0.45')


def test_the_next_address_is_not_a_reserved_one(api, service, network):
    def next_address(server_id):
        return service.networks.create_port(CONTEXT, network.id, server_id=server_id).fixed_ips[0]['ip_address']

    first = next_address('s1')
    after = first.rpartition('.')[0] + f'.{int(first.rpartition(".")[2]) + 1}'
    api.post(f'/os-fixed-ips/{after}/action', {'reserve': None})
    assert next_address('s2') not in (first, after)


def test_of_several_networks_the_one_where_an_address_is_used(api, service, boot, servers):
    create, admin = service.networks.resources.create, CONTEXT.elevated()
    other = create(admin, 'networks', {})['id']
    create(admin, 'subnets', {'network_id': other, 'cidr': '10.0.0.0/24'})
    assert api.get(ADDRESS).json['fixed_ip']['cidr'] == '10.0.0.0/16'
    server = servers.add(hostname='other')
    service.networks.create_port(CONTEXT, other, server_id=server, fixed_ip='10.0.0.45')
    assert api.get(ADDRESS).json['fixed_ip']['cidr'] == '10.0.0.0/24'
    assert api.get(ADDRESS).json['fixed_ip']['hostname'] == 'other'
    # It is reserved on both.
    api.post(f'{ADDRESS}/action', {'reserve': None})
    with pytest.raises(AddressInUse):
        boot('10.0.0.45')


def test_which_fixed_ips_there_are(api):
    assert message(api.get('/os-fixed-ips/10.9.0.1')) == (404, 'Fixed IP not found for address 10.9.0.1.')
    assert api.post('/os-fixed-ips/10.9.0.1/action', {'reserve': None}).status == 404
    assert api.get('/os-fixed-ips/10.0.0.0').status == 404
    assert api.get('/os-fixed-ips/nowhere').status == 400
    assert api.post(f'{ADDRESS}/action', {'reserve': 1}).status == 400
    assert api.get(ADDRESS, as_=BOB).status == api.post(f'{ADDRESS}/action', {'reserve': None}, as_=BOB).status == 403


# ------------------------------------------------------------------ pools of floating IPs


@pytest.fixture
def bulk(api):
    """bulk(): the listed addresses of 10.10.10.0/29, by address."""

    def bulk():
        listed = api.get('/os-floating-ips-bulk').json['floating_ip_info']
        return {each['address']: each for each in listed if each['address'].startswith('10.10.10.')}

    return bulk


@pytest.fixture
def add(api):
    return lambda **kwargs: api.post('/os-floating-ips-bulk', {'floating_ips_bulk_create': kwargs})


@pytest.fixture
def remove(api):
    return lambda addresses: api.put('/os-floating-ips-bulk/delete', {'ip_range': addresses})


def test_addresses_look_like_the_samples(api, sample, shape):
    folder = 'os-floating-ips-bulk/floating-ips-bulk'
    made = api.post('/os-floating-ips-bulk', sample(f'{folder}-create-req.json'))
    assert (made.status, made.json) == (200, sample(f'{folder}-create-resp.json'))
    listed = {each['address']: each for each in api.get('/os-floating-ips-bulk').json['floating_ip_info']}
    assert [shape(listed['192.168.1.1'])] == [
        shape(each) for each in sample(f'{folder}-list-by-host-resp.json')['floating_ip_info']
    ]
    gone = api.put('/os-floating-ips-bulk/delete', sample(f'{folder}-delete-req.json'))
    assert (gone.status, gone.json) == (200, sample(f'{folder}-delete-resp.json'))
    assert '192.168.1.1' not in api.get('/os-floating-ips-bulk').text


def test_added_addresses_are_given_away(api, add, bulk):
    assert add(ip_range='10.10.10.0/29', pool='nova', interface='eth1').status == 200
    assert [each['name'] for each in api.get('/os-floating-ip-pools').json['floating_ip_pools']] == ['public', 'nova']
    free = {'interface': 'eth1', 'pool': 'nova', 'project_id': None, 'instance_uuid': None, 'fixed_ip': None}
    assert bulk() == {f'10.10.10.{n}': {'address': f'10.10.10.{n}', **free} for n in range(1, 7)}
    given = {api.post('/os-floating-ips', {'pool': 'nova'}, as_=BOB).json['floating_ip']['ip'] for _ in range(6)}
    assert given == bulk().keys()
    assert {each['project_id'] for each in bulk().values()} == {'project'}
    assert api.post('/os-floating-ips', {'pool': 'nova'}, as_=BOB).status == 404


def test_removed_addresses_are_not(api, add, remove, bulk):
    add(ip_range='10.10.10.0/29', pool='nova')
    floating = api.post('/os-floating-ips', {'pool': 'nova'}, as_=BOB).json['floating_ip']
    assert remove('10.10.10.4/30').status == remove('192.0.2.1').status == 200
    assert set(bulk()) == {'10.10.10.1', '10.10.10.2', '10.10.10.3', '10.10.10.4'}
    assert api.get(f'/os-floating-ips/{floating["id"]}').status == 200
    assert remove('10.10.10.0/29').status == 200
    assert bulk() == {}
    assert api.get(f'/os-floating-ips/{floating["id"]}').status == 404
    assert api.post('/os-floating-ips', {'pool': 'nova'}, as_=BOB).status == 404
    assert add(ip_range='10.10.10.5', pool='nova').status == 200
    assert set(bulk()) == {'10.10.10.5'}


def test_addresses_of_a_host(api, service, boot, servers):
    assert message(api.get('/os-floating-ips-bulk/host')) == (404, 'Floating IP not found for host host.')
    server, floating = boot(), service.networks.create_floating_ip(CONTEXT)
    service.cloud.floating_ips.associate(CONTEXT, servers.get(server), floating.address)
    [shown] = api.get('/os-floating-ips-bulk/host').json['floating_ip_info']
    assert (shown['address'], shown['instance_uuid']) == (floating.address, server)
    assert shown == api.get('/os-floating-ips-bulk').json['floating_ip_info'][0]
    api.put('/os-floating-ips-bulk/delete', {'ip_range': floating.address})
    assert servers.get(server).network_info[0]['addresses'][0]['floating'] == []


@pytest.mark.parametrize(
    ('addresses', 'status'),
    [
        ('10.10.10.0/30', 200),
        ('10.10.10.0/31', 400),
        ('10.0.0.0/8', 400),
        ('2001:db8::/64', 400),
        ('somewhere', 400),
        ('203.0.113.128/25', 409),
    ],
)
def test_which_addresses_can_be_added(add, addresses, status):
    assert add(ip_range=addresses).status == status


def test_who_deals_with_addresses(api, add):
    assert api.get('/os-floating-ips-bulk', as_=BOB).status == 403
    assert api.put('/os-floating-ips-bulk/create', {'ip_range': '10.10.10.1'}).status == 404
    assert api.put('/os-floating-ips-bulk/delete', {}).status == add().status == 400


# ------------------------------------------------------------------ DNS


@pytest.fixture
def domain(api):
    """A DNS domain of the project."""
    return api.put(DOMAIN, {'domain_entry': {'scope': 'public', 'project': 'project'}}).json


def entry(address='192.168.53.11', kind='A'):
    return {'dns_entry': {'ip': address, 'dns_type': kind}}


def test_names_look_like_the_samples(api, domain, sample, shape):
    folder = 'os-floating-ip-dns/floating-ip-dns'
    assert shape(domain) == shape(sample(f'{folder}-create-or-update-resp.json'))
    listed = api.get('/os-floating-ip-dns', as_=BOB).json
    assert shape(listed) == shape(sample(f'{folder}-list-resp.json'))
    made = api.put(ENTRY, sample(f'{folder}-create-or-update-entry-req.json'), as_=BOB).json['dns_entry']
    expected = sample(f'{folder}-create-or-update-entry-resp.json')['dns_entry']
    assert made == expected | {'ip': '192.168.53.11'}
    shown = api.get(ENTRY, as_=READER).json
    assert shape(shown) == shape(sample(f'{folder}-entry-get-resp.json'))
    found = api.get(f'{DOMAIN}/entries/192.168.53.11', as_=READER).json
    assert shape(found) == shape(sample(f'{folder}-entry-list-resp.json'))
    assert found['dns_entries'] == [shown['dns_entry']]


def test_names_change_and_go(api, domain):
    for address in ('192.168.53.11', '192.168.53.12'):
        assert api.put(ENTRY, entry(address), as_=BOB).status == 200
        assert api.get(ENTRY, as_=BOB).json['dns_entry']['ip'] == address
    assert message(api.get(f'{DOMAIN}/entries/192.168.53.11', as_=BOB)) == (404, 'DNS entries not found.')
    assert [api.delete(ENTRY, as_=BOB).status for _ in range(2)] == [202, 404]
    assert api.get(ENTRY, as_=BOB).status == 404


def test_names_are_quoted_twice(api, domain):
    quoted = '/os-floating-ip-dns/domain1%252Eexample%252Eorg/entries/instance1'
    assert api.put(quoted, entry(), as_=BOB).status == 200
    assert api.get(ENTRY, as_=BOB).json == api.get(quoted, as_=BOB).json


def test_what_is_in_a_domain_goes_with_it(api, domain):
    api.put(ENTRY, entry(), as_=BOB)
    assert [api.delete(DOMAIN).status for _ in range(2)] == [202, 404]
    assert message(api.get(ENTRY, as_=BOB)) == (404, 'Domain domain1.example.org could not be found.')
    api.put(DOMAIN, {'domain_entry': {'scope': 'private', 'availability_zone': 'nova'}})
    assert api.get(ENTRY, as_=BOB).status == 404


def test_whose_names_they_are(api, domain):
    api.put(ENTRY, entry(), as_=BOB)
    assert api.get('/os-floating-ip-dns', as_=ALICE).json == {'domain_entries': []}
    assert api.get(ENTRY, as_=ALICE).status == api.put(ENTRY, entry(), as_=ALICE).status == 404
    # The domain of a project becomes everybody's, but its entries do not.
    api.put(DOMAIN, {'domain_entry': {'scope': 'public'}})
    assert api.get('/os-floating-ip-dns', as_=ALICE).json['domain_entries'][0]['project'] is None
    assert api.get(ENTRY, as_=ALICE).status == api.delete(ENTRY, as_=ALICE).status == 404
    assert api.put(ENTRY, entry('192.0.2.1'), as_=ALICE).status == 409
    assert api.put(ENTRY, entry('192.0.2.2')).status == 200
    assert api.get(ENTRY, as_=BOB).json['dns_entry']['ip'] == '192.0.2.2'


def test_who_may_name(api, domain):
    body = {'domain_entry': {'scope': 'public'}}
    assert api.put(DOMAIN, body, as_=BOB).status == api.delete(DOMAIN, as_=BOB).status == 403
    assert api.put(ENTRY, entry(), as_=READER).status == api.delete(ENTRY, as_=READER).status == 403


@pytest.mark.parametrize(
    ('path', 'body'),
    [
        (DOMAIN, {'domain_entry': {}}),
        (DOMAIN, {'domain_entry': {'scope': 'secret'}}),
        (DOMAIN, {'domain_entry': {'scope': 'private', 'project': 'project'}}),
        (DOMAIN, {'domain_entry': {'scope': 'public', 'availability_zone': 'nova'}}),
        ('/os-floating-ip-dns/no%20name', {'domain_entry': {'scope': 'public'}}),
        (f'/os-floating-ip-dns/{"a" * 256}', {'domain_entry': {'scope': 'public'}}),
        (ENTRY, entry('nowhere')),
        (ENTRY, entry(kind='MX')),
        (f'{DOMAIN}/entries/no%2500name', entry()),
    ],
)
def test_what_is_no_name(api, domain, path, body):
    assert api.put(path, body).status == 400
