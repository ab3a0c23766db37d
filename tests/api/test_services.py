"""Services, at the versions where the API changes."""

import pytest

PATH = '/os-services'
ACTIONS = [('enable', {}), ('disable', {}), ('disable-log-reason', {'disabled_reason': 'repairs'})]


@pytest.fixture
def compute(api, service):
    """The compute service, as listed at 2.53."""
    service.hosts.register()
    return api.get(f'{PATH}?binary=nova-compute', '2.53').json['services'][0]


@pytest.mark.parametrize(('version', 'folder'), [('2.1', ''), ('2.11', 'v2.11/'), ('2.53', 'v2.53/')])
def test_lists_look_like_the_samples(api, compute, sample, shape, version, folder):
    wanted = shape(sample(f'os-services/{folder}services-list-get-resp.json')['services'][0])
    api.put(f'{PATH}/{compute["id"]}', {'status': 'disabled', 'disabled_reason': 'repairs'}, '2.53')
    (shown,) = api.get(f'{PATH}?binary=nova-compute', version).json['services']
    assert shape(shown) == wanted


@pytest.mark.parametrize(('action', 'more'), ACTIONS)
def test_by_action_before_2_53(api, compute, sample, shape, action, more):
    answer = api.put(f'{PATH}/{action}', {'host': 'compute1', 'binary': 'nova-compute'} | more)
    name = {'disable-log-reason': 'disable-log'}.get(action, action)
    assert shape(answer.json) == shape(sample(f'os-services/service-{name}-put-resp.json'))
    assert api.put(f'{PATH}/{action}', {'host': 'nowhere', 'binary': 'nova-compute'} | more).status == 404
    assert api.get(f'{PATH}?host=compute1').json['services'][0]['status'] == answer.json['service']['status']


def test_only_compute_services_are_taken_out_of_use(api, service, compute):
    [other] = [each for each in api.get(PATH, '2.53').json['services'] if each['binary'] == 'nova-scheduler']
    text = 'Updating a nova-scheduler service is not supported. Only nova-compute services can be updated.'
    for answer in (
        api.put(f'{PATH}/disable', {'host': 'nowhere', 'binary': 'nova-scheduler'}),
        api.put(f'{PATH}/{other["id"]}', {'status': 'enabled', 'disabled_reason': 'x'}, '2.53'),
    ):
        assert (answer.status, answer.json['badRequest']['message']) == (400, text)


def test_2_53_what_is_no_uuid_is_refused_whoever_asks(api, compute):
    for identifier, statuses in (('1', (404, 400)), (compute['id'], (404, 403))):
        body = {'host': 'x', 'binary': 'nova-compute'}
        old = api.put(f'{PATH}/{identifier}', body).status
        new = api.put(f'{PATH}/{identifier}', {'status': 'enabled'}, '2.53', as_='bob:project').status
        assert (old, new) == statuses
    assert api.put(f'{PATH}/disable', body, as_='bob:project').status == 403


def test_forcing_down_from_2_11(api, compute):
    body = {'host': 'compute1', 'binary': 'nova-compute', 'forced_down': True}
    assert api.put(f'{PATH}/force-down', body, '2.10').status == 400
    answer = api.put(f'{PATH}/force-down', body, '2.11')
    assert answer.json == {'service': {'host': 'compute1', 'binary': 'nova-compute', 'forced_down': True}}
    assert api.get(f'{PATH}?host=compute1', '2.11').json['services'][0]['state'] == 'down'


def test_by_uuid_from_2_53(api, compute):
    path = f'{PATH}/{compute["id"]}'
    changed = api.put(path, {'status': 'disabled', 'disabled_reason': 'repairs', 'forced_down': True}, '2.53').json
    assert (changed['service']['status'], changed['service']['state']) == ('disabled', 'down')
    assert api.put(path, {'status': 'enabled', 'disabled_reason': 'repairs'}, '2.53').status == 400
    assert api.put(path, {}, '2.53').status == 400
    assert api.put(f'{PATH}/1', {'status': 'enabled'}, '2.53').status == 400
    assert api.put(path, {'status': 'enabled', 'forced_down': False}, '2.53').json['service']['state'] == 'up'


def test_a_service_is_forgotten(api, compute):
    assert api.delete(f'{PATH}/{compute["id"]}', '2.53').status == 204
    assert api.delete(f'{PATH}/{compute["id"]}', '2.53').status == 404
    assert api.delete(f'{PATH}/abc', '2.1').status == 400
    assert api.delete(f'{PATH}/-1', '2.1').status == 404
    assert api.get(f'{PATH}?binary=nova-compute').json == {'services': []}


def test_only_for_administrators(api, compute):
    assert api.get(PATH, as_='bob:project').status == 403


def test_numbers_name_a_service_until_2_53(api, compute, servers):
    number = api.get(f'{PATH}?binary=nova-compute').json['services'][0]['id']
    running = servers.add()
    assert api.delete(f'{PATH}/{"1" * 32}', '2.52').status == api.delete(f'{PATH}/{"1" * 32}', '2.53').status == 404
    assert api.delete(f'{PATH}/{number}', '2.53').status == 400
    assert api.delete(f'{PATH}/{compute["id"]}', '2.52').status == 400
    assert api.delete(f'{PATH}/{number}', '2.52').status == 409
    servers.change(running, deleted_at=servers.now())
    assert api.delete(f'{PATH}/{number}', '2.52').status == 204
    assert api.delete(f'{PATH}/{number}', '2.52').status == 404
    assert api.get('/os-hypervisors').json == {'hypervisors': []}
