"""Control services are those of machines: the two that stood for all of them are nobody's any more."""

import sqlalchemy as sa
from alembic import op

revision = '0029'
down_revision = '0028'

SERVICES = sa.table('services', *map(sa.column, ('host', 'binary')))


def upgrade() -> None:
    # A machine of this name says so again when a process of this release begins there.
    control = SERVICES.c.binary.in_(['nova-conductor', 'nova-scheduler'])
    op.execute(sa.delete(SERVICES).where(SERVICES.c.host == 'controller', control))
