"""Tasks have no host, and are called as the actions are that clients read."""

import sqlalchemy as sa
from alembic import op

revision = '0002'
down_revision = '0001'

RENAMED = {
    'add_fixed_ip': 'addFixedIp',
    'backup': 'createBackup',
    'confirm': 'confirmResize',
    'crash_dump': 'trigger_crash_dump',
    'live_migrate': 'live-migration',
    'offload': 'shelveOffload',
    'remove_fixed_ip': 'removeFixedIp',
    'revert': 'revertResize',
    'snapshot': 'createImage',
}


def upgrade() -> None:
    with op.batch_alter_table('tasks', schema=None) as batch_op:
        batch_op.drop_column('host')
    tasks = sa.table('tasks', sa.column('kind'), sa.column('server_id'))
    servers = sa.table('servers', sa.column('uuid'), sa.column('task_state'))
    for former, kind in RENAMED.items():
        op.execute(tasks.update().where(tasks.c.kind == former).values(kind=kind))
    hard = sa.select(servers.c.uuid).where(servers.c.task_state.in_(['rebooting_hard', 'reboot_started_hard']))
    op.execute(tasks.update().where(tasks.c.kind == 'reboot', tasks.c.server_id.in_(hard)).values(kind='hard_reboot'))
