"""Images in the store: who sees which, filters, and their properties, tags and members."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import sqlalchemy as sa

from computeapi.context import Context
from computeapi.db import listing, pairs
from computeapi.db.listing import Clause, Page
from computeapi.db.tables.image import image_members, image_properties, image_tags, images

Facts = dict[str, Any]

# Columns that may be null sort as if they held the least value, alike on every database.
SORT_KEYS = {
    'id': images.c.id,
    'name': sa.func.coalesce(images.c.name, ''),
    'status': images.c.status,
    'owner': sa.func.coalesce(images.c.owner, ''),
    'visibility': images.c.visibility,
    'size': sa.func.coalesce(images.c.size, -1),
    'min_disk': images.c.min_disk,
    'min_ram': images.c.min_ram,
    'disk_format': sa.func.coalesce(images.c.disk_format, ''),
    'container_format': sa.func.coalesce(images.c.container_format, ''),
    'created_at': images.c.created_at,
    'updated_at': images.c.updated_at,
}


def among(image_ids: Iterable[str]) -> Clause:
    return images.c.id.in_(set(image_ids))


def owned(context: Context) -> Clause:
    return images.c.owner == (context.project_id or '')


def shared(context: Context, *statuses: str) -> Clause:
    """Images that others share with the caller, who answered with one of the statuses."""
    query = sa.select(image_members.c.image_id).where(image_members.c.member_id == (context.project_id or ''))
    if statuses:
        query = query.where(image_members.c.status.in_(statuses))
    return sa.and_(images.c.visibility == 'shared', images.c.id.in_(query))


def readable(context: Context) -> Clause:
    """What the caller may see when it names the image."""
    if context.is_admin:
        return sa.true()
    return sa.or_(images.c.visibility.in_(('public', 'community')), owned(context), shared(context))


def listed(context: Context, visibility: str | None, member_status: str | None) -> Clause:
    """What a list shows: of community images only the caller's, unless it asks for them; of shared ones the accepted.

    `visibility` is one of the four, `all`, or None.
    """
    statuses = () if member_status == 'all' else (member_status or 'accepted',)
    scope: Clause = sa.true()
    if not context.is_admin:
        scope = sa.or_(images.c.visibility.in_(('public', 'community')), owned(context), shared(context, *statuses))
    if visibility is None:
        return sa.and_(scope, sa.or_(images.c.visibility != 'community', owned(context)))
    return scope if visibility == 'all' else sa.and_(scope, images.c.visibility == visibility)


def matches(filters: Mapping[str, Any]) -> list[Clause]:
    """One clause for each filter; a name that is no column is a property."""
    return [_match(name, value) for name, value in filters.items() if value is not None]


def _match(name: str, value: Any) -> Clause:
    several = value if isinstance(value, list | tuple | set | frozenset) else (value,)
    if name == 'tags':
        return sa.and_(*(_tagged(tag) for tag in several))
    if name == 'size_min':
        return listing.compared(images.c.size, ('gte', value))
    if name == 'size_max':
        return listing.compared(images.c.size, ('lte', value))
    if name in ('created_at', 'updated_at'):
        return listing.compared(images.c[name], value)
    if name in images.c:
        return listing.equals(images.c[name], value)
    return pairs.has(image_properties, images.c.id, name, *several)


def _tagged(tag: str) -> Clause:
    return sa.select(image_tags.c.tag).where(image_tags.c.image_id == images.c.id, image_tags.c.tag == tag).exists()


def select(connection: sa.Connection, *where: Clause, lock: bool = False) -> list[Facts]:
    """Images with their properties and tags, in three queries; `lock` keeps others from changing them meanwhile."""
    query = sa.select(images).where(*where)
    return _load(connection, query.with_for_update() if lock else query)


def page(
    connection: sa.Connection, context: Context, *where: Clause, sort: Sequence[tuple[str, str]], page: Page
) -> list[Facts]:
    """As `select`, sorted; Invalid for a marker that the caller does not see."""
    order, marked = listing.sorted_by(sort, SORT_KEYS, images.c.id), [among([page.marker or '']), readable(context)]
    unknown = 'No image found with ID {marker}'
    return _load(
        connection,
        listing.paged(connection, sa.select(images), order, page, marked=marked, where=where, unknown=unknown),
    )


def _load(connection: sa.Connection, query: sa.Select[Any]) -> list[Facts]:
    rows = connection.execute(query).mappings().all()
    ids = [row['id'] for row in rows]
    properties = pairs.load(connection, image_properties, ids)
    tags = _tags(connection, ids)
    return [{**row, 'properties': properties[row['id']], 'tags': tuple(tags[row['id']])} for row in rows]


def all_ids(connection: sa.Connection) -> set[str]:
    return set(connection.scalars(sa.select(images.c.id)))


def _tags(connection: sa.Connection, ids: Collection[str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {image_id: [] for image_id in ids}
    if ids:
        tags = image_tags.c
        query = sa.select(tags.image_id, tags.tag).where(tags.image_id.in_(ids)).order_by(tags.tag)
        for image_id, tag in connection.execute(query):
            found[image_id].append(tag)
    return found


def insert(connection: sa.Connection, facts: Facts) -> None:
    connection.execute(sa.insert(images).values(_columns(facts)))
    _replace_parts(connection, facts['id'], facts)


def update(connection: sa.Connection, image_id: str, facts: Facts) -> None:
    """Set what is given; `properties` and `tags` replace all there are."""
    connection.execute(sa.update(images).where(images.c.id == image_id).values(_columns(facts)))
    _replace_parts(connection, image_id, facts)


def _columns(facts: Facts) -> Facts:
    return {name: value for name, value in facts.items() if name not in ('properties', 'tags')}


def _replace_parts(connection: sa.Connection, image_id: str, facts: Facts) -> None:
    if 'properties' in facts:
        pairs.replace(connection, image_properties, image_id, facts['properties'])
    if 'tags' in facts:
        connection.execute(sa.delete(image_tags).where(image_tags.c.image_id == image_id))
        rows = [{'image_id': image_id, 'tag': tag} for tag in facts['tags']]
        if rows:
            connection.execute(sa.insert(image_tags), rows)


def delete(connection: sa.Connection, image_id: str) -> None:
    connection.execute(sa.delete(images).where(images.c.id == image_id))


def members(connection: sa.Connection, image_id: str) -> list[Facts]:
    query = sa.select(image_members).where(image_members.c.image_id == image_id)
    rows = connection.execute(query.order_by(image_members.c.created_at, image_members.c.member_id))
    return [dict(row) for row in rows.mappings()]


def insert_member(connection: sa.Connection, facts: Facts) -> None:
    connection.execute(sa.insert(image_members).values(facts))


def update_member(connection: sa.Connection, image_id: str, member_id: str, facts: Facts) -> int:
    """How many members were changed: 1, or 0 if there is no such member."""
    return connection.execute(sa.update(image_members).where(_member(image_id, member_id)).values(facts)).rowcount


def delete_member(connection: sa.Connection, image_id: str, member_id: str) -> int:
    return connection.execute(sa.delete(image_members).where(_member(image_id, member_id))).rowcount


def _member(image_id: str, member_id: str) -> Clause:
    return sa.and_(image_members.c.image_id == image_id, image_members.c.member_id == member_id)
