"""Glance v2 from a client's point of view."""

import hashlib
import io
import urllib.parse

import pytest

from computeapi.backends.image.local import LocalImages
from computeapi.context import Context
from computeapi.standalone.image import glance
from computeapi.web.app import App
from tests.standalone.callers import CALLERS, answer_of, authenticating

RAW = {'disk_format': 'raw', 'container_format': 'bare'}
PATCH = 'application/openstack-images-v2.1-json-patch'

authenticate = authenticating(dora=Context(user_id='dora', roles=frozenset({'member'})))


@pytest.fixture
def app(store, tmp_path):
    return glance(LocalImages(store, tmp_path / 'images', max_bytes=200_000), authenticate)


@pytest.fixture
def ask(app):
    """ask('POST /v2/images', {...}, by='alice') -> the response, which must have the status `expect` if it is given."""

    def ask(request, json=None, *, by='alice', expect=None, **others):
        if request.startswith('PUT') and request.endswith('/file'):
            others.setdefault('content_type', 'application/octet-stream')
        return answer_of(app, request, json, by, expect, **others)

    return ask


@pytest.fixture
def create(ask):
    def create(name='one', by='alice', data=None, **document):
        image = ask('POST /v2/images', {'name': name, **document}, by=by, expect=201).json
        if data is not None:
            ask(f'PUT /v2/images/{image["id"]}/file', by=by, expect=204, body=data)
        return image

    return create


def names(response):
    return [image['name'] for image in response.json['images']]


@pytest.mark.parametrize('path,status', [('/', 300), ('/versions', 200), ('/v2', 200), ('/v2/', 200)])
def test_discovery_takes_no_token(ask, path, status):
    response = ask(f'GET {path}', by=None, expect=status, base_url='http://cloud:9/image')
    newest, *others = response.json['versions']
    assert newest['status'] == 'CURRENT'
    assert newest['links'] == [{'rel': 'self', 'href': 'http://cloud:9/image/v2/'}]
    assert {version['status'] for version in others} == {'SUPPORTED'}
    assert others[-1]['id'] == 'v2.0'


def test_everything_else_takes_one(ask):
    for path in ('/v2/images', '/v2/images/x', '/v2/schemas/image'):
        ask(f'GET {path}', by=None, expect=401)
        ask(f'GET {path}', by='mallory', expect=401)


def test_create_show_delete(ask):
    created = ask(
        'POST /v2/images', {'name': 'one', 'hw_disk_bus': 'virtio', 'min_disk': 2, 'tags': ['x'], **RAW}, expect=201
    )
    image = created.json
    assert created.location == f'http://localhost/v2/images/{image["id"]}'
    assert {name: image[name] for name in ('status', 'visibility', 'owner', 'hw_disk_bus', 'min_disk', 'tags')} == {
        'status': 'queued',
        'visibility': 'shared',
        'owner': 'apples',
        'hw_disk_bus': 'virtio',
        'min_disk': 2,
        'tags': ['x'],
    }
    assert image['file'] == f'/v2/images/{image["id"]}/file'
    assert ask(f'GET /v2/images/{image["id"]}').json == image
    ask(f'DELETE /v2/images/{image["id"]}', expect=204)
    ask(f'GET /v2/images/{image["id"]}', expect=404)


@pytest.mark.parametrize(
    'document,status,word',
    [
        ({'min_disk': -1}, 400, 'min_disk'),
        ({'min_disk': 2**31}, 400, 'min_disk'),
        ({'min_ram': True}, 400, 'min_ram'),
        ({'disk_format': 'floppy'}, 400, 'disk_format'),
        ({'visibility': 'secret'}, 400, 'visibility'),
        ({'id': '../../etc/passwd'}, 400, 'id'),
        ({'name': 'x' * 256}, 400, 'name'),
        ({'tags': 'x'}, 400, 'tags'),
        ({'tags': ['x' * 256]}, 400, 'tags'),
        ({'hw_disk_bus': 5}, 400, 'hw_disk_bus'),
        ({'p' * 256: 'x'}, 400, 'too long'),
        ({'nul': 'a\0b'}, 400, 'NUL'),
        ({'status': 'active'}, 403, 'status'),
        ({'checksum': 'x'}, 403, 'checksum'),
        ({'visibility': 'public'}, 403, 'public'),
        ({'owner': 'bananas'}, 403, 'owner'),
        ({f'p{number}': 'x' for number in range(129)}, 413, 'properties'),
    ],
)
def test_bad_documents_name_the_field(ask, document, status, word):
    assert word in ask('POST /v2/images', document, expect=status).text


@pytest.mark.parametrize('body', [b'', b'{', b'[]', b'"x"', b'[' * 600 + b']' * 600])
def test_what_is_no_object_is_refused(ask, body):
    ask('POST /v2/images', expect=400, body=body)


def test_errors_are_pages_that_escape_what_they_quote(ask):
    response = ask('GET /v2/images/%3Cscript%3E', expect=404, accept='text/html')
    assert '&lt;script&gt;' in response.text
    assert '<script>' not in response.text
    assert ask('GET /v2/images/x', expect=404, accept='application/json').json['code'] == '404 Not Found'


def test_readers_only_read(ask, create):
    image = create(data=b'x', **RAW)
    assert names(ask('GET /v2/images', by='reader')) == ['one']
    for request in ('POST /v2/images', f'DELETE /v2/images/{image["id"]}', f'PUT /v2/images/{image["id"]}/file'):
        ask(request, {'name': 'two'}, by='reader', expect=403)


def test_bytes_come_back_as_they_went_in(ask, create):
    data = bytes(range(256)) * 700
    image = create(data=data, **RAW)
    response = ask(f'GET /v2/images/{image["id"]}/file', expect=200)
    assert response.body == data
    assert response.content_type == 'application/octet-stream'
    assert response.content_length == len(data)
    assert response.content_md5 == hashlib.md5(data).hexdigest()
    shown = ask(f'GET /v2/images/{image["id"]}').json
    assert (shown['status'], shown['size'], shown['checksum']) == ('active', len(data), response.content_md5)
    assert (shown['os_hash_algo'], shown['os_hash_value']) == ('sha512', hashlib.sha512(data).hexdigest())


@pytest.mark.parametrize(
    ('asked', 'start', 'stop'),
    [('0-9', 0, 10), ('150000-', 150_000, 179_200), ('-5', 179_195, 179_200), ('0-999999', 0, 179_200)],
)
def test_a_part_of_the_data(ask, create, asked, start, stop):
    data = bytes(range(256)) * 700
    path = f'/v2/images/{create(data=data, **RAW)["id"]}/file'
    response = ask(f'GET {path}', expect=206, headers={'Range': f'bytes={asked}'})
    assert response.body == data[start:stop]
    assert response.headers['Content-Range'] == f'bytes {start}-{stop - 1}/179200'
    assert response.content_length == stop - start
    assert response.content_md5 is None


def test_parts_that_cannot_be_had(ask, create):
    path = f'/v2/images/{create(data=b"0123", **RAW)["id"]}/file'
    for asked in ('bytes=4-', 'bytes=3-1', 'items=1', 'bytes=x'):
        ask(f'GET {path}', expect=416, headers={'Range': asked})
    ask(f'GET {path}', expect=400, headers={'Range': 'bytes=0-0,2-3'})


def test_readers_cannot_download(ask, create):
    ask(f'GET /v2/images/{create(data=b"x", **RAW)["id"]}/file', by='reader', expect=403)


def test_a_body_of_unknown_length_is_read_to_its_end(ask, create):
    image = create(**RAW)
    environ = {'wsgi.input': io.BytesIO(b'x' * 100_000), 'wsgi.input_terminated': True}
    ask(f'PUT /v2/images/{image["id"]}/file', expect=204, environ=environ)
    assert ask(f'GET /v2/images/{image["id"]}').json['size'] == 100_000


def test_uploads_that_are_refused(ask, create):
    active = create(data=b'x', **RAW)['id']
    ask(f'PUT /v2/images/{active}/file', expect=409, body=b'y')
    ask(f'PUT /v2/images/{create(**RAW)["id"]}/file', expect=413, body=b'y' * 200_001)
    ask(f'PUT /v2/images/{create()["id"]}/file', expect=400, body=b'y')
    ask(f'PUT /v2/images/{active}/file', by='bob', expect=404, body=b'y')
    for kind in ('application/json', ''):
        ask(f'PUT /v2/images/{create(**RAW)["id"]}/file', expect=415, body=b'y', content_type=kind)


def test_no_data_is_no_content(ask, create):
    ask(f'GET /v2/images/{create()["id"]}/file', expect=204)


def test_deactivate_and_reactivate(ask, create):
    image = create(data=b'x', **RAW)['id']
    ask(f'POST /v2/images/{image}/actions/deactivate', expect=204)
    assert ask(f'GET /v2/images/{image}').json['status'] == 'deactivated'
    ask(f'GET /v2/images/{image}/file', expect=403)
    ask(f'POST /v2/images/{image}/actions/reactivate', expect=204)
    assert ask(f'GET /v2/images/{image}/file').body == b'x'


def patch(ask, image, *operations, **others):
    return ask(f'PATCH /v2/images/{image["id"]}', list(operations), content_type=PATCH, **others)


def test_operations_of_the_older_type(ask, create):
    image = create(color='red')
    operations = [{'replace': '/name', 'value': 'two'}, {'add': '/shape', 'value': 'round'}, {'remove': '/color'}]
    path, older = f'PATCH /v2/images/{image["id"]}', PATCH.replace('2.1', '2.0')
    patched = ask(path, operations, content_type=older, expect=200).json
    assert (patched['name'], patched['shape'], 'color' in patched) == ('two', 'round', False)
    for bad in ({'replace': '/name'}, {'add': '/a', 'remove': '/b', 'value': 'c'}, {'value': 'c'}, 'x', {'add': 1}):
        ask(path, [bad], content_type=older, expect=400)
    ask(path, operations, content_type=PATCH, expect=400)


def test_patch(ask, create):
    image = create(a='1', b='2', tags=['x', 'y'])
    changed = patch(
        ask,
        image,
        {'op': 'replace', 'path': '/name', 'value': 'two'},
        {'op': 'replace', 'path': '/os_hidden', 'value': True},
        {'op': 'add', 'path': '/a', 'value': '3'},
        {'op': 'add', 'path': '/with~1slash', 'value': 'yes'},
        {'op': 'remove', 'path': '/b'},
        {'op': 'replace', 'path': '/tags/0', 'value': 'z'},
        {'op': 'add', 'path': '/tags/-', 'value': 'w'},
        {'op': 'remove', 'path': '/tags/1'},
        expect=200,
    ).json
    assert (changed['name'], changed['os_hidden'], changed['a'], changed['with/slash']) == ('two', True, '3', 'yes')
    assert 'b' not in changed
    assert changed['tags'] == ['w', 'z']
    assert ask(f'GET /v2/images/{image["id"]}').json == changed


@pytest.mark.parametrize(
    'operation,status',
    [
        ({'op': 'replace', 'path': '/status', 'value': 'active'}, 403),
        ({'op': 'replace', 'path': '/id', 'value': 'x'}, 403),
        ({'op': 'remove', 'path': '/name'}, 403),
        ({'op': 'replace', 'path': '/visibility', 'value': 'public'}, 403),
        ({'op': 'replace', 'path': '/owner', 'value': 'bananas'}, 403),
        ({'op': 'remove', 'path': '/absent'}, 409),
        ({'op': 'replace', 'path': '/absent', 'value': 'x'}, 409),
        ({'op': 'move', 'path': '/name', 'value': 'x'}, 400),
        ({'op': 'add', 'path': '/name'}, 400),
        ({'op': 'add', 'path': 'name', 'value': 'x'}, 400),
        ({'op': 'add', 'path': '/name', 'value': 5}, 400),
        ({'op': 'add', 'path': '/tags', 'value': 'x'}, 400),
        ({'op': 'add', 'path': '/tags/9', 'value': 'x'}, 400),
        ({'op': 'remove', 'path': '/tags/-'}, 400),
        ({'op': 'add', 'path': '/name/x', 'value': 'x'}, 400),
        ({'replace': '/name', 'value': 'x'}, 400),
        ('x', 400),
    ],
)
def test_patches_that_are_refused(ask, create, operation, status):
    image = create()
    patch(ask, image, {'op': 'add', 'path': '/first', 'value': 'x'}, operation, expect=status)
    assert 'first' not in ask(f'GET /v2/images/{image["id"]}').json


def test_an_image_with_names_that_clients_cannot_set_can_be_patched(ask, store, tmp_path):
    """Compute turns whatever it is given for a snapshot into properties."""
    made = LocalImages(store, tmp_path / 'images').create(CALLERS['alice'], 'one', properties={'status': 'x', 'a': 'b'})
    changed = patch(ask, vars(made), {'op': 'replace', 'path': '/name', 'value': 'two'}, expect=200).json
    assert (changed['name'], changed['status'], changed['a']) == ('two', 'queued', 'b')
    patch(ask, vars(made), {'op': 'remove', 'path': '/status'}, expect=403)


def test_a_patch_may_not_undo_a_tag_that_is_no_list(ask, create):
    operations = ({'op': 'add', 'path': '/tags', 'value': 'x'}, {'op': 'add', 'path': '/tags/0', 'value': 'y'})
    patch(ask, create(), *operations, expect=400)


def test_the_format_is_settled_once_there_is_data(ask, create):
    image = create(data=b'x', **RAW)
    patch(ask, image, {'op': 'replace', 'path': '/disk_format', 'value': 'qcow2'}, expect=403)
    patch(ask, image, {'op': 'replace', 'path': '/disk_format', 'value': 'raw'}, expect=200)


def test_administrators_give_images_away(ask, create):
    image = create()
    assert patch(ask, image, {'op': 'replace', 'path': '/owner', 'value': 'bananas'}, by='admin').json['owner'] == (
        'bananas'
    )
    ask(f'GET /v2/images/{image["id"]}', expect=404)
    assert create(by='admin', owner='apples')['owner'] == 'apples'


@pytest.mark.parametrize('visibility', ['public', 'community', 'shared'])
def test_what_is_nobodys_is_not_for_whoever_works_in_no_project(ask, create, visibility):
    image = create(by='admin', owner=None, visibility=visibility)
    path = f'/v2/images/{image["id"]}'
    refused = 404 if visibility == 'shared' else 403
    patch(ask, image, {'op': 'replace', 'path': '/name', 'value': 'mine'}, by='dora', expect=refused)
    ask(f'DELETE {path}', by='dora', expect=refused)
    ask(f'POST {path}/members', {'member': 'apples'}, by='dora', expect=refused)
    ask('POST /v2/images', {'name': 'two'}, by='dora', expect=403)
    ask(f'DELETE {path}', by='admin', expect=204)


def test_who_only_reads_is_told_nothing_of_images_of_others(ask, create):
    for owner, expected in (('bob', 404), ('alice', 403)):
        image = create(by=owner, visibility='private')
        patch(ask, image, {'op': 'replace', 'path': '/name', 'value': 'new'}, by='reader', expect=expected)
        path = f'/v2/images/{image["id"]}'
        for request in (f'DELETE {path}', f'GET {path}/file', f'PUT {path}/file', f'POST {path}/actions/deactivate'):
            ask(request, by='reader', expect=expected)


def test_tokens_for_the_system_are_refused(ask, create):
    path = f'/v2/images/{create(visibility="shared")["id"]}'
    for request in (f'GET {path}', f'DELETE {path}', 'GET /v2/images', 'POST /v2/images'):
        ask(request, {'name': 'two'}, by='system admin', expect=403)
    ask('GET /v2', by='system admin', expect=200)


def test_an_owner_without_a_name_is_not_whoever_works_in_no_project(ask, create):
    image = create(by='admin', owner='')
    for path in (f'/v2/images/{image["id"]}', f'/v2/images?marker={image["id"]}'):
        ask(f'GET {path}', by='dora', expect=404 if 'marker' not in path else 400)
    assert names(ask('GET /v2/images', by='dora')) == []


def test_tags(ask, create):
    image = create()['id']
    for tag in ('x', 'y', 'x'):
        ask(f'PUT /v2/images/{image}/tags/{tag}', expect=204)
    assert ask(f'GET /v2/images/{image}').json['tags'] == ['x', 'y']
    ask(f'DELETE /v2/images/{image}/tags/x', expect=204)
    ask(f'DELETE /v2/images/{image}/tags/x', expect=404)
    ask(f'PUT /v2/images/{image}/tags/{"t" * 256}', expect=400)
    assert ask(f'GET /v2/images/{image}').json['tags'] == ['y']


@pytest.mark.parametrize(
    'query,expected',
    [
        ('', {'one', 'two'}),
        ('name=one', {'one'}),
        ('name=in:one,three', {'one', 'three'}),
        ('name=in:"one",two&os_hidden=true', set()),
        ('os_hidden=True', {'three'}),
        ('visibility=private', {'two'}),
        ('status=active', {'one'}),
        ('status=in:active,queued', {'one', 'two'}),
        ('owner=bananas', set()),
        ('tag=x', {'one', 'two'}),
        ('tag=x&tag=y', {'two'}),
        ('size_min=1', {'one'}),
        ('size_min=10', set()),
        ('size_max=10', {'one'}),
        ('protected=true', {'two'}),
        ('hw_disk_bus=virtio', {'one'}),
        ('hw_disk_bus=scsi', set()),
        ('min_disk=1', {'two'}),
        ('created_at=gt:2000-01-01T00:00:00Z', {'one', 'two'}),
        ('updated_at=lt:2000-01-01T00:00:00%2B01:00', set()),
        ('member_status=all', {'one', 'two'}),
    ],
)
def test_filters(ask, create, query, expected):
    create('one', hw_disk_bus='virtio', tags=['x'], data=b'xyz', **RAW)
    create('two', visibility='private', tags=['x', 'y'], protected=True, min_disk=1)
    create('three', os_hidden=True)
    response = ask(f'GET /v2/images?{query}', expect=200)
    # Filters that do not mention hidden images exclude them.
    assert set(names(response)) == expected - ({'three'} if 'os_hidden' not in query else set())


@pytest.mark.parametrize(
    'query',
    [
        'visibility=secret',
        'member_status=maybe',
        'protected=perhaps',
        'size_min=-1',
        'size_max=' + '9' * 30,
        'min_disk=4294967296',
        'created_at=yesterday',
        'updated_at=gt:0001-01-01T00:00:00%2B23:00',
        'limit=-1',
        'limit=x',
        'marker=junk',
        'sort_key=secret',
        'sort=name:up',
        'sort=name&sort_key=name',
        'sort_key=name&sort_key=id&sort_key=size&sort_dir=asc&sort_dir=asc',
        'sort_key=name&' * 11,
        'sort=' + ','.join(['name'] * 11),
        'tag=x&' * 1000,
        '&'.join(f'p{number}=x' for number in range(1000)),
        'hidden=maybe',
        'name=in:a%0Db,c',
        pytest.param('name=in:' + ','.join(['a'] * 70_000), id='more values than parameters of a statement'),
        'name=%00',
        'name=%FF',
    ],
)
def test_bad_queries(ask, query):
    ask(f'GET /v2/images?{query}', expect=400)


@pytest.mark.parametrize(
    'query,expected',
    [
        ('', ['b', 'c', 'a']),
        ('sort=name:asc', ['a', 'b', 'c']),
        ('sort=name', ['c', 'b', 'a']),
        ('sort=min_disk:asc,name:desc', ['c', 'a', 'b']),
        ('sort_key=name&sort_dir=asc', ['a', 'b', 'c']),
        ('sort_key=min_disk&sort_key=name&sort_dir=asc&sort_dir=desc', ['c', 'a', 'b']),
        ('sort_dir=asc', ['a', 'c', 'b']),
    ],
)
def test_sorting(ask, create, query, expected):
    create('a', min_disk=1)
    create('c', min_disk=1)
    create('b', min_disk=2)
    assert names(ask(f'GET /v2/images?{query}')) == expected


def test_pages_lead_from_one_to_the_next(ask, create):
    for number in range(5):
        create(f'n{number}')
    seen, path = [], '/v2/images?sort=name:asc&limit=2'
    while path:
        page = ask(f'GET {path}', expect=200)
        seen += names(page)
        assert 'marker' not in page.json['first']
        path = page.json.get('next')
        if path:
            assert path.startswith('/v2/images?')
            assert urllib.parse.parse_qs(urllib.parse.urlsplit(path).query)['limit'] == ['2']
    assert seen == ['n0', 'n1', 'n2', 'n3', 'n4']
    assert ask('GET /v2/images?limit=0').json['images'] == []


def test_a_name_is_no_id(ask, create):
    create('one')
    ask('GET /v2/images/one', expect=404)
    assert names(ask('GET /v2/images?name=one')) == ['one']


def test_nobody_gets_the_id_of_a_deleted_image(ask, create):
    image = create()['id']
    ask(f'DELETE /v2/images/{image}', expect=204)
    ask('POST /v2/images', {'id': image}, by='bob', expect=409)
    ask(f'GET /v2/images/{image}', by='admin', expect=404)


def test_the_image_that_comes_with_the_service_is_deleted_for_good(store, tmp_path):
    images = LocalImages(store, tmp_path / 'images')
    images.populate('admin')
    (image,) = images.list(CALLERS['admin'])
    images.delete(CALLERS['admin'], image.id)
    images.populate('admin')
    assert images.list(CALLERS['admin']) == []


def test_sharing(ask, create):
    image = create()['id']
    path = f'/v2/images/{image}/members'
    member = ask(f'POST {path}', {'member': 'bananas'}, expect=200).json
    assert (member['member_id'], member['image_id'], member['status']) == ('bananas', image, 'pending')
    ask(f'POST {path}', {'member': 'bananas'}, expect=409)
    assert names(ask('GET /v2/images', by='bob')) == []
    assert names(ask('GET /v2/images?visibility=shared&member_status=pending', by='bob')) == ['one']
    ask(f'PUT {path}/bananas', {'status': 'accepted'}, expect=403)
    assert ask(f'PUT {path}/bananas', {'status': 'accepted'}, by='bob', expect=200).json['status'] == 'accepted'
    assert names(ask('GET /v2/images', by='bob')) == ['one']
    assert [member['member_id'] for member in ask(f'GET {path}').json['members']] == ['bananas']
    assert ask(f'GET {path}/bananas').json['status'] == 'accepted'
    ask(f'DELETE {path}/bananas', by='bob', expect=403)
    ask(f'DELETE {path}/bananas', expect=204)
    ask(f'DELETE {path}/bananas', expect=404)
    ask(f'GET {path}', by='bob', expect=404)


def test_names_of_the_service_itself_are_reserved(ask, create):
    ask('POST /v2/images', {'name': 'x', 'os_glance_importing': 'yes'}, expect=403)
    change = [{'op': 'add', 'path': '/os_glance_importing', 'value': 'yes'}]
    content_type = 'application/openstack-images-v2.1-json-patch'
    ask(f'PATCH /v2/images/{create()["id"]}', change, content_type=content_type, expect=403)


@pytest.mark.parametrize('document', [{}, {'member': 5}, {'member': ''}, {'member': 'x' * 65}])
def test_bad_members_name_the_field(ask, create, document):
    assert 'member' in ask(f'POST /v2/images/{create()["id"]}/members', document, expect=400).text


@pytest.mark.parametrize('name', ['image', 'images', 'member', 'members'])
def test_schemas(ask, name):
    schema = ask(f'GET /v2/schemas/{name}', expect=200).json
    assert schema['name'] == name
    ask('GET /v2/schemas/nothing', expect=404)


def test_the_schema_describes_what_is_shown(ask, create):
    schema = ask('GET /v2/schemas/image').json
    assert set(create()) <= set(schema['properties'])
    assert schema['properties']['status']['readOnly']


def test_nothing_can_be_imported(ask):
    assert ask('GET /v2/info/import').json['import-methods']['value'] == []
    ask('GET /v2/info/stores', expect=404)


def test_nothing_is_done_to_images_in_the_background(ask, create):
    assert ask(f'GET /v2/images/{create()["id"]}/tasks').json == {'tasks': []}
    assert ask('GET /v2/tasks').json['tasks'] == []
    assert ask('GET /v2/metadefs/namespaces').json['namespaces'] == []
    assert ask('GET /v2/metadefs/resource_types').json == {'resource_types': []}
    schema = ask('GET /v2/schemas/metadefs/namespaces').json
    assert schema['properties']['namespaces']['items'] == ask('GET /v2/schemas/metadefs/namespace').json
    assert ask('GET /v2/schemas/metadefs/resource_type').json['name'] == 'resource_type_association'
    ask('GET /v2/schemas/metadefs/nothing', expect=404)
    ask('GET /v2/images/x/tasks', expect=404)


def test_a_page_has_a_bound_in_bytes(ask, create, monkeypatch):
    monkeypatch.setattr(App, 'longest_list', 5000)
    for number in range(8):
        create(name=f'i{number}', key='x' * 900)
    path, seen = '/v2/images', []
    while path:
        answer = ask(f'GET {path}')
        assert len(answer.body) < 5500
        seen += [image['name'] for image in answer.json['images']]
        path = answer.json.get('next')
    assert sorted(seen) == [f'i{number}' for number in range(8)]
