"""The actions that the page offers in a server's state are those that the cloud allows."""

import pytest

from computeapi.testing import Cloud
from computeapi.ui.requirements import requirements

REQUIREMENTS = requirements()
SIMPLE = (
    'os-start',
    'os-stop',
    'pause',
    'unpause',
    'suspend',
    'resume',
    'shelve',
    'unshelve',
    'unrescue',
    'confirmResize',
)
STATUSES = ('ACTIVE', 'SHUTOFF', 'PAUSED', 'SUSPENDED', 'SHELVED', 'ERROR')
SERVERS = [{'name': status, 'flavor': 'm1.tiny', 'status': status} for status in STATUSES]


@pytest.fixture(scope='module')
def cloud():
    with Cloud() as cloud:
        yield cloud


@pytest.mark.parametrize('action', SIMPLE)
def test_what_each_state_allows(cloud, action):
    cloud.reset()
    cloud.load({'version': 1, 'servers': SERVERS})
    compute = cloud.connection().compute
    servers = compute.get('/servers/detail?all_tenants=1', microversion='2.96').json()['servers']
    assert sorted(server['name'] for server in servers) == sorted(STATUSES)
    for server in servers:
        state, [told] = server['OS-EXT-STS:vm_state'], REQUIREMENTS['actions'][action]
        fits = state in told['states'] and (server['OS-EXT-SRV-ATTR:host'] or not told['hosted'])
        answer = compute.post(f'/servers/{server["id"]}/action', json={action: None}, microversion='2.96')
        assert answer.status_code == (202 if fits else 409), (server['name'], answer.text)


def test_a_server_that_is_on_has_a_console():
    [told] = REQUIREMENTS['actions']['console']
    assert {'active', 'paused', 'rescued'} <= set(told['states']) and 'stopped' not in told['states']


def test_one_that_is_recorded_by_another_name_is_known():
    [told] = REQUIREMENTS['actions']['os-migrateLive']
    assert told == {
        'states': ['active', 'paused'],
        'tasks': [None],
        'lockable': True,
        'launched': True,
        'hosted': False,
    }


def test_states_are_called_as_clients_read_them():
    assert REQUIREMENTS['statuses']['stopped'] == 'SHUTOFF'
    states = {state for those in REQUIREMENTS['actions'].values() for each in those for state in each['states'] or ()}
    assert states and states <= REQUIREMENTS['statuses'].keys()
