"""The behaviour of every image backend."""

import hashlib
import uuid
from datetime import timedelta

import pytest

from computeapi import errors
from computeapi.clock import utcnow
from tests.backends.implementations import ADMIN, ALICE, BOB, IMAGE, READER

OWNERS = (ADMIN.project_id, ALICE.project_id, BOB.project_id)
RAW = {'disk_format': 'raw', 'container_format': 'bare'}


@pytest.fixture(params=IMAGE)
def images(request, store, tmp_path):
    implementation = request.param(store, tmp_path)
    yield implementation.images
    implementation.check()


def names(found):
    """The names of the suite's own images: a real cloud may have other public ones."""
    return [image.name for image in found if image.owner in OWNERS]


def test_an_image_starts_queued_and_private(images):
    image = images.create(ALICE, 'one', properties={'hw_disk_bus': 'virtio'}, tags=['b', 'a', 'a'])
    assert image == images.get(ALICE, image.id)
    assert (image.status, image.visibility, image.owner, image.size) == ('queued', 'private', 'apples', None)
    assert image.properties == {'hw_disk_bus': 'virtio'}
    assert image.tags == ('a', 'b')


def test_properties_become_text(images):
    image = images.create(ALICE, 'one', properties={'map': [{'a': 1}], 'number': 5, 'flag': True, 'nothing': None})
    assert images.get(ALICE, image.id).properties == {'map': '[{"a":1}]', 'number': '5', 'flag': 'True'}


def test_an_id_may_be_chosen_once(images):
    chosen = str(uuid.uuid4())
    assert images.create(ALICE, 'one', image_id=chosen).id == chosen
    with pytest.raises(errors.Conflict):
        images.create(BOB, 'two', image_id=chosen)
    with pytest.raises(errors.Invalid, match='id'):
        images.create(BOB, 'two', image_id='../escape')


def test_data_comes_back_as_it_went_in(images):
    pieces = [b'x' * 70_000, b'', b'y' * 10]
    data = b''.join(pieces)
    image = images.upload(ALICE, images.create(ALICE, 'one', **RAW).id, iter(pieces))
    assert (image.status, image.size) == ('active', len(data))
    assert image.checksum == hashlib.md5(data).hexdigest()
    assert image.hash_value == hashlib.sha512(data).hexdigest()
    assert image == images.get(ALICE, image.id)
    assert b''.join(images.download(ALICE, image.id)) == data


def test_no_data_is_data_too(images):
    image = images.upload(ALICE, images.create(ALICE, 'one', **RAW).id, [])
    assert (image.status, image.size) == ('active', 0)
    assert b''.join(images.download(ALICE, image.id)) == b''


def test_data_is_written_once(images):
    image = images.upload(ALICE, images.create(ALICE, 'one', **RAW).id, [b'one'])
    with pytest.raises(errors.Conflict, match='active'):
        images.upload(ALICE, image.id, [b'two'])
    assert b''.join(images.download(ALICE, image.id)) == b'one'


def test_data_needs_its_format(images):
    with pytest.raises(errors.Invalid, match='disk_format'):
        images.upload(ALICE, images.create(ALICE, 'one').id, [b'x'])


def test_a_queued_image_has_nothing_to_download(images):
    with pytest.raises(errors.ImageNotActive):
        images.download(ALICE, images.create(ALICE, 'one').id)


def test_a_deleted_image_is_gone(images):
    image = images.upload(ALICE, images.create(ALICE, 'one', tags=['t'], properties={'a': 'b'}, **RAW).id, [b'x'])
    images.delete(ALICE, image.id)
    with pytest.raises(errors.ImageNotFound):
        images.get(ALICE, image.id)


def test_a_protected_image_stays(images):
    image = images.create(ALICE, 'one', protected=True)
    for caller in (ALICE, ADMIN):
        with pytest.raises(errors.Forbidden, match='protected'):
            images.delete(caller, image.id)
    images.update(ALICE, image.id, protected=False)
    images.delete(ALICE, image.id)


@pytest.mark.parametrize('visibility', ['public', 'community'])
def test_others_see_but_do_not_change(images, visibility):
    image = images.create(ADMIN, 'one', visibility=visibility)
    assert images.get(BOB, image.id) == image
    for change in (
        lambda: images.update(BOB, image.id, name='mine'),
        lambda: images.upload(BOB, image.id, [b'x']),
        lambda: images.delete(BOB, image.id),
    ):
        with pytest.raises(errors.Forbidden):
            change()


def test_who_may_only_read_changes_nothing(images):
    image = images.create(ALICE, 'one', **RAW)
    for change in (
        lambda: images.create(READER, 'two'),
        lambda: images.update(READER, image.id, name='mine'),
        lambda: images.upload(READER, image.id, [b'x']),
        lambda: images.delete(READER, image.id),
    ):
        with pytest.raises(errors.Forbidden):
            change()
    assert images.get(READER, image.id) == image


@pytest.mark.parametrize('visibility', ['private', 'shared'])
def test_others_do_not_see(images, visibility):
    image = images.create(ALICE, 'one', visibility=visibility)
    for look in (
        lambda: images.get(BOB, image.id),
        lambda: images.update(BOB, image.id, name='mine'),
        lambda: images.download(BOB, image.id),
        lambda: images.delete(BOB, image.id),
    ):
        with pytest.raises(errors.ImageNotFound):
            look()
    assert images.get_many(BOB, [image.id]) == {}
    assert images.get_many(ADMIN, [image.id, 'nowhere']) == {image.id: image}


def test_only_administrators_publish(images):
    with pytest.raises(errors.Forbidden):
        images.create(ALICE, 'one', visibility='public')
    image = images.create(ALICE, 'one')
    with pytest.raises(errors.Forbidden):
        images.update(ALICE, image.id, visibility='public')
    images.update(ADMIN, image.id, visibility='public')
    assert images.update(ALICE, image.id, name='still public').visibility == 'public'


def test_lists_by_visibility(images):
    for visibility in ('public', 'private', 'shared', 'community'):
        images.create(ADMIN, f'admin {visibility}', visibility=visibility)
    images.create(ALICE, 'own community', visibility='community')
    images.create(ALICE, 'own private')
    assert set(names(images.list(ALICE))) == {'admin public', 'own community', 'own private'}
    assert names(images.list(ALICE, filters={'visibility': 'public'})) == ['admin public']
    assert names(images.list(ALICE, filters={'visibility': 'private'})) == ['own private']
    assert set(names(images.list(ALICE, filters={'visibility': 'community'}))) == {'admin community', 'own community'}
    assert len(names(images.list(ALICE, filters={'visibility': 'all'}))) == 4
    assert len(names(images.list(ADMIN))) == 5
    assert len(names(images.list(ADMIN, filters={'visibility': 'all'}))) == 6


def test_filters(images):
    small = images.create(
        ALICE, 'small', properties={'os': 'linux', 'bus': 'virtio'}, tags=['x', 'y'], min_disk=1, **RAW
    )
    large = images.create(ALICE, 'large', properties={'os': 'bsd'}, tags=['x'], **RAW)
    images.upload(ALICE, small.id, [b'1'])
    images.upload(ALICE, large.id, [b'1' * 100])
    images.create(ALICE, 'queued', properties={'os': 'linux'})

    def found(**filters):
        return set(names(images.list(ALICE, filters=filters)))

    assert found() == {'small', 'large', 'queued'}
    assert found(name='small') == {'small'}
    assert found(name=['small', 'large', 'none']) == {'small', 'large'}
    assert found(status='active') == {'small', 'large'}
    assert found(status=['queued', 'saving']) == {'queued'}
    assert found(owner='bananas') == set()
    assert found(min_disk=1) == {'small'}
    assert found(os='linux') == {'small', 'queued'}
    assert found(os=['linux', 'bsd'], bus='virtio') == {'small'}
    assert found(tags=['x']) == {'small', 'large'}
    assert found(tags=['x', 'y']) == {'small'}
    assert found(size_min=2) == {'large'}
    assert found(size_max=2) == {'small'}
    assert found(updated_at=('gte', utcnow() + timedelta(hours=1))) == set()
    assert found(created_at=('lt', utcnow() + timedelta(hours=1))) == {'small', 'large', 'queued'}


def test_hidden_images_are_listed_apart_and_found_by_id(images):
    seen, hidden = images.create(ALICE, 'seen'), images.create(ALICE, 'hidden', hidden=True)
    assert names(images.list(ALICE)) == ['seen']
    assert names(images.list(ALICE, filters={'hidden': True})) == ['hidden']
    assert images.get_many(ALICE, [seen.id, hidden.id]) == {seen.id: seen, hidden.id: hidden}
    assert images.update(ALICE, hidden.id, hidden=False).hidden is False
    assert set(names(images.list(ALICE))) == {'seen', 'hidden'}


def test_words_that_mean_something_elsewhere_are_names_and_properties(images):
    odd = {'limit': '1', 'marker': 'x', 'a:b': 'c:d', 'n_min': '5', 'connection': 'x', 'a/b~c': '1'}
    image = images.create(ALICE, 'in:one,"two"', properties=odd)
    images.create(ALICE, 'eq:two')
    assert images.get(ALICE, image.id).properties == odd
    assert names(images.list(ALICE, filters={'name': image.name})) == [image.name]
    for name, value in odd.items():
        assert names(images.list(ALICE, filters={name: value})) == [image.name], name
        assert names(images.list(ALICE, filters={name: value + 'x'})) == [], name
    assert images.update(ALICE, image.id, properties={'a/b~c': '2'}).properties == {'a/b~c': '2'}


def test_pages_in_any_order_meet_every_image_once(images):
    own = {'owner': ALICE.project_id}
    for name, size in (('b', 2), ('a', None), (None, 3), ('b', None), ('c', 1)):
        image = images.create(ALICE, name, **RAW)
        if size is not None:
            images.upload(ALICE, image.id, [b'x' * size])
    for sort in (
        [('created_at', 'desc')],
        [('name', 'asc')],
        [('name', 'desc'), ('size', 'asc')],
        [('size', 'desc')],
        [('status', 'asc'), ('name', 'desc')],
    ):
        whole = images.list(ALICE, filters=own, sort=sort)
        paged, marker = [], None
        while page := images.list(ALICE, filters=own, sort=sort, limit=2, marker=marker):
            paged += page
            marker = page[-1].id
        assert paged == whole
        assert len(whole) == 5
    assert names(images.list(ALICE, sort=[('name', 'asc'), ('size', 'desc')])) == [None, 'a', 'b', 'b', 'c']
    assert images.list(ALICE, limit=0) == []


def test_a_marker_must_be_visible(images):
    hidden = images.create(ALICE, 'one')
    for marker in (hidden.id, 'junk'):
        with pytest.raises(errors.Invalid, match='No image found with ID'):
            images.list(BOB, marker=marker)
    with pytest.raises(errors.Invalid, match='sort'):
        images.list(BOB, sort=[('secret', 'asc')])


def test_update_replaces_properties_and_tags(images):
    image = images.create(ALICE, 'one', properties={'a': '1', 'b': '2'}, tags=['x'])
    updated = images.update(ALICE, image.id, name='two', properties={'b': '3'}, tags=['y'])
    assert (updated.name, updated.properties, updated.tags) == ('two', {'b': '3'}, ('y',))
    assert images.get(ALICE, image.id) == updated
    assert images.update(ALICE, image.id, min_disk=5).properties == {'b': '3'}


def test_properties_and_tags_are_bounded(images):
    many = [f'n{number}' for number in range(129)]
    with pytest.raises(errors.TooLarge, match='tags'):
        images.create(ALICE, 'one', tags=many)
    with pytest.raises(errors.TooLarge, match='properties'):
        images.create(ALICE, 'one', properties=dict.fromkeys(many, 'x'))
