"""Members of an image: the projects that it is shared with, and their answers."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

import sqlalchemy as sa

from computeapi import errors
from computeapi.backends.rights import check_writer, owns
from computeapi.context import Context
from computeapi.db import images
from computeapi.db.engine import Store
from computeapi.db.images import IMAGES

STATUSES = ('pending', 'accepted', 'rejected')
MAX_MEMBERS = 128


@dataclass(frozen=True)
class Member:
    """A project that an image is shared with; `status` is its answer: pending, accepted or rejected."""

    image_id: str
    member_id: str
    status: str
    created_at: datetime
    updated_at: datetime


class ImageMembers:
    """The owner decides who is a member, and each member whether the image appears in its lists."""

    def __init__(self, store: Store, clock: Callable[[], datetime]):
        self.store = store
        self.clock = clock

    def list(self, context: Context, image_id: str) -> list[Member]:
        """All members for the owner, and only the caller's own membership for others."""
        with self.store.read() as connection:
            is_owner = self._is_owner(connection, context, image_id)
            found = [Member(**facts) for facts in images.members(connection, image_id)]
        return [member for member in found if is_owner or member.member_id == context.project_id]

    def get(self, context: Context, image_id: str, member_id: str) -> Member:
        for member in self.list(context, image_id):
            if member.member_id == member_id:
                return member
        raise _not_found(image_id, member_id)

    def add(self, context: Context, image_id: str, member_id: str) -> Member:
        """Share the image with one more project; Forbidden unless its visibility is shared."""
        now = self.clock()
        member = Member(image_id, member_id, 'pending', now, now)
        with self.store.write() as connection:
            self._check_owner(connection, context, image_id)
            members = images.members(connection, image_id)
            if any(facts['member_id'] == member_id for facts in members):
                raise errors.Conflict(f'Project {member_id} is already a member of image {image_id}.')
            if len(members) >= MAX_MEMBERS:
                raise errors.TooLarge(f'An image may have at most {MAX_MEMBERS} members.')
            images.insert_member(connection, vars(member))
        return member

    def answer(self, context: Context, image_id: str, member_id: str, status: str) -> Member:
        """Set the member's answer; Forbidden for the owner."""
        check_writer(context)
        if status not in STATUSES:
            raise errors.Invalid(f'status must be one of {", ".join(STATUSES)}.')
        with self.store.write() as connection:
            is_owner = self._is_owner(connection, context, image_id)
            if is_owner and not context.is_admin:
                raise errors.Forbidden('Only the member may change its status.')
            if not is_owner and member_id != context.project_id:
                raise _not_found(image_id, member_id)
            facts = {'status': status, 'updated_at': self.clock()}
            if not images.update_member(connection, image_id, member_id, facts):
                raise _not_found(image_id, member_id)
        return self.get(context, image_id, member_id)

    def remove(self, context: Context, image_id: str, member_id: str) -> None:
        with self.store.write() as connection:
            self._check_owner(connection, context, image_id)
            if not images.delete_member(connection, image_id, member_id):
                raise _not_found(image_id, member_id)

    def _check_owner(self, connection: sa.Connection, context: Context, image_id: str) -> None:
        check_writer(context)
        if not self._is_owner(connection, context, image_id, lock=True):
            raise errors.Forbidden(f'You are not permitted to change the members of image {image_id}.')

    def _is_owner(self, connection: sa.Connection, context: Context, image_id: str, *, lock: bool = False) -> bool:
        """ImageNotFound for an image that the caller cannot see, Forbidden for one whose visibility is not shared."""
        image = IMAGES.get(connection, context, image_id, lock=lock)
        if image['visibility'] != 'shared':
            raise errors.Forbidden('Only shared images have members.')
        return owns(context, image['owner'])


def _not_found(image_id: str, member_id: str) -> errors.NotFound:
    return errors.NotFound(f'{member_id} is not a member of image {image_id}.')
