"""The lifecycle of servers, from the request to the result of the worker."""

from concurrent.futures import ThreadPoolExecutor, wait

import pytest

from computeapi.compute.servers import disks, machines
from computeapi.compute.servers.resize import Resizes
from computeapi.db.tables.servers import domains
from computeapi.errors import Conflict
from tests.api.servers.conftest import IMAGE
from tests.invariants import problems

BOB = 'bob:project'


@pytest.fixture
def server(create, cloud, settle):
    made = create().json['server']['id']
    settle()
    return made


def status(state, server):
    return state(server)[0]


@pytest.mark.parametrize(
    ('there', 'during', 'back', 'again'),
    [
        ('os-stop', ('SHUTOFF', 'stopped', 4), 'os-start', 'stop'),
        ('pause', ('PAUSED', 'paused', 3), 'unpause', 'pause'),
        ('suspend', ('SUSPENDED', 'suspended', 4), 'resume', 'suspend'),
        ('rescue', ('RESCUE', 'rescued', 1), 'unrescue', 'rescue'),
    ],
)
def test_there_and_back(act, state, server, there, during, back, again):
    assert act(server, there).status in (200, 202)
    assert state(server)[:3] == during
    refused = act(server, there)
    assert refused.status == 409
    assert refused.json['conflictingRequest']['message'] == (
        f"Cannot '{again}' instance {server} while it is in vm_state {during[1]}"
    )
    assert act(server, back).status == 202
    assert state(server)[:4] == ('ACTIVE', 'active', 1, None)


def test_task_state_is_seen_while_it_is_under_way(act, state, settle, server):
    assert act(server, 'os-stop', work=False).status == 202
    assert state(server)[:4] == ('ACTIVE', 'active', 1, 'powering-off')
    assert act(server, 'pause', work=False).status == 409
    settle()
    assert status(state, server) == 'SHUTOFF'


@pytest.mark.parametrize('kind', ['SOFT', 'HARD'])
def test_reboot(act, state, settle, server, kind):
    act(server, 'reboot', {'type': kind}, work=False)
    assert status(state, server) == {'SOFT': 'REBOOT', 'HARD': 'HARD_REBOOT'}[kind]
    settle()
    assert state(server)[:4] == ('ACTIVE', 'active', 1, None)


@pytest.mark.parametrize(
    ('name', 'argument'),
    [('reboot', {'type': 'HARD'}), ('rescue', None), ('rebuild', {'imageRef': IMAGE}), ('evacuate', {})],
)
def test_what_never_ran_cannot_be_helped(act, api, create, settle, service, name, argument):
    service.conf.set_override('fail', ['spawn'], 'simulated')
    server = create().json['server']['id']
    settle()
    refused = act(server, name, argument, '2.14', as_='admin:admin')
    assert refused.status == 409
    assert refused.json['conflictingRequest']['message'] == f"Instance {server} is in an invalid state for '{name}'"
    assert api.delete(f'/servers/{server}', as_=BOB).status == 204


def test_a_locked_server_refuses_its_owner(act, api, state, server):
    assert act(server, 'lock', {'locked_reason': 'holidays'}, '2.73').status == 202
    shown = api.get(f'/servers/{server}', '2.73', as_=BOB).json['server']
    assert (shown['locked'], shown['locked_reason']) == (True, 'holidays')
    refused = act(server, 'os-stop')
    assert refused.json['conflictingRequest']['message'] == f'Instance {server} is locked'
    assert api.delete(f'/servers/{server}', as_=BOB).status == 409
    for name, argument in (('changePassword', {'adminPass': 'secret'}), ('restore', None)):
        refused = act(server, name, argument).json['conflictingRequest']['message']
        assert refused == f"Instance {server} is in an invalid state for '{name}'"
    assert act(server, 'os-stop', as_='admin:admin').status == 202
    assert act(server, 'unlock').status == 202
    assert act(server, 'os-start').status == 202
    assert status(state, server) == 'ACTIVE'


def test_what_asks_for_the_cell_of_a_server_tells_that_there_never_was_one(act, api, server):
    never = '00000000-0000-0000-0000-000000000000'
    assert api.delete(f'/servers/{server}', as_=BOB).status == 204
    other, cell = 'Instance {} could not be found.', 'Instance {} has no mapping to a cell.'

    def told(answer):
        return answer.json['itemNotFound']['message']

    for name, text in (('os-start', cell), ('os-stop', cell), ('trigger_crash_dump', cell), ('pause', other)):
        assert told(act(never, name, version='2.17')) == text.format(never)
        assert told(act(never, name, version='2.17', as_='admin:admin')) == text.format(never)
        assert told(act(server, name, version='2.17')) == other.format(server)
    for sub, version in (('tags', '2.26'), ('tags/one', '2.26'), ('shares', '2.97')):
        assert told(api.get(f'/servers/{never}/{sub}', version, as_=BOB)) == cell.format(never)
        assert told(api.get(f'/servers/{server}/{sub}', version, as_=BOB)) == other.format(server)
    assert told(api.get(f'/servers/{never}', as_=BOB)) == other.format(never)


def test_locks_are_events_of_the_api(act, history, server):
    for name in ('lock', 'unlock'):
        act(server, name)
    assert history(server) == [
        ('unlock', None, [('api_unlock', 'Success')]),
        ('lock', None, [('api_lock', 'Success')]),
    ]


def test_an_administrators_lock_is_not_its_owners_to_open(act, server):
    assert act(server, 'lock', as_='admin:admin').status == 202
    refused = act(server, 'unlock')
    assert 'unlock_override' in refused.json['forbidden']['message']
    assert act(server, 'unlock', as_='admin:admin').status == 202


@pytest.fixture
def locked_meanwhile(act, service, server, monkeypatch):
    """locked_meanwhile(): an administrator locks the server as soon as the next request has read it."""
    servers = service.cloud.servers

    def prepare():
        get = servers.get

        def read(*args, **kwargs):
            found = get(*args, **kwargs)
            monkeypatch.undo()
            assert act(server, 'lock', as_='admin:admin').status == 202
            return found

        monkeypatch.setattr(servers, 'get', read)

    return prepare


@pytest.mark.parametrize('name', ['lock', 'unlock'])
def test_an_administrators_lock_that_came_between_stays(act, server, locked_meanwhile, name):
    assert name == 'lock' or act(server, 'lock').status == 202
    locked_meanwhile()
    act(server, name)
    assert 'unlock_override' in act(server, 'unlock').json['forbidden']['message']


def test_a_lock_that_came_between_refuses_a_change(act, state, server, locked_meanwhile):
    locked_meanwhile()
    refused = act(server, 'os-stop')
    assert refused.json['conflictingRequest']['message'] == f'Instance {server} is locked'
    assert status(state, server) == 'ACTIVE'


def test_a_lock_that_came_between_does_not_keep_administrators_out(act, state, server, locked_meanwhile):
    locked_meanwhile()
    assert act(server, 'os-stop', as_='admin:admin').status == 202
    assert status(state, server) == 'SHUTOFF'


def test_resize_and_confirm(act, state, world, server, settle):
    world.flavor('2', vcpus=2, memory_mb=128)
    before = state(server)[4]
    act(server, 'resize', {'flavorRef': '2'}, work=False)
    assert status(state, server) == 'RESIZE'
    settle()
    assert status(state, server) == 'VERIFY_RESIZE'
    after = state(server)[4]
    assert after != before
    assert held(world, server) == {before: 1, after: 2}
    assert act(server, 'confirmResize').status == 204
    assert state(server) == ('ACTIVE', 'active', 1, None, after)
    assert held(world, server) == {after: 2}
    assert used(world) == (1, 2, 128)


def test_resize_and_revert(act, state, world, server):
    world.flavor('2', vcpus=2, memory_mb=128)
    before = state(server)[4]
    act(server, 'os-stop')
    act(server, 'resize', {'flavorRef': '2'})
    assert used(world) == (1, 2, 128)
    assert act(server, 'revertResize').status == 202
    assert state(server) == ('SHUTOFF', 'stopped', 4, None, before)
    assert held(world, server) == {before: 1}
    assert used(world) == (1, 1, 64)
    assert act(server, 'revertResize').status == 409


def test_a_revert_that_fails_leaves_the_server_its_machine(act, state, world, server, monkeypatch):
    def fail(*args, **kwargs):
        raise Conflict('The volume is busy.')

    world.flavor('2', vcpus=2)
    before = state(server)[4]
    act(server, 'resize', {'flavorRef': '2'})
    monkeypatch.setattr(disks, 'disconnect', fail)
    act(server, 'revertResize')
    assert state(server)[0::4] == ('ERROR', before)
    assert held(world, server) == {before: 1}
    assert world.service.hypervisor.machines() == [(server, before)]


def test_resize_confirms_itself(act, state, world, server, settle, service):
    world.flavor('2', vcpus=2)
    service.conf.set_override('resize_confirm_window', 1)
    act(server, 'resize', {'flavorRef': '2'})
    assert status(state, server) == 'VERIFY_RESIZE'
    settle(later=True)
    assert status(state, server) == 'ACTIVE'


@pytest.mark.several_writers
def test_a_resize_is_confirmed_while_it_is_reverted(act, state, world, server, monkeypatch):
    world.flavor('2', vcpus=2)
    act(server, 'resize', {'flavorRef': '2'})
    hold, confirmed = Resizes._hold, []
    with ThreadPoolExecutor(1) as pool:

        def confirm_too(*arguments):
            confirmed.append(pool.submit(act, server, 'confirmResize', work=False))
            wait(confirmed, 0.5)
            return hold(*arguments)

        monkeypatch.setattr(Resizes, '_hold', confirm_too)
        assert act(server, 'revertResize', work=False).status == 202
        assert confirmed[0].result().status == 409
    assert status(state, server) == 'REVERT_RESIZE'


def test_no_room_to_resize_leaves_a_fault_and_the_server(act, state, api, world, server):
    world.flavor('huge', vcpus=100_000)
    world.service.cloud.quotas.set_limits('project', {'cores': -1})
    assert act(server, 'resize', {'flavorRef': 'huge'}).status == 202
    assert status(state, server) == 'ACTIVE'
    assert used(world) == (1, 1, 64)
    (action, *_) = api.get(f'/servers/{server}/os-instance-actions').json['instanceActions']
    assert (action['action'], action['message']) == ('resize', 'Error')


@pytest.mark.parametrize(('before', 'code'), [('os-stop', 400), ('pause', 409)])
def test_the_state_is_checked_before_the_flavor(before, code, act, server):
    act(server, before)
    assert act(server, 'resize', {'flavorRef': 'unknown'}).status == code


def test_quota_is_asked_for_more_than_there_was(act, world, server):
    world.flavor('2', vcpus=2)
    world.service.cloud.quotas.set_limits('project', {'cores': 1})
    refused = act(server, 'resize', {'flavorRef': '2'})
    assert refused.status == 403 and 'cores' in refused.json['forbidden']['message']


def test_a_resized_server_counts_as_what_it_is_now(act, api, state, world, server, settle):
    world.flavor('0', vcpus=1, memory_mb=32)

    def used():
        return api.get('/limits', as_=BOB).json['limits']['absolute']['totalRAMUsed']

    act(server, 'resize', {'flavorRef': '0'}, work=False)
    assert used() == 64
    settle()
    assert (status(state, server), used()) == ('VERIFY_RESIZE', 32)
    world.service.cloud.quotas.set_limits('project', {'ram': 63})
    refused = act(server, 'revertResize')
    assert refused.status == 403 and 'ram' in refused.json['forbidden']['message']
    world.service.cloud.quotas.set_limits('project', {'ram': 64})
    assert act(server, 'revertResize', work=False).status == 202
    assert used() == 64
    settle()
    assert (status(state, server), used()) == ('ACTIVE', 64)


def test_nothing_moves_off_a_host_that_is_down(act, state, world, server):
    world.flavor('2')
    unavailable = 'Service is unavailable at this time.'
    world.down(state(server)[4])
    for name, argument in (('migrate', None), ('resize', {'flavorRef': '2'})):
        refused = act(server, name, argument, as_='admin:admin')
        assert (refused.status, refused.json['conflictingRequest']['message']) == (409, unavailable)
    world.up(state(server)[4])
    before = state(server)[4]
    act(server, 'resize', {'flavorRef': '2'})
    world.down(before)
    assert act(server, 'confirmResize').json['conflictingRequest']['message'] == unavailable
    world.up(before)
    assert act(server, 'confirmResize').status == 204


def test_migrate_to_a_named_host(act, state, server):
    before = state(server)[4]
    other = {'compute1': 'compute2', 'compute2': 'compute1'}[before]
    assert act(server, 'migrate', {'host': other}, '2.56').status == 403
    assert act(server, 'migrate', {'host': 'nowhere'}, '2.56', as_='admin:admin').status == 400
    refused = act(server, 'migrate', {'host': before}, '2.56', as_='admin:admin')
    assert refused.json == {
        'badRequest': {'code': 400, 'message': 'Cannot migrate to the host where the server exists.'}
    }
    assert act(server, 'migrate', {'host': other}, '2.56', as_='admin:admin').status == 202
    assert state(server)[0::4] == ('VERIFY_RESIZE', other)
    act(server, 'confirmResize')
    assert state(server)[0::4] == ('ACTIVE', other)


def test_evacuation_needs_a_host_that_is_down(act, state, world, server):
    before = state(server)[4]
    refused = act(server, 'evacuate', {}, '2.68', as_='admin:admin')
    assert refused.json['badRequest']['message'] == f'Compute service of {before} is still in use.'
    world.down(before)
    assert act(server, 'evacuate', {}, '2.68', as_='admin:admin').status == 200
    status, _, _, task, host = state(server)
    assert (status, task) == ('ACTIVE', None) and host != before
    assert held(world, server) == {host: 1}


def test_evacuated_servers_stay_stopped_from_2_95(act, state, world, server):
    world.down(state(server)[4])
    act(server, 'evacuate', {}, '2.95', as_='admin:admin')
    assert status(state, server) == 'SHUTOFF'


def test_shelve_and_unshelve(act, api, state, world, server):
    assert act(server, 'shelve').status == 202
    assert state(server) == ('SHELVED_OFFLOADED', 'shelved_offloaded', 4, None, None)
    assert held(world, server) == {}
    assert act(server, 'os-start').json['conflictingRequest']['message'] == f'Instance {server} is not ready'
    kept = [image.name for image in world.images.list(world.bob)]
    assert 'server-shelved' in kept
    assert act(server, 'unshelve').status == 202
    assert state(server)[:4] == ('ACTIVE', 'active', 1, None)
    assert 'server-shelved' not in [image.name for image in world.images.list(world.bob)]


@pytest.mark.parametrize('action', ['unshelve', 'delete'])
def test_an_image_that_is_protected_stays_when_its_server_leaves_it(act, api, state, world, server, action, settle):
    act(server, 'shelve')
    [image] = [image for image in world.images.list(world.bob) if image.name == 'server-shelved']
    world.images.update(world.bob, image.id, protected=True)
    if action == 'unshelve':
        act(server, 'unshelve')
        assert status(state, server) == 'ACTIVE'
    else:
        api.delete(f'/servers/{server}', as_=BOB)
        settle()
        assert api.get(f'/servers/{server}', as_=BOB).status == 404
    assert world.images.get(world.bob, image.id).protected


def test_a_server_is_shelved_however_long_its_name_is(act, api, world, server):
    api.put(f'/servers/{server}', {'server': {'name': 'x' * 255}}, as_=BOB)
    assert act(server, 'shelve').status == 202
    assert 'x' * 247 + '-shelved' in [image.name for image in world.images.list(world.bob)]


def test_a_shelved_server_may_keep_its_host_for_a_while(act, state, service, server, settle):
    service.conf.set_override('shelved_offload_time', 60)
    act(server, 'shelve')
    assert status(state, server) == 'SHELVED'
    assert act(server, 'shelveOffload', as_='admin:admin').status == 202
    assert status(state, server) == 'SHELVED_OFFLOADED'
    settle(later=True)
    assert status(state, server) == 'SHELVED_OFFLOADED'


def test_a_shelved_server_whose_unshelving_failed_gives_its_host_back_later(act, state, service, server, settle):
    service.conf.set_override('shelved_offload_time', 60)
    act(server, 'shelve')
    service.conf.set_override('fail', ['power_on'], 'simulated')
    act(server, 'unshelve', work=False)
    settle(later=True)  # the host was due to be released while the server was being unshelved
    assert status(state, server) == 'SHELVED'
    settle(later=True)
    assert status(state, server) == 'SHELVED_OFFLOADED'


def test_a_server_that_still_has_its_host_is_unshelved_nowhere_else(act, server, service, settle):
    service.conf.set_override('shelved_offload_time', -1)
    act(server, 'shelve')
    text = (
        f'Specifying an availability zone or a host when unshelving server "{server}" with status "shelved" is not '
        'supported. The server status must be SHELVED_OFFLOADED.'
    )
    known, unknown = [{'availability_zone': 'nova'}, {'host': 'compute2'}], [{'availability_zone': 'x'}, {'host': 'x'}]
    for wanted in (*known, {'availability_zone': None}, *unknown):
        refused = act(server, 'unshelve', wanted, '2.91', as_='admin:admin')
        assert refused.json == {'conflictingRequest': {'code': 409, 'message': text}}
    assert act(server, 'unshelve', version='2.91').status == 202


@pytest.fixture
def second_zone(api):
    """An availability zone with the host compute2."""
    made = api.post('/os-aggregates', {'aggregate': {'name': 'second', 'availability_zone': 'second'}}).json
    api.post(f'/os-aggregates/{made["aggregate"]["id"]}/action', {'add_host': {'host': 'compute2'}})


def test_unshelve_to_the_zone_of_the_volumes(act, api, server, service, settle, world, second_zone):
    volume = world.volume()
    api.post(f'/servers/{server}/os-volume_attachments', {'volumeAttachment': {'volumeId': volume}}, as_=BOB)
    settle()
    act(server, 'shelve')
    service.conf.set_override('cross_az_attach', False, 'cinder')
    refused = act(server, 'unshelve', {'availability_zone': 'second'}, '2.77')
    assert refused.status == 409 and volume in refused.json['conflictingRequest']['message']
    service.conf.set_override('cross_az_attach', True, 'cinder')
    assert act(server, 'unshelve', {'availability_zone': 'second'}, '2.77').status == 202


def test_unshelve_to_a_zone_and_a_host(act, state, server, second_zone):
    act(server, 'shelve')
    assert act(server, 'unshelve', {'availability_zone': 'nowhere'}, '2.77').status == 400
    assert act(server, 'unshelve', {'host': 'compute2'}, '2.91').status == 403
    elsewhere = {'availability_zone': 'second', 'host': 'compute1'}
    assert act(server, 'unshelve', elsewhere, '2.91', as_='admin:admin').json == {
        'conflictingRequest': {'code': 409, 'message': 'Host "compute1" is not in the availability zone "second".'}
    }
    assert act(server, 'unshelve', {'host': 'compute2'}, '2.91', as_='admin:admin').status == 202
    assert state(server)[0::4] == ('ACTIVE', 'compute2')


@pytest.mark.parametrize(
    ('action', 'argument', 'needed'),
    [
        ('pause', None, 'active'),
        ('unpause', None, 'paused'),
        ('suspend', None, 'active'),
        ('resume', None, 'suspended'),
        ('rescue', None, 'active'),
        ('unrescue', None, 'rescued'),
        ('trigger_crash_dump', None, 'active'),
        ('os-migrateLive', {'host': None, 'block_migration': 'auto'}, 'active'),
        ('changePassword', {'adminPass': 'secret'}, 'active'),
        ('os-getConsoleOutput', {}, 'active'),
    ],
)
def test_what_the_driver_cannot_do_is_refused_and_changes_nothing(
    act, api, servers, server, monkeypatch, service, action, argument, needed
):
    servers.change(server, vm_state=needed)
    before, done = servers.get(server), api.get(f'/servers/{server}/os-instance-actions').json
    monkeypatch.setattr(type(service.hypervisor), 'capabilities', frozenset())
    refused = act(server, action, argument, '2.30', as_='admin:admin')
    assert refused.status == 501, refused
    assert refused.json['notImplemented']['message'].startswith('The current driver does not support')
    assert servers.get(server) == before
    assert api.get(f'/servers/{server}/os-instance-actions').json == done


def test_what_the_driver_cannot_attach_or_tell_is_refused(api, server, monkeypatch, service, world):
    (port,) = api.get(f'/servers/{server}/os-interface').json['interfaceAttachments']
    monkeypatch.setattr(type(service.hypervisor), 'capabilities', frozenset())
    assert api.post(f'/servers/{server}/os-interface', {'interfaceAttachment': {}}).status == 501
    assert api.delete(f'/servers/{server}/os-interface/{port["port_id"]}').status == 501
    assert api.get(f'/servers/{server}/diagnostics').status == 501
    assert api.get(f'/servers/{server}/os-interface').json['interfaceAttachments'] == [port]


def test_reset_state(act, state, server):
    assert act(server, 'os-resetState', {'state': 'error'}).status == 403
    assert act(server, 'os-resetState', {'state': 'error'}, as_='admin:admin').status == 202
    assert status(state, server) == 'ERROR'
    assert act(server, 'os-resetState', {'state': 'active'}, as_='admin:admin').status == 202
    assert status(state, server) == 'ACTIVE'


def test_resetting_the_state_keeps_no_server_from_being_deleted(act, api, server, settle):
    assert api.delete(f'/servers/{server}', as_=BOB).status == 204
    assert act(server, 'os-resetState', {'state': 'active'}, as_='admin:admin').status == 202
    settle()
    assert api.get(f'/servers/{server}').status == 404


def test_what_is_being_attached_meanwhile_is_not_overtaken(act, api, world, service, server, settle, monkeypatch):
    act(server, 'os-resetState', {'state': 'active'}, as_='admin:admin', work=False)
    reset, reserve = service.platform.tasks.claim(), service.volumes.reserve

    def reserve_late(*args, **kwargs):
        service.worker.run(reset)
        return reserve(*args, **kwargs)

    monkeypatch.setattr(service.volumes, 'reserve', reserve_late)
    wanted = {'volumeAttachment': {'volumeId': world.volume(name='volume')}}
    assert api.post(f'/servers/{server}/os-volume_attachments', wanted, as_=BOB).status == 200
    settle()
    assert problems(world.store) == []


def test_deferred_delete(act, api, state, world, service, server, settle):
    service.conf.set_override('reclaim_instance_interval', 3600)
    assert api.delete(f'/servers/{server}', as_=BOB).status == 204
    settle()
    assert status(state, server) == 'SOFT_DELETED'
    assert api.get(f'/servers/{server}').json['server']['OS-SRV-USG:terminated_at'] is None
    assert used(world) == (0, 0, 0)
    assert act(server, 'restore').status == 202
    assert status(state, server) == 'ACTIVE'
    api.delete(f'/servers/{server}', as_=BOB)
    settle()
    settle(later=True)
    assert api.get(f'/servers/{server}').status == 404


def test_a_server_is_deleted_at_once_whose_host_is_down(api, state, world, service, server, settle):
    service.conf.set_override('reclaim_instance_interval', 3600)
    world.down(state(server)[-1])
    assert api.delete(f'/servers/{server}', as_=BOB).status == 204
    settle()
    assert api.get(f'/servers/{server}').status == 404


@pytest.mark.parametrize('before', [('os-resetState', {'state': 'error'}), ('os-stop', None)])
def test_a_server_that_has_run_is_kept_however_often_it_is_deleted(
    act, api, server, state, world, service, settle, before
):
    service.conf.set_override('reclaim_instance_interval', 3600)
    act(server, *before, as_='admin:admin')
    for _ in range(2):
        assert api.delete(f'/servers/{server}', as_=BOB).status == 204
        settle()
        assert (status(state, server), used(world)) == ('SOFT_DELETED', (0, 0, 0))
        assert problems(world.store) == []
    assert act(server, 'restore').status == 202
    assert (status(state, server), used(world)) == ('ACTIVE', (1, 1, 64))
    assert problems(world.store) == []
    assert api.delete(f'/servers/{server}', as_=BOB).status == 204
    settle()
    settle(later=True)
    assert api.get(f'/servers/{server}').status == 404


def test_a_server_counts_from_when_its_restoration_is_asked_for(act, api, create, state, world, service, settle):
    service.conf.set_override('reclaim_instance_interval', 3600)
    one, other = (create().json['server']['id'] for _ in range(2))
    settle()
    assert [api.delete(f'/servers/{server}', as_=BOB).status for server in (one, other)] == [204, 204]
    settle()
    world.service.cloud.quotas.set_limits('project', {'instances': 1})
    assert act(one, 'restore', work=False).status == 202
    assert used(world) == (1, 1, 64)
    assert [act(other, 'restore', work=False).status, create().status] == [403, 403]
    assert act(one, 'forceDelete', work=False).status == 202
    assert used(world) == (0, 0, 0)
    assert act(other, 'restore').status == 202
    assert (status(state, other), used(world)) == ('ACTIVE', (1, 1, 64))
    assert problems(world.store) == []


def test_force_delete(act, api, world, server):
    assert act(server, 'forceDelete').status == 202
    assert api.get(f'/servers/{server}').status == 404
    assert held(world, server) == {}


def test_delete_while_it_is_built(create, api, world, settle):
    made = create().json['server']['id']
    assert api.delete(f'/servers/{made}', as_=BOB).status == 204
    settle()
    assert api.get(f'/servers/{made}').status == 404
    assert held(world, made) == {} and world.networks.ports(world.admin, server_ids=[made]) == []


def test_a_boot_that_fails_leaves_an_error_with_a_fault_and_nothing_else(create, api, state, world, service, settle):
    service.conf.set_override('fail', ['spawn:bad'], 'simulated')
    made = create(name='bad').json['server']['id']
    settle()
    shown = api.get(f'/servers/{made}').json['server']
    assert shown['status'] == 'ERROR' and 'Exhausted all hosts available' in shown['fault']['message']
    assert held(world, made) == {} and world.networks.ports(world.admin, server_ids=[made]) == []
    (action,) = api.get(f'/servers/{made}/os-instance-actions').json['instanceActions']
    assert action['message'] == 'Error'
    assert api.delete(f'/servers/{made}', as_=BOB).status == 204
    settle()
    assert api.get(f'/servers/{made}').status == 404


def test_no_valid_host_says_why(create, api, world, settle):
    world.down('compute1')
    made = create().json['server']['id']
    settle()
    fault = api.get(f'/servers/{made}').json['server']['fault']
    assert fault['message'].startswith('No valid host was found.')
    assert 'ComputeFilter: 0 hosts' in fault['message']


def test_an_image_of_a_server(act, api, world, server):
    old = act(server, 'createImage', {'name': 'copy', 'metadata': {'key': 'value'}})
    assert old.headers['Location'].rpartition('/')[2] and old.headers['Content-Type'].startswith('text/html')
    new = act(server, 'createImage', {'name': 'copy'}, '2.45')
    image = world.images.get(world.bob, new.json['image_id'])
    assert (image.status, image.properties['instance_uuid']) == ('active', server)
    kept = world.images.get(world.bob, old.headers['Location'].rpartition('/')[2])
    assert kept.properties['key'] == 'value' and kept.size


def test_console_output(act, server, monkeypatch):
    whole = act(server, 'os-getConsoleOutput', {}).json['output']
    act(server, 'reboot', {'type': 'HARD'})
    longer = act(server, 'os-getConsoleOutput', {}).json['output']
    assert longer.startswith(whole) and len(longer) > len(whole)
    assert act(server, 'os-getConsoleOutput', {'length': 1}).json['output'] == longer.splitlines()[-1]
    assert act(server, 'os-getConsoleOutput', {'length': 0}).json['output'] == ''
    assert act(server, 'os-getConsoleOutput', {'length': '9' * 400}).json['output'] == longer.rstrip()
    monkeypatch.setattr(machines, 'MAX_OUTPUT_LENGTH', 10)
    assert act(server, 'os-getConsoleOutput', {}).json['output'] == longer[-10:]


def test_console_output_has_no_control_characters(act, server, world):
    """A guest could write sequences that mean something to the terminal of whoever reads it."""
    with world.store.write() as connection:
        connection.execute(domains.update().values(console_log='\x00\x7f\x9blogin:\t\x1b[31mred\x1b[0m\r\n\x07é'))
    assert act(server, 'os-getConsoleOutput', {}).json['output'] == 'login:\t[31mred[0m\né'


def held(world, server):
    """The server's claims by host: {host: vcpus}."""
    from computeapi.db.tables.compute import allocations

    with world.store.read() as connection:
        rows = connection.execute(allocations.select().where(allocations.c.server_id == server)).all()
    return {row.host: row.vcpus for row in rows}


def used(world):
    """The quota usage of the project: (instances, cores, ram)."""
    use = world.service.cloud.quotas.usage('project').used
    return use['instances'], use['cores'], use['ram']


def test_resize_in_place_holds_the_larger_of_both_sizes(act, state, world, server, service):
    world.flavor('2', vcpus=2)
    world.flavor('0', vcpus=1, memory_mb=32)
    service.conf.set_override('allow_resize_to_same_host', True)
    before = state(server)[4]
    world.down({'compute1': 'compute2', 'compute2': 'compute1'}[before])
    act(server, 'resize', {'flavorRef': '2'})
    assert state(server)[0::4] == ('VERIFY_RESIZE', before)
    act(server, 'confirmResize')
    assert held(world, server) == {before: 2}
    act(server, 'resize', {'flavorRef': '0'})
    assert held(world, server) == {before: 2}
    act(server, 'revertResize')
    assert state(server)[0::4] == ('ACTIVE', before)
    assert held(world, server) == {before: 2}
    act(server, 'resize', {'flavorRef': '0'})
    act(server, 'confirmResize')
    assert held(world, server) == {before: 1}


def test_a_host_that_servers_come_from_or_may_go_back_to_is_not_forgotten(api, act, server, state, cloud):
    def forget(host):
        [service] = api.get(f'/os-services?binary=nova-compute&host={host}', '2.53').json['services']
        answer = api.delete(f'/os-services/{service["id"]}', '2.53')
        return answer.status, answer.json and answer.json['conflictingRequest']['message'].partition('.')[0]

    hosting = (409, 'Unable to delete compute service that is hosting instances')
    moving = (409, 'Unable to delete compute service that has in-progress migrations')
    flavor = cloud.flavor('2', vcpus=2).flavorid
    assert forget('compute1') == hosting
    act(server, 'resize', {'flavorRef': flavor}, work=False)
    assert forget('compute1') == hosting
    cloud.service.worker.step()
    assert (forget('compute1'), forget('compute2')) == (moving, hosting)
    act(server, 'confirmResize')
    assert status(state, server) == 'ACTIVE'
    assert forget('compute1') == (204, None)
