"""Neutron v2.0 on the built-in networks, with callers whose tokens are their names."""

import pytest

from computeapi.backends.network.local import LocalNetworks
from computeapi.context import Context
from computeapi.standalone.network import neutron
from tests.standalone.callers import CALLERS, answer_of, authenticating
from tests.standalone.network.kinds import KINDS

authenticate = authenticating(
    nova=Context(user_id='nova', project_id='services', roles=frozenset({'member', 'service'})),
    system=Context(user_id='sue', is_admin=True, roles=frozenset({'admin'})),
)


@pytest.fixture
def networks(store):
    networks = LocalNetworks(store)
    networks.populate(CALLERS['admin'])
    return networks


@pytest.fixture
def ask(networks):
    """ask('POST /networks', {...}, by='alice') -> the response, which must have the status `expect` if it is given."""
    app = neutron(networks, authenticate)

    def ask(request, json=None, *, by='alice', expect=None, **others):
        method, path = request.split(' ', 1)
        return answer_of(app, f'{method} /v2.0{path}', json, by, expect, **others)

    return ask


@pytest.fixture
def create(ask):
    """create('networks', name='one', by='alice') -> the network."""

    def create(kind, by='alice', **kwargs):
        name = KINDS[kind][0]
        return ask(f'POST /{kind}', {name: kwargs}, by=by, expect=201).json[name]

    return create


@pytest.fixture
def names(ask):
    """names('networks?shared=true') -> the names of the listed resources."""

    def names(path, by='alice'):
        [listed] = ask(f'GET /{path}', by=by, expect=200).json.values()
        return [document['name'] for document in listed]

    return names


@pytest.fixture
def public(ask):
    return ask('GET /networks?router:external=True').json['networks'][0]['id']


@pytest.fixture
def net(create):
    """A network of alice's with a subnet 192.0.2.0/24, both as documents."""
    network = create('networks', name='net')
    return network, create('subnets', name='sub', network_id=network['id'], cidr='192.0.2.0/24')


@pytest.fixture
def scope(ask):
    """An address scope of alice's."""
    asked = {'address_scope': {'name': 'routed', 'ip_version': 4}}
    return ask('POST /address-scopes', asked, expect=201).json['address_scope']


@pytest.fixture
def body(create, public):
    """body('ports') -> the JSON body that creates a port."""
    network = create('networks', name='home')
    group = create('security-groups', name='home')
    known = {'{network}': network['id'], '{group}': group['id'], '{public}': public}

    def body(kind, **kwargs):
        name, usual = KINDS[kind]
        return {name: {key: known.get(str(value), value) for key, value in usual.items()} | kwargs}

    return body
