"""Users trust each other."""

import sqlalchemy as sa
from alembic import op

from computeapi.db.tables.types import Text, Timestamp

revision = '0031'
down_revision = '0030'


def upgrade() -> None:
    op.create_table(
        'identity_trusts',
        sa.Column('id', Text(64), nullable=False),
        sa.Column('trustor_user_id', Text(64), nullable=False),
        sa.Column('trustee_user_id', Text(64), nullable=False),
        sa.Column('project_id', Text(64), nullable=False),
        sa.Column('role_ids', sa.JSON(none_as_null=True), nullable=False),
        sa.Column('impersonation', sa.Boolean(), nullable=False),
        sa.Column('expires_at', Timestamp()),
        sa.Column('remaining_uses', sa.Integer()),
        sa.ForeignKeyConstraint(
            ['project_id'], ['identity_projects.id'], name='fk_identity_trusts_project_id', ondelete='CASCADE'
        ),
        sa.ForeignKeyConstraint(
            ['trustee_user_id'], ['identity_users.id'], name='fk_identity_trusts_trustee_user_id', ondelete='CASCADE'
        ),
        sa.ForeignKeyConstraint(
            ['trustor_user_id'], ['identity_users.id'], name='fk_identity_trusts_trustor_user_id', ondelete='CASCADE'
        ),
        sa.PrimaryKeyConstraint('id', name='pk_identity_trusts'),
    )
    with op.batch_alter_table('identity_trusts', schema=None) as batch_op:
        batch_op.create_index(batch_op.f('ix_identity_trusts_project_id'), ['project_id'])
        batch_op.create_index(batch_op.f('ix_identity_trusts_trustee_user_id'), ['trustee_user_id'])
        batch_op.create_index(batch_op.f('ix_identity_trusts_trustor_user_id'), ['trustor_user_id'])

    with op.batch_alter_table('identity_tokens', schema=None) as batch_op:
        batch_op.add_column(sa.Column('trust_id', Text(64)))
        batch_op.create_index(batch_op.f('ix_identity_tokens_trust_id'), ['trust_id'])
        batch_op.create_foreign_key(
            batch_op.f('fk_identity_tokens_trust_id'), 'identity_trusts', ['trust_id'], ['id'], ondelete='CASCADE'
        )
