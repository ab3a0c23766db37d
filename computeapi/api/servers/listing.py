"""The filters of server lists: who may use them, at which version, and what they mean."""

from collections.abc import Callable
from typing import Any, NamedTuple

from oslo_utils import strutils

from computeapi.api import pages, unreachable
from computeapi.api.servers.sorting import BY_LOCK, SORT_KEY
from computeapi.api.types import DATETIME, STRING
from computeapi.clock import parsed
from computeapi.compute.servers.tags import MAX_TAGS
from computeapi.errors import Forbidden, Invalid
from computeapi.states import VMState, states_of
from computeapi.versions import added
from computeapi.web.contract import ADMIN, Policy
from computeapi.web.request import Request
from computeapi.web.schemas import query

ALL_FILTERS = Policy(
    'os_compute_api:servers:allow_all_filters', ADMIN, 'Filter servers by every attribute, not only by the common ones'
)

# ------------------------------------------------------------------ parsing of values


def boolean(text: str) -> bool:
    try:
        return strutils.bool_from_string(text[:64], strict=True)
    except ValueError as error:
        raise Invalid(str(error)) from None


def image(text: str) -> str | None:
    """None if it is empty, which finds volume-backed servers."""
    return text or None


def drive(text: str) -> str:
    """The column contains True or an empty string."""
    try:
        return 'True' if boolean(text) else ''
    except Invalid:
        return text


def tags(text: str) -> list[str]:
    """ValueError for more tags than a server can have."""
    wanted = list(dict.fromkeys(text.split(',')))
    if len(wanted) > MAX_TAGS:
        raise ValueError(text)
    return wanted


# ------------------------------------------------------------------ filters

REGEX = {'type': 'string', 'maxLength': 255, 'format': 'regex'}
TAGS = REGEX | {'maxLength': 61 * MAX_TAGS}


class Filter(NamedTuple):
    """A filter parameter.

    schema: of one value.  name: the filter in db.server_filters, if it has another name there.
    read: converts the text to the value of that filter; ValueError.  everybody: the version from which callers without
    ALL_FILTERS may use it, if any.  new: whether the parameter did not exist before that version.
    """

    schema: Any
    name: str | None = None
    read: Callable[[str], Any] = str
    everybody: str = ''
    new: bool = False


FILTERS = {
    'access_ip_v4': Filter(REGEX),
    'access_ip_v6': Filter(REGEX),
    'auto_disk_config': Filter(REGEX, 'disk_config', str.upper),
    'availability_zone': Filter(REGEX, everybody='2.83'),
    'changes-before': Filter(DATETIME, 'changes_before', parsed, everybody='2.66', new=True),
    'changes-since': Filter(DATETIME, 'changes_since', parsed, everybody='2.1'),
    'config_drive': Filter(REGEX, read=drive, everybody='2.83'),
    'created_at': Filter(REGEX, everybody='2.83'),
    'description': Filter(REGEX),
    'display_description': Filter(REGEX, 'description'),
    'display_name': Filter(REGEX, 'name'),
    'flavor': Filter(REGEX, 'flavorid', everybody='2.1'),
    'host': Filter(STRING),
    'hostname': Filter(REGEX, everybody='2.90'),
    'image': Filter(STRING, 'image_id', image, everybody='2.1'),
    'image_ref': Filter(STRING, 'image_id', image),
    'ip': Filter(REGEX, everybody='2.1'),
    'ip6': Filter(REGEX, everybody='2.5'),
    'kernel_id': Filter(REGEX),
    'key_name': Filter(REGEX, everybody='2.83'),
    'launch_index': Filter(STRING),
    'launched_at': Filter(REGEX, everybody='2.83'),
    'locked': Filter(STRING, read=boolean, everybody='2.73', new=True),
    'locked_by': Filter(REGEX),
    'name': Filter(REGEX, everybody='2.1'),
    'node': Filter(REGEX),
    'not-tags': Filter(TAGS, 'not_tags', tags, everybody='2.26', new=True),
    'not-tags-any': Filter(TAGS, 'not_tags_any', tags, everybody='2.26', new=True),
    'power_state': Filter(REGEX, everybody='2.83'),
    'progress': Filter(REGEX, everybody='2.83'),
    'project_id': Filter(STRING),
    'ramdisk_id': Filter(REGEX),
    'reservation_id': Filter(REGEX, everybody='2.1'),
    'root_device_name': Filter(REGEX),
    'tags': Filter(TAGS, read=tags, everybody='2.26', new=True),
    'tags-any': Filter(TAGS, 'tags_any', tags, everybody='2.26', new=True),
    'task_state': Filter(STRING, everybody='2.83'),
    'tenant_id': Filter(STRING, 'project_id'),
    'terminated_at': Filter(REGEX, everybody='2.83'),
    'user_id': Filter(STRING, everybody='2.83'),
    'uuid': Filter(STRING),
    'vm_state': Filter(STRING, everybody='2.83'),
}
BEHAVIOUR = unreachable.BEHAVIOUR | {
    'filters_for_everybody': [added(each.everybody, name) for name, each in FILTERS.items() if each.everybody],
    'unknown_status_refused': added('2.38', True),
    **BY_LOCK,
}
# Relations of Nova's record: known names that cannot be used as filters.
RELATIONS = (
    'block_device_mapping',
    'info_cache',
    'metadata',
    'pci_devices',
    'security_groups',
    'services',
    'system_metadata',
)
# Parameters that are not filters but select the set of servers, and the order.
SCOPES = ('all_tenants', 'deleted', 'soft_deleted', 'status')
ARRANGEMENT = pages.PARAMETERS | {'sort_key': SORT_KEY, 'sort_dir': STRING}
ARRANGED = frozenset(ARRANGEMENT)
LIST_QUERY = query(
    ARRANGEMENT
    | dict.fromkeys((*SCOPES, *RELATIONS), STRING)
    | {name: added(each.everybody, each.schema) if each.new else each.schema for name, each in FILTERS.items()},
    strict='2.75',
    legacy=False,
    patternProperties={'^_': STRING},
)

# ------------------------------------------------------------------ the search of a request


def search(req: Request, everywhere: Policy) -> dict[str, Any]:
    """The arguments for a list; Forbidden if all projects are requested without the policy *everywhere*."""
    filters = filters_of(req)
    existence = existence_of(req, filters)
    all_projects = asks_all_projects(req)
    if all_projects:
        req.check(everywhere)
    else:
        filters.pop('project_id', None)
    found = {'filters': filters, 'all_projects': all_projects, **existence}
    return found | {'unreachable': bool(req.behaviour.unreachable) and asks_little(req, found)}


def asks_little(req: Request, requested: dict[str, Any]) -> bool:
    """Whether it is known even for servers in cells that are down whether they belong in the list, and where."""
    sought = (
        requested['filters'].keys() - {'project_id'} or requested['deleted'] is not False or requested['soft_deleted']
    )
    return not sought and ARRANGED.isdisjoint(req.query)


def filters_of(req: Request) -> dict[str, Any]:
    """The filters that this caller may use, with their values."""
    everything = req.allows(ALL_FILTERS)
    names = [name for name in req.query if everything or name in req.behaviour.filters_for_everybody]
    for name in names:
        if name.startswith('_') or name in RELATIONS:
            raise Invalid(f'Invalid filter field: {name[:64]}.')
    filters = dict(filter_of(name, req.parameter(name)) for name in names if name in FILTERS)
    if 'status' in req.query:
        # A status implies vm_states, which take precedence.
        filters.pop('vm_state', None)
        filters['statuses'] = statuses(req)
    since, before = filters.get('changes_since'), filters.get('changes_before')
    if since and before and since > before:
        raise Invalid('The value of changes-since must be less than or equal to changes-before.')
    return filters


def filter_of(name: str, text: str) -> tuple[str, Any]:
    try:
        return FILTERS[name].name or name, FILTERS[name].read(text)
    except ValueError:
        raise Invalid(f'Invalid filter field: {name}.') from None


def statuses(req: Request) -> list[str]:
    """Those of the requested statuses that exist; older versions accept a request without any."""
    known = list(dict.fromkeys(status.upper() for status in req.query['status'] if states_of(status)))
    if not known and req.behaviour.unknown_status_refused:
        raise Invalid('Invalid status value')
    return known


def existence_of(req: Request, filters: dict[str, Any]) -> dict[str, bool | None]:
    """Whether deleted servers are included: in lists of changes, or else if an administrator asks for them."""
    named = [name for name in ('deleted', 'soft_deleted') if name in req.query]
    # Unlike in `boolean`, everything that is not true is false.
    requested = {name: strutils.bool_from_string(req.parameter(name)) for name in named}
    if not req.allows(ALL_FILTERS):
        requested = {}
    changes = 'changes_since' in filters or 'changes_before' in filters
    deleted = requested.get('deleted', None if changes else False)
    if filters.get('statuses') == ['DELETED']:
        if not req.context.is_admin:
            raise Forbidden('Only administrators may list deleted instances')
        deleted = True
    restorable = 'SOFT_DELETED' in filters.get('statuses', ()) or filters.get('vm_state') == VMState.SOFT_DELETED
    return {'deleted': deleted, 'soft_deleted': requested.get('soft_deleted', True if restorable else None)}


def asks_all_projects(req: Request) -> bool:
    """all_tenants without a value means yes."""
    text = req.parameter('all_tenants')
    return text is not None and (not text or boolean(text))
