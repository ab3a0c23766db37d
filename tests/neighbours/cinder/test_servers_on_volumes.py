"""Servers on the volumes of a real Cinder, for callers of a real Keystone."""

import time

from tests.backends.implementations import ADMIN, ALICE, BOB
from tests.neighbours.cinder.servers import BLANK, attach, attached, delete, detach, on_volume


def test_the_volumes_of_a_server_follow_it(compute, cinder, image):
    server_id = on_volume(compute, image(), BLANK)
    assert compute.settled(server_id)['status'] == 'ACTIVE'
    more = cinder.create()
    assert attach(compute, server_id, more).status_code == 200
    cinder.settled(more, 'in-use')

    def check(status, caller=ALICE, **action):
        assert compute.act(server_id, caller=caller, **action).status_code == 202
        assert compute.settled(server_id)['status'] == status
        host = compute.ask(ADMIN, f'GET /servers/{server_id}').json['server']['OS-EXT-SRV-ATTR:host']
        known = {each['id']: each['status'] for each in cinder.attachments(server_id)}
        assert set(known) == set(attached(compute, server_id).values()) and len(known) == 3
        assert set(known.values()) == ({'attached'} if host else {'reserved'})
        for volume_id in attached(compute, server_id):
            assert cinder.users(volume_id) == ([host] if host else [])

    other = {**{'name': 'other', 'ram': 128, 'vcpus': 1, 'disk': 1}, 'id': '2'}
    compute.ask(ADMIN, 'POST /flavors', {'flavor': other})
    check('VERIFY_RESIZE', resize={'flavorRef': '2'})
    check('ACTIVE', revertResize=None)
    check('VERIFY_RESIZE', ADMIN, migrate=None)
    assert compute.act(server_id, confirmResize=None).status_code == 204
    while compute.settled(server_id)['status'] != 'ACTIVE':
        time.sleep(0.1)
    check('ACTIVE', ADMIN, **{'os-migrateLive': {'host': None, 'block_migration': 'auto'}})
    check('SHELVED_OFFLOADED', shelve=None)
    check('ACTIVE', unshelve=None)
    assert detach(compute, server_id, more).status_code == 202
    assert cinder.settled(more, 'available') == 'available'
    delete(compute, server_id)
    assert cinder.attachments(server_id) == []
    cinder.all.delete(f'/volumes/{more}')
    cinder.empty()


def test_a_new_image_on_the_same_volume(compute, cinder, image):
    first, second = image(), image()
    server_id = on_volume(compute, first)
    assert compute.settled(server_id)['status'] == 'ACTIVE'
    [volume_id] = attached(compute, server_id)
    answer = compute.ask(ALICE, f'POST /servers/{server_id}/action', {'rebuild': {'imageRef': second}}, version='2.93')
    assert answer.status_code == 202
    assert compute.settled(server_id)['status'] == 'ACTIVE'
    assert [*attached(compute, server_id)] == [volume_id]
    volume = cinder.volume(volume_id)
    assert (volume['status'], volume['volume_image_metadata']['image_id']) == ('in-use', second)


def test_one_volume_for_several_servers(compute, cinder, image):
    volume_id, image_id = cinder.create(volume_type='multiattach'), image()
    servers = [on_volume(compute, image_id) for _ in range(2)]
    for count, server_id in enumerate(servers, 1):
        assert compute.settled(server_id)['status'] == 'ACTIVE'
        assert attach(compute, server_id, volume_id).status_code == 200
        deadline = time.monotonic() + 30
        while len(cinder.users(volume_id)) < count:
            assert time.monotonic() < deadline
            time.sleep(0.1)
    delete(compute, servers[0])
    assert cinder.settled(volume_id, 'in-use') == 'in-use'
    delete(compute, servers[1])
    assert cinder.settled(volume_id, 'available') == 'available'


def test_servers_made_of_images_of_volumes(compute, cinder, image):
    server_id = on_volume(compute, image())
    assert compute.settled(server_id)['status'] == 'ACTIVE'
    answer = compute.act(server_id, createImage={'name': 'copy'})
    assert answer.status_code == 202
    copy = compute.boot(answer.json['image_id'])
    [volume_id] = attached(compute, copy)
    [snapshot] = cinder.mine.get('/snapshots').json()['snapshots']
    assert cinder.volume(volume_id)['snapshot_id'] == snapshot['id']
    assert (snapshot['name'], snapshot['status']) == ('snapshot for copy', 'available')


def test_the_proxies_of_volumes_and_snapshots(running, compute, cinder):
    def ask(request, json=None, caller=ALICE):
        return compute.ask(caller, request, json, version='2.35')

    made = ask('POST /os-volumes', {'volume': {'size': 1, 'display_name': 'mine', 'metadata': {'a': 'b'}}})
    assert made.status_code == 200
    volume_id = made.json['volume']['id']
    cinder.settled(volume_id)
    shown = ask(f'GET /os-volumes/{volume_id}').json['volume']
    assert (shown['displayName'], shown['metadata'], shown['status']) == ('mine', {'a': 'b'}, 'available')
    assert ask('GET /os-volumes').json['volumes'] == [shown]
    assert ask(f'GET /os-volumes/{volume_id}', caller=BOB).status_code == 404
    snapshot = ask('POST /os-snapshots', {'snapshot': {'volume_id': volume_id, 'display_name': 's'}}).json['snapshot']
    deadline = time.monotonic() + 30
    while ask(f'GET /os-snapshots/{snapshot["id"]}').json['snapshot']['status'] != 'available':
        assert time.monotonic() < deadline
    assert [each['displayName'] for each in ask('GET /os-snapshots/detail').json['snapshots']] == ['s']
    assert ask(f'DELETE /os-volumes/{volume_id}').status_code == 400
    assert ask('POST /os-volumes', {'volume': {'size': 1, 'volume_type': 'nothing'}}).status_code == 404
    cinder.all.put(f'/os-quota-sets/{running.project_id("apples")}', json={'quota_set': {'volumes': 1, 'snapshots': 1}})
    assert ask('POST /os-volumes', {'volume': {'size': 1}}).status_code == 403
    assert ask('POST /os-snapshots', {'snapshot': {'volume_id': volume_id}}).status_code == 403
    assert ask(f'DELETE /os-snapshots/{snapshot["id"]}').status_code == 202
    while ask(f'GET /os-snapshots/{snapshot["id"]}').status_code != 404:
        assert time.monotonic() < deadline
    assert ask(f'DELETE /os-volumes/{volume_id}').status_code == 202
    cinder.empty()
