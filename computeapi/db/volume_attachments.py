"""What holds or uses a volume."""

from collections.abc import Mapping
from typing import Any

import sqlalchemy as sa

from computeapi.db import listing
from computeapi.db.tables.volume import volume_attachments, volumes

Facts = dict[str, Any]

ORDER: listing.Order = [(volume_attachments.c.created_at, True), (volume_attachments.c.id, True)]
COLUMNS = (*volume_attachments.c, volumes.c.project_id)


def identified(attachment_id: str) -> sa.ColumnElement[bool]:
    return volume_attachments.c.id == attachment_id


def of(volume_id: str) -> sa.ColumnElement[bool]:
    return volume_attachments.c.volume_id == volume_id


def matches(filters: Mapping[str, Any]) -> list[sa.ColumnElement[bool]]:
    return [
        listing.equals(volumes.c.project_id if name == 'project_id' else volume_attachments.c[name], value)
        for name, value in filters.items()
    ]


def select(connection: sa.Connection, *where: sa.ColumnElement[bool], limit: int | None = None) -> list[Facts]:
    """Attachments with the project of their volume, newest first."""
    query = sa.select(*COLUMNS).join(volumes, volumes.c.id == volume_attachments.c.volume_id).where(*where)
    return [dict(row) for row in connection.execute(query.order_by(*listing.order_by(ORDER)).limit(limit)).mappings()]


def insert(connection: sa.Connection, facts: Facts) -> None:
    connection.execute(sa.insert(volume_attachments).values(facts))


def update(connection: sa.Connection, attachment_id: str, facts: Facts) -> None:
    connection.execute(sa.update(volume_attachments).where(identified(attachment_id)).values(facts))


def delete(connection: sa.Connection, *where: sa.ColumnElement[bool]) -> None:
    connection.execute(sa.delete(volume_attachments).where(*where))


def statuses(connection: sa.Connection, volume_id: str) -> set[str]:
    """What the attachments of the volume are doing."""
    return set(connection.scalars(sa.select(volume_attachments.c.status).where(of(volume_id))))
