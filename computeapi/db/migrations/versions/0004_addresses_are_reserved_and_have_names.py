"""Addresses are reserved and have names."""

import sqlalchemy as sa
from alembic import op

from computeapi.db.tables.types import Text

revision = '0004'
down_revision = '0003'


def upgrade() -> None:
    op.create_table(
        'dns_domains',
        sa.Column('domain', Text(255), nullable=False),
        sa.Column('scope', Text(16), nullable=False),
        sa.Column('project_id', Text(255)),
        sa.Column('availability_zone', Text(255)),
        sa.PrimaryKeyConstraint('domain', name='pk_dns_domains'),
    )
    op.create_table(
        'dns_entries',
        sa.Column('domain', Text(255), nullable=False),
        sa.Column('name', Text(255), nullable=False),
        sa.Column('project_id', Text(255), nullable=False),
        sa.Column('ip_address', Text(64), nullable=False),
        sa.ForeignKeyConstraint(['domain'], ['dns_domains.domain'], name='fk_dns_entries_domain', ondelete='CASCADE'),
        sa.PrimaryKeyConstraint('domain', 'name', name='pk_dns_entries'),
    )
    op.create_table(
        'reserved_addresses',
        sa.Column('subnet_id', Text(64), nullable=False),
        sa.Column('ip_address', Text(64), nullable=False),
        sa.ForeignKeyConstraint(
            ['subnet_id'], ['subnets.id'], name='fk_reserved_addresses_subnet_id', ondelete='CASCADE'
        ),
        sa.PrimaryKeyConstraint('subnet_id', 'ip_address', name='pk_reserved_addresses'),
    )
    with op.batch_alter_table('subnets', schema=None) as batch_op:
        batch_op.add_column(sa.Column('interface', Text(255)))
