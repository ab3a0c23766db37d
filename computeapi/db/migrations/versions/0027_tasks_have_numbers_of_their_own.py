"""Numbers of tasks are given once, also on SQLite."""

from alembic import op

revision = '0027'
down_revision = '0026'


def upgrade() -> None:
    if op.get_context().dialect.name != 'sqlite':
        return
    with op.batch_alter_table('tasks', recreate='always', table_kwargs={'sqlite_autoincrement': True}):
        pass
