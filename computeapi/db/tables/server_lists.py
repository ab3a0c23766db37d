"""What the table of servers has for lists of them: an index for each order, and for what is searched by.

MariaDB lets a table have 64 indexes.
"""

import sqlalchemy as sa

from computeapi.db.tables.types import Folded, Generated, Text

SORTED = (
    *('created_at', 'updated_at', 'launched_at', 'name', 'hostname', 'uuid', 'user_id', 'host', 'node'),
    *('availability_zone', 'image_id', 'memory_mb', 'vm_state', 'task_state'),
)
"""What lists of servers are sorted by, in projects and everywhere."""
SELDOM_SORTED = (
    *('power_state', 'key_name', 'locked_by', 'launch_index', 'progress', 'config_drive', 'disk_config'),
    *('access_ip_v4', 'access_ip_v6', 'root_device_name', 'terminated_at'),
)
"""What lists of the servers of a project may be sorted by besides: an index takes its time in each change."""
CHOSEN = ('host', 'image_id', 'flavorid', 'vm_state', 'user_id')
"""What many servers of a list in the usual order have in common."""


def columns() -> list[sa.Column[str]]:
    """Those that the database computes."""
    folded_name = Generated('lower(name)', postgresql='lower((name)::text)')
    flavorid = Generated(
        "json_extract(flavor, '$.flavorid')",
        postgresql="(flavor ->> 'flavorid'::text)",
        mysql="json_value(flavor, '$.flavorid')",
        mariadb="json_value(flavor, '$.flavorid')",
    )
    return [sa.Column('folded_name', Folded(), folded_name), sa.Column('flavorid', Text(255), flavorid)]


def indexes() -> list[sa.Index]:
    return [
        *(sa.Index(None, 'project_id', 'deleted_at', key, 'id') for key in (*SORTED, *SELDOM_SORTED)),
        *(sa.Index(None, 'deleted_at', key, 'id') for key in (*SORTED, 'project_id')),
        *(sa.Index(None, 'project_id', 'deleted_at', key, 'created_at', 'id') for key in CHOSEN),
        *(sa.Index(None, 'deleted_at', key, 'created_at', 'id') for key in CHOSEN),
        sa.Index(None, 'project_id', 'deleted_at', 'id'),
        sa.Index(None, 'project_id', 'deleted_at', 'folded_name'),
        sa.Index(None, 'deleted_at', 'folded_name'),
        sa.Index(None, 'project_id', 'updated_at'),
        sa.Index(None, 'updated_at'),
        sa.Index(None, 'project_id', 'id'),
        sa.Index(None, 'project_id', 'created_at', 'id'),
        sa.Index(None, 'created_at', 'id'),
    ]
