"""Images in the store: visibility, filters, and their properties, tags and members."""

from collections.abc import Mapping
from typing import Any

import sqlalchemy as sa

from computeapi import errors
from computeapi.context import Context
from computeapi.db import listing, pairs
from computeapi.db.listing import Clause
from computeapi.db.ownership import caller
from computeapi.db.records import dicts
from computeapi.db.resource_table import Facts, ResourceTable
from computeapi.db.tables.image import deleted_images, image_members, image_properties, image_tags, images


def _owned(context: Context) -> Clause:
    return images.c.owner == caller(context)


def _shared(context: Context, *statuses: str) -> Clause:
    """Images that others share with the caller, whose membership has one of the statuses."""
    query = sa.select(image_members.c.image_id).where(image_members.c.member_id == caller(context))
    if statuses:
        query = query.where(image_members.c.status.in_(statuses))
    return sa.and_(images.c.visibility == 'shared', images.c.id.in_(query))


def _open_to(context: Context, *statuses: str) -> Clause:
    """The images that the caller may see if it names them."""
    if context.is_admin:
        return sa.true()
    return sa.or_(images.c.visibility.in_(('public', 'community')), _owned(context), _shared(context, *statuses))


SORTS = (
    *('id', 'name', 'status', 'owner', 'visibility', 'size', 'min_disk', 'min_ram', 'disk_format', 'container_format'),
    *('created_at', 'updated_at'),
)

IMAGES = ResourceTable(
    images,
    errors.ImageNotFound,
    _open_to,
    pairs={'properties': image_properties},
    tags=image_tags,
    sorts={name: images.c[name] for name in SORTS},
    unknown='No image found with ID {marker}',
)


def listed(context: Context, visibility: str | None, member_status: str | None) -> Clause:
    """The images in a list: only the caller's own community images unless `visibility` asks for others; of shared
    images the accepted ones unless *member_status* asks for others.

    `visibility` is one of the four, `all`, or None.
    """
    scope = _open_to(context, *(() if member_status == 'all' else (member_status or 'accepted',)))
    if visibility is None:
        return sa.and_(scope, sa.or_(images.c.visibility != 'community', _owned(context)))
    return scope if visibility == 'all' else sa.and_(scope, images.c.visibility == visibility)


def matches(filters: Mapping[str, Any]) -> list[Clause]:
    """One clause per filter; names without a column are properties."""
    return [_match(name, value) for name, value in filters.items() if value is not None]


def _match(name: str, value: Any) -> Clause:
    several = value if isinstance(value, listing.SEVERAL) else (value,)
    if name == 'tags':
        return pairs.count_tags(image_tags, images.c.id, set(several)) == len(set(several))
    if name == 'size_min':
        return listing.compared(images.c.size, ('gte', value))
    if name == 'size_max':
        return listing.compared(images.c.size, ('lte', value))
    if name in images.c:
        return sa.and_(*IMAGES.matches({name: value}))
    return pairs.has(image_properties, images.c.id, name, *several)


def count_of(connection: sa.Connection, project_id: str | None) -> int:
    """How many images the project has."""
    statement = sa.select(sa.func.count()).select_from(images).where(images.c.owner == project_id)
    return int(connection.scalar(statement) or 0)


def all_ids(connection: sa.Connection) -> set[str]:
    return set(connection.scalars(sa.select(images.c.id)))


def retire_id(connection: sa.Connection, image_id: str) -> None:
    """Record that the image with this ID was deleted."""
    connection.execute(sa.insert(deleted_images).values(id=image_id))


def is_retired(connection: sa.Connection, image_id: str) -> bool:
    """Whether there was an image with this ID, which was deleted."""
    return connection.execute(sa.select(deleted_images).filter_by(id=image_id)).first() is not None


def members(connection: sa.Connection, image_id: str) -> list[Facts]:
    query = sa.select(image_members).where(image_members.c.image_id == image_id)
    rows = connection.execute(query.order_by(image_members.c.created_at, image_members.c.member_id))
    return dicts(rows.keys(), rows)


def insert_member(connection: sa.Connection, facts: Facts) -> None:
    connection.execute(sa.insert(image_members).values(facts))


def update_member(connection: sa.Connection, image_id: str, member_id: str, facts: Facts) -> bool:
    """Whether the member exists."""
    query = sa.update(image_members).filter_by(image_id=image_id, member_id=member_id)
    return connection.execute(query.values(facts)).rowcount > 0


def delete_member(connection: sa.Connection, image_id: str, member_id: str) -> bool:
    query = sa.delete(image_members).filter_by(image_id=image_id, member_id=member_id)
    return connection.execute(query).rowcount > 0
