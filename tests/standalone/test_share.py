"""Manila v2 from a client's point of view."""

import pytest

from computeapi import errors
from computeapi.backends.share import local
from computeapi.backends.share.local import LocalShares
from computeapi.context import Context
from computeapi.standalone.share import manila
from tests.backends.test_volume import together
from tests.standalone.callers import CALLERS, answer_of, authenticating

NOWHERE = '00000000-0000-4000-8000-00000000dead'
FAULTS = {400: 'badRequest', 401: 'unauthorized', 403: 'forbidden', 404: 'itemNotFound', 413: 'overLimit'}

authenticate = authenticating(ann=Context(user_id='ann', project_id='apples', roles=frozenset({'member'})))


@pytest.fixture
def shares(store):
    return LocalShares(store)


@pytest.fixture
def ask(shares):
    """ask('POST /v2/shares', {...}, by='alice', version='2.7') -> the response, which must have the status `expect`."""
    app = manila(shares, authenticate)

    def ask(request, json=None, *, by='alice', version='2.82', expect=200):
        headers = {'X-OpenStack-Manila-API-Version': version}
        response = answer_of(app, request, json, by, expect, headers=headers)
        if expect in FAULTS:
            assert response.json[FAULTS[expect]]['code'] == expect
        return response

    return ask


@pytest.fixture
def create(ask):
    def create(by='alice', expect=200, **kwargs):
        body = {'share': {'share_proto': 'NFS', 'size': 1, **kwargs}}
        return ask('POST /v2/shares', body, by=by, expect=expect).json.get('share')

    return create


def ids(response):
    return [share['id'] for share in response.json['shares']]


def test_its_versions_are_told_to_anybody(ask):
    for path, status in (('/', 300), ('/v2/', 200)):
        (version,) = ask(f'GET {path}', by='', expect=status).json['versions']
        assert (version['id'], version['min_version'], version['version']) == ('v2.0', '2.0', '2.98')
    headers = ask('GET /v2/shares').headers
    assert headers['X-OpenStack-Manila-API-Version'] == '2.82'
    # Manila and its clients have kept the name that Nova gave the header.
    assert headers['x-compute-request-id'] == headers['x-openstack-request-id']
    ask('GET /v2/shares', version='2.99', expect=406)


def test_a_new_share(ask, create):
    assert create(share_proto='cifs')['share_proto'] == 'CIFS'
    made = create(share_proto='cephfs', size=3, name='home', description='mine', metadata={'a': 'b'})
    shown = ask(f'GET /v2/shares/{made["id"]}').json['share']
    assert shown == made
    assert (made['share_proto'], made['size'], made['status'], made['is_public']) == ('CEPHFS', 3, 'available', False)
    assert (made['name'], made['metadata'], made['project_id'], made['user_id']) == (
        'home',
        {'a': 'b'},
        'apples',
        'alice',
    )
    assert 'export_location' not in made and 'host' not in made


def test_where_it_is_mounted_from(ask, create):
    path = f'/v2/shares/{create()["id"]}'
    old = ask(f'GET {path}', version='2.8').json['share']
    (location,) = ask(f'GET {path}/export_locations').json['export_locations']
    assert old['export_locations'] == [old['export_location']] == [location['path']]
    assert ask(f'GET {path}/export_locations/{location["id"]}').json['export_location'] == location
    ask(f'GET {path}/export_locations/{NOWHERE}', expect=404)
    ask(f'GET {path}/export_locations', version='2.8', expect=404)


def test_tokens_for_the_system_are_refused(ask, create):
    for request in (f'DELETE /v2/shares/{create()["id"]}', 'GET /v2/shares', 'GET /v2/types'):
        ask(request, by='system admin', expect=403)


def test_lists(ask, create):
    first, second = create(name='first')['id'], create(name='second', share_proto='CEPHFS')['id']
    theirs, everybodys = create('bob')['id'], create('admin', is_public=True)['id']
    assert ids(ask('GET /v2/shares')) == [second, first]
    assert set(ids(ask('GET /v2/shares/detail?all_tenants=1', by='admin'))) == {first, second, theirs, everybodys}
    assert ids(ask('GET /v2/shares?name=first')) == ids(ask('GET /v2/shares?limit=1&offset=1')) == [first]
    assert ids(ask('GET /v2/shares/detail?share_proto=CEPHFS')) == [second]
    assert set(ids(ask('GET /v2/shares?all_tenants=1&is_public=True'))) == {first, second, everybodys}
    assert set(ids(ask('GET /v2/shares?all_tenants=1&is_public=False'))) == {first, second}
    assert ids(ask('GET /v2/shares/detail?is_soft_deleted=True')) == []


@pytest.mark.parametrize(
    ('query', 'found'),
    [
        ('display_name=web', ['web']),
        ('description=of%20pages', ['web']),
        ('name~=W', ['web', 'news']),
        ('name~=%25', []),
        ('description~=page', ['web']),
        ('metadata={"tier":"gold"}', ['web']),
        ('metadata={"tier":"lead"}', []),
        ('export_location_path=nowhere', []),
        ('availability_zone=nova', ['web', 'news']),
        ('availability_zone=far', []),
        ('share_type_id=' + NOWHERE, []),
        ('snapshot_id=' + NOWHERE, []),
        ('extra_specs={"driver_handles_share_servers":"False"}', ['web', 'news']),
        ('extra_specs={"driver_handles_share_servers":"True"}', []),
    ],
)
def test_lists_are_filtered(ask, create, query, found):
    create(name='news'), create(name='web', description='of pages', metadata={'tier': 'gold'})
    for path in ('shares', 'shares/detail'):
        shares = ask(f'GET /v2/{path}?{query}', version='2.98').json['shares']
        assert [share['name'] for share in shares] == found


def test_a_share_is_found_by_its_export_location(ask, create):
    share_id = [create()['id'], create()['id']][0]
    [location] = ask(f'GET /v2/shares/{share_id}/export_locations').json['export_locations']
    for query in (f'export_location_id={location["id"]}', f'export_location_path={location["path"]}'):
        assert ids(ask(f'GET /v2/shares?{query}')) == [share_id]


def test_filters_are_ignored_before_there_are_any(ask, create):
    create()
    query = 'GET /v2/shares?name~=web&export_location_path=nowhere&with_count=1&availability_zone=far'
    assert len(ask(query, version='2.34').json['shares']) == 1
    assert 'count' not in ask(query, version='2.41').json


def test_lists_count_what_is_on_other_pages(ask, create):
    create(name='news'), create(name='news'), create('bob')
    for path in ('shares', 'shares/detail'):
        found = ask(f'GET /v2/{path}?limit=1&name=news&with_count=True').json
        assert (len(found['shares']), found['count']) == (1, 2)


def test_changes(ask, create):
    share_id = create()['id']
    public = {'share': {'display_name': 'new', 'is_public': True}}
    changed = ask(f'PUT /v2/shares/{share_id}', public, by='admin').json['share']
    assert (changed['name'], changed['is_public']) == ('new', True)
    ask(f'PUT /v2/shares/{share_id}', {'share': {'display_name': 'x'}}, by='bob', expect=403)
    ask(f'DELETE /v2/shares/{share_id}', by='bob', expect=403)
    ask(f'DELETE /v2/shares/{share_id}', by='reader', expect=403)
    ask(f'DELETE /v2/shares/{share_id}', expect=202)
    ask(f'GET /v2/shares/{share_id}', expect=404)


def test_what_is_everybodys_administrators_say(ask, create):
    create(is_public='true', expect=403)
    share_id = create()['id']
    ask(f'PUT /v2/shares/{share_id}', {'share': {'is_public': True}}, expect=403)
    ask(f'PUT /v2/shares/{share_id}', {'share': {'is_public': True}}, by='admin')
    ask(f'PUT /v2/shares/{share_id}', {'share': {'is_public': 'trueish'}}, by='admin', expect=400)
    for public in ('yes', True, None, False):
        ask(f'PUT /v2/shares/{share_id}', {'share': {'is_public': public}})
    ask(f'GET /v2/shares/{share_id}', by='bob', expect=404)


@pytest.mark.parametrize(
    'facts', [{'size': 0}, {'size': 'x'}, {'share_proto': 'FTP'}, {'snapshot_id': NOWHERE}, {'name': 'x' * 256}]
)
def test_requests_for_no_share(create, facts):
    create(**facts, expect=400)


@pytest.mark.parametrize(
    ('version', 'absent', 'present'),
    [
        ('2.1', 'snapshot_support', 'export_location'),
        ('2.4', 'task_state', 'snapshot_support'),
        ('2.10', 'replication_type', 'task_state'),
        ('2.23', 'create_share_from_snapshot_support', 'has_replicas'),
        ('2.26', 'revert_to_snapshot_support', 'create_share_from_snapshot_support'),
        ('2.30', 'share_group_id', 'revert_to_snapshot_support'),
        ('2.31', 'mount_snapshot_support', 'share_group_id'),
        ('2.68', 'is_soft_deleted', 'mount_snapshot_support'),
        ('2.79', 'source_backup_id', 'scheduled_to_be_deleted_at'),
        ('2.89', 'encryption_key_ref', 'source_backup_id'),
    ],
)
def test_what_shares_cannot_do_is_shown_as_in_manila(ask, create, version, absent, present):
    share = ask(f'GET /v2/shares/{create()["id"]}', version=version).json['share']
    assert absent not in share and present in share


def test_shares_show_the_name_of_their_type_until_they_show_its_id(ask, create):
    path = f'GET /v2/shares/{create()["id"]}'
    kind = ask('GET /v2/types/default').json['share_type']
    assert ask(path, version='2.5').json['share']['share_type'] == kind['name']
    assert ask(path, version='2.6').json['share']['share_type'] == kind['id']


def test_what_types_show(ask):
    shown = [set(ask('GET /v2/types/default', version=v).json['share_type']) for v in ('2.6', '2.7', '2.41', '2.46')]
    assert 'os-share-type-access:is_public' in shown[0] and 'share_type_access:is_public' in shown[1]
    assert [later - before for before, later in zip(shown, shown[1:], strict=False)] == [
        {'share_type_access:is_public'},
        {'description'},
        {'is_default'},
    ]


def test_there_is_one_type(ask, create):
    kind = ask('GET /v2/types/default').json['share_type']
    assert ask('GET /v2/types').json['share_types'] == [kind]
    assert ask(f'GET /v2/types/{kind["id"]}').json['share_type'] == kind
    assert create(share_type=kind['id'])['share_type_name'] == 'default'
    create(share_type=NOWHERE, expect=404)


def test_projects_have_a_quota(create, monkeypatch):
    monkeypatch.setattr(local, 'MAX_SHARES', 2)
    monkeypatch.setattr(local, 'MAX_GIGABYTES', 10)
    create(size=11, expect=413)
    create(), create()
    create(expect=413)
    create('bob')


def test_metadata_is_changed_one_by_one(ask, create):
    path = f'/v2/shares/{create(metadata={"a": "b"})["id"]}/metadata'
    assert ask(f'POST {path}', {'metadata': {'c': 'd'}}).json['metadata'] == {'a': 'b', 'c': 'd'}
    assert ask(f'GET {path}/c').json['meta'] == {'c': 'd'}
    ask(f'DELETE {path}/c')
    for method in ('GET', 'DELETE'):
        ask(f'{method} {path}/c', expect=404)
    assert ask(f'PUT {path}', {'metadata': {'e': 'f'}}).json == ask(f'GET {path}').json == {'metadata': {'e': 'f'}}
    ask(f'POST {path}', {'metadata': {str(number): '' for number in range(128)}}, expect=400)
    ask(f'POST {path}', {'metadata': None}, expect=400)
    ask(f'POST {path}', {'metadata': {'x': 'y'}}, by='bob', expect=404)


def test_limits_and_zones_are_told(ask, create):
    create(size=3), create('bob')
    absolute = ask('GET /v2/limits').json['limits']['absolute']
    assert (absolute['totalSharesUsed'], absolute['totalShareGigabytesUsed'], absolute['maxTotalShares']) == (1, 3, 50)
    [zone] = ask('GET /v2/availability-zones').json['availability_zones']
    assert create(availability_zone=zone['name'])['availability_zone'] == zone['name']
    create(availability_zone='far', expect=404)


def test_shares_are_resized_within_the_quota(ask, create, monkeypatch):
    monkeypatch.setattr(local, 'MAX_SHARES', 1)
    monkeypatch.setattr(local, 'MAX_GIGABYTES', 10)
    path = f'/v2/shares/{create(size=2)["id"]}'
    for action, size, expected in (
        ('extend', 2, 400),
        ('extend', 10, 202),
        ('extend', 11, 403),
        ('shrink', 10, 400),
        ('shrink', 3, 202),
    ):
        ask(f'POST {path}/action', {action: {'new_size': size}}, expect=expected)
    assert ask(f'GET {path}').json['share']['size'] == 3
    forced = {'extend': {'new_size': 4, 'force': 'true'}}
    ask(f'POST {path}/action', forced, expect=403)
    ask(f'POST {path}/action', forced, version='2.63', expect=202)
    ask(f'POST {path}/action', {'extend': {'new_size': 5, 'force': True}}, by='admin', expect=202)
    ask(f'POST {path}/action', {'extend': {'new_size': 6, 'force': 'perhaps'}}, expect=400)
    ask(f'POST {path}/action', {'reset_task_state': {'task_state': None}}, by='admin', expect=202)
    ask(f'POST {path}/action', {'reset_status': {'status': 'error'}}, expect=403)
    ask(f'POST {path}/action', {'reset_status': {'status': 'error'}}, by='admin', expect=202)
    ask(f'POST {path}/action', {'extend': {'new_size': 4}}, expect=400)
    ask(f'POST {path}/action', {'force_delete': None}, expect=403)
    ask(f'POST {path}/action', {'force_delete': None}, by='admin', expect=202)
    ask(f'GET {path}', expect=404)


def test_the_last_of_the_quota_is_taken_once(shares, monkeypatch):
    monkeypatch.setattr(local, 'MAX_SHARES', 2)
    facts = {'name': None, 'description': None, 'metadata': {}, 'is_public': False}
    refused = together(*[lambda: shares.create(CALLERS['alice'], 1, 'NFS', **facts)] * 6)
    assert refused == [errors.OverQuota] * 4
    assert len(shares.list(CALLERS['alice'])) == 2


# ------------------------------------------------------------------ access


@pytest.fixture
def allow(ask):
    def allow(share_id, name='10.0.0.1', expect=200, version='2.82', **kwargs):
        body = {'allow_access': {'access_type': 'ip', 'access_to': name, **kwargs}}
        return ask(f'POST /v2/shares/{share_id}/action', body, version=version, expect=expect).json.get('access')

    return allow


def test_access_is_granted_and_denied(ask, create, allow):
    share_id = create()['id']
    assert allow(create()['id'], version='2.27')['state'] == 'new'
    rule = allow(share_id, access_level='ro')
    assert (rule['access_to'], rule['access_level'], rule['state']) == ('10.0.0.1', 'ro', 'queued_to_apply')
    works = {**rule, 'state': 'active'}
    assert ask(f'GET /v2/share-access-rules?share_id={share_id}').json['access_list'] == [works]
    assert ask(f'GET /v2/share-access-rules/{rule["id"]}').json['access'] == works
    old = ask(f'POST /v2/shares/{share_id}/action', {'access_list': None}, version='2.7').json['access_list']
    assert [set(each) for each in old] == [
        {'id', 'access_type', 'access_to', 'access_level', 'access_key', 'state'},
    ]
    for same in ('10.0.0.1', '10.0.0.1/32'):
        allow(share_id, same, expect=400)
    deny = {'deny_access': {'access_id': rule['id']}}
    ask(f'POST /v2/shares/{create()["id"]}/action', deny, expect=404)
    ask(f'POST /v2/shares/{share_id}/action', deny, expect=202)
    ask(f'GET /v2/share-access-rules/{rule["id"]}', expect=404)


@pytest.mark.parametrize('unlocking', ['alice', 'admin'])
def test_what_is_locked_stays_unless_its_locker_or_an_administrator_insists(ask, create, allow, unlocking):
    share_id = create()['id']
    deny = {'deny_access': {'access_id': allow(share_id, lock_deletion=True)['id']}}
    ask(f'POST /v2/shares/{share_id}/action', deny, expect=403)
    ask(f'DELETE /v2/shares/{share_id}', expect=403)
    deny['deny_access']['unrestrict'] = True
    ask(f'POST /v2/shares/{share_id}/action', deny, by='ann', expect=403)
    ask(f'POST /v2/shares/{share_id}/action', deny, by=unlocking, expect=202)
    ask(f'DELETE /v2/shares/{share_id}', expect=202)


def seen(ask, rule, share_id, by):
    """What the caller sees of the rule: alone, in the list, and in the former list."""
    alone = ask(f'GET /v2/share-access-rules/{rule}', by=by).json['access']
    [listed] = ask(f'GET /v2/share-access-rules?share_id={share_id}', by=by).json['access_list']
    former = {'access_list': None}
    [old] = ask(f'POST /v2/shares/{share_id}/action', former, by=by, version='2.7').json['access_list']
    return {(each['access_to'], each['access_key']) for each in (alone, listed, old)}


def test_a_hidden_name_is_seen_by_who_hid_it_and_by_administrators(ask, create, allow):
    share_id = create()['id']
    rule = allow(share_id, lock_visibility=True, lock_reason='my laptop')
    assert rule['access_to'] == '10.0.0.1'
    for name in ('alice', 'admin'):
        assert seen(ask, rule['id'], share_id, name) == {('10.0.0.1', None)}
    for name in ('ann', 'reader'):
        assert seen(ask, rule['id'], share_id, name) == {('******', '******')}
    query = f'GET /v2/share-access-rules?share_id={share_id}&access_type=ip&access_to=10.0.0.1'
    assert [len(ask(query, by=name).json['access_list']) for name in ('alice', 'ann')] == [1, 0]
    allow(share_id, '10.0.0.2', lock_reason='none is locked', expect=400)


def test_the_hosts_of_servers_are_hidden_from_their_projects(ask, shares, create):
    share_id = create()['id']
    shares.allow(CALLERS['admin'], share_id, '10.0.0.1')
    [rule] = shares.rules(CALLERS['alice'], share_id)
    assert seen(ask, rule.id, share_id, 'alice') == {('******', '******')}
    deny = {'deny_access': {'access_id': rule.id, 'unrestrict': True}}
    ask(f'POST /v2/shares/{share_id}/action', deny, expect=403)


def test_access_rules_have_metadata(ask, create, allow):
    share_id = create()['id']
    rule, other = allow(share_id, metadata={'why': 'backup'}), allow(share_id, '10.0.0.2')
    assert (rule['metadata'], other['metadata']) == ({'why': 'backup'}, {})
    path = f'/v2/share-access-rules/{rule["id"]}'
    assert ask(f'PUT {path}/metadata', {'metadata': {'who': 'alice'}}).json == {
        'metadata': {'why': 'backup', 'who': 'alice'}
    }
    listed = ask(f'GET /v2/share-access-rules?share_id={share_id}&metadata={{"who":"alice"}}').json['access_list']
    assert [each['id'] for each in listed] == [rule['id']]
    ask(f'DELETE {path}/metadata/who')
    ask(f'DELETE {path}/metadata/who', expect=404)
    assert ask(f'GET {path}').json['access']['metadata'] == {'why': 'backup'}
    ask(f'PUT {path}/metadata', {'metadata': {'many': 5}}, expect=400)
    ask(f'PUT {path}/metadata', {'metadata': {'a': 'b'}}, by='bob', expect=404)
    ask(f'PUT {path}/metadata', {'metadata': {str(n): '' for n in range(128)}}, expect=400)


def test_rules_are_filtered(ask, create, allow):
    share_id = create()['id']
    allow(share_id), allow(share_id, 'some.user', access_type='user', access_level='ro')
    query = f'GET /v2/share-access-rules?share_id={share_id}'
    for asked, count in (
        ('access_type=ip', 1),
        ('access_level=ro&access_type=user', 1),
        ('access_level=ro&access_type=ip', 0),
    ):
        assert len(ask(f'{query}&{asked}').json['access_list']) == count


@pytest.mark.parametrize(
    ('kind', 'name'),
    [
        ('ip', 'x'),
        ('ip', '10.0.0.1/8'),
        ('user', 'bob'),
        ('user', 'a/bcd'),
        ('user', '....'),
        ('cert', 'x' * 65),
        ('cephx', 'client.bob'),
        ('cephx', 'b\xf6b'),
    ],
)
def test_names_that_nobody_can_have(create, allow, kind, name):
    allow(create()['id'], name, access_type=kind, expect=400)


def test_rules_of_other_projects_are_not_shown(ask, create, allow):
    share_id = create()['id']
    ask(f'PUT /v2/shares/{share_id}', {'share': {'is_public': True}}, by='admin')
    rule = allow(share_id)
    assert ask(f'GET /v2/share-access-rules?share_id={share_id}', by='bob').json['access_list'] == []
    ask(f'GET /v2/share-access-rules/{rule["id"]}', by='bob', expect=404)
    ask(f'GET /v2/share-access-rules?share_id={NOWHERE}', expect=404)
