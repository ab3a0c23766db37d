"""Servers mount shares."""

import sqlalchemy as sa
from alembic import op

from computeapi.db.tables.types import BigInteger, LongText, Text, Timestamp

revision = '0009'
down_revision = '0008'


def upgrade() -> None:
    op.create_table(
        'server_shares',
        sa.Column('id', BigInteger, nullable=False),
        sa.Column('uuid', Text(64), nullable=False),
        sa.Column('server_id', Text(64), nullable=False),
        sa.Column('share_id', Text(64), nullable=False),
        sa.Column('status', Text(16), nullable=False),
        sa.Column('tag', Text(255), nullable=False),
        sa.Column('export_location', Text(255), nullable=False),
        sa.Column('protocol', Text(16), nullable=False),
        sa.Column('created_at', Timestamp(), nullable=False),
        sa.PrimaryKeyConstraint('id', name='pk_server_shares'),
        sa.UniqueConstraint('server_id', 'share_id', name='uq_server_shares_server_id_share_id'),
        sa.UniqueConstraint('server_id', 'tag', name='uq_server_shares_server_id_tag'),
        sa.UniqueConstraint('uuid', name='uq_server_shares_uuid'),
    )
    with op.batch_alter_table('server_shares', schema=None) as batch_op:
        batch_op.create_index(batch_op.f('ix_server_shares_share_id'), ['share_id'])

    op.create_table(
        'share_projects',
        sa.Column('id', Text(64), nullable=False),
        sa.PrimaryKeyConstraint('id', name='pk_share_projects'),
    )
    op.create_table(
        'shares',
        sa.Column('id', Text(64), nullable=False),
        sa.Column('project_id', Text(64), nullable=False),
        sa.Column('user_id', Text(64)),
        sa.Column('name', Text(255)),
        sa.Column('description', Text(255)),
        sa.Column('status', Text(32), nullable=False),
        sa.Column('size', sa.Integer(), nullable=False),
        sa.Column('protocol', Text(16), nullable=False),
        sa.Column('export_location', Text(255), nullable=False),
        sa.Column('is_public', sa.Boolean(), nullable=False),
        sa.Column('availability_zone', Text(255), nullable=False),
        sa.Column('created_at', Timestamp(), nullable=False),
        sa.Column('updated_at', Timestamp(), nullable=False),
        sa.PrimaryKeyConstraint('id', name='pk_shares'),
    )
    with op.batch_alter_table('shares', schema=None) as batch_op:
        batch_op.create_index(batch_op.f('ix_shares_created_at'), ['created_at'])
        batch_op.create_index(batch_op.f('ix_shares_project_id'), ['project_id'])

    op.create_table(
        'share_access_rules',
        sa.Column('id', Text(64), nullable=False),
        sa.Column('share_id', Text(64), nullable=False),
        sa.Column('access_type', Text(16), nullable=False),
        sa.Column('access_to', Text(255), nullable=False),
        sa.Column('access_level', Text(8), nullable=False),
        sa.Column('locked', sa.Boolean(), nullable=False),
        sa.Column('created_at', Timestamp(), nullable=False),
        sa.Column('updated_at', Timestamp(), nullable=False),
        sa.ForeignKeyConstraint(['share_id'], ['shares.id'], name='fk_share_access_rules_share_id', ondelete='CASCADE'),
        sa.PrimaryKeyConstraint('id', name='pk_share_access_rules'),
        sa.UniqueConstraint(
            'share_id', 'access_type', 'access_to', name='uq_share_access_rules_share_id_access_type_access_to'
        ),
    )
    with op.batch_alter_table('share_access_rules', schema=None) as batch_op:
        batch_op.create_index(batch_op.f('ix_share_access_rules_share_id'), ['share_id'])

    op.create_table(
        'share_metadata',
        sa.Column('owner_id', Text(64), nullable=False),
        sa.Column('name', Text(255), nullable=False),
        sa.Column('value', LongText(), nullable=False),
        sa.ForeignKeyConstraint(['owner_id'], ['shares.id'], name='fk_share_metadata_owner_id', ondelete='CASCADE'),
        sa.PrimaryKeyConstraint('owner_id', 'name', name='pk_share_metadata'),
    )
