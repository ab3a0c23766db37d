"""The administrator's password: responses show it once, or never."""

import pytest

from tests.api.servers.conftest import IMAGE

ASKED = {
    'rebuild': ({'imageRef': IMAGE}, '2.1'),
    'rescue': ({}, '2.1'),
    'evacuate': ({'onSharedStorage': False, 'host': 'compute2'}, '2.13'),
}


@pytest.fixture
def answer(api, service, server, settle):
    """answer('rebuild', adminPass='x'): the response to that action."""

    def post(name, **kwargs):
        wanted, version = ASKED[name]
        if name == 'evacuate':
            service.conf.set_override('hosts', 2, 'simulated')
            service.hosts.register()
            body = {'host': 'compute1', 'binary': 'nova-compute', 'forced_down': True}
            assert api.put('/os-services/force-down', body, '2.11').status == 200
        found = api.post(f'/servers/{server}/action', {name: wanted | kwargs}, version)
        settle()
        assert found.status in (200, 202), found.json
        return found.json.get('server', found.json)

    return post


@pytest.mark.parametrize('name', ASKED)
def test_it_is_the_one_that_was_asked_for(answer, name):
    assert answer(name, adminPass='the asked one')['adminPass'] == 'the asked one'


@pytest.mark.parametrize('name', ASKED)
def test_it_is_made_where_none_was_asked_for(answer, name):
    assert len(answer(name)['adminPass']) == 12


@pytest.mark.parametrize('name', ASKED)
def test_it_is_not_told_where_it_means_nothing(service, answer, name):
    service.conf.set_override('enable_instance_password', False, 'api')
    assert 'adminPass' not in answer(name, adminPass='the asked one')


def test_nor_is_that_of_a_new_server(service, create):
    assert 'adminPass' in create().json['server']
    service.conf.set_override('enable_instance_password', False, 'api')
    assert 'adminPass' not in create().json['server']
