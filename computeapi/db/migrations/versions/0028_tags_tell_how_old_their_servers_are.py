"""Tags tell whose their servers are, and how old."""

import sqlalchemy as sa
from alembic import op

from computeapi.db.tables.types import Text, Timestamp

revision = '0028'
down_revision = '0027'

SERVERS = sa.table('servers', *map(sa.column, ('uuid', 'project_id', 'created_at')))
TAGS = sa.table('server_tags', *map(sa.column, ('server_id', 'project_id', 'created_at')))


def upgrade() -> None:
    with op.batch_alter_table('server_tags', schema=None) as batch_op:
        batch_op.add_column(sa.Column('project_id', Text(255)))
        batch_op.add_column(sa.Column('created_at', Timestamp()))
        batch_op.drop_index(batch_op.f('ix_server_tags_tag_server_id'))
    told = {
        name: sa.select(SERVERS.c[name]).where(SERVERS.c.uuid == TAGS.c.server_id).scalar_subquery()
        for name in ('project_id', 'created_at')
    }
    op.execute(sa.update(TAGS).values(told))
    for columns in (['tag', 'created_at', 'server_id'], ['project_id', 'tag', 'created_at', 'server_id']):
        op.create_index(f'ix_server_tags_{"_".join(columns)}', 'server_tags', columns)
