"""Runs the revisions on the connection that `computeapi.db.schema` hands over."""

from typing import Any, Literal

import sqlalchemy as sa
from alembic import context

from computeapi.db.tables import metadata
from computeapi.db.tables.types import BigInteger


def render_item(kind: str, item: Any, autogenerate: Any) -> str | Literal[False]:
    """Render the types of computeapi.db.tables.types by their names; False: let Alembic do it."""
    if kind != 'type':
        return False
    if item is BigInteger:
        return 'BigInteger'
    if type(item) is sa.String:
        return f'Text({item.length})'
    return {sa.Text: 'LongText()', sa.DateTime: 'Timestamp()'}.get(type(item), False)


context.configure(
    connection=context.config.attributes['connection'],
    target_metadata=metadata,
    render_item=render_item,
    # SQLite cannot alter a table, so revisions after the first recreate and copy it: batch mode.
    render_as_batch=context.config.attributes.get('batch', False),
)

with context.begin_transaction():
    context.run_migrations()
