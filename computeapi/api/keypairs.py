"""/os-keypairs: the SSH keys and certificates for logging in to servers."""

from collections.abc import Mapping
from typing import Any

from computeapi.api import pages
from computeapi.api.controller import ComputeController
from computeapi.api.types import BOOLEAN, INTEGER, LINKS, NAME, NULLABLE_DATETIME, STRING, TEXT, exact_date
from computeapi.db.keypairs import SSH, X509
from computeapi.versions import ABSENT, added, changed, removed
from computeapi.web.contract import Field, Policy, View, attr
from computeapi.web.controller import operation
from computeapi.web.request import Request
from computeapi.web.schemas import closed, lone, one_of, query

OWNER_OR_ADMIN = '(rule:context_is_admin) or user_id:%(user_id)s'
INDEX = Policy('os_compute_api:os-keypairs:index', OWNER_OR_ADMIN, 'List the key pairs of a user')
CREATE = Policy('os_compute_api:os-keypairs:create', OWNER_OR_ADMIN, 'Import or generate a key pair')
SHOW = Policy('os_compute_api:os-keypairs:show', OWNER_OR_ADMIN, 'Show a key pair')
DELETE = Policy('os_compute_api:os-keypairs:delete', OWNER_OR_ADMIN, 'Delete a key pair')

TYPED, OF_OTHERS, PAGED, STRICT, IMPORTED = '2.2', '2.10', '2.35', '2.75', '2.92'

# ------------------------------------------------------------------ requests

# In earlier versions the owner is always the caller.
OWNER = added(OF_OTHERS, STRING)
LIST_QUERY = query({'user_id': OWNER} | pages.parameters(PAGED), strict=STRICT)
SHOW_QUERY = query({'user_id': OWNER}, strict=STRICT)

CHARACTERS = changed(
    {
        '2.0': {},
        '2.1': {'pattern': r'^[_\- a-zA-Z0-9]+$'},
        IMPORTED: {'pattern': r'^[_\-\@\. a-zA-Z0-9]+$'},
    }
)
CREATE_BODY = lone(
    'keypair',
    closed(
        {
            'name': {'allOf': [NAME, CHARACTERS]},
            'type': added(TYPED, one_of(SSH, X509)),
            'public_key': STRING,
            'user_id': added(OF_OTHERS, TEXT),
        },
        required=['name', added(IMPORTED, 'public_key')],
    ),
)

# ------------------------------------------------------------------ views

NAMED = {
    'name': Field(STRING, attr('name')),
    'type': added(TYPED, Field(STRING, attr('type'))),
    'public_key': Field(STRING, attr('public_key')),
    'fingerprint': Field(STRING, attr('fingerprint')),
}
OWNED = NAMED | {'user_id': Field(STRING, attr('user_id'))}
# Key pairs are never changed, and are deleted for good.
NEVER = Field(NULLABLE_DATETIME, lambda pair: None)
DETAIL = OWNED | {
    'id': Field(INTEGER, attr('id')),
    'created_at': exact_date('created_at'),
    'updated_at': NEVER,
    'deleted_at': NEVER,
    'deleted': Field(BOOLEAN, lambda pair: False),
}
CREATED = OWNED | {
    'private_key': removed(IMPORTED, Field(STRING, lambda pair: pair.private_key or ABSENT, optional=True)),
}
SUMMARY, NEW_KEYPAIR, KEYPAIR = View(NAMED), View(CREATED), View(DETAIL)

LISTED = pages.schema('keypairs', lone('keypair', SUMMARY), added(PAGED, LINKS))


class Keypairs(ComputeController):
    """Key pairs, with which users log in to their servers."""

    path = '/os-keypairs'

    def target(self, req: Request, parameters: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """Key pairs belong to users; administrators may name the user."""
        body = parameters.get('body') or {}
        return {'user_id': owner(req, body.get('keypair'))}

    @operation('GET', policy=INDEX, query=LIST_QUERY, response=LISTED)
    def index(self, req: Request) -> dict[str, Any]:
        """List the key pairs of a user."""
        page = pages.requested_page(req, self.cloud.max_limit)
        shown = SUMMARY.render_all(req, self.cloud.keypairs.list(owner(req), page))
        answer = pages.page_response(req, 'keypairs', shown, page.limit, marker='name')
        return answer | {'keypairs': [{'keypair': each} for each in shown]}

    @operation(
        'POST',
        policy=CREATE,
        body=CREATE_BODY,
        response={'keypair': NEW_KEYPAIR},
        status=changed({'2.1': 200, TYPED: 201}),
        errors=(409,),
    )
    def create(self, req: Request, body: Any) -> dict[str, Any]:
        """Import a public key, or (without one) generate a key pair."""
        facts = body['keypair']
        wanted = (req.context, owner(req, facts), facts['name'].strip(), facts.get('type', SSH))
        if 'public_key' in facts:
            pair = self.cloud.keypairs.add(*wanted, facts['public_key'])
        else:
            pair = self.cloud.keypairs.generate(*wanted)
        return {'keypair': NEW_KEYPAIR.render(req, pair)}

    @operation('GET', '/{id}', policy=SHOW, query=SHOW_QUERY, response={'keypair': KEYPAIR})
    def show(self, req: Request, id: str) -> dict[str, Any]:
        """Show a key pair."""
        return {'keypair': KEYPAIR.render(req, self.cloud.keypairs.get(owner(req), id))}

    @operation('DELETE', '/{id}', policy=DELETE, query=SHOW_QUERY, status=changed({'2.1': 202, TYPED: 204}))
    def delete(self, req: Request, id: str) -> None:
        """Delete a key pair; servers that were created with it keep it."""
        self.cloud.keypairs.delete(req.context, owner(req), id)


def owner(req: Request, facts: Any = None) -> str:
    """The user whose key pairs a request is about: the caller, unless it names another one."""
    named = facts.get('user_id') if facts else req.first_parameter('user_id')
    return named or req.context.user_id or ''
