"""Numbers that clients see are given once, also on SQLite."""

from alembic import op

revision = '0007'
down_revision = '0006'


def upgrade() -> None:
    if op.get_context().dialect.name != 'sqlite':
        return
    for name in ('aggregates', 'flavors', 'hypervisors', 'keypairs', 'services'):
        with op.batch_alter_table(name, recreate='always', table_kwargs={'sqlite_autoincrement': True}):
            pass
