"""The order of server lists: the sort keys, at which version they are valid, and what they mean."""

import itertools

from computeapi.errors import Forbidden, Invalid
from computeapi.versions import added, changed
from computeapi.web.request import Request
from computeapi.web.schemas import one_of

KEYS = [
    'access_ip_v4', 'access_ip_v6', 'auto_disk_config', 'availability_zone', 'config_drive', 'created_at',
    'display_description', 'display_name', 'host', 'hostname', 'image_ref', 'instance_type_id', 'kernel_id',
    'key_name', 'launch_index', 'launched_at', 'locked_by', 'node', 'power_state', 'progress', 'project_id',
    'ramdisk_id', 'root_device_name', 'task_state', 'terminated_at', 'updated_at', 'user_id', 'uuid', 'vm_state',
]  # fmt: skip
# Former attributes of servers that are accepted as sort keys until 2.74, and ignored.
IGNORED = frozenset(
    {
        'architecture', 'cell_name', 'cleaned', 'default_ephemeral_device', 'default_swap_device', 'deleted',
        'deleted_at', 'disable_terminate', 'ephemeral_gb', 'ephemeral_key_uuid', 'id', 'key_data', 'launched_on',
        'memory_mb', 'os_type', 'reservation_id', 'root_gb', 'shutdown_terminate', 'user_data', 'vcpus', 'vm_mode',
    }
)  # fmt: skip
SORT_KEY = changed(
    {
        '2.1': {'type': 'string', 'enum': [*KEYS, *sorted(IGNORED | {'locked'})]},
        '2.75': one_of(*KEYS, 'locked'),
    }
)
BY_LOCK = {'sorted_by_lock': added('2.73', True)}
# The columns for keys with other names. Flavors are sorted by their memory.
COLUMNS = {
    'auto_disk_config': 'disk_config',
    'display_description': 'description',
    'display_name': 'name',
    'image_ref': 'image_id',
    'instance_type_id': 'memory_mb',
    'locked': 'locked_by',
}
FOR_ADMINISTRATORS = frozenset({'host', 'node'})
DIRECTIONS = ('asc', 'desc')
NEWEST_FIRST = (('created_at', True), ('id', True))


def order(req: Request) -> list[tuple[str, bool]]:
    """The requested order, as (column, descending); newest first by default."""
    keys = [key.strip() for key in req.query.get('sort_key', ['created_at'])]
    directions = [direction.strip() for direction in req.query.get('sort_dir', ['desc'])]
    for key in keys:
        check(req, key)
    if not set(directions).issubset(DIRECTIONS):
        raise Invalid("Invalid input received: Unknown sort direction, must be 'desc' or 'asc'")
    if len(directions) > len(keys):
        raise Invalid('Invalid input received: Sort direction size exceeds sort key size')
    pairs = list(itertools.zip_longest(keys, directions))
    ignored = IGNORED if req.behaviour.sorted_by_lock else IGNORED | {'locked'}
    return columns([(key, direction) for key, direction in pairs if key not in ignored])


def check(req: Request, key: str) -> None:
    # On /v2 no schema has validated it.
    if key not in KEYS and key not in IGNORED and key != 'locked':
        raise Invalid(f'Invalid sort key: {key[:64]}')
    if key in FOR_ADMINISTRATORS and not req.context.is_admin:
        raise Forbidden(f'Only administrators can sort servers by {key}')


def columns(pairs: list[tuple[str, str | None]]) -> list[tuple[str, bool]]:
    """The columns of keys with directions. The first occurrence of a repeated key counts.

    Of the keys without a direction, the first one is ascending, and the others take the first direction given; clients
    that page through lists have come to rely on this.
    """
    given = [direction for _, direction in pairs if direction]
    others = itertools.chain(['asc'], itertools.repeat(given[0] if given else 'asc'))
    found: dict[str, bool] = {}
    for key, direction in pairs:
        found.setdefault(COLUMNS.get(key, key), (direction or next(others)) == 'desc')
    return list(found.items()) or list(NEWEST_FIRST)
