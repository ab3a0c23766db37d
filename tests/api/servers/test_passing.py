"""Lasting states: clients see them, waiting for them blocks no worker, and other requests can overtake them."""

import pytest

from tests.api.servers.conftest import BOB, IMAGE, message

AUTO = {'host': None, 'block_migration': 'auto'}
LONG = 3600


@pytest.fixture
def passing(cloud):
    """passing(seconds): sets how long states last from now on."""
    return lambda seconds: cloud.service.conf.set_override('passing_seconds', seconds, 'simulated')


@pytest.fixture
def hang(cloud):
    """hang('reboot'): operations that never finish."""
    return lambda *operations: cloud.service.conf.set_override('hang', list(operations), 'simulated')


@pytest.fixture
def shown(api):
    """shown(server): its status and its task_state."""

    def get(server):
        found = api.get(f'/servers/{server}').json['server']
        return found['status'], found['OS-EXT-STS:task_state']

    return get


@pytest.fixture
def begin(act, passing, settle):
    """begin(server, 'pause'): the workers continue until they have to wait."""

    def post(server, name, argument=None, version='2.30'):
        passing(LONG)
        answer = act(server, name, argument, version, as_='admin:admin')
        assert answer.status < 300, answer

    return post


@pytest.fixture
def end(passing, settle):
    """end(): pending operations continue, and complete."""

    def pass_by():
        passing(0)
        settle(later=True)

    return pass_by


STATES = [
    ('os-stop', None, ('ACTIVE', 'powering-off'), 'SHUTOFF'),
    ('reboot', {'type': 'SOFT'}, ('REBOOT', 'reboot_started'), 'ACTIVE'),
    ('reboot', {'type': 'HARD'}, ('HARD_REBOOT', 'reboot_started_hard'), 'ACTIVE'),
    ('pause', None, ('ACTIVE', 'pausing'), 'PAUSED'),
    ('suspend', None, ('ACTIVE', 'suspending'), 'SUSPENDED'),
    ('rescue', None, ('ACTIVE', 'rescuing'), 'RESCUE'),
    ('resize', {'flavorRef': '2'}, ('RESIZE', 'resize_migrating'), 'VERIFY_RESIZE'),
    ('os-migrateLive', AUTO, ('MIGRATING', 'migrating'), 'ACTIVE'),
    ('createImage', {'name': 'image'}, ('ACTIVE', 'image_uploading'), 'ACTIVE'),
    ('rebuild', {'imageRef': IMAGE}, ('REBUILD', 'rebuilding'), 'ACTIVE'),
    ('shelve', None, ('ACTIVE', 'shelving'), 'SHELVED_OFFLOADED'),
]


@pytest.mark.parametrize(('name', 'argument', 'state', 'after'), STATES)
def test_a_state_is_there_for_clients_to_see(cloud, api, server, begin, end, shown, name, argument, state, after):
    cloud.flavor('2')
    begin(server, name, argument)
    assert shown(server) == state
    end()
    assert shown(server) == (after, None)
    for action in api.get(f'/servers/{server}/os-instance-actions', '2.51').json['instanceActions']:
        path = f'/servers/{server}/os-instance-actions/{action["request_id"]}'
        events = api.get(path, '2.51').json['instanceAction']['events']
        assert len({event['event'] for event in events}) == len(events)
        assert {event['result'] for event in events} <= {'Success'}


def test_an_image_is_being_saved_for_as_long(api, server, begin, end):
    begin(server, 'createImage', {'name': 'picture'})
    saved = [image['status'] for image in api.get('/images/detail').json['images'] if image['name'] == 'picture']
    assert saved == ['SAVING']
    end()
    saved = [image['status'] for image in api.get('/images/detail').json['images'] if image['name'] == 'picture']
    assert saved == ['ACTIVE']


def test_one_worker_waits_for_many(create, passing, settle, end, shown):
    passing(LONG)
    made = [create().json['server']['id'] for _ in range(5)]
    settle()
    assert {shown(server) for server in made} == {('BUILD', 'spawning')}
    end()
    assert {shown(server) for server in made} == {('ACTIVE', None)}


def test_time_goes_on_while_nobody_looks(cloud, server, act, passing, settle, shown):
    """Operations begun long ago are complete, even if the process that began them is gone."""
    passing(0.000001)
    act(server, 'reboot', {'type': 'SOFT'})
    cloud.service.platform.tasks.release_all()
    settle()
    assert shown(server) in [('REBOOT', 'reboot_started'), ('ACTIVE', None)]
    settle(later=True)
    assert shown(server) == ('ACTIVE', None)


@pytest.mark.parametrize('operation', ['reboot', 'destroy'])
def test_a_server_that_hangs_can_be_deleted(api, server, act, hang, settle, operation):
    hang('reboot')
    act(server, 'reboot', {'type': 'SOFT'})
    hang(operation)
    assert api.delete(f'/servers/{server}', as_=BOB).status == 204
    settle()
    assert (api.get(f'/servers/{server}').status == 404) == (operation == 'reboot')
    hang()
    settle(later=True)
    assert api.get(f'/servers/{server}').status == 404


def test_a_server_that_hangs_can_be_reset(server, act, hang, shown, settle):
    hang('reboot')
    act(server, 'reboot', {'type': 'SOFT'})
    assert shown(server) == ('REBOOT', 'reboot_started')
    act(server, 'os-resetState', {'state': 'active'}, as_='admin:admin')
    assert shown(server) == ('ACTIVE', None)
    act(server, 'os-stop')
    assert shown(server) == ('SHUTOFF', None)


@pytest.mark.parametrize(
    ('before', 'name'),
    [(None, 'reboot'), (None, 'pause'), ('pause', 'unpause'), (None, 'suspend'), ('suspend', 'resume')],
)
def test_a_server_that_hangs_can_be_rebooted_hard(server, act, hang, shown, history, before, name):
    """What it was doing is dropped, and does not happen afterwards either."""
    if before:
        act(server, before)
    hang(name)
    act(server, name, {'type': 'SOFT'} if name == 'reboot' else None)
    assert shown(server)[1] is not None
    hang()
    assert act(server, 'reboot', {'type': 'HARD'}).status == 202
    assert shown(server) == ('ACTIVE', None)
    assert [each[:2] for each in history(server)][:2] == [('reboot', None), (name, 'Error')]


def test_a_hard_reboot_that_has_begun_is_not_overtaken_by_another(server, act, begin, end, shown):
    begin(server, 'reboot', {'type': 'HARD'})
    text = f"Cannot 'reboot' instance {server} while it is in task_state reboot_started_hard"
    assert message(act(server, 'reboot', {'type': 'HARD'})) == (409, text)
    end()
    assert shown(server) == ('ACTIVE', None)


def test_what_a_client_waits_for_does_not_wait(cloud, api, server, passing, hang):
    """A request does not wait: an interface is attached at once, or not at all."""
    passing(LONG)
    port = cloud.port()
    answer = api.post(f'/servers/{server}/os-interface', {'interfaceAttachment': {'port_id': port}}, as_=BOB)
    assert answer.status == 200
    hang('plug')
    port = cloud.port()
    answer = api.post(f'/servers/{server}/os-interface', {'interfaceAttachment': {'port_id': port}}, as_=BOB)
    assert answer.status >= 400
