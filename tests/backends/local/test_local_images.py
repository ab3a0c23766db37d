"""Features of the built-in images beyond the Protocol: files, members, and changes based on the current state."""

import errno
import threading
import uuid
from contextlib import suppress
from dataclasses import replace

import pytest
from oslo_utils.imageutils.format_inspector import detect_file_format

from computeapi import errors
from computeapi.backends.image import blank
from computeapi.backends.image.local import LocalImages
from computeapi.context import Context
from computeapi.db import images as rows
from tests.backends.implementations import ADMIN, ALICE, BOB, SERVICE
from tests.backends.test_image import RAW, names
from tests.backends.test_network import together


@pytest.fixture
def images(store, tmp_path):
    return LocalImages(store, tmp_path / 'images')


def test_an_upload_whose_process_was_killed_can_be_repeated(images):
    image = images.create(ALICE, 'one', **RAW)
    images.update(ALICE, image.id, status='saving')
    assert images.upload(ALICE, image.id, [b'whole']).status == 'active'


def test_deleting_during_an_upload_leaves_no_file(images, tmp_path):
    image = images.create(ALICE, 'one', **RAW)

    def doomed():
        yield b'data'
        images.delete(ALICE, image.id)

    with pytest.raises(errors.ImageNotFound):
        images.upload(ALICE, image.id, doomed())
    assert list((tmp_path / 'images').iterdir()) == []


def test_files_of_images_that_are_gone_are_removed(images, tmp_path):
    kept = images.upload(ALICE, images.create(ALICE, 'one', **RAW).id, [b'data'])
    waiting = images.create(ALICE, 'two', **RAW)
    directory, gone = tmp_path / 'images', uuid.uuid4()
    left = [f'{waiting.id}.a.part', str(gone), f'{gone}.a.part']
    for name in left:
        (directory / name).write_bytes(b'x')
    images.recover()
    assert sorted(path.name for path in directory.iterdir()) == sorted([kept.id, left[0]])


def test_a_deactivated_image_is_for_administrators(images):
    image = images.upload(ALICE, images.create(ALICE, 'one', **RAW).id, [b'x'])
    assert images.deactivate(ALICE, image.id).status == 'deactivated'
    with pytest.raises(errors.Forbidden):
        images.download(ALICE, image.id)
    assert list(images.download(ADMIN, image.id)) == [b'x']
    assert images.reactivate(ALICE, image.id).status == 'active'
    with pytest.raises(errors.Conflict):
        images.deactivate(ALICE, images.create(ALICE, 'queued').id)


def test_a_list_takes_as_many_queries_for_one_image_as_for_many(images, asked):
    def queries():
        asked.clear()
        images.list(ALICE)
        return len(asked)

    images.create(ALICE, 'one', tags=['t'], properties={'a': 'b'})
    one = queries()
    for number in range(5):
        images.create(ALICE, f'n{number}', tags=['t'], properties={'a': 'b'})
    assert queries() == one


def test_simultaneous_changes_all_count(images):
    image = images.create(ALICE, 'one')

    def add(number):
        images.change(ALICE, image.id, lambda now: {'properties': {**now.properties, f'p{number}': 'x'}})

    threads = [threading.Thread(target=add, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(images.get(ALICE, image.id).properties) == 8


def test_a_shared_image_shows_when_it_is_accepted(images):
    image = images.create(ALICE, 'one', visibility='shared')
    member = images.members.add(ALICE, image.id, 'bananas')
    assert member.status == 'pending'
    assert images.get(BOB, image.id) == image
    assert images.list(BOB) == []
    assert names(images.list(BOB, filters={'visibility': 'shared', 'member_status': 'pending'})) == ['one']
    assert images.members.answer(BOB, image.id, 'bananas', 'accepted').status == 'accepted'
    assert names(images.list(BOB)) == ['one']
    images.members.answer(BOB, image.id, 'bananas', 'rejected')
    assert images.list(BOB) == []
    assert names(images.list(BOB, filters={'visibility': 'all', 'member_status': 'all'})) == ['one']
    images.members.remove(ALICE, image.id, 'bananas')
    with pytest.raises(errors.ImageNotFound):
        images.get(BOB, image.id)


def test_members_see_themselves_only(images):
    image = images.create(ALICE, 'one', visibility='shared')
    for project in ('bananas', 'cherries'):
        images.members.add(ALICE, image.id, project)
    assert [member.member_id for member in images.members.list(ALICE, image.id)] == ['bananas', 'cherries']
    assert [member.member_id for member in images.members.list(BOB, image.id)] == ['bananas']
    with pytest.raises(errors.NotFound):
        images.members.get(BOB, image.id, 'cherries')
    with pytest.raises(errors.NotFound):
        images.members.answer(BOB, image.id, 'cherries', 'accepted')


def test_who_may_do_what_with_members(images):
    image = images.create(ALICE, 'one', visibility='shared')
    images.members.add(ALICE, image.id, 'bananas')
    with pytest.raises(errors.Conflict):
        images.members.add(ALICE, image.id, 'bananas')
    with pytest.raises(errors.Forbidden):
        images.members.add(BOB, image.id, 'cherries')
    with pytest.raises(errors.Forbidden):
        images.members.remove(BOB, image.id, 'bananas')
    with pytest.raises(errors.Forbidden):
        images.members.answer(ALICE, image.id, 'bananas', 'accepted')
    with pytest.raises(errors.Invalid, match='status'):
        images.members.answer(BOB, image.id, 'bananas', 'maybe')
    with pytest.raises(errors.NotFound):
        images.members.remove(ALICE, image.id, 'cherries')
    with pytest.raises(errors.Forbidden, match='shared'):
        images.members.add(ALICE, images.create(ALICE, 'two').id, 'bananas')


def test_populate_makes_one_image_however_often(images):
    images.populate('demo')
    images.populate('demo')
    (image,) = images.list(ALICE)
    assert (image.id, image.name, image.owner, image.status) == (blank.IMAGE_ID, blank.NAME, 'demo', 'active')
    assert image.properties == {'architecture': 'x86_64'}


def test_the_data_of_that_image_are_what_its_format_says(images, tmp_path):
    images.populate('demo')
    disk = tmp_path / 'disk'
    disk.write_bytes(b''.join(images.download(ALICE, blank.IMAGE_ID)))
    found = detect_file_format(disk)
    assert (str(found), found.virtual_size) == (images.get(ALICE, blank.IMAGE_ID).disk_format, blank.DISK_BYTES)
    found.safety_check()


def test_populate_finishes_what_was_begun(images):
    images.create(Context(project_id='demo', is_admin=True), blank.NAME, image_id=blank.IMAGE_ID, **blank.FACTS)
    images.populate('demo')
    assert images.get(ADMIN, blank.IMAGE_ID).status == 'active'


def test_a_project_has_so_many_images(store, tmp_path):
    images = LocalImages(store, tmp_path / 'images', max_images=2)
    kept = [images.create(ALICE, name) for name in 'ab']
    with pytest.raises(errors.OverQuota, match='at most 2 images'):
        images.create(ALICE, 'c')
    images.create(BOB, 'his')
    images.delete(ALICE, kept[0].id)
    images.create(ALICE, 'c')


@pytest.mark.several_writers
def test_the_last_place_of_a_project_is_given_once(store, tmp_path, monkeypatch):
    images, counted, count = LocalImages(store, tmp_path / 'images', max_images=1), threading.Barrier(2), rows.count_of

    def count_together(*facts):
        """Returns after the other caller has counted, too, if possible."""
        found = count(*facts)
        with suppress(threading.BrokenBarrierError):
            counted.wait(0.5)
        return found

    monkeypatch.setattr(rows, 'count_of', count_together)
    made, failures = together(2, lambda i: images.create(ALICE, f'{i}'))
    assert (len(made), [type(failure) for failure in failures]) == (1, [errors.OverQuota])


def test_properties_take_so_much_together(images):
    image = images.create(ALICE, 'one', properties={'a': 'x' * 60_000})
    with pytest.raises(errors.TooLarge, match='bytes'):
        images.update(ALICE, image.id, properties={'a': 'x' * 60_000, 'b': 'ß' * 3_000})


def test_too_much_data_leaves_a_queued_image(images):
    image = images.create(ALICE, 'one', **RAW)
    images.files.max_bytes = 100_000
    with pytest.raises(errors.TooLarge):
        images.upload(ALICE, image.id, (b'x' * 60_000 for _ in range(2)))
    assert images.get(ALICE, image.id).status == 'queued'


def test_data_for_which_there_is_no_room_leave_a_queued_image(images):
    def filling():
        yield b'x'
        raise OSError(errno.ENOSPC, 'No space left on device')

    image = images.create(ALICE, 'one', **RAW)
    with pytest.raises(errors.TooLarge, match='no room'):
        images.upload(ALICE, image.id, filling())
    assert images.get(ALICE, image.id).status == 'queued'
    assert list(images.files.directory.iterdir()) == []


def test_an_upload_that_breaks_off_can_be_repeated(images):
    def broken():
        yield b'half'
        raise OSError('the client is gone')

    image = images.create(ALICE, 'one', **RAW)
    with pytest.raises(OSError, match='the client is gone'):
        images.upload(ALICE, image.id, broken())
    assert images.get(ALICE, image.id).status == 'queued'
    assert images.upload(ALICE, image.id, [b'whole']).status == 'active'


def test_of_two_uploads_the_first_to_end_wins(images):
    image = images.create(ALICE, 'one', **RAW)

    def slow():
        yield b'slow'
        images.upload(ALICE, image.id, [b'quick'])

    with pytest.raises(errors.Conflict):
        images.upload(ALICE, image.id, slow())
    assert images.get(ALICE, image.id).status == 'active'
    assert b''.join(images.download(ALICE, image.id)) == b'quick'


def test_a_service_that_acts_for_itself_changes_nothing(images):
    image = images.create(ALICE, 'one')
    for change in (lambda: images.create(SERVICE, 'two'), lambda: images.delete(SERVICE, image.id)):
        with pytest.raises(errors.Forbidden):
            change()
    assert images.get(SERVICE, image.id) == image


def test_hidden_images_can_be_listed_with_the_others(images):
    images.create(ALICE, 'hidden', hidden=True)
    images.create(ALICE, 'seen')
    assert set(names(images.list(ALICE, filters={'hidden': None}))) == {'seen', 'hidden'}


def test_a_caller_without_a_project_sees_what_is_public(images):
    nobody = Context(user_id='ghost', roles=frozenset({'member'}))
    with pytest.raises(errors.Forbidden):
        images.create(nobody, 'lost')
    images.create(replace(ADMIN, project_id=None), 'lost')
    images.create(ADMIN, 'open', visibility='public')
    assert names(images.list(nobody)) == ['open']


@pytest.mark.parametrize('kind', ['properties', 'tags'])
def test_a_list_by_many_properties_or_tags_is_planned_at_once(images, kind):
    wanted = [f'name{number}' for number in range(120)]
    kept = {'tags': wanted, 'properties': dict.fromkeys(wanted, 'value')}[kind]
    image = images.create(ALICE, 'one', **RAW, **{kind: kept})
    images.create(ALICE, 'other', **RAW, **{kind: kept[1:] if kind == 'tags' else {**kept, 'name9': 'other'}})
    filters = {'tags': wanted} if kind == 'tags' else kept
    assert [each.id for each in images.list(ALICE, filters=filters)] == [image.id]
    more = [f'no{number}' for number in range(130)]
    beside = {'tags': [*wanted, *more]} if kind == 'tags' else filters | dict.fromkeys(more, 'value')
    assert images.list(ALICE, filters=beside) == []
