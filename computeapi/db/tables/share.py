"""Tables of the share service."""

import sqlalchemy as sa

from computeapi.db.tables.types import Id, Text, Timestamp, metadata, pairs, resource

shares = resource(
    'shares',
    sa.Column('size', sa.Integer, nullable=False),
    sa.Column('protocol', Text(16), nullable=False),
    sa.Column('export_location', Text(255), nullable=False),
    sa.Column('is_public', sa.Boolean, nullable=False),
    sa.Column('availability_zone', Text(255), nullable=False),
)

share_metadata = pairs('share_metadata', 'shares.id')

share_access_rules = sa.Table(
    'share_access_rules',
    metadata,
    sa.Column('id', Id(), primary_key=True),
    sa.Column('share_id', Id(), sa.ForeignKey('shares.id', ondelete='CASCADE'), nullable=False, index=True),
    sa.Column('access_type', Text(16), nullable=False),
    sa.Column('access_to', Text(255), nullable=False),
    sa.Column('access_level', Text(8), nullable=False),
    # A locked rule cannot be deleted, nor can its share; the name in a hidden rule is not shown.
    sa.Column('locked', sa.Boolean, nullable=False),
    sa.Column('hidden', sa.Boolean, nullable=False, default=False, server_default=sa.false()),
    # The user whom this does not concern; NULL: only administrators.
    sa.Column('locked_by', Id()),
    sa.Column('created_at', Timestamp(), nullable=False),
    sa.Column('updated_at', Timestamp(), nullable=False),
    sa.UniqueConstraint('share_id', 'access_type', 'access_to'),
)

share_access_metadata = pairs('share_access_metadata', 'share_access_rules.id')

share_projects = sa.Table(
    'share_projects',
    metadata,
    sa.Column('id', Id(), primary_key=True),
)
