"""Domains have tags."""

import sqlalchemy as sa
from alembic import op

revision = '0030'
down_revision = '0029'

TAGS = sa.JSON(none_as_null=True)


def upgrade() -> None:
    with op.batch_alter_table('identity_domains', schema=None) as batch_op:
        batch_op.add_column(sa.Column('tags', TAGS))
    op.execute(sa.table('identity_domains', sa.column('tags', TAGS)).update().values(tags=[]))
    with op.batch_alter_table('identity_domains', schema=None) as batch_op:
        batch_op.alter_column('tags', existing_type=TAGS, nullable=False)
