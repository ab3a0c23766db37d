"""Cinder v3 from a client's point of view: backups, transfers, groups, QoS, encryption, messages and quota classes."""

import pytest

NOWHERE = '00000000-0000-4000-8000-00000000dead'


@pytest.fixture
def back_up(ask):
    def back_up(volume, **document):
        asked = {'backup': {'volume_id': volume['id'], **document}}
        return ask('POST /v3/backups', asked, expect=202).json['backup']['id']

    return back_up


def shown(ask, path, noun, **others):
    return ask(f'GET /v3/{path}', **others).json[noun]


def test_a_backup_outlives_its_volume(ask, create, back_up):
    volume = create(name='data', size=2, metadata={'a': 'b'})
    backup = back_up(volume, name='daily', metadata={'day': '1'})
    found = shown(ask, f'backups/{backup}', 'backup')
    assert (found['name'], found['status'], found['size'], found['volume_id']) == (
        'daily',
        'available',
        2,
        volume['id'],
    )
    assert (found['metadata'], found['is_incremental']) == ({'day': '1'}, False)
    assert 'metadata' not in shown(ask, f'backups/{backup}', 'backup', version='3.42')
    assert ask('GET /v3/backups', by='bob').json == {'backups': []}
    ask(f'GET /v3/backups/{backup}', by='bob', expect=404)
    ask(f'DELETE /v3/volumes/{volume["id"]}', expect=202)
    restored = ask(f'POST /v3/backups/{backup}/restore', {'restore': {}}, expect=202).json['restore']
    assert restored['backup_id'] == backup
    found = shown(ask, f'volumes/{restored["volume_id"]}', 'volume')
    assert (found['size'], found['metadata']) == (2, {'a': 'b'})
    made = create(size=3, backup_id=backup, metadata={'c': 'd'})
    assert (made['size'], made['metadata']) == (3, {'a': 'b', 'c': 'd'})
    other = create(size=2, metadata={'c': 'd'})
    ask(f'POST /v3/backups/{backup}/restore', {'restore': {'volume_id': other['id']}}, expect=202)
    assert shown(ask, f'volumes/{other["id"]}', 'volume')['metadata'] == {'a': 'b'}
    ask('POST /v3/volumes', {'volume': {'size': 1, 'backup_id': backup}}, expect=400)
    ask(f'PUT /v3/backups/{backup}', {'backup': {'name': 'weekly'}})
    assert [each['name'] for each in ask('GET /v3/backups/detail?name=weekly').json['backups']] == ['weekly']
    ask(f'DELETE /v3/backups/{backup}', expect=202)
    ask(f'GET /v3/backups/{backup}', expect=404)


def test_a_backup_of_changes_needs_the_one_before(ask, create, back_up):
    volume = create()
    ask('POST /v3/backups', {'backup': {'volume_id': volume['id'], 'incremental': True}}, expect=400)
    first = back_up(volume)
    second = back_up(volume, incremental=True)
    assert shown(ask, f'backups/{second}', 'backup')['is_incremental']
    assert shown(ask, f'backups/{first}', 'backup')['has_dependent_backups']
    ask(f'DELETE /v3/backups/{first}', expect=400)
    ask(f'DELETE /v3/backups/{second}', expect=202)
    ask(f'DELETE /v3/backups/{first}', expect=202)


def test_backups_belong_to_who_makes_them(ask, create, back_up):
    volume = create()
    theirs = back_up(volume)
    incremental = {'backup': {'volume_id': volume['id'], 'incremental': True}}
    ask('POST /v3/backups', incremental, by='admin', expect=400)
    ours = ask('POST /v3/backups', {'backup': {'volume_id': volume['id']}}, by='admin', expect=202).json['backup']['id']
    ask(f'GET /v3/backups/{ours}', expect=404)
    ask('POST /v3/backups', incremental, expect=202)
    assert shown(ask, f'backups/{theirs}', 'backup')['has_dependent_backups']
    assert not shown(ask, f'backups/{ours}', 'backup', by='admin')['has_dependent_backups']


def test_backups_of_volumes_in_use_and_of_snapshots(ask, create, act, back_up):
    volume = create()
    snapshot = ask('POST /v3/snapshots', {'snapshot': {'volume_id': volume['id']}}, expect=202).json['snapshot']
    act(volume, 'os-attach', {'host_name': 'node', 'mountpoint': '/dev/vdb'})
    ask('POST /v3/backups', {'backup': {'volume_id': volume['id']}}, expect=400)
    back_up(volume, force=True)
    backup = back_up(volume, snapshot_id=snapshot['id'])
    assert shown(ask, f'backups/{backup}', 'backup')['snapshot_id'] == snapshot['id']
    ask('POST /v3/backups', {'backup': {'volume_id': create()['id'], 'snapshot_id': snapshot['id']}}, expect=400)
    ask(f'POST /v3/backups/{backup}/restore', {'restore': {'volume_id': volume['id']}}, expect=400)
    other = create()
    restored = ask(f'POST /v3/backups/{backup}/restore', {'restore': {'volume_id': other['id']}}, expect=202)
    assert restored.json['restore']['volume_id'] == other['id']


def test_administrators_reset_and_force_backups(ask, create, back_up):
    volume = create()
    backup = back_up(volume)
    path = f'/v3/backups/{backup}/action'
    ask(f'POST {path}', {'os-reset_status': {'status': 'error'}}, expect=403)
    ask(f'POST {path}', {'os-reset_status': {'status': 'error'}}, by='admin', expect=202)
    assert shown(ask, f'backups/{backup}', 'backup')['status'] == 'error'
    for target in ({}, {'volume_id': volume['id']}):
        ask(f'POST /v3/backups/{backup}/restore', {'restore': target}, expect=400)
    ask(f'POST {path}', {'os-force_delete': None}, by='admin', expect=202)
    assert ask('GET /v3/backups').json == {'backups': []}


def test_who_makes_a_snapshot_reports_on_it(ask, create):
    made = ask('POST /v3/snapshots', {'snapshot': {'volume_id': create()['id']}}, expect=202).json['snapshot']
    path, name = f'POST /v3/snapshots/{made["id"]}/action', 'os-update_snapshot_status'
    progress = 'os-extended-snapshot-attributes:progress'
    assert shown(ask, f'snapshots/{made["id"]}', 'snapshot')[progress] == '100%'
    ask(path, {name: {'status': 'error'}}, expect=400)
    ask(path, {'os-reset_status': {'status': 'creating'}}, by='admin', expect=202)
    for refused in ({'status': 'deleting'}, {'progress': '80%'}, {'status': 'creating', 'progress': '101%'}):
        ask(path, {name: refused}, expect=400)
    ask(path, {name: {'status': 'error', 'progress': '80%'}}, expect=202)
    found = shown(ask, f'snapshots/{made["id"]}', 'snapshot')
    assert (found['status'], found[progress]) == ('error', '80%')


def offer(ask, volume, path='os-volume-transfer', by='alice', **document):
    asked = {'transfer': {'volume_id': volume['id'], **document}}
    return ask(f'POST /v3/{path}', asked, by=by, expect=202).json['transfer']


@pytest.mark.parametrize('path', ['os-volume-transfer', 'volume-transfers'])
def test_a_volume_goes_to_whoever_has_the_key(ask, create, status, path):
    volume = create()
    ask('POST /v3/snapshots', {'snapshot': {'volume_id': volume['id'], 'name': 'before'}}, expect=202)
    transfer = offer(ask, volume, path, name='gift')
    assert status(volume) == 'awaiting-transfer'
    found = shown(ask, f'{path}/{transfer["id"]}', 'transfer')
    assert 'auth_key' not in found
    history = {'source_project_id': 'apples', 'destination_project_id': None, 'accepted': False}
    assert found == found | history | {'no_snapshots': False}
    ask(f'GET /v3/{path}/{transfer["id"]}', by='bob', expect=404)
    accept = f'POST /v3/{path}/{transfer["id"]}/accept'
    ask(accept, {'accept': {'auth_key': 'wrong'}}, by='bob', expect=400)
    ask(accept, {'accept': {'auth_key': transfer['auth_key']}}, by='bob', expect=202)
    ask(accept, {'accept': {'auth_key': transfer['auth_key']}}, by='bob', expect=404)
    ask(f'GET /v3/volumes/{volume["id"]}', expect=404)
    assert shown(ask, f'volumes/{volume["id"]}', 'volume', by='bob')['status'] == 'available'
    assert [each['name'] for each in ask('GET /v3/snapshots', by='bob').json['snapshots']] == ['before']


def test_an_offer_can_be_taken_back_and_leave_snapshots_behind(ask, create, status):
    volume = create()
    ask('POST /v3/snapshots', {'snapshot': {'volume_id': volume['id']}}, expect=202)
    for path in ('os-volume-transfer', 'volume-transfers'):
        ask(f'POST /v3/{path}', {'transfer': {'volume_id': volume['id'], 'no_snapshots': 'x'}}, expect=400)
    transfer = offer(ask, volume)
    ask('POST /v3/os-volume-transfer', {'transfer': {'volume_id': volume['id']}}, expect=400)
    ask(f'DELETE /v3/os-volume-transfer/{transfer["id"]}', by='bob', expect=404)
    ask(f'DELETE /v3/os-volume-transfer/{transfer["id"]}', expect=202)
    assert status(volume) == 'available'
    transfer = offer(ask, volume, 'volume-transfers', no_snapshots=True)
    ask(
        f'POST /v3/volume-transfers/{transfer["id"]}/accept',
        {'accept': {'auth_key': transfer['auth_key']}},
        by='bob',
        expect=202,
    )
    assert len(ask('GET /v3/snapshots').json['snapshots']) == 1
    assert ask('GET /v3/snapshots', by='bob').json == {'snapshots': []}
    for query in ('', '?cascade=true'):
        ask(f'DELETE /v3/volumes/{volume["id"]}{query}', by='bob', expect=400)
    assert len(ask('GET /v3/snapshots').json['snapshots']) == 1
    ask('POST /v3/snapshots', {'snapshot': {'volume_id': volume['id'], 'name': 'later'}}, by='bob', expect=202)
    transfer = offer(ask, volume, by='bob')
    accept = {'accept': {'auth_key': transfer['auth_key']}}
    ask(f'POST /v3/os-volume-transfer/{transfer["id"]}/accept', accept, by='admin', expect=202)
    assert len(ask('GET /v3/snapshots').json['snapshots']) == 1
    assert [each['name'] for each in ask('GET /v3/snapshots', by='admin').json['snapshots']] == ['later']
    ask(f'DELETE /v3/volumes/{volume["id"]}?cascade=true', by='admin', expect=202)


def test_a_volume_that_was_made_available_again_is_no_longer_offered(ask, create, status):
    volume = create()
    before = offer(ask, volume)
    ask(f'POST /v3/volumes/{volume["id"]}/action', {'os-reset_status': {'status': 'available'}}, by='admin', expect=202)
    after = offer(ask, volume)
    assert [each['id'] for each in ask('GET /v3/os-volume-transfer').json['transfers']] == [after['id']]
    assert after['id'] != before['id']
    ask(f'POST /v3/volumes/{volume["id"]}/action', {'os-reset_status': {'status': 'error'}}, by='admin', expect=202)
    ask(f'DELETE /v3/os-volume-transfer/{after["id"]}', expect=202)
    assert status(volume) == 'error'


def test_backups_that_a_former_owner_kept_are_no_parents(ask, create, back_up):
    volume = create()
    first = back_up(volume)
    transfer = offer(ask, volume)
    accept = {'accept': {'auth_key': transfer['auth_key']}}
    ask(f'POST /v3/os-volume-transfer/{transfer["id"]}/accept', accept, by='bob', expect=202)
    for name in ('bob', 'admin'):
        incremental = {'backup': {'volume_id': volume['id'], 'incremental': True}}
        ask('POST /v3/backups', incremental, by=name, expect=400)
    ask(f'DELETE /v3/backups/{first}', expect=202)


def test_who_accepts_needs_the_quota(ask, create):
    transfer = offer(ask, create())
    ask('PUT /v3/os-quota-sets/bananas', {'quota_set': {'volumes': 0}}, by='admin')
    accept = {'accept': {'auth_key': transfer['auth_key']}}
    ask(f'POST /v3/os-volume-transfer/{transfer["id"]}/accept', accept, by='bob', expect=413)


@pytest.fixture
def kind(ask):
    return ask('POST /v3/types', {'volume_type': {'name': 'disk'}}, by='admin').json['volume_type']


@pytest.fixture
def group_type(ask):
    asked = {'group_type': {'name': 'together', 'group_specs': {'a': 'b'}}}
    return ask('POST /v3/group_types', asked, by='admin', expect=202).json['group_type']


def test_groups(ask, create, kind, group_type, status):
    asked = {'name': 'pair', 'group_type': group_type['id'], 'volume_types': [kind['id']]}
    ask('POST /v3/groups', {'group': {**asked, 'volume_types': ['nothing']}}, expect=404)
    for types in ([kind['id']] * 2, [*map(str, range(50_000)), 1]):
        ask('POST /v3/groups', {'group': {**asked, 'volume_types': types}}, expect=400)
    ask('POST /v3/groups', {'group': {**asked, 'availability_zone': 'moon'}}, expect=400)
    group = ask('POST /v3/groups', {'group': asked}, expect=202).json['group']['id']
    ask(f'PUT /v3/groups/{group}', {'group': {}}, expect=400)
    found = shown(ask, f'groups/{group}', 'group')
    assert (found['name'], found['status'], found['volume_types']) == ('pair', 'available', [kind['id']])
    ask(f'GET /v3/groups/{group}', by='bob', expect=404)
    ask('POST /v3/volumes', {'volume': {'size': 1, 'group_id': group}}, expect=400)
    first = create(volume_type='disk', group_id=group)
    second = create(volume_type='disk')
    move = {'group': {'add_volumes': second['id'], 'remove_volumes': first['id'], 'name': 'one'}}
    ask(f'PUT /v3/groups/{group}', move, expect=202)
    assert shown(ask, f'groups/{group}', 'group')['volumes'] == [second['id']]
    assert shown(ask, f'volumes/{second["id"]}', 'volume')['group_id'] == group
    ask(f'DELETE /v3/volumes/{second["id"]}', expect=400)
    ask(f'DELETE /v3/group_types/{group_type["id"]}', by='admin', expect=400)
    act = f'POST /v3/groups/{group}/action'
    ask(act, {'delete': {'delete-volumes': False}}, expect=400)
    ask(act, {'reset_status': {'status': 'error'}}, expect=403)
    ask(act, {'delete': {'delete-volumes': True}}, expect=202)
    ask(f'GET /v3/volumes/{second["id"]}', expect=404)
    assert status(first) == 'available'
    assert ask('GET /v3/groups/detail').json == {'groups': []}
    ask(f'DELETE /v3/group_types/{group_type["id"]}', by='admin', expect=202)


def test_groups_have_no_snapshots(ask):
    for path in ('/v3/group_snapshots', '/v3/group_snapshots/detail'):
        assert ask(f'GET {path}').json == {'group_snapshots': []}
    ask('GET /v3/group_snapshots', version='3.13', expect=404)


def test_kinds_of_groups(ask, group_type):
    path = f'/v3/group_types/{group_type["id"]}'
    ask('POST /v3/group_types', {'group_type': {'name': 'together'}}, by='admin', expect=409)
    ask('POST /v3/group_types', {'group_type': {'name': 'mine'}}, expect=403)
    ask(f'PUT {path}', {'group_type': {'name': 'apart', 'is_public': False}}, by='admin')
    assert ask('GET /v3/group_types').json == {'group_types': []}
    ask(f'GET {path}', expect=404)
    ask(f'POST {path}/group_specs', {'group_specs': {'c': 'd'}}, by='admin', expect=202)
    ask(f'DELETE {path}/group_specs/a', by='admin', expect=202)
    assert ask(f'GET {path}/group_specs', by='admin').json == {'group_specs': {'c': 'd'}}
    ask('GET /v3/group_types', version='3.10', expect=404)


def test_qos(ask, kind):
    asked = {'qos_specs': {'name': 'slow', 'consumer': 'front-end', 'total_iops_sec': '10'}}
    ask('POST /v3/qos-specs', asked, expect=403)
    specs = ask('POST /v3/qos-specs', asked, by='admin').json['qos_specs']
    assert (specs['name'], specs['consumer'], specs['specs']) == ('slow', 'front-end', {'total_iops_sec': '10'})
    ask('POST /v3/qos-specs', asked, by='admin', expect=409)
    path = f'/v3/qos-specs/{specs["id"]}'
    ask(f'PUT {path}', {'qos_specs': {'more': '1', 'consumer': 'both'}}, by='admin')
    ask(f'PUT {path}/delete_keys', {'keys': ['total_iops_sec']}, by='admin', expect=202)
    ask(f'PUT {path}/delete_keys', {'keys': ['total_iops_sec']}, by='admin', expect=400)
    assert shown(ask, f'qos-specs/{specs["id"]}', 'qos_specs', by='admin') == {
        'id': specs['id'],
        'name': 'slow',
        'consumer': 'both',
        'specs': {'more': '1'},
    }
    ask(f'GET {path}/associate?vol_type_id={kind["id"]}', by='admin', expect=202)
    (associated,) = ask(f'GET {path}/associations', by='admin').json['qos_associations']
    assert (associated['id'], associated['association_type']) == (kind['id'], 'volume_type')
    assert shown(ask, f'types/{kind["id"]}', 'volume_type', by='admin')['qos_specs_id'] == specs['id']
    ask(f'DELETE {path}', by='admin', expect=400)
    ask(f'GET {path}/disassociate?vol_type_id={kind["id"]}', by='admin', expect=202)
    ask(f'GET {path}/associate', by='admin', expect=400)
    ask(f'DELETE {path}', by='admin', expect=202)
    assert ask('GET /v3/qos-specs', by='admin').json == {'qos_specs': []}


def test_encrypted_types(ask, create, kind):
    path = f'/v3/types/{kind["id"]}/encryption'
    assert ask(f'GET {path}', by='admin').json == {}
    plain = create(volume_type='__DEFAULT__')
    assert not plain['encrypted']
    assert ask(f'GET /v3/volumes/{plain["id"]}/encryption').json == {'encryption_key_id': None}
    asked = {'provider': 'luks', 'cipher': 'aes-xts-plain64', 'key_size': 256, 'control_location': 'front-end'}
    ask(f'POST {path}', {'encryption': {'provider': 'luks'}}, by='admin', expect=400)
    made = ask(f'POST {path}', {'encryption': asked}, by='admin').json['encryption']
    assert made == {
        **asked,
        'volume_type_id': kind['id'],
        'encryption_id': made['encryption_id'],
    }
    ask(f'POST {path}', {'encryption': asked}, by='admin', expect=409)
    assert made.items() <= ask(f'GET {path}', by='admin').json.items()
    assert ask(f'GET {path}/cipher', by='admin').json == {'cipher': 'aes-xts-plain64'}
    less = {'encryption': {'key_size': 192}}
    assert ask(f'PUT {path}/provider', less, by='admin').json == less
    less = {'encryption': {'key_size': 128}}
    assert ask(f'PUT {path}/{made["encryption_id"]}', less, by='admin').json == less
    assert ask(f'GET {path}', by='admin').json.items() >= {**asked, 'key_size': 128}.items()
    volume = create(volume_type='disk')
    assert volume['encrypted']
    facts = {**asked, 'key_size': 128, 'encryption_key_id': None}
    assert ask(f'GET /v3/volumes/{volume["id"]}/encryption').json == facts
    ask(f'GET /v3/volumes/{volume["id"]}/encryption', by='bob', expect=404)
    ask(f'DELETE {path}/{made["encryption_id"]}', by='admin', expect=400)
    ask(f'DELETE /v3/volumes/{volume["id"]}', expect=202)
    ask(f'DELETE {path}/{made["encryption_id"]}', by='admin', expect=202)
    assert ask(f'GET {path}', by='admin').json == {}
    ask(f'PUT {path}/provider', less, by='admin', expect=404)
    ask(f'POST {path}', {'encryption': asked}, by='admin')
    unnamed = {'encryption': {'provider': '', 'control_location': 'back-end'}}
    assert ask(f'PUT {path}/provider', unnamed, by='admin').json == unnamed
    ask(f'DELETE {path}/provider', by='admin', expect=202)
    assert ask(f'GET {path}', by='admin').json == {}


@pytest.mark.parametrize('spec', ['volume_backend_name', 'capabilities:vendor_name', 'storage_protocol'])
def test_a_volume_that_cannot_be_made_says_why(ask, create, status, spec):
    specs = {'name': 'elsewhere', 'extra_specs': {spec: 'moon'}}
    ask('POST /v3/types', {'volume_type': specs}, by='admin')
    volume = create(volume_type='elsewhere')
    assert status(volume) == 'error'
    (message,) = ask('GET /v3/messages').json['messages']
    assert (message['resource_uuid'], message['message_level']) == (volume['id'], 'ERROR')
    assert 'backend' in message['user_message']
    path = f'/v3/messages/{message["id"]}'
    ask(f'GET {path}', by='bob', expect=404)
    ask(f'GET {path}', version='3.2', expect=404)
    ask(f'DELETE {path}', expect=204)
    assert ask('GET /v3/messages').json == {'messages': []}


@pytest.fixture
def limited(ask):
    """limited(volumes_fast=1) -> the quotas of alice's project with these limits."""

    def limited(expect=200, **limits):
        answer = ask('PUT /v3/os-quota-sets/apples', {'quota_set': limits}, by='admin', expect=expect)
        return answer.json['quota_set'] if expect == 200 else answer.message

    return limited


@pytest.fixture
def fast(ask):
    facts = {'name': 'fast', 'is_public': True}
    return ask('POST /v3/types', {'volume_type': facts}, by='admin', expect=200).json['volume_type']


def test_quotas_of_volume_types(ask, create, fast, limited):
    assert shown(ask, 'os-quota-sets/apples', 'quota_set')['volumes_fast'] == -1
    assert limited(volumes_fast=2, gigabytes_fast=3, snapshots_fast=0)['gigabytes_fast'] == 3
    volume = create(size=1, volume_type='fast')
    create(size=1)
    snapshot = {'snapshot': {'volume_id': volume['id']}}
    assert "quota 'snapshots_fast'" in ask('POST /v3/snapshots', snapshot, expect=413).message
    large = {'volume': {'size': 3, 'volume_type': 'fast'}}
    message = ask('POST /v3/volumes', large, expect=413).message
    assert 'exceeds allowed gigabytes_fast quota. Requested 3G, quota is 3G and 1G has been consumed.' in message
    ask(f'POST /v3/volumes/{volume["id"]}/action', {'os-extend': {'new_size': 4}}, expect=413)
    create(size=1, volume_type='fast')
    more = {'volume': {'size': 1, 'volume_type': 'fast'}}
    assert "Maximum number of volumes allowed (2) exceeded for quota 'volumes_fast'." in (
        ask('POST /v3/volumes', more, expect=413).message
    )
    usage = shown(ask, 'os-quota-sets/apples?usage=true', 'quota_set')
    assert usage['volumes_fast'] == {'limit': 2, 'in_use': 2, 'reserved': 0}
    assert usage['gigabytes___DEFAULT__'] == {'limit': -1, 'in_use': 1, 'reserved': 0}


def test_volumes_change_to_a_type_within_its_quotas(ask, create, fast, limited):
    limited(volumes_fast=1)
    one, two = create(size=1), create(size=1)
    ask(f'POST /v3/volumes/{one["id"]}/action', {'os-retype': {'new_type': 'fast'}}, expect=202)
    refused = ask(f'POST /v3/volumes/{two["id"]}/action', {'os-retype': {'new_type': 'fast'}}, expect=413)
    assert "quota 'volumes_fast'" in refused.message
    moved = {'os-retype': {'new_type': 'fast', 'migration_policy': 'sometimes'}}
    ask(f'POST /v3/volumes/{two["id"]}/action', moved, expect=400)
    again = ask(f'POST /v3/volumes/{one["id"]}/action', {'os-retype': {'new_type': fast['id']}}, expect=400)
    assert 'already has the type fast' in again.message


def test_quotas_follow_their_volume_type(ask, fast, limited):
    limited(volumes_fast=1)
    path = f'/v3/types/{fast["id"]}'
    ask(f'PUT {path}', {'volume_type': {'name': 'faster'}}, by='admin', expect=200)
    quotas = shown(ask, 'os-quota-sets/apples', 'quota_set')
    assert quotas['volumes_faster'] == 1
    assert 'volumes_fast' not in quotas
    assert 'volumes_fast' in limited(volumes_fast=1, expect=400)
    ask(f'DELETE {path}', by='admin', expect=202)
    assert 'volumes_faster' not in shown(ask, 'os-quota-sets/apples', 'quota_set')


def test_limits_of_types_in_the_default_class(ask, create, fast):
    path = '/v3/os-quota-class-sets/default'
    set_ = ask(f'PUT {path}', {'quota_class_set': {'volumes_fast': 0}}, by='admin', expect=200)
    assert set_.json['quota_class_set']['volumes_fast'] == 0
    ask('POST /v3/volumes', {'volume': {'size': 1, 'volume_type': 'fast'}}, expect=413)


def test_classes_of_quotas(ask, create):
    path = '/v3/os-quota-class-sets/default'
    ask(f'GET {path}', expect=403)
    assert ask(f'GET {path}', by='admin').json['quota_class_set']['volumes'] == 10
    ask(f'PUT {path}', {'quota_class_set': {'volumes': 1}}, by='admin')
    assert shown(ask, 'os-quota-sets/apples', 'quota_set')['volumes'] == 1
    create()
    ask('POST /v3/volumes', {'volume': {'size': 1}}, expect=413)
    ask('PUT /v3/os-quota-sets/apples', {'quota_set': {'volumes': 2}}, by='admin')
    create()


@pytest.mark.parametrize('name', ['backups', 'backup_gigabytes', 'groups'])
def test_quotas_of_what_stands_beside(ask, create, kind, group_type, name):
    volume = create(volume_type='disk')
    ask('PUT /v3/os-quota-sets/apples', {'quota_set': {name: 0}}, by='admin')
    group = {'group_type': group_type['id'], 'volume_types': [kind['id']]}
    noun, asked = ('group', group) if name == 'groups' else ('backup', {'volume_id': volume['id']})
    ask(f'POST /v3/{noun}s', {noun: asked}, expect=413)
