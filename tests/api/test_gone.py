"""Resources that answer 410 at every version, and requests that are always refused."""

import pytest

from computeapi.api.gone import GONE, GONE_ACTIONS

BOB = 'bob:project'
FAULT = {
    'computeFault': {
        'code': 410,
        'message': 'This resource is no longer available. No forwarding address is given.',
    }
}
REQUESTS = [(method, path, None) for path, *methods in GONE for method in methods] + [
    ('POST', path, {action: None}) for path, *actions in GONE_ACTIONS for action in actions
]


def filled(path):
    return path.replace('{', '').replace('}', '')


def test_how_much_is_gone():
    assert len(REQUESTS) == 39


@pytest.mark.parametrize('version', ['2.1', '2.104'])
def test_it_is_gone(api, version):
    for method, path, body in REQUESTS:
        answer = api.request(method, filled(path), version, body, as_=BOB)
        assert (answer.status, answer.json) == (410, FAULT), f'{method} {path}'
        assert answer.headers['OpenStack-API-Version'] == f'compute {version}'


def test_whatever_is_asked(api, legacy):
    assert legacy.get('/os-agents').json == FAULT
    assert api.get('/os-agents?unknown=1', '2.104').json == FAULT
    assert api.post('/os-agents', {'anything': [1]}).json == FAULT
    assert api.post('/os-agents', raw=b'{').status == 400
    assert api.post('/os-networks/1/action', {'unknown': None}).status == 400
    assert api.request('PATCH', '/os-agents').status == 404


@pytest.mark.parametrize(
    ('method', 'path', 'body', 'last', 'first_without', 'hint'),
    [
        ('POST', '/os-baremetal-nodes', None, '2.35', '2.36', 'node-create'),
        ('DELETE', '/os-baremetal-nodes/1', None, '2.35', '2.36', 'node-delete'),
        ('POST', '/os-baremetal-nodes/1/action', {'add_interface': {}}, '2.35', '2.36', 'port-create'),
        ('POST', '/os-baremetal-nodes/1/action', {'remove_interface': ''}, '2.35', '2.36', 'port-delete'),
    ],
)
def test_it_is_refused(api, legacy, method, path, body, last, first_without, hint):
    for answer in (api.request(method, path, last, body), legacy.request(method, path, body=body)):
        assert answer.status == 400
        assert hint in answer.json['badRequest']['message']
    assert api.request(method, path, first_without, body).status == 404


@pytest.mark.parametrize(('path', 'status'), [('/os-baremetal-nodes', 200), ('/os-baremetal-nodes/1', 404)])
def test_there_are_no_bare_metal_nodes(api, path, status):
    answer = api.get(path, '2.35')
    assert answer.status == status and answer.json.get('nodes', []) == []
    assert api.get(path, '2.35', as_=BOB).status == 403
    assert api.get(path, '2.36').status == 404
