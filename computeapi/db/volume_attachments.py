"""What holds or uses a volume."""

from collections.abc import Mapping
from typing import Any

import sqlalchemy as sa

from computeapi.db import listing
from computeapi.db.listing import WHOLE, Clause, Page
from computeapi.db.tables.volume import volume_attachments, volumes

Facts = dict[str, Any]

ORDER: listing.Order = [(volume_attachments.c.created_at, True), (volume_attachments.c.id, True)]
SELECT = sa.select(volume_attachments, volumes.c.project_id).join(
    volumes, volumes.c.id == volume_attachments.c.volume_id
)


def identified(attachment_id: str) -> Clause:
    return volume_attachments.c.id == attachment_id


def of(volume_id: str) -> Clause:
    return volume_attachments.c.volume_id == volume_id


def matches(filters: Mapping[str, Any]) -> list[Clause]:
    return [
        listing.equals(volumes.c.project_id if name == 'project_id' else volume_attachments.c[name], value)
        for name, value in filters.items()
    ]


def select(connection: sa.Connection, *where: Clause, page: Page = WHOLE) -> list[Facts]:
    """Attachments with the project of their volume, newest first; Invalid for an unknown marker."""
    marked, unknown = [identified(page.marker or '')], 'marker: attachment {marker} could not be found.'
    query = listing.paged(connection, SELECT, ORDER, page, marked=marked, where=where, unknown=unknown)
    return [dict(row) for row in connection.execute(query).mappings()]


def insert(connection: sa.Connection, facts: Facts) -> None:
    connection.execute(sa.insert(volume_attachments).values(facts))


def update(connection: sa.Connection, attachment_id: str, facts: Facts) -> None:
    connection.execute(sa.update(volume_attachments).where(identified(attachment_id)).values(facts))


def delete(connection: sa.Connection, *where: Clause) -> None:
    connection.execute(sa.delete(volume_attachments).where(*where))


def statuses(connection: sa.Connection, volume_id: str) -> set[str]:
    """What the attachments of the volume are doing."""
    return set(connection.scalars(sa.select(volume_attachments.c.status).where(of(volume_id))))
