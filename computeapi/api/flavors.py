"""/flavors: flavors, their access and their extra specs."""

import functools
from collections.abc import Mapping
from typing import Any

from oslo_utils import strutils

from computeapi.api import extra_specs, pages
from computeapi.api.controller import ComputeController
from computeapi.api.servers import schemas
from computeapi.api.types import (
    BOOLEAN,
    INTEGER,
    LENIENT_BOOLEAN,
    LINKS,
    MAX_INTEGER,
    NAME,
    NON_NEGATIVE,
    NONEMPTY,
    NULLABLE_STRING,
    POSITIVE,
    STRING,
    TEXTS,
    check_key,
)
from computeapi.booleans import is_true
from computeapi.errors import Invalid
from computeapi.versions import added, changed, removed
from computeapi.web.contract import ADMIN, READER_OR_ADMIN, Field, Policy, View, attr
from computeapi.web.controller import action, api_version, operation
from computeapi.web.request import Request
from computeapi.web.schemas import array, closed, lone, one_of, query, whole

CREATE = Policy('os_compute_api:os-flavor-manage:create', ADMIN, 'Create a flavor')
UPDATE = Policy('os_compute_api:os-flavor-manage:update', ADMIN, 'Update a flavor')
DELETE = Policy('os_compute_api:os-flavor-manage:delete', ADMIN, 'Delete a flavor')
ACCESS = Policy('os_compute_api:os-flavor-access', ADMIN, 'List the projects that have access to a flavor')
ADD_ACCESS = Policy('os_compute_api:os-flavor-access:add_tenant_access', ADMIN, 'Grant a project access to a flavor')
REMOVE_ACCESS = Policy(
    'os_compute_api:os-flavor-access:remove_tenant_access', ADMIN, 'Revoke the access of a project to a flavor'
)
SPECS_INDEX = Policy('os_compute_api:os-flavor-extra-specs:index', READER_OR_ADMIN, 'List the extra specs of a flavor')
SPECS_SHOW = Policy('os_compute_api:os-flavor-extra-specs:show', READER_OR_ADMIN, 'Show an extra spec of a flavor')
SPECS_CREATE = Policy('os_compute_api:os-flavor-extra-specs:create', ADMIN, 'Create extra specs for a flavor')
SPECS_UPDATE = Policy('os_compute_api:os-flavor-extra-specs:update', ADMIN, 'Update an extra spec of a flavor')
SPECS_DELETE = Policy('os_compute_api:os-flavor-extra-specs:delete', ADMIN, 'Delete an extra spec of a flavor')

DESCRIBED, TRIMMED = '2.55', '2.102'

# ------------------------------------------------------------------ requests

SORT_KEYS = [
    'created_at', 'description', 'disabled', 'ephemeral_gb', 'flavorid', 'id', 'is_public', 'memory_mb', 'name',
    'root_gb', 'rxtx_factor', 'swap', 'updated_at', 'vcpu_weight', 'vcpus',
]  # fmt: skip
SORT_COLUMNS = {'vcpu_weight': 'id'}  # No flavor has a weight.
LIST_QUERY = query(
    pages.PARAMETERS
    | {
        'is_public': STRING,
        'minRam': STRING,
        'minDisk': STRING,
        'sort_key': changed(
            {
                '2.1': {'type': 'string', 'enum': SORT_KEYS},
                TRIMMED: {'type': 'string', 'enum': [key for key in SORT_KEYS if key != 'rxtx_factor']},
            }
        ),
        'sort_dir': one_of('asc', 'desc'),
        'name': added(TRIMMED, STRING),
    },
    strict='2.75',
)
SHOW_QUERY = query({})

DESCRIPTION = schemas.DESCRIPTION | {'maxLength': 65535}
FLAVOR_ID = {
    'type': ['string', 'number', 'null'],
    'minLength': 1,
    'maxLength': 255,
    'pattern': '^(?! )[a-zA-Z0-9. _-]+(?<! )$',
}
MAX_RXTX = 3.40282e38
RXTX = {
    'type': ['number', 'string'],
    'pattern': r'^[0-9]+(\.[0-9]+)?$',
    'exclusiveMinimum': 0,
    'maximum': MAX_RXTX,
}
CREATE_BODY = lone(
    'flavor',
    closed(
        {
            'name': NAME,
            'id': FLAVOR_ID,
            'ram': POSITIVE,
            'vcpus': POSITIVE,
            'disk': NON_NEGATIVE,
            'OS-FLV-EXT-DATA:ephemeral': NON_NEGATIVE,
            'swap': NON_NEGATIVE,
            'rxtx_factor': removed(TRIMMED, RXTX),
            'os-flavor-access:is_public': LENIENT_BOOLEAN,
            'description': added(DESCRIBED, DESCRIPTION),
        },
        required=['name', 'ram', 'vcpus', 'disk'],
    ),
)
UPDATE_BODY = lone('flavor', lone('description', DESCRIPTION))
TENANT = lone('tenant', NONEMPTY)

SPEC_VALUE = {'type': ['string', 'number'], 'maxLength': 255}
SPECS = schemas.metadata_of(SPEC_VALUE)
SPECS_BODY = lone('extra_specs', SPECS)
SPEC_BODY = SPECS | {'minProperties': 1, 'maxProperties': 1}
VALIDATION = {'validated': added('2.86', True)}

# ------------------------------------------------------------------ views

AS_SENT = {'type': 'object', 'additionalProperties': {'type': ['string', 'number']}}
LINKED = {
    'id': Field(STRING, attr('flavorid')),
    'name': Field(STRING, attr('name')),
    'description': added(DESCRIBED, Field(NULLABLE_STRING, attr('description'))),
    'links': Field(LINKS, lambda req: lambda flavor: req.links('flavors', flavor.flavorid), request=True),
}
SWAP_TEXT = {'anyOf': [INTEGER, {'const': ''}]}
DETAIL = LINKED | {
    'ram': Field(INTEGER, attr('memory_mb')),
    'vcpus': Field(INTEGER, attr('vcpus')),
    'disk': Field(INTEGER, attr('root_gb')),
    'swap': changed({'2.1': Field(SWAP_TEXT, lambda flavor: flavor.swap or ''), '2.75': Field(INTEGER, attr('swap'))}),
    'OS-FLV-EXT-DATA:ephemeral': Field(INTEGER, attr('ephemeral_gb')),
    'OS-FLV-DISABLED:disabled': removed(TRIMMED, Field(BOOLEAN, attr('disabled'))),
    'os-flavor-access:is_public': Field(BOOLEAN, attr('is_public')),
    'rxtx_factor': removed(TRIMMED, Field({'type': 'number'}, attr('rxtx_factor'))),
    'extra_specs': added('2.61', Field(TEXTS, attr('extra_specs'), policy=SPECS_INDEX)),
}
SUMMARY = View(LINKED)
FLAVOR = View(DETAIL)

EVEN_PUBLIC = changed({'2.1': True, '2.7': False})
ACCESS_LIST = {'flavor_access': array(whole({'flavor_id': STRING, 'tenant_id': STRING}))}
access = functools.partial(action, takes=TENANT, response=ACCESS_LIST, status=200)
"""An action that changes which projects may use a flavor."""


class Flavors(ComputeController):
    """Flavors: the sizes of servers."""

    path = '/flavors'

    @operation('GET', policy=None, query=LIST_QUERY, response=pages.schema('flavors', SUMMARY))
    def index(self, req: Request) -> dict[str, Any]:
        """List the flavors."""
        return self.page(req, SUMMARY)

    @operation('GET', '/detail', policy=None, query=LIST_QUERY, response=pages.schema('flavors', FLAVOR))
    def detail(self, req: Request) -> dict[str, Any]:
        """List the flavors with their details."""
        return self.page(req, FLAVOR)

    def page(self, req: Request, view: View) -> dict[str, Any]:
        page = pages.requested_page(req, self.cloud.max_limit)
        key = req.parameter('sort_key', 'flavorid')
        page = page._replace(sort=[(SORT_COLUMNS.get(key, key), req.parameter('sort_dir') == 'desc')])
        found = self.cloud.flavors.page(req.context, page, **filters(req))
        return pages.page_response(req, 'flavors', view.render_all(req, found), page.limit)

    @operation('POST', policy=CREATE, body=CREATE_BODY, response={'flavor': FLAVOR}, errors=(409,))
    def create(self, req: Request, body: Any) -> dict[str, Any]:
        """Create a flavor."""
        flavor = body['flavor']
        identifier = flavor.get('id')
        created = self.cloud.flavors.create(
            req.context,
            flavor['name'].strip(),
            flavorid=None if identifier in (None, 'auto') else str(identifier),
            memory_mb=int(flavor['ram']),
            vcpus=int(flavor['vcpus']),
            root_gb=int(flavor['disk']),
            ephemeral_gb=int(flavor.get('OS-FLV-EXT-DATA:ephemeral', 0)),
            swap=int(flavor.get('swap', 0)),
            rxtx_factor=factor(flavor.get('rxtx_factor', 1.0)),
            is_public=is_true(flavor.get('os-flavor-access:is_public', True)),
            description=flavor.get('description'),
        )
        return {'flavor': FLAVOR.render(req, created)}

    @operation('GET', '/{id}', policy=None, query=SHOW_QUERY, response={'flavor': FLAVOR})
    def show(self, req: Request, id: str) -> dict[str, Any]:
        """Show a flavor."""
        return {'flavor': FLAVOR.render(req, self.cloud.flavors.get(req.context, id))}

    @operation('PUT', '/{id}', policy=UPDATE, body=UPDATE_BODY, response={'flavor': FLAVOR})
    @api_version(DESCRIBED)
    def update(self, req: Request, id: str, body: Any) -> dict[str, Any]:
        """Change the description of a flavor."""
        described = self.cloud.flavors.describe(req.context, id, body['flavor']['description'])
        return {'flavor': FLAVOR.render(req, described)}

    @operation('DELETE', '/{id}', policy=DELETE, status=202)
    def delete(self, req: Request, id: str) -> None:
        """Delete a flavor; servers that have it keep it."""
        self.cloud.flavors.delete(req.context, id)

    @access('addTenantAccess', policy=ADD_ACCESS, errors=(409,), behaviour={'even_public': EVEN_PUBLIC})
    def add_access(self, req: Request, id: str, body: Any) -> dict[str, Any]:
        """Grant a project access to a flavor that is not public."""
        project_id = body['addTenantAccess']['tenant']
        self.cloud.projects.check(req.context, project_id)
        projects = self.cloud.flavors.grant(req.context, id, project_id, even_public=req.behaviour.even_public)
        return access_list(id, projects)

    @access('removeTenantAccess', policy=REMOVE_ACCESS)
    def remove_access(self, req: Request, id: str, body: Any) -> dict[str, Any]:
        """Revoke the access of a project, which may no longer exist, to a flavor."""
        project_id = body['removeTenantAccess']['tenant']
        return access_list(id, self.cloud.flavors.revoke(req.context, id, project_id))


class FlavorAccess(ComputeController):
    """The projects that have access to a flavor."""

    path = '/flavors/{flavor_id}/os-flavor-access'

    @operation('GET', policy=ACCESS, response=ACCESS_LIST)
    def index(self, req: Request, flavor_id: str) -> dict[str, Any]:
        """List the projects that have access to a flavor."""
        return access_list(flavor_id, self.cloud.flavors.projects(req.context, flavor_id))


class FlavorExtraSpecs(ComputeController):
    """Extra specs of a flavor: its requirements for hosts, besides its size."""

    path = '/flavors/{flavor_id}/os-extra_specs'

    @operation('GET', policy=SPECS_INDEX, response={'extra_specs': TEXTS})
    def index(self, req: Request, flavor_id: str) -> dict[str, Any]:
        """List the extra specs of a flavor."""
        return {'extra_specs': self.cloud.flavors.get(req.context, flavor_id).extra_specs}

    @operation(
        'POST',
        policy=SPECS_CREATE,
        body=SPECS_BODY,
        response={'extra_specs': AS_SENT},
        errors=(409,),
        behaviour=VALIDATION,
    )
    def create(self, req: Request, flavor_id: str, body: Any) -> dict[str, Any]:
        """Create or replace extra specs of a flavor."""
        return {'extra_specs': self.save(req, flavor_id, body['extra_specs'])}

    @operation('GET', '/{id}', policy=SPECS_SHOW, response=TEXTS)
    def show(self, req: Request, flavor_id: str, id: str) -> dict[str, Any]:
        """Show an extra spec of a flavor."""
        return {id: extra_specs.value_of(self.cloud.flavors.get(req.context, flavor_id), id)}

    @operation(
        'PUT', '/{id}', policy=SPECS_UPDATE, body=SPEC_BODY, response=AS_SENT, errors=(409,), behaviour=VALIDATION
    )
    def update(self, req: Request, flavor_id: str, id: str, body: Any) -> dict[str, Any]:
        """Set an extra spec of a flavor."""
        check_key(id, body)
        return self.save(req, flavor_id, body)

    @operation('DELETE', '/{id}', policy=SPECS_DELETE)
    def delete(self, req: Request, flavor_id: str, id: str) -> None:
        """Delete an extra spec of a flavor."""
        self.cloud.flavors.delete_extra_spec(req.context, flavor_id, id)

    def save(self, req: Request, flavor_id: str, specs: Mapping[str, Any]) -> dict[str, Any]:
        """Store extra specs as text; the response repeats them as they were sent."""
        if req.behaviour.validated:
            extra_specs.validate(specs)
        texts = {key: str(value) for key, value in specs.items()}
        self.cloud.flavors.set_extra_specs(req.context, flavor_id, texts)
        return dict(specs)


def factor(value: Any) -> float:
    """The number; a zero as text has passed the schema, which only checks numbers."""
    if float(value) <= 0:
        raise Invalid(f"Invalid input received: 'rxtx_factor' argument must be a float between 0 and {MAX_RXTX:g}")
    return float(value)


def filters(req: Request) -> dict[str, Any]:
    """The filters of a list, by the service's names."""
    found = {
        'min_memory_mb': number(req, 'minRam'),
        'min_root_gb': number(req, 'minDisk'),
        'is_public': public(req.parameter('is_public')) if req.context.is_admin else True,
    }
    name = req.parameter('name')
    return found | ({'name': name} if name else {})


def number(req: Request, name: str) -> int:
    """The requested minimum, limited to a range beyond which no flavor can be."""
    text = req.parameter(name, '0')
    try:
        return max(-MAX_INTEGER, min(int(text), MAX_INTEGER))
    except ValueError:
        raise Invalid(f'Invalid {name} filter [{text[:64]}]') from None


def public(text: str | None) -> bool | None:
    """None means both; without the parameter only public flavors are listed."""
    if text is None:
        return True
    if text.lower() == 'none':
        return None
    try:
        return strutils.bool_from_string(text, strict=True)
    except ValueError:
        raise Invalid(f'Invalid is_public filter [{text[:64]}]') from None


def access_list(flavorid: str, projects: list[str]) -> dict[str, Any]:
    return {'flavor_access': [{'flavor_id': flavorid, 'tenant_id': project} for project in projects]}
