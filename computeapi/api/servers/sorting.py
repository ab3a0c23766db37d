"""The order of server lists: what clients may sort by, at which version, and what they mean by it."""

from computeapi.errors import Forbidden, Invalid
from computeapi.versions import changed
from computeapi.web.paging import sort_of
from computeapi.web.request import Request
from computeapi.web.schemas import one_of

KEYS = [
    'access_ip_v4', 'access_ip_v6', 'auto_disk_config', 'availability_zone', 'config_drive', 'created_at',
    'display_description', 'display_name', 'host', 'hostname', 'image_ref', 'instance_type_id', 'kernel_id',
    'key_name', 'launch_index', 'launched_at', 'locked_by', 'node', 'power_state', 'progress', 'project_id',
    'ramdisk_id', 'root_device_name', 'task_state', 'terminated_at', 'updated_at', 'user_id', 'uuid', 'vm_state',
]  # fmt: skip
# Until 2.74 the insides of another implementation could be sorted by; they are the same for all servers here.
MEANINGLESS = [
    'architecture', 'cell_name', 'cleaned', 'default_ephemeral_device', 'default_swap_device', 'disable_terminate',
    'ephemeral_key_uuid', 'launched_on', 'os_type', 'shutdown_terminate', 'vm_mode',
]  # fmt: skip
OLD_KEYS = [
    'deleted', 'deleted_at', 'ephemeral_gb', 'id', 'key_data', 'locked', 'memory_mb', 'reservation_id', 'root_gb',
    'user_data', 'vcpus', *MEANINGLESS,
]  # fmt: skip
SORT_KEY = changed(
    {
        '2.1': {'type': 'string', 'enum': KEYS + OLD_KEYS},
        '2.75': one_of(*KEYS, 'locked'),
    }
)
# The columns that keys mean, where they are called otherwise. Flavors are told apart by their size.
COLUMNS = dict.fromkeys(MEANINGLESS, 'id') | {
    'auto_disk_config': 'disk_config',
    'deleted': 'deleted_at',
    'display_description': 'description',
    'display_name': 'name',
    'image_ref': 'image_id',
    'instance_type_id': 'memory_mb',
    'key_data': 'public_key',
    'locked': 'locked_by',
}
FOR_ADMINISTRATORS = frozenset({'host', 'node'})
NEWEST_FIRST = (('created_at', True), ('id', True))


def order(req: Request) -> list[tuple[str, bool]]:
    """What the request sorts by, as (column, descending); the newest first if it does not say."""
    for key in map(str.strip, req.query.get('sort_key', ())):
        # On /v2 no schema has looked at it.
        if key not in KEYS and key not in OLD_KEYS:
            raise Invalid(f'Invalid sort key: {key[:64]}')
        if key in FOR_ADMINISTRATORS and not req.context.is_admin:
            raise Forbidden(f'Only administrators can sort servers by {key}')
    return sort_of(req, NEWEST_FIRST, COLUMNS)
