"""The built-in image service: records in the store, data in files."""

import builtins
import contextlib
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from computeapi import errors, randomness
from computeapi.backends.image import Image, blank, texts
from computeapi.backends.image.files import FileChunks, ImageFiles, Written
from computeapi.backends.image.members import ImageMembers
from computeapi.backends.rights import check_writer, owns
from computeapi.clock import utcnow
from computeapi.context import Context
from computeapi.db import images, quotas
from computeapi.db.engine import Store, conflicts
from computeapi.db.images import IMAGES
from computeapi.db.listing import NEWEST_FIRST, bounded

VISIBILITIES = ('public', 'private', 'shared', 'community')
MAX_BYTES = 10 * 1024**3
MAX_IMAGES = 1000
"""The default for the number of images that a project may have."""
MAX_PROPERTIES = 128
MAX_PROPERTY_BYTES = 64 * 1024
"""The maximum size of the names and values of all properties of an image together."""
MAX_TAGS = 128
MAX_FILTERS = MAX_TAGS + MAX_PROPERTIES

Change = Callable[[Image], Mapping[str, Any]]
"""Returns the attributes to change, given the current image."""


class LocalImages:
    """The images in this store, with their data in `directory`; implements `computeapi.backends.image.Images`."""

    trusted_certificates: Sequence[str] = ()

    def __init__(
        self,
        store: Store,
        directory: str | Path,
        *,
        max_bytes: int = MAX_BYTES,
        max_images: int = MAX_IMAGES,
        clock: Callable[[], datetime] = utcnow,
    ):
        self.store = store
        self.files = ImageFiles(Path(directory), max_bytes)
        self.max_images = max_images
        self.clock = clock
        self.members = ImageMembers(store, clock)

    def populate(self, project_id: str | None) -> None:
        """Create one small public image in the project, unless it exists or was deleted."""
        context = Context(project_id=project_id, is_admin=True)
        # Another process may be doing the same, and an earlier one may have stopped halfway.
        with contextlib.suppress(errors.Conflict):
            self.create(context, blank.NAME, image_id=blank.IMAGE_ID, **blank.FACTS)
        with contextlib.suppress(errors.Conflict, errors.ImageNotFound):
            self.upload(context, blank.IMAGE_ID, [blank.disk()])

    def address(self, context: Context) -> str | None:
        return None

    def get(self, context: Context, image_id: str) -> Image:
        with self.store.read() as connection:
            return Image(**IMAGES.get(connection, context, image_id))

    def get_many(self, context: Context, image_ids: Iterable[str]) -> dict[str, Image]:
        with self.store.read() as connection:
            found = IMAGES.select(connection, IMAGES.among(image_ids), IMAGES.visible(context))
        return {facts['id']: Image(**facts) for facts in found}

    def list(
        self,
        context: Context,
        *,
        filters: Mapping[str, Any] | None = None,
        sort: Sequence[tuple[str, str]] = NEWEST_FIRST,
        limit: int | None = None,
        marker: str | None = None,
    ) -> builtins.list[Image]:
        wanted = {'hidden': False, **(filters or {})}
        # Each filter adds to the statement, which databases limit.
        if len(wanted) + len(wanted.get('tags', ())) > MAX_FILTERS:
            raise errors.Invalid(f'Images can be searched by at most {MAX_FILTERS} filters.')
        where = [images.listed(context, wanted.pop('visibility', None), wanted.pop('member_status', None))]
        where += images.matches(wanted)
        with self.store.read() as connection:
            found = IMAGES.page(connection, context, *where, sort=sort, page=bounded(limit, marker))
        return [Image(**facts) for facts in found]

    def create(self, context: Context, name: str | None, *, image_id: str | None = None, **kwargs: Any) -> Image:
        check_writer(context)
        if context.project_id is None and not context.is_admin:
            raise errors.Forbidden('This requires a token that is scoped to a project.')
        now = self.clock()
        new = {
            'id': _uuid(image_id) if image_id is not None else randomness.new_id(),
            'name': name,
            'status': 'queued',
            'owner': context.project_id,
            'visibility': 'private',
            'min_disk': 0,
            'min_ram': 0,
            'protected': False,
            'hidden': False,
            'created_at': now,
            'updated_at': now,
            **_checked(context, kwargs),
        }
        taken = f'Image ID {new["id"]} already exists!'
        with conflicts(taken), self.store.write() as connection:
            self._reserve(connection, new['owner'])
            IMAGES.insert(connection, new)
            # After the insertion, which waits for a concurrent deletion.
            if image_id is not None and images.is_retired(connection, new['id']):
                raise errors.Conflict(taken)
        return Image(**new)

    def _reserve(self, connection: sa.Connection, project_id: str | None) -> None:
        """Raises OverQuota if the project has its maximum number of images. Holds the project's lock until the
        transaction ends, so that concurrent creations wait."""
        if self.max_images < 0:
            return
        quotas.lock(connection, project_id or '')
        if images.count_of(connection, project_id) >= self.max_images:
            raise errors.OverQuota(f'A project may have at most {self.max_images} images.')

    def update(self, context: Context, image_id: str, **kwargs: Any) -> Image:
        return self.change(context, image_id, lambda image: kwargs)

    def change(self, context: Context, image_id: str, change: Change) -> Image:
        """Like `update`, with changes computed from the current image, which stays locked between reading and
        writing."""
        with self.store.write() as connection:
            image = self._own(connection, context, image_id)
            facts = {**_checked(context, change(image), image), 'updated_at': self.clock()}
            IMAGES.update(connection, image_id, facts)
        return replace(image, **facts)

    def delete(self, context: Context, image_id: str) -> None:
        with self.store.write() as connection:
            if self._own(connection, context, image_id).protected:
                raise errors.Forbidden(f'Image {image_id} is protected and cannot be deleted.')
            IMAGES.delete(connection, IMAGES.among([image_id]))
            images.retire_id(connection, image_id)
        self.files.delete(image_id)

    def recover(self) -> None:
        """Delete the files of images that no longer exist, left by a process that died before it could delete them."""
        # List the files first: an image is created before its files.
        found = self.files.image_ids()
        with self.store.read() as connection:
            there = images.all_ids(connection)
        for image_id in found - there:
            self.files.delete(image_id)

    def upload(self, context: Context, image_id: str, data: Iterable[bytes]) -> Image:
        self.change(context, image_id, _saving)
        try:
            written = self.files.write(image_id, data)
        except BaseException:
            self._requeue(image_id)
            raise
        try:
            return self.change(context, image_id, lambda image: self._keep(image, written))
        finally:
            self.files.discard(written)

    def _keep(self, image: Image, written: Written) -> dict[str, Any]:
        """Of two concurrent uploads, the first to finish wins."""
        _saving(image)
        # The file is in place before the status is active; nobody reads it before that.
        self.files.store(image.id, written)
        return {
            'status': 'active',
            'size': written.size,
            'checksum': written.checksum,
            'hash_value': written.hash_value,
        }

    def _requeue(self, image_id: str) -> None:
        with self.store.write() as connection:
            IMAGES.lock(connection, image_id)
            for facts in IMAGES.select(connection, IMAGES.among([image_id])):
                if facts['status'] == 'saving':
                    IMAGES.update(connection, image_id, {'status': 'queued', 'updated_at': self.clock()})

    def download(self, context: Context, image_id: str) -> FileChunks:
        image = self.get(context, image_id)
        if image.status == 'deactivated' and not context.is_admin:
            raise errors.Forbidden('The requested image has been deactivated. Image data download is forbidden.')
        if image.status not in ('active', 'deactivated'):
            raise errors.ImageNotActive(id=image_id)
        try:
            return self.files.read(image_id)
        except FileNotFoundError:
            raise errors.ImageNotFound(f'The data of image {image_id} could not be found.') from None

    def check_signature(self, context: Context, image_id: str, trusted: Sequence[str]) -> bool:
        """Always False: the data are stored by this service itself, so nobody in between could change them."""
        return False

    def deactivate(self, context: Context, image_id: str) -> Image:
        """Forbid downloads except by administrators."""
        return self.change(context, image_id, lambda image: _switch(image, 'active', 'deactivated'))

    def reactivate(self, context: Context, image_id: str) -> Image:
        return self.change(context, image_id, lambda image: _switch(image, 'deactivated', 'active'))

    def _own(self, connection: sa.Connection, context: Context, image_id: str) -> Image:
        """The image, locked; raises Forbidden if the caller can see it but may not change it."""
        check_writer(context)
        image = Image(**IMAGES.get(connection, context, image_id, lock=True))
        if not owns(context, image.owner):
            raise errors.Forbidden(f'You are not permitted to modify image {image_id}.')
        return image


def _checked(context: Context, facts: Mapping[str, Any], image: Image | None = None) -> dict[str, Any]:
    """The attributes as they are stored; raises Forbidden, Invalid or TooLarge if the image must not have them."""
    _check_rights(context, facts, image)
    checked = dict(facts)
    if checked.get('visibility', 'private') not in VISIBILITIES:
        raise errors.Invalid(f'visibility must be one of {", ".join(VISIBILITIES)}.')
    if 'tags' in checked:
        checked['tags'] = tuple(sorted(set(checked['tags'])))
        if len(checked['tags']) > MAX_TAGS:
            raise errors.TooLarge(f'An image may have at most {MAX_TAGS} tags.')
    if 'properties' in checked:
        checked['properties'] = texts(checked['properties'])
        if len(checked['properties']) > MAX_PROPERTIES:
            raise errors.TooLarge(f'An image may have at most {MAX_PROPERTIES} properties.')
        if sum(len(text.encode()) for pair in checked['properties'].items() for text in pair) > MAX_PROPERTY_BYTES:
            raise errors.TooLarge(f'The properties of an image may have at most {MAX_PROPERTY_BYTES} bytes.')
    return checked


def _check_rights(context: Context, facts: Mapping[str, Any], image: Image | None) -> None:
    was_public = image is not None and image.visibility == 'public'
    if facts.get('visibility') == 'public' and not was_public and not context.is_admin:
        raise errors.Forbidden('visibility: only an administrator may make an image public.')
    if facts.get('owner', context.project_id) != context.project_id and not context.is_admin:
        raise errors.Forbidden('owner: only an administrator may give an image to another project.')
    for name in ('disk_format', 'container_format'):
        if image and image.status != 'queued' and facts.get(name, getattr(image, name)) != getattr(image, name):
            raise errors.Forbidden(f'Attribute {name} can be only replaced for a queued image.')


def _uuid(text: str) -> str:
    try:
        return str(uuid.UUID(text))
    except ValueError:
        raise errors.Invalid(f'id: {text!r} is not a UUID.') from None


def _saving(image: Image) -> dict[str, Any]:
    # An image that is being saved may be saved again: the process that was saving it may be gone.
    if image.status not in ('queued', 'saving'):
        raise errors.Conflict(f'Image status transition from {image.status} to saving is not allowed')
    if not image.disk_format or not image.container_format:
        raise errors.Invalid('Properties disk_format, container_format must be set prior to saving data.')
    return {'status': 'saving'}


def _switch(image: Image, before: str, after: str) -> dict[str, Any]:
    if image.status not in (before, after):
        raise errors.Conflict(f'Not allowed to make an image {after} in status {image.status}')
    return {'status': after}
