"""The events recorded for the actions on a server."""

import pytest

from tests.api.servers.conftest import IMAGE, ROOT_VOLUME

ADMIN = 'admin:admin'
RESIZE, REBUILD = ('resize', {'flavorRef': '2'}), ('rebuild', {'imageRef': IMAGE})
MOVED = ['compute_finish_resize', 'compute_resize_instance', 'compute_prep_resize']
MOVED += ['cold_migrate', 'conductor_migrate_server']


@pytest.mark.parametrize(
    ('changes', 'steps'),
    [
        ([REBUILD], ['compute_rebuild_instance', 'rebuild_server']),
        ([('os-stop',), REBUILD], ['compute_stop_instance', 'compute_rebuild_instance', 'rebuild_server']),
        ([RESIZE], MOVED),
        ([('migrate',)], MOVED),
        ([RESIZE, ('confirmResize',)], ['compute_confirm_resize']),
        ([RESIZE, ('revertResize',)], ['compute_finish_revert_resize', 'compute_revert_resize']),
        ([('changePassword', {'adminPass': 'secret'})], ['compute_set_admin_password']),
        ([('shelve',)], ['compute_shelve_instance']),
        ([('shelve',), ('unshelve',)], ['compute_unshelve_instance', 'schedule_instances', 'get_image_info']),
    ],
)
def test_steps_of_a_change(act, server, world, history, changes, steps):
    world.flavor('2', vcpus=2, memory_mb=128)
    for change in changes:
        assert act(server, *change, as_=ADMIN).status in (202, 204)
    assert history(server)[0] == (changes[-1][0], None, [(step, 'Success') for step in steps])


@pytest.mark.parametrize('forced', [True, False])
@pytest.mark.parametrize(
    ('before', 'steps'), [('os-stop', [('compute_terminate_instance', 'Success')]), ('shelve', [])]
)
def test_steps_of_a_deletion(act, api, server, settle, history, before, steps, forced):
    act(server, before)
    if forced:
        act(server, 'forceDelete', as_=ADMIN)
    else:
        api.delete(f'/servers/{server}', as_=ADMIN)
        settle()
    assert history(server)[0] == ('delete', None, steps)


def test_a_host_that_is_down_does_nothing_for_a_deletion(act, state, server, world, history):
    world.down(state(server)[4])
    act(server, 'forceDelete', as_=ADMIN)
    assert history(server)[0] == ('delete', None, [])


@pytest.mark.parametrize('version', ['2.94', '2.95'])
def test_a_server_that_does_not_run_after_an_evacuation_is_stopped(act, state, server, world, history, version):
    act(server, 'os-stop')
    world.down(state(server)[4])
    act(server, 'evacuate', {}, version, as_=ADMIN)
    assert [step for step, _ in history(server)[0][2]] == [
        'compute_stop_instance',
        'compute_rebuild_instance',
        'rebuild_server',
    ]


def test_steps_of_an_evacuation(act, state, server, world, history):
    world.down(state(server)[4])
    act(server, 'evacuate', {}, '2.14', as_=ADMIN)
    assert history(server) == [
        ('evacuate', None, [('compute_rebuild_instance', 'Success'), ('rebuild_server', 'Success')])
    ]


def test_a_server_that_kept_its_host_is_only_started(act, service, server, history):
    service.conf.set_override('shelved_offload_time', 60)
    act(server, 'shelve')
    act(server, 'unshelve')
    assert history(server)[0] == ('unshelve', None, [('compute_start_instance', 'Success')])


@pytest.mark.parametrize('image', [None, IMAGE])
def test_a_server_on_a_volume_keeps_no_host(act, create, settle, service, state, history, image):
    server = create(imageRef=image, block_device_mapping_v2=[ROOT_VOLUME]).json['server']['id']
    settle()
    service.conf.set_override('shelved_offload_time', 60)
    act(server, 'createImage', {'name': 'image'})
    act(server, 'shelve')
    assert state(server)[0] == 'SHELVED_OFFLOADED'
    act(server, 'unshelve')
    steps = [('compute_unshelve_instance', 'Success'), ('schedule_instances', 'Success')]
    assert history(server) == [
        ('unshelve', None, steps),
        ('shelve', None, [('compute_shelve_offload_instance', 'Success')]),
        ('createImage', None, [('api_snapshot_instance', 'Success')]),
    ]


def test_where_there_is_no_host_the_decision_fails(act, server, world, history):
    world.flavor('2', root_gb=100000)
    act(server, *RESIZE)
    assert history(server) == [('resize', 'Error', [('cold_migrate', 'Error'), ('conductor_migrate_server', 'Error')])]


def test_without_its_image_a_server_is_not_unshelved(act, api, server, world, state, history):
    act(server, 'shelve')
    image = next(image for image in world.images.list(world.bob) if image.name == 'server-shelved')
    world.images.delete(world.bob, image.id)
    act(server, 'unshelve')
    assert history(server)[0] == ('unshelve', 'Error', [('get_image_info', 'Error')])
    assert state(server)[0] == 'ERROR'
    assert image.id in api.get(f'/servers/{server}').json['server']['fault']['message']
