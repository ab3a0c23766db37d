"""Snapshots of volumes have the progress that is reported of them."""

import sqlalchemy as sa
from alembic import op

from computeapi.db.tables.types import Text

revision = '0038'
down_revision = '0037'


def upgrade() -> None:
    op.add_column('volume_snapshots', sa.Column('progress', Text(8)))
