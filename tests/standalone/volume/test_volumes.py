"""Cinder v3 from a client's point of view: volumes, their snapshots, attachments and types."""

import urllib.parse

import pytest

from computeapi.web.app import App

SERVER = '5b5ab8b0-7a65-4ba5-a1f9-6e8ad8d0c6a4'
NOWHERE = '00000000-0000-4000-8000-00000000dead'
MANY_PAIRS = urllib.parse.quote('{' + ','.join(f'"{chr(number)}":""' for number in range(256, 766)) + '}')


@pytest.mark.parametrize('path,status', [('/', 300), ('/v3', 200), ('/v3/', 200)])
@pytest.mark.parametrize('version', [None, '3.9999', 'junk'])
def test_discovery_takes_no_token_and_minds_no_version(ask, path, status, version):
    response = ask(f'GET {path}', by=None, version=version, expect=status, base_url='http://cloud:9/volume')
    (found,) = response.json['versions']
    assert (found['id'], found['status'], found['min_version'], found['version']) == ('v3.0', 'CURRENT', '3.0', '3.68')
    assert found['links'] == [{'rel': 'self', 'href': 'http://cloud:9/volume/v3/'}]


def test_everything_else_takes_one(ask):
    ask('GET /v3/volumes', by=None, expect=401)
    ask('GET /v3/volumes', by='mallory', expect=401)
    ask('GET /v3/nothing', expect=404)


def test_versions(ask):
    headers = ask('GET /v3/volumes', version=None).headers
    assert headers['OpenStack-API-Version'] == 'volume 3.0'
    assert headers['x-compute-request-id'] == headers['x-openstack-request-id']
    response = ask('GET /v3/volumes', version='3.27')
    assert (response.headers['OpenStack-API-Version'], response.headers['Vary']) == (
        'volume 3.27',
        'OpenStack-API-Version',
    )
    assert ask('GET /v3/volumes', version='latest').headers['OpenStack-API-Version'] == 'volume 3.68'
    for version in ('3.69', '2.0', '4.0'):
        ask('GET /v3/volumes', version=version, expect=406)
    for version in ('x', '3', '3.x', '3.1.1'):
        ask('GET /v3/volumes', version=version, expect=400)
    # The microversion that a client requests of other services is ignored.
    others = {'OpenStack-API-Version': 'compute 2.95'}
    assert ask('GET /v3/volumes', version=None, headers=others).headers['OpenStack-API-Version'] == 'volume 3.0'


def test_the_project_may_stand_in_the_path(ask, create):
    volume = create()
    response = ask(f'GET /v3/apples/volumes/{volume["id"]}', base_url='http://cloud/volume')
    assert response.json['volume']['links'] == [
        {'rel': 'self', 'href': f'http://cloud/volume/v3/apples/volumes/{volume["id"]}'},
        {'rel': 'bookmark', 'href': f'http://cloud/volume/apples/volumes/{volume["id"]}'},
    ]
    assert 'Malformed' in ask('GET /v3/bananas/volumes', expect=400).message
    ask('GET /v3/bananas/volumes', by='admin', expect=400)
    ask('GET /v3/apples/nothing', expect=404)


def test_create_show_delete(ask, create):
    volume = create(name='one', description='mine', metadata={'a': 'b'}, volume_type='fake', size='3')
    shown = ask(f'GET /v3/volumes/{volume["id"]}').json['volume']
    assert shown == volume | {'os-vol-tenant-attr:tenant_id': 'apples'}
    assert {name: volume[name] for name in ('name', 'description', 'size', 'status', 'metadata', 'volume_type')} == {
        'name': 'one',
        'description': 'mine',
        'size': 3,
        'status': 'available',
        'metadata': {'a': 'b'},
        'volume_type': 'fake',
    }
    assert (volume['bootable'], volume['multiattach'], volume['encrypted']) == ('false', False, False)
    ask(f'DELETE /v3/volumes/{volume["id"]}', expect=202)
    assert volume['id'] in ask(f'GET /v3/volumes/{volume["id"]}', expect=404).message


def test_fields_come_with_their_version(ask, create):
    volume = create()['id']
    for name, first in {'group_id': 13, 'service_uuid': 48, 'volume_type_id': 63, 'consumes_quota': 65}.items():
        assert name not in ask(f'GET /v3/volumes/{volume}', version=f'3.{first - 1}').json['volume']
        assert name in ask(f'GET /v3/volumes/{volume}', version=f'3.{first}').json['volume']
    assert 'os-vol-host-attr:host' not in ask(f'GET /v3/volumes/{volume}').json['volume']
    seen = ask(f'GET /v3/volumes/{volume}', by='admin').json['volume']
    assert seen['os-vol-host-attr:host'] == 'local@nova#local'


def test_a_volume_from_an_image(ask, create, images, alice):
    facts = {'disk_format': 'raw', 'container_format': 'bare', 'properties': {'hw_disk_bus': 'virtio'}}
    image = images.upload(alice, images.create(alice, 'system', **facts).id, [b'x'])
    volume = create(imageRef=image.id)
    assert volume['bootable'] == 'true'
    assert 'volume_image_metadata' not in volume
    known = ask(f'GET /v3/volumes/{volume["id"]}').json['volume']['volume_image_metadata']
    assert (known['image_id'], known['hw_disk_bus']) == (image.id, 'virtio')


def test_an_image_names_the_type_of_its_volumes(create, images, alice):
    facts = {'disk_format': 'raw', 'container_format': 'bare', 'properties': {'cinder_img_volume_type': 'fake'}}
    image = images.upload(alice, images.create(alice, 'system', **facts).id, [b'x'])
    assert create(imageRef=image.id)['volume_type'] == 'fake'
    assert create(imageRef=image.id, volume_type='multiattach')['volume_type'] == 'multiattach'


def test_several_servers_may_share_a_volume(create):
    assert create(volume_type='multiattach')['multiattach']
    assert create(multiattach=True)['multiattach']
    assert not create(multiattach='false')['multiattach']


@pytest.mark.parametrize(
    'document,word',
    [
        ({'size': 0}, 'size'),
        ({'size': -1}, 'size'),
        ({'size': 'big'}, 'size'),
        ({'size': 1.5}, 'size'),
        ({'size': True}, 'size'),
        ({'size': 2**31}, 'size'),
        ({'size': None}, 'size'),
        ({'name': 5}, 'name'),
        ({'name': 'x' * 256}, 'name'),
        ({'name': 'a\0b'}, 'NUL'),
        ({'description': 'x' * 256}, 'description'),
        ({'metadata': []}, 'metadata'),
        ({'metadata': {'a': 5}}, 'metadata/a'),
        ({'metadata': {'': 'x'}}, 'metadata'),
        ({'metadata': {'x' * 256: 'x'}}, 'metadata'),
        ({'metadata': {f'k{number}': 'x' for number in range(129)}}, 'metadata'),
        ({'multiattach': 'maybe'}, 'multiattach'),
        ({'availability_zone': 'moon'}, 'zone'),
        ({'imageRef': NOWHERE}, 'image'),
        ({'imageRef': 5}, 'imageRef'),
        ({'consistencygroup_id': NOWHERE}, 'consistencygroup_id'),
        ({'snapshot_id': NOWHERE, 'source_volid': NOWHERE}, 'snapshot_id'),
    ],
)
def test_bad_documents_name_the_field(ask, document, word):
    assert word in ask('POST /v3/volumes', {'volume': {'size': 1, **document}}, expect=400).message


@pytest.mark.parametrize('field', ['volume_type', 'snapshot_id', 'source_volid', 'backup_id', 'group_id'])
def test_what_a_volume_is_made_from_must_be_there(ask, field):
    assert NOWHERE in ask('POST /v3/volumes', {'volume': {'size': 1, field: NOWHERE}}, expect=404).message


@pytest.mark.parametrize('body', [b'', b'{', b'[]', b'{}', b'{"volume": null}', b'{"volume": []}'])
def test_what_is_no_volume_is_refused(ask, body):
    ask('POST /v3/volumes', expect=400, body=body)


def test_what_is_null_counts_as_left_out(create):
    nothing = ('name', 'description', 'imageRef', 'snapshot_id', 'source_volid', 'volume_type', 'availability_zone')
    volume = create(**dict.fromkeys((*nothing, 'metadata', 'multiattach', 'backup_id', 'group_id')))
    assert (volume['name'], volume['volume_type'], volume['metadata']) == (None, '__DEFAULT__', {})


def test_readers_only_read(ask, create, act):
    volume = create()
    assert len(ask('GET /v3/volumes', by='reader').json['volumes']) == 1
    for caller in ('reader', 'nova'):
        ask('POST /v3/volumes', {'volume': {'size': 1}}, by=caller, expect=403)
    act(volume, 'os-extend', {'new_size': 2}, by='reader', expect=403)
    ask(f'DELETE /v3/volumes/{volume["id"]}', by='reader', expect=403)


def test_others_do_not_see(ask, create, act):
    volume = create()
    for request in ('GET', 'DELETE'):
        ask(f'{request} /v3/volumes/{volume["id"]}', by='bob', expect=404)
    ask(f'PUT /v3/volumes/{volume["id"]}', {'volume': {'name': 'x'}}, by='bob', expect=404)
    act(volume, 'os-reserve', by='bob', expect=404)


def test_update(ask, create):
    volume = create(name='one', metadata={'a': 'b'})['id']
    changed = ask(f'PUT /v3/volumes/{volume}', {'volume': {'name': 'two', 'metadata': {'c': 'd'}}}).json['volume']
    assert (changed['name'], changed['metadata']) == ('two', {'c': 'd'})
    assert 'name' in ask(f'PUT /v3/volumes/{volume}', {'volume': {'name': 5}}, expect=400).message


def names(response, key='volumes'):
    return [item['name'] for item in response.json[key]]


@pytest.mark.parametrize(
    'query,expected',
    [
        ('', ['b', 'a']),
        ('name=a', ['a']),
        ('status=available', ['b', 'a']),
        ('status=error', []),
        ('volume_type=fake', ['b']),
        ('bootable=0', ['b', 'a']),
        ('bootable=True', []),
        ('availability_zone=nova', ['b', 'a']),
        ('metadata=%7B%22k%22%3A%20%22v%22%7D', ['a']),
        ('metadata=%7B%27k%27%3A%20%27w%27%7D', []),
        ('created_at=gt:2000-01-01T00:00:00', ['b', 'a']),
        ('all_tenants=1', ['b', 'a']),
        ('project_id=bananas', []),
        ('sort=name:asc', ['a', 'b']),
        ('sort=display_name:desc', ['b', 'a']),
        ('sort_key=name&sort_dir=asc', ['a', 'b']),
        ('limit=1', ['b']),
        ('limit=1&offset=1', ['a']),
        ('limit=0', []),
    ],
)
def test_lists(ask, create, query, expected):
    create(name='a', metadata={'k': 'v'})
    create(name='b', volume_type='fake')
    create(name='c', by='bob')
    for path in ('/v3/volumes', '/v3/volumes/detail'):
        assert names(ask(f'GET {path}?{query}')) == expected
    assert 'status' not in ask('GET /v3/volumes').json['volumes'][0]


def test_administrators_see_all_projects_when_they_ask(ask, create):
    create(name='a')
    create(name='b', by='bob')
    assert names(ask('GET /v3/volumes', by='admin')) == []
    assert names(ask('GET /v3/volumes?all_tenants=1', by='admin')) == ['b', 'a']
    assert names(ask('GET /v3/volumes?all_tenants=True&project_id=apples', by='admin')) == ['a']


@pytest.mark.parametrize(
    'query',
    [
        'limit=-1',
        'limit=x',
        'offset=-1',
        'all_tenants=maybe',
        'bootable=maybe',
        'metadata=junk',
        'metadata=%5B%5D',
        pytest.param(f'metadata={MANY_PAIRS}&glance_metadata={MANY_PAIRS}', id='many pairs'),
        'created_at=soon',
        'created_at=' + 'gt:2000-01-01T00:00:00,' * 11 + 'lt:2099-01-01T00:00:00',
        'sort=secret',
        'sort=' + ','.join(['name'] * 11),
        'sort_key=name&sort_dir=up',
        'name=%00',
        'name=%FF',
    ],
)
def test_bad_queries(ask, query):
    ask(f'GET /v3/volumes/detail?{query}', expect=400)


@pytest.mark.parametrize(
    ('path', 'what'),
    [
        ('volumes', 'Volume'),
        ('snapshots', 'Snapshot'),
        ('backups', 'Backup'),
        ('volume-transfers', 'Transfer'),
        ('groups', 'Group'),
        ('messages', 'Message'),
    ],
)
def test_a_marker_that_is_not_there_is_not_found(ask, path, what):
    answer = ask(f'GET /v3/{path}?marker=junk', version='3.60', expect=404)
    assert answer.json['itemNotFound']['message'] == f'{what} junk could not be found.'


def test_a_snapshot_of_nothing_is_not_found(ask):
    answer = ask('POST /v3/snapshots', {'snapshot': {'volume_id': None}}, expect=404)
    assert answer.json['itemNotFound']['message'] == 'Volume None could not be found.'


@pytest.mark.parametrize('kind', ['volumes', 'snapshots', 'backups'])
@pytest.mark.parametrize('prefix', ['/v3', '/v3/apples'])
def test_pages_lead_from_one_to_the_next(ask, create, kind, prefix):
    volumes = [create(name=f'n{number}') for number in range(5)]
    for volume in volumes if kind != 'volumes' else ():
        body = {kind[:-1]: {'volume_id': volume['id'], 'name': volume['name']}}
        ask(f'POST /v3/{kind}', body, expect=202)
    seen, path = [], f'{prefix}/{kind}/detail?sort=name:asc&limit=2&with_count=true'
    while path:
        page = ask(f'GET {path}')
        assert page.json['count'] == 5
        seen += names(page, kind)
        links = page.json.get(f'{kind}_links')
        path = links[0]['href'].removeprefix('http://localhost') if links else None
        assert path is None or path.startswith(f'{prefix}/{kind}/detail?')
    assert seen == ['n0', 'n1', 'n2', 'n3', 'n4']
    assert 'count' not in ask(f'GET {prefix}/{kind}?with_count=true', version='3.44').json


def test_summary(ask, create):
    create(size=2, metadata={'a': 'x'})
    create(size=3, metadata={'a': 'y'})
    expected = {'total_count': 2, 'total_size': 5}
    assert ask('GET /v3/volumes/summary', version='3.35').json['volume-summary'] == expected
    assert ask('GET /v3/volumes/summary').json['volume-summary'] == {**expected, 'metadata': {'a': ['x', 'y']}}
    ask('GET /v3/volumes/summary', version='3.11', expect=404)
    chosen = {'total_count': 1, 'total_size': 3, 'metadata': {'a': ['y']}}
    assert ask("GET /v3/volumes/summary?metadata={'a': 'y'}").json['volume-summary'] == chosen


@pytest.mark.parametrize('kind', ['volumes', 'snapshots'])
def test_metadata(ask, create, kind):
    owner = create(metadata={'a': 'b'})['id']
    if kind == 'snapshots':
        body = {'snapshot': {'volume_id': owner, 'metadata': {'a': 'b'}}}
        owner = ask('POST /v3/snapshots', body, expect=202).json['snapshot']['id']
    path = f'/v3/{kind}/{owner}/metadata'
    assert ask(f'GET {path}').json == {'metadata': {'a': 'b'}}
    assert ask(f'POST {path}', {'metadata': {'c': 'd'}}).json == {'metadata': {'a': 'b', 'c': 'd'}}
    assert ask(f'GET {path}/c').json == {'meta': {'c': 'd'}}
    assert ask(f'PUT {path}/c', {'meta': {'c': 'e'}}).json == {'meta': {'c': 'e'}}
    ask(f'DELETE {path}/a')
    ask(f'DELETE {path}/a', expect=404)
    ask(f'GET {path}/a', expect=404)
    assert ask(f'GET {path}').json == {'metadata': {'c': 'e'}}
    assert ask(f'PUT {path}', {'metadata': {'z': ''}}).json == {'metadata': {'z': ''}}
    ask(f'PUT {path}/c', {'meta': {'x': 'y'}}, expect=400)
    for wrong in ({}, {'metadata': {'a': 5}}, {'metadata': {'x' * 256: 'y'}}):
        ask(f'POST {path}', wrong, expect=400)
    ask(f'GET {path}', by='bob', expect=404)
    many = {f'k{number}': 'v' for number in range(128)}
    assert 'metadata' in ask(f'POST {path}', {'metadata': many}, expect=400).message


def test_extend(ask, create, act):
    volume = create()
    act(volume, 'os-extend', {'new_size': 3})
    assert ask(f'GET /v3/volumes/{volume["id"]}').json['volume']['size'] == 3
    for wrong in ({'new_size': 3}, {'new_size': 'x'}, {'new_size': 2**31}, {}, None, 5):
        assert 'size' in act(volume, 'os-extend', wrong, expect=400).message or wrong in (None, 5)
    act(volume, 'os-attach', {'instance_uuid': SERVER, 'mountpoint': '/dev/vdb'})
    act(volume, 'os-extend', {'new_size': 4}, version='3.41', expect=400)
    act(volume, 'os-extend', {'new_size': 4}, version='3.42')


def test_attaching_by_actions(ask, create, act, status):
    volume = create()
    act(volume, 'os-reserve')
    assert status(volume) == 'attaching'
    act(volume, 'os-unreserve')
    assert status(volume) == 'available'
    act(volume, 'os-attach', {'mountpoint': '/dev/vdb'}, expect=400)
    act(volume, 'os-attach', {'instance_uuid': 'x', 'mountpoint': '/dev/vdb'}, expect=400)
    act(volume, 'os-attach', {'host_name': 'node', 'mountpoint': '/dev/vdb'})
    (use,) = ask(f'GET /v3/volumes/{volume["id"]}').json['volume']['attachments']
    assert (use['host_name'], use['device'], use['server_id'], use['volume_id']) == (
        'node',
        '/dev/vdb',
        None,
        volume['id'],
    )
    act(volume, 'os-begin_detaching')
    assert status(volume) == 'detaching'
    act(volume, 'os-roll_detaching')
    assert status(volume) == 'in-use'
    act(volume, 'os-detach', {'attachment_id': NOWHERE}, expect=404)
    act(volume, 'os-detach', {'attachment_id': use['attachment_id']})
    assert status(volume) == 'available'


def test_nobody_takes_volumes_from_servers_behind_their_back(ask, create, act, status, disks):
    volume = create()
    disks.add((volume['id'], SERVER))
    act(volume, 'os-attach', {'instance_uuid': SERVER, 'mountpoint': '/dev/vdb'})
    (use,) = ask(f'GET /v3/volumes/{volume["id"]}').json['volume']['attachments']
    assert 'Compute API' in act(volume, 'os-detach', {}, expect=409).message
    for caller in ('alice', 'admin'):
        ask(f'DELETE /v3/attachments/{use["attachment_id"]}', by=caller, expect=409)
    act(volume, 'os-force_detach', {'attachment_id': use['attachment_id']}, expect=403)
    assert status(volume) == 'in-use'
    ask(f'DELETE /v3/attachments/{use["attachment_id"]}', by='nova')
    assert status(volume) == 'available'
    act(volume, 'os-attach', {'instance_uuid': SERVER, 'mountpoint': '/dev/vdb'})
    act(volume, 'os-begin_detaching')
    act(volume, 'os-reset_status', {'status': 'error_extending'}, by='admin')
    act(volume, 'os-force_detach', {}, by='admin')
    assert status(volume) == 'available'
    disks.clear()
    act(volume, 'os-attach', {'instance_uuid': SERVER, 'mountpoint': '/dev/vdb'})
    act(volume, 'os-detach', {})
    assert status(volume) == 'available'


def test_nobody_takes_what_is_reserved_for_a_server_either(ask, create, act, status, disks):
    volume = create()
    disks.add((volume['id'], SERVER))
    reserved = {'attachment': {'volume_uuid': volume['id'], 'instance_uuid': SERVER}}
    held = ask('POST /v3/attachments', reserved, by='nova').json['attachment']
    for argument in ({}, {'attachment_id': held['id']}):
        act(volume, 'os-detach', argument, expect=409)
    ask(f'DELETE /v3/attachments/{held["id"]}', expect=409)
    act(volume, 'os-detach', {}, by='bob', expect=404)
    assert status(volume) == 'reserved'
    act(volume, 'os-detach', {}, by='nova')
    assert status(volume) == 'available'


def test_a_volume_is_reverted_to_its_newest_snapshot(ask, create, act, status):
    volume = create()
    asked = {'snapshot': {'volume_id': volume['id']}}
    older, newest = (ask('POST /v3/snapshots', asked, expect=202).json['snapshot']['id'] for _ in range(2))
    act(volume, 'revert', {'snapshot_id': newest}, version='3.39', expect=404)
    act(volume, 'revert', {'snapshot_id': older}, expect=400)
    act(volume, 'revert', {'snapshot_id': newest})
    assert status(volume) == 'available'
    ask(f'POST /v3/volumes/{volume["id"]}/action', {'os-reset_status': {'status': 'error'}}, by='admin', expect=202)
    act(volume, 'revert', {'snapshot_id': newest}, expect=409)
    ask(f'POST /v3/volumes/{volume["id"]}/action', {'os-reset_status': {'status': 'available'}}, by='admin', expect=202)
    act(volume, 'os-extend', {'new_size': 2})
    act(volume, 'revert', {'snapshot_id': newest}, expect=400)
    act(create(), 'revert', {'snapshot_id': newest}, expect=400)


def test_attachments(ask, create, status):
    volume = create()
    asked = {'attachment': {'volume_uuid': volume['id'], 'instance_uuid': SERVER, 'mode': 'ro'}}
    ask('POST /v3/attachments', asked, version='3.53', expect=400)
    attachment = ask('POST /v3/attachments', asked).json['attachment']
    assert {name: attachment[name] for name in ('status', 'instance', 'volume_id', 'attach_mode')} == {
        'status': 'reserved',
        'instance': SERVER,
        'volume_id': volume['id'],
        'attach_mode': 'ro',
    }
    assert status(volume) == 'reserved'
    path = f'/v3/attachments/{attachment["id"]}'
    connector = {'attachment': {'connector': {'host': 'node', 'mountpoint': '/dev/vdb'}}}
    connected = ask(f'PUT {path}', connector).json['attachment']
    assert (connected['status'], connected['connection_info']['volume_id']) == ('attaching', volume['id'])
    ask(f'POST {path}/action', {'os-complete': None}, version='3.43', expect=404)
    ask(f'POST {path}/action', {'os-nothing': None}, expect=400)
    ask(f'POST {path}/action', {'os-complete': None}, expect=204)
    assert ask(f'GET {path}').json['attachment']['status'] == 'attached'
    assert status(volume) == 'in-use'
    for query, count in {
        '': 1,
        f'volume_id={volume["id"]}': 1,
        f'instance_id={SERVER}': 1,
        f'instance_id={NOWHERE}': 0,
        'status=reserved': 0,
        'limit=1': 1,
        f'marker={attachment["id"]}': 0,
    }.items():
        for where in ('/v3/attachments', '/v3/attachments/detail'):
            assert len(ask(f'GET {where}?{query}').json['attachments']) == count
    ask(f'GET {path}', by='bob', expect=404)
    assert ask('GET /v3/attachments', by='bob').json['attachments'] == []
    ask(f'GET /v3/attachments?marker={attachment["id"]}', by='bob', expect=404)
    assert ask('POST /v3/attachments', asked).json['attachment']['id'] == attachment['id']
    assert ask(f'DELETE {path}', by='admin').json == {'attachments': []}
    assert status(volume) == 'available'
    ask(f'GET {path}', expect=404)


def test_before_os_complete_a_connector_was_enough(ask, create, status):
    volume = create()
    asked = {'volume_uuid': volume['id'], 'instance_uuid': SERVER, 'connector': {'host': 'node'}}
    made = ask('POST /v3/attachments', {'attachment': asked}, version='3.43').json['attachment']
    assert made['status'] == 'attached'
    assert status(volume) == 'in-use'
    ask('GET /v3/attachments', version='3.26', expect=404)


@pytest.mark.parametrize(
    'document',
    [
        {},
        {'volume_uuid': 'x'},
        {'volume_uuid': NOWHERE, 'instance_uuid': 5},
        {'volume_uuid': NOWHERE, 'connector': []},
        {'volume_uuid': NOWHERE, 'mode': 'wild'},
    ],
)
def test_bad_attachments(ask, document):
    ask('POST /v3/attachments', {'attachment': document}, expect=400)


def test_administrators_reset_and_force(ask, create, act, status):
    volume = create()
    act(volume, 'os-reset_status', {'status': 'error'}, expect=403)
    act(volume, 'os-reset_status', {'status': 'lost'}, by='admin', expect=400)
    act(volume, 'os-reset_status', {'status': 'creating'}, by='admin')
    assert status(volume) == 'creating'
    ask(f'DELETE /v3/volumes/{volume["id"]}', expect=400)
    ask(f'DELETE /v3/volumes/{volume["id"]}?force=true', expect=403)
    act(volume, 'os-force_delete', expect=403)
    act(volume, 'os-force_delete', by='admin')
    ask(f'GET /v3/volumes/{volume["id"]}', expect=404)
    volume = create()
    act(volume, 'os-reset_status', {'status': 'creating', 'attach_status': 'detached'}, by='admin')
    ask(f'DELETE /v3/volumes/{volume["id"]}?force=true', by='admin', expect=202)


def test_administrators_say_that_a_volume_is_moving(ask, create, act):
    volume = create()

    def moving():
        return ask(f'GET /v3/volumes/{volume["id"]}', by='admin').json['volume']['os-vol-mig-status-attr:migstat']

    act(volume, 'os-reset_status', {'migration_status': 'lost'}, by='admin', expect=400)
    act(volume, 'os-reset_status', {'migration_status': 'migrating'}, by='admin')
    assert moving() == 'migrating'
    act(volume, 'os-reset_status', {'status': 'error'}, by='admin')
    assert moving() == 'migrating'
    act(volume, 'os-reset_status', {'migration_status': 'none'}, by='admin')
    assert moving() is None


def test_flags(ask, create, act):
    volume = create()
    act(volume, 'os-set_bootable', {'bootable': True}, expect=200)
    act(volume, 'os-update_readonly_flag', {'readonly': 'True'})
    shown = ask(f'GET /v3/volumes/{volume["id"]}').json['volume']
    assert (shown['bootable'], shown['metadata']) == ('true', {'readonly': 'True'})
    act(volume, 'os-attach', {'instance_uuid': SERVER, 'mountpoint': '/dev/vdb'}, expect=400)
    attachment = ask('POST /v3/attachments', {'attachment': {'volume_uuid': volume['id'], 'mode': 'rw'}}).json
    assert attachment['attachment']['attach_mode'] == 'ro'
    ask(f'DELETE /v3/attachments/{attachment["attachment"]["id"]}')
    act(volume, 'os-update_readonly_flag', {'readonly': False})
    assert ask(f'GET /v3/volumes/{volume["id"]}').json['volume']['metadata'] == {'readonly': 'False'}
    assert ask(f'GET /v3/volumes/{create()["id"]}').json['volume']['metadata'] == {}
    for name, argument in (('os-set_bootable', {}), ('os-update_readonly_flag', {'readonly': 5})):
        act(volume, name, argument, expect=400)


def test_image_metadata(ask, create, act):
    volume = create()
    assert act(volume, 'os-set_image_metadata', {'metadata': {'a': 'b', 'c': 'd'}}, expect=200).json == {
        'metadata': {'a': 'b', 'c': 'd'}
    }
    act(volume, 'os-unset_image_metadata', {'key': 'a'}, expect=200)
    act(volume, 'os-unset_image_metadata', {'key': 'a'}, expect=404)
    assert act(volume, 'os-show_image_metadata', expect=200).json == {'metadata': {'c': 'd'}}
    assert ask(f'GET /v3/volumes/{volume["id"]}').json['volume']['volume_image_metadata'] == {'c': 'd'}


def test_retype_and_reimage(ask, create, act, images, alice):
    volume = create()
    act(volume, 'os-retype', {'new_type': 'multiattach', 'migration_policy': 'never'})
    assert ask(f'GET /v3/volumes/{volume["id"]}').json['volume']['multiattach']
    act(volume, 'os-retype', {'new_type': 'nothing'}, expect=404)
    facts = {'disk_format': 'raw', 'container_format': 'bare'}
    image = images.upload(alice, images.create(alice, 'system', **facts).id, [b'x'])
    act(volume, 'os-reimage', {'image_id': image.id}, version='3.67', expect=404)
    act(volume, 'os-reimage', {'image_id': image.id})
    assert ask(f'GET /v3/volumes/{volume["id"]}').json['volume']['bootable'] == 'true'
    ask('POST /v3/attachments', {'attachment': {'volume_uuid': volume['id'], 'instance_uuid': SERVER}})
    act(volume, 'os-reimage', {'image_id': image.id}, expect=400)
    act(volume, 'os-reimage', {'image_id': image.id, 'reimage_reserved': True})
    ask('POST /v3/attachments', {'attachment': {'volume_uuid': volume['id'], 'instance_uuid': volume['id']}})
    act(volume, 'os-reimage', {'image_id': image.id, 'reimage_reserved': True}, expect=409)


def test_a_volume_that_a_host_uses_is_not_overwritten(ask, create, act, images, alice):
    """What its guest writes from then on would be lost."""
    volume, facts = create(), {'disk_format': 'raw', 'container_format': 'bare'}
    image = images.upload(alice, images.create(alice, 'system', **facts).id, [b'x'])
    act(volume, 'os-attach', {'instance_uuid': SERVER, 'mountpoint': '/dev/vdb'})
    act(volume, 'os-reimage', {'image_id': image.id}, expect=400)


@pytest.mark.parametrize('body', [{}, {'os-nothing': None}, {'os-reserve': None, 'os-unreserve': None}])
def test_unknown_actions(ask, create, body):
    message = ask(f'POST /v3/volumes/{create()["id"]}/action', body, expect=400).message
    assert 'There is no such action' in message


def test_snapshots(ask, create, act):
    volume = create(size=2)
    asked = {'volume_id': volume['id'], 'name': 's', 'description': 'd', 'metadata': {'a': 'b'}}
    snapshot = ask('POST /v3/snapshots', {'snapshot': asked}, expect=202).json['snapshot']
    shown = ask(f'GET /v3/snapshots/{snapshot["id"]}').json['snapshot']
    assert snapshot.items() <= shown.items()
    assert (shown['status'], shown['size'], shown['volume_id'], shown['user_id']) == (
        'available',
        2,
        volume['id'],
        'alice',
    )
    assert shown['os-extended-snapshot-attributes:project_id'] == 'apples'
    assert 'user_id' not in ask(f'GET /v3/snapshots/{snapshot["id"]}', version='3.40').json['snapshot']
    for zone, count in (('nova', 1), ('moon', 0)):
        query = f'availability_zone={zone}&with_count=true'
        listed = ask(f'GET /v3/snapshots/detail?{query}').json
        assert (len(listed['snapshots']), listed['count']) == (count, count)
    for query, expected in {'': ['s'], 'name=x': [], 'status=available': ['s'], f'volume_id={NOWHERE}': []}.items():
        for path in ('/v3/snapshots', '/v3/snapshots/detail'):
            assert names(ask(f'GET {path}?{query}'), 'snapshots') == expected
    changed = ask(f'PUT /v3/snapshots/{snapshot["id"]}', {'snapshot': {'name': 't'}}).json['snapshot']
    assert changed['name'] == 't'
    ask(f'DELETE /v3/volumes/{volume["id"]}', expect=400)
    path = f'/v3/snapshots/{snapshot["id"]}'
    ask(f'POST {path}/action', {'os-reset_status': {'status': 'error'}}, expect=403)
    ask(f'POST {path}/action', {'os-reset_status': {'status': 'lost'}}, by='admin', expect=400)
    ask(f'POST {path}/action', {'os-reset_status': {'status': 'creating'}}, by='admin', expect=202)
    ask(f'DELETE {path}', expect=400)
    ask(f'GET {path}', by='bob', expect=404)
    ask(f'DELETE {path}', by='bob', expect=404)
    ask(f'POST {path}/action', {'os-force_delete': None}, by='admin', expect=202)
    ask(f'GET {path}', expect=404)


def test_snapshots_of_volumes_in_use(ask, create, act):
    volume = create()
    act(volume, 'os-attach', {'instance_uuid': SERVER, 'mountpoint': '/dev/vdb'})
    asked = {'volume_id': volume['id']}
    ask('POST /v3/snapshots', {'snapshot': asked}, version='3.65', expect=400)
    ask('POST /v3/snapshots', {'snapshot': {**asked, 'force': 'true'}}, version='3.65', expect=202)
    ask('POST /v3/snapshots', {'snapshot': asked}, version='3.66', expect=202)
    ask('POST /v3/snapshots', {'snapshot': {**asked, 'force': False}}, version='3.66', expect=400)


@pytest.mark.parametrize(
    'document,word',
    [
        ({}, 'volume_id'),
        ({'volume_id': 5}, 'volume_id'),
        ({'volume_id': NOWHERE, 'force': 'maybe'}, 'force'),
        ({'volume_id': NOWHERE, 'name': 'x' * 256}, 'name'),
        ({'volume_id': NOWHERE, 'metadata': 'x'}, 'metadata'),
    ],
)
def test_bad_snapshots_name_the_field(ask, document, word):
    assert word in ask('POST /v3/snapshots', {'snapshot': document}, expect=400).message


def test_delete_with_its_snapshots(ask, create):
    volume = create()['id']
    ask('POST /v3/snapshots', {'snapshot': {'volume_id': volume}}, expect=202)
    ask(f'DELETE /v3/volumes/{volume}?cascade=true', expect=202)
    assert ask('GET /v3/snapshots').json['snapshots'] == []


def test_types_have_pages(ask):
    ordered = 'sort_key=name&sort_dir=asc'
    page = ask(f'GET /v3/types?limit=2&{ordered}').json
    assert [kind['name'] for kind in page['volume_types']] == ['__DEFAULT__', 'fake']
    [link] = page['volume_type_links']
    address = urllib.parse.urlsplit(link['href'])
    rest = ask(f'GET {address.path}?{address.query}').json
    assert [kind['name'] for kind in rest['volume_types']] == ['multiattach']
    assert 'volume_type_links' not in rest
    assert names(ask(f'GET /v3/types?offset=1&{ordered}'), 'volume_types') == ['fake', 'multiattach']
    ask(f'GET /v3/types?marker={NOWHERE}', expect=404)


def test_a_project_can_have_a_default_type_of_its_own(ask, create):
    path = '/v3/default-types/apples'
    (kind,) = (each for each in ask('GET /v3/types').json['volume_types'] if each['name'] == 'fake')
    ask(f'GET {path}', by='admin', expect=404)
    ask(f'PUT {path}', {'default_type': {'volume_type': 'nothing'}}, by='admin', expect=400)
    ask(f'PUT {path}', {'default_type': {'volume_type': 'fake'}}, expect=403)
    ask(f'PUT {path}', {'default_type': {'volume_type': 'fake'}}, by='admin', version='3.61', expect=404)
    shown = {'project_id': 'apples', 'volume_type_id': kind['id']}
    for name in ('multiattach', 'fake'):
        changed = ask(f'PUT {path}', {'default_type': {'volume_type': name}}, by='admin').json
    assert changed == ask(f'GET {path}', by='admin').json == {'default_type': shown}
    assert ask('GET /v3/default-types', by='admin').json == {'default_types': [shown]}
    assert ask('GET /v3/types/default').json['volume_type']['name'] == create()['volume_type'] == 'fake'
    assert create(by='bob')['volume_type'] == '__DEFAULT__'
    spare = ask('POST /v3/types', {'volume_type': {'name': 'spare'}}, by='admin').json['volume_type']
    ask(f'PUT {path}', {'default_type': {'volume_type': spare['id']}}, by='admin')
    ask(f'DELETE /v3/types/{spare["id"]}', by='admin', expect=400)
    ask(f'DELETE {path}', by='admin', expect=204)
    ask(f'DELETE /v3/types/{spare["id"]}', by='admin', expect=202)
    assert create()['volume_type'] == '__DEFAULT__'


def test_types(ask):
    assert set(names(ask('GET /v3/types'), 'volume_types')) == {'__DEFAULT__', 'fake', 'multiattach'}
    assert ask('GET /v3/types/default').json['volume_type']['name'] == '__DEFAULT__'
    asked = {'name': 'fast', 'description': 'd', 'extra_specs': {'a': 'b'}}
    ask('POST /v3/types', {'volume_type': asked}, expect=403)
    kind = ask('POST /v3/types', {'volume_type': asked}, by='admin').json['volume_type']
    assert (kind['name'], kind['extra_specs'], kind['is_public']) == ('fast', {'a': 'b'}, True)
    path = f'/v3/types/{kind["id"]}'
    assert ask(f'GET {path}', by='admin').json['volume_type'] == kind | {'qos_specs_id': None}
    ask('GET /v3/types/fast', expect=404)
    ask('POST /v3/types', {'volume_type': asked}, by='admin', expect=409)
    changed = ask(f'PUT {path}', {'volume_type': {'name': 'new', 'is_public': False}}, by='admin').json['volume_type']
    assert changed == asked | {'id': kind['id'], 'name': 'new', 'is_public': False}
    changed = ask(f'PUT {path}', {'volume_type': {'name': None, 'description': 'e'}}, by='admin').json['volume_type']
    assert (changed['name'], changed['description']) == ('new', 'e')
    ask(f'PUT {path}', {'volume_type': {'name': None}}, by='admin', expect=400)
    ask(f'GET {path}', expect=404)
    ask(f'DELETE {path}', expect=403)
    ask(f'DELETE {path}', by='admin', expect=202)
    ask(f'DELETE {path}', by='admin', expect=404)


@pytest.mark.parametrize(
    'document', [{}, {'name': ''}, {'name': 'x' * 256}, {'name': 'x', 'extra_specs': {'a': 5}}, {'name': None}]
)
def test_bad_types(ask, document):
    ask('POST /v3/types', {'volume_type': document}, by='admin', expect=400)


def test_extra_specs(ask):
    kind = ask('POST /v3/types', {'volume_type': {'name': 'fast'}}, by='admin').json['volume_type']['id']
    path = f'/v3/types/{kind}/extra_specs'
    ask(f'POST {path}', {'extra_specs': {'a': 'b'}}, expect=403)
    specs = {'multiattach': '<is> True', 'a': 'b'}
    assert ask(f'POST {path}', {'extra_specs': specs}, by='admin').json == {'extra_specs': specs}
    assert ask(f'PUT {path}/a', {'a': 'c'}, by='admin').json == {'a': 'c'}
    ask(f'PUT {path}/a', {'b': 'c'}, by='admin', expect=400)
    assert ask(f'GET {path}/a', by='admin').json == {'a': 'c'}
    ask(f'DELETE {path}/a', by='admin', expect=202)
    ask(f'DELETE {path}/a', by='admin', expect=404)
    ask(f'GET {path}/a', by='admin', expect=404)
    assert ask(f'GET {path}').json == {'extra_specs': {'multiattach': '<is> True'}}
    assert ask('POST /v3/volumes', {'volume': {'size': 1, 'volume_type': kind}}, expect=202).json['volume'][
        'multiattach'
    ]


def test_what_the_storage_is_like_is_for_administrators(ask):
    specs = {'multiattach': '<is> True', 'volume_backend_name': 'local'}
    asked = {'volume_type': {'name': 'fast', 'extra_specs': specs}}
    kind = ask('POST /v3/types', asked, by='admin').json['volume_type']['id']
    for by, seen in (('admin', specs), ('alice', {'multiattach': '<is> True'})):
        shown = ask(f'GET /v3/types/{kind}', by=by).json['volume_type']
        [listed] = [each for each in ask('GET /v3/types', by=by).json['volume_types'] if each['id'] == kind]
        assert listed == shown
        assert (shown['extra_specs'], 'qos_specs_id' in shown) == (seen, by == 'admin')
        assert ask(f'GET /v3/types/{kind}/extra_specs', by=by).json == {'extra_specs': seen}
    ask(f'GET /v3/types/{kind}/extra_specs/volume_backend_name', expect=404)
    ask(f'GET /v3/types/{kind}/extra_specs/multiattach', expect=200)


def test_private_types(ask):
    asked = {'name': 'secret', 'os-volume-type-access:is_public': False}
    kind = ask('POST /v3/types', {'volume_type': asked}, by='admin').json['volume_type']['id']
    assert 'secret' not in names(ask('GET /v3/types', by='admin'), 'volume_types')
    assert 'secret' in names(ask('GET /v3/types?is_public=None', by='admin'), 'volume_types')
    assert names(ask('GET /v3/types?is_public=False', by='admin'), 'volume_types') == ['secret']
    assert 'secret' not in names(ask('GET /v3/types?is_public=None'), 'volume_types')
    ask(f'GET /v3/types/{kind}', expect=404)
    add = {'addProjectAccess': {'project': 'apples'}}
    ask(f'POST /v3/types/{kind}/action', add, expect=403)
    ask(f'POST /v3/types/{kind}/action', {}, by='admin', expect=400)
    ask(f'POST /v3/types/{kind}/action', add, by='admin', expect=202)
    assert 'secret' in names(ask('GET /v3/types'), 'volume_types')
    assert ask(f'GET /v3/types/{kind}/os-volume-type-access', by='admin').json == {
        'volume_type_access': [{'volume_type_id': kind, 'project_id': 'apples'}]
    }
    ask(f'POST /v3/types/{kind}/action', {'removeProjectAccess': {'project': 'apples'}}, by='admin', expect=202)
    ask(f'GET /v3/types/{kind}', expect=404)


def test_quotas(ask, create):
    path = '/v3/os-quota-sets/apples'
    assert ask(f'GET {path}').json['quota_set']['volumes'] == 10
    ask(f'GET {path}', by='bob', expect=403)
    ask(f'PUT {path}', {'quota_set': {'volumes': 1}}, expect=403)
    limits = {'tenant_id': 'apples', 'volumes': 1}
    assert ask(f'PUT {path}', {'quota_set': limits}, by='admin').json['quota_set']['volumes'] == 1
    create(size=2)
    assert 'volumes' in ask('POST /v3/volumes', {'volume': {'size': 1}}, expect=413).json['overLimit']['message']
    usage = ask(f'GET {path}?usage=True', by='admin').json['quota_set']
    assert usage['volumes'] == {'limit': 1, 'in_use': 1, 'reserved': 0}
    assert usage['gigabytes']['in_use'] == 2
    absolute = ask('GET /v3/limits').json['limits']['absolute']
    assert (absolute['maxTotalVolumes'], absolute['totalVolumesUsed'], absolute['totalGigabytesUsed']) == (1, 1, 2)
    assert ask('GET /v3/limits?project_id=apples', by='bob').json['limits']['absolute']['totalVolumesUsed'] == 0
    assert ask('GET /v3/limits?project_id=apples', by='admin').json['limits']['absolute']['totalVolumesUsed'] == 1
    assert ask(f'GET {path}/defaults').json['quota_set']['volumes'] == 10
    ask(f'DELETE {path}', by='admin')
    assert ask(f'GET {path}').json['quota_set']['volumes'] == 10


def test_a_volume_does_not_grow_beyond_what_one_may_have(ask, create, act):
    volume = create()
    ask('PUT /v3/os-quota-sets/apples', {'quota_set': {'per_volume_gigabytes': 2}}, by='admin')
    act(volume, 'os-extend', {'new_size': 3}, expect=413)
    act(volume, 'os-extend', {'new_size': 2})


@pytest.mark.parametrize('quotas', [{'volumes': -2}, {'volumes': '5'}, {'volumes': 2**31}, {'nonsense': 1}])
def test_bad_quotas_name_the_field(ask, quotas):
    message = ask('PUT /v3/os-quota-sets/apples', {'quota_set': quotas}, by='admin', expect=400).message
    assert next(iter(quotas)) in message
    ask(f'PUT /v3/os-quota-sets/{"p" * 65}', {'quota_set': {}}, by='admin', expect=400)


def test_the_service_itself(ask):
    zones = ask('GET /v3/os-availability-zone').json['availabilityZoneInfo']
    assert zones == [{'zoneName': 'nova', 'zoneState': {'available': True}}]
    ask('GET /v3/os-services', expect=403)
    services = ask('GET /v3/os-services', by='admin').json['services']
    assert [service['binary'] for service in services] == ['cinder-scheduler', 'cinder-backup', 'cinder-volume']
    (service,) = ask('GET /v3/os-services?binary=cinder-volume', by='admin').json['services']
    assert (service['host'], service['zone'], service['state']) == ('local@nova', 'nova', 'up')
    assert len(ask('GET /v3/os-services?host=local', by='admin').json['services']) == 3
    assert ask('GET /v3/os-services?host=moon', by='admin').json == {'services': []}


def test_extensions_have_names_that_dashboards_look_for(ask):
    extensions = ask('GET /v3/extensions').json['extensions']
    aliases = {extension['name']: extension['alias'] for extension in extensions}
    assert aliases['AvailabilityZones'] == 'os-availability-zone'
    assert aliases['VolumeTypeEncryption'] == 'encryption'
    assert aliases['VolumeActions'] == 'os-volume-actions'


def test_the_storage_is_a_pool_for_each_zone(ask, create):
    host = ask(f'GET /v3/volumes/{create()["id"]}', by='admin').json['volume']['os-vol-host-attr:host']
    assert ask('GET /v3/scheduler-stats/get_pools', by='admin').json == {'pools': [{'name': host}]}
    path = f'/v3/scheduler-stats/get_pools?detail=True&name={urllib.parse.quote(host)}'
    (pool,) = ask(f'GET {path}', by='admin').json['pools']
    assert (pool['name'], pool['capabilities']['volume_backend_name']) == (host, 'local')
    assert pool['capabilities']['free_capacity_gb'] == 'infinite'
    assert ask('GET /v3/scheduler-stats/get_pools?name=moon', by='admin').json == {'pools': []}
    able = ask('GET /v3/capabilities/local@nova', by='admin').json
    assert (able['volume_backend_name'], able['properties']['qos']['default']) == ('local', False)
    assert able['driver_version'] == '1.0'
    ask('GET /v3/capabilities/moon', by='admin', expect=404)
    for path in ('scheduler-stats/get_pools', 'capabilities/local@nova'):
        ask(f'GET /v3/{path}', expect=403)


def test_lists_say_what_they_can_be_filtered_by(ask):
    found = ask('GET /v3/resource_filters', version='3.33').json['resource_filters']
    assert {'resource': 'pool', 'filters': ['name']} in found
    (volume,) = ask('GET /v3/resource_filters?resource=volume', version='3.33').json['resource_filters']
    assert {'name', 'status', 'bootable'} <= set(volume['filters'])
    ask('GET /v3/resource_filters', version='3.32', expect=404)


@pytest.mark.parametrize('path', ['volumes', 'volumes/detail', 'snapshots', 'attachments', 'messages', 'backups'])
def test_unknown_filters_are_refused(ask, path):
    message = ask(f'GET /v3/{path}?limit=5&nonsense=1&more~=2', expect=400).message
    assert message == 'Invalid filters more~,nonsense are found in query options.'
    if path != 'messages' and path != 'attachments':
        ask(f'GET /v3/{path}?nonsense=1', version='3.30')


@pytest.mark.parametrize(
    ('query', 'names'),
    [
        ('size=2', {'two'}),
        ('display_name=two', {'two'}),
        ('description=second', {'two'}),
        ('migration_status=none', {'one', 'two'}),
        ('migration_status=migrating', set()),
        ('encrypted=false', {'one', 'two'}),
        ('encrypted=true', set()),
        ('consumes_quota=true', {'one', 'two'}),
        ('consumes_quota=false', set()),
        ('created_at=gt:2020-01-01T00:00:00,lt:2099-01-01T00:00:00', {'one', 'two'}),
        ('created_at=gt:2020-01-01T00:00:00,lt:2021-01-01T00:00:00', set()),
    ],
)
def test_filters_of_volumes(ask, create, query, names):
    create(name='one')
    create(name='two', size=2, description='second')
    assert {volume['name'] for volume in ask(f'GET /v3/volumes?{query}').json['volumes']} == names


def test_a_volume_without_attachments_is_not_in_use(create, act):
    volume = create()
    act(volume, 'os-reset_status', {'status': 'in-use'}, by='admin', expect=400)
    act(volume, 'os-reset_status', {}, by='admin', expect=400)


def test_a_next_page_keeps_the_filters(ask, create):
    for _ in range(2):
        create(name='a & b')
    page = ask('GET /v3/volumes?name=a%20%26%20b&limit=1')
    query = urllib.parse.parse_qs(urllib.parse.urlsplit(page.json['volumes_links'][0]['href']).query)
    assert (query['name'], query['limit'], query['marker']) == (['a & b'], ['1'], [page.json['volumes'][0]['id']])


def test_connections_lead_nowhere(ask, create, act):
    volume = create()
    connector = {'connector': {'host': 'node'}}
    connected = act(volume, 'os-initialize_connection', connector, expect=200).json['connection_info']
    assert connected['data'] == {'volume_id': volume['id']}
    act(volume, 'os-terminate_connection', connector)
    act(volume, 'os-terminate_connection', connector, by='bob', expect=404)


def test_a_page_has_a_bound_in_bytes(ask, create, monkeypatch):
    monkeypatch.setattr(App, 'longest_list', 6000)
    for number in range(6):
        create(name=f'v{number}', metadata={f'k{key}': 'x' * 250 for key in range(4)})
    path, seen = '/v3/volumes/detail', []
    while path:
        page = ask(f'GET {path}')
        assert len(page.body) < 6500
        seen += names(page, 'volumes')
        links = page.json.get('volumes_links')
        path = links[0]['href'].removeprefix('http://localhost') if links else None
    assert sorted(seen) == [f'v{number}' for number in range(6)]


@pytest.mark.parametrize('argument', ['x', [], {'attachment_id': 'x'}, {'attachment_id': ['x']}])
def test_only_what_names_an_attachment_detaches(create, act, status, argument):
    volume = create()
    act(volume, 'os-attach', {'instance_uuid': SERVER, 'mountpoint': '/dev/vdb'})
    act(volume, 'os-detach', argument, expect=400)
    assert status(volume) == 'in-use'
    act(volume, 'os-detach', {'attachment_id': None})
    assert status(volume) == 'available'


def test_changes_that_are_none_and_names_that_are_blank(ask, create, act):
    snapshot = ask('POST /v3/snapshots', {'snapshot': {'volume_id': create()['id']}}, expect=202).json['snapshot']
    ask(f'PUT /v3/snapshots/{snapshot["id"]}', {'snapshot': {}}, expect=400)
    for name in ('', None, 5):
        act(create(), 'os-volume_upload_image', {'image_name': name}, expect=400)
    ask('POST /v3/types', {'volume_type': {'name': ' \t'}}, by='admin', expect=400)
    ask('POST /v3/qos-specs', {'qos_specs': {'name': ' '}}, by='admin', expect=400)
