"""The proxy APIs for images, until 2.35, and for their metadata, until 2.38."""

import pytest

from computeapi.context import Context

BOB, ALICE = 'bob:project', 'alice:elsewhere'
CONTEXT = Context(user_id='bob', project_id='project', roles=frozenset({'member', 'reader'}))
MISSING = '00000000-0000-4000-8000-00000000dead'
NOT_FOUND = {'itemNotFound': {'code': 404, 'message': 'Image not found.'}}


@pytest.fixture
def make(service):
    """make('name', key='value'): creates an image of bob's with these properties; returns its ID."""

    def create(name='image', data=b'1234', visibility='private', min_disk=0, **properties):
        facts = {'disk_format': 'raw', 'container_format': 'bare', 'min_disk': min_disk}
        image = service.images.create(CONTEXT, name, properties=properties, **facts)
        if visibility == 'public':
            service.images.update(CONTEXT.elevated(), image.id, visibility='public')
        return service.images.upload(CONTEXT, image.id, iter([data])).id if data else image.id

    return create


@pytest.fixture
def image(make):
    return make(key='value')


def test_they_end(api, image):
    assert api.get('/images', '2.35').status == api.get(f'/images/{image}/metadata', '2.38').status == 200
    for path, version in ((f'/images/{image}', '2.36'), (f'/images/{image}/metadata', '2.39')):
        assert api.get(path, version).json['itemNotFound']['message'] == 'The resource could not be found.'


def test_images_look_like_the_samples(api, make, sample, shape):
    properties = {'auto_disk_config': 'True', 'architecture': 'x86_64', 'kernel_id': 'none', 'ramdisk_id': 'none'}
    image = make(**properties)
    shown = api.get(f'/images/{image}', as_=BOB).json
    assert shape(shown) == shape(sample('images/image-get-resp.json'))
    assert shown['image']['metadata'] == properties
    (detailed,) = api.get('/images/detail', as_=BOB).json['images']
    assert detailed == shown['image']
    listed = sample('images/images-list-get-resp.json')['images'][0]
    assert shape(api.get('/images', as_=BOB).json['images'][0]) == shape(listed)
    hrefs = [link['href'] for link in shown['image']['links']]
    places = ('v2.1/images', 'images', 'image/images')
    assert hrefs == [f'http://localhost/{place}/{image}' for place in places]


def test_what_is_said_of_an_image(api, make):
    image = make(data=None, auto_disk_config='False', instance_uuid=MISSING)
    shown = api.get(f'/images/{image}', as_=BOB).json['image']
    assert (shown['status'], shown['progress'], shown['OS-EXT-IMG-SIZE:size']) == ('SAVING', 25, 0)
    assert shown['OS-DCF:diskConfig'] == 'MANUAL'
    assert shown['server']['id'] == MISSING and len(shown['server']['links']) == 2
    plain = api.get(f'/images/{make()}', as_=BOB).json['image']
    assert (plain['status'], plain['progress'], plain['OS-EXT-IMG-SIZE:size']) == ('ACTIVE', 100, 4)
    assert not {'OS-DCF:diskConfig', 'server'} & plain.keys()


def test_pages(api, make):
    names = ['a', 'b', 'c']
    for name in names:
        make(name)
    found, path = [], '/images?limit=1'
    for _ in names:
        page = api.get(path, as_=BOB).json
        found += [each['name'] for each in page['images']]
        path = page['images_links'][0]['href'].removeprefix('http://localhost/v2.1')
    assert found == names[::-1]
    assert api.get(path, as_=BOB).json == {'images': []}
    assert 'images_links' not in api.get('/images', as_=BOB).json
    (link,) = api.get('/images/detail?limit=1&x=1&name=a', as_=BOB).json['images_links']
    assert link['href'].startswith('http://localhost/v2.1/images/detail?limit=1&name=a&marker=')
    assert len(api.get('/images?marker=', as_=BOB).json['images']) == len(names)
    for query in ('limit=0', 'limit=-1', 'limit=a', 'marker=junk'):
        assert api.get(f'/images?{query}', as_=BOB).status == 400


@pytest.mark.parametrize(
    ('query', 'names'),
    [
        ('name=big', ['big']),
        ('status=ACTIVE', ['snapshot', 'big']),
        ('status=saving', ['queued']),
        ('status=junk', []),
        ('minDisk=5', ['big']),
        ('minRam=0&minDisk=0', ['queued', 'snapshot']),
        ('type=snapshot', ['snapshot']),
        (f'server={MISSING}', ['snapshot']),
        (f'server=http://host/servers/{MISSING}', ['snapshot']),
        ('property-color=red', ['big']),
        ('property-color=blue', []),
        ('changes-since=2099-01-01T00:00:00Z', []),
        ('changes-since=2000-01-01T00:00:00Z&name=big', ['big']),
    ],
)
def test_filters(api, make, query, names):
    make('big', min_disk=5, color='red')
    make('snapshot', image_type='snapshot', instance_uuid=MISSING)
    make('queued', data=None)
    assert [each['name'] for each in api.get(f'/images?{query}', as_=BOB).json['images']] == names


@pytest.mark.parametrize(
    'query',
    [
        'changes-since=junk',
        'minDisk=a',
        'minRam=1' + '0' * 30,
        'property-created_at=x',
        '&'.join(f'property-{number}=x' for number in range(1000)),
    ],
)
def test_filters_that_make_no_sense(api, query):
    assert api.get(f'/images?{query}').status == 400


def test_images_of_others(api, make, image):
    public = make(visibility='public')
    assert api.get(f'/images/{image}', as_=ALICE).json == api.delete(f'/images/{image}', as_=ALICE).json == NOT_FOUND
    assert api.get(f'/images/{public}', as_=ALICE).status == 200
    refused = {'forbidden': {'code': 403, 'message': 'You are not allowed to delete the image.'}}
    assert api.delete(f'/images/{public}', as_=ALICE).json == refused
    body = {'metadata': {'a': 'b'}}
    refused = {'forbidden': {'code': 403, 'message': f'Not authorized for image {public}.'}}
    for method in (api.put, api.post):
        assert method(f'/images/{public}/metadata', body, as_=ALICE).json == refused
        assert method(f'/images/{image}/metadata', body, as_=ALICE).json == NOT_FOUND


def test_images_are_deleted(api, image):
    assert api.delete(f'/images/{image}', as_=BOB).status == 204
    assert api.delete(f'/images/{image}', as_=BOB).json == NOT_FOUND
    assert api.get('/images/junk', as_=BOB).json == NOT_FOUND


# ------------------------------------------------------------------ metadata


@pytest.mark.parametrize('role', ['reader', 'service'])
def test_who_may_only_read_changes_no_image(api, image, role):
    caller = f'ron:project:{role}'
    assert api.get(f'/images/{image}', as_=caller).status == 200
    answers = [
        api.delete(f'/images/{image}', as_=caller),
        api.delete(f'/images/{image}/metadata/key', as_=caller),
        api.post(f'/images/{image}/metadata', {'metadata': {'new': 'x'}}, as_=caller),
        api.put(f'/images/{image}/metadata', {'metadata': {}}, as_=caller),
        api.put(f'/images/{image}/metadata/key', {'meta': {'key': 'x'}}, as_=caller),
    ]
    assert [answer.status for answer in answers] == [403] * len(answers)
    assert api.get(f'/images/{image}/metadata').json['metadata'] == {'key': 'value'}


def test_metadata_look_like_the_samples(api, make, sample):
    image = make(**sample('images/image-metadata-get-resp.json')['metadata'])
    path = f'/images/{image}/metadata'
    assert api.get(path, as_=BOB).json == sample('images/image-metadata-get-resp.json')
    assert api.get(f'{path}/kernel_id', as_=BOB).json == sample('images/image-meta-key-get.json')
    added = api.post(path, sample('images/image-metadata-post-req.json'), as_=BOB)
    assert (added.status, added.json) == (200, sample('images/image-metadata-post-resp.json'))
    replaced = api.put(path, sample('images/image-metadata-put-req.json'), as_=BOB)
    assert (replaced.status, replaced.json) == (200, sample('images/image-metadata-put-resp.json'))
    item = api.put(f'{path}/auto_disk_config', sample('images/image-meta-key-put-req.json'), as_=BOB)
    assert (item.status, item.json) == (200, sample('images/image-meta-key-put-resp.json'))
    assert api.get(path, as_=BOB).json == {'metadata': {'Label': 'Changed', 'auto_disk_config': 'False'}}
    assert api.delete(f'{path}/Label', as_=BOB).status == 204
    assert api.put(path, {'metadata': {}}, as_=BOB).json == {'metadata': {}}


def test_metadata_that_are_not_there(api, image):
    path = f'/images/{image}/metadata/none'
    assert api.get(path, as_=BOB).status == 404
    assert api.delete(path, as_=BOB).json['itemNotFound']['message'] == 'Invalid metadata key'
    for answer in (api.get(f'/images/{MISSING}/metadata'), api.delete(f'/images/{MISSING}/metadata/a')):
        assert answer.json == NOT_FOUND


def test_disks_are_lists_where_they_are_any(api, make):
    image = make(block_device_mapping=[{'boot_index': 0}], mappings='none')
    wanted = {'block_device_mapping': [{'boot_index': 0}], 'mappings': 'none'}
    assert api.get(f'/images/{image}', as_=BOB).json['image']['metadata'] == wanted
    added = api.post(f'/images/{image}/metadata', {'metadata': {'key': 'value'}}, as_=BOB)
    assert added.json['metadata'] == {**wanted, 'key': 'value'}


@pytest.mark.parametrize('body', [{}, {'metadata': {'k': 5}}, {'metadata': []}, {'metadata': {}, 'x': 1}])
def test_bad_metadata(api, image, body):
    assert api.post(f'/images/{image}/metadata', body, as_=BOB).status == 400


@pytest.mark.parametrize('meta', [{}, {'other': 'a'}, {'key': 'a', 'b': 'c'}, {'key': 5}])
def test_bad_items(api, image, meta):
    assert api.put(f'/images/{image}/metadata/key', {'meta': meta}, as_=BOB).status == 400


def test_there_may_be_so_many(api, image):
    body = {'metadata': {f'k{number}': 'v' for number in range(200)}}
    refused = {'forbidden': {'code': 403, 'message': 'Image metadata limit exceeded'}}
    assert api.post(f'/images/{image}/metadata', body, as_=BOB).json == refused
    assert api.put(f'/images/{image}/metadata', body, as_=BOB).json == refused


def test_a_user_may_be_allowed_fewer(api, image):
    assert api.put('/os-quota-sets/project?user_id=bob', {'quota_set': {'metadata_items': 1}}).status == 200
    assert api.post(f'/images/{image}/metadata', {'metadata': {'another': 'v'}}, as_=BOB).status == 403
