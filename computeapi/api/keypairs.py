"""/os-keypairs: the keys that let a user into its servers."""

from computeapi.api.controller import ComputeController
from computeapi.api.types import BOOLEAN, INTEGER, LIMIT, LINKS, MARKER, NAME, NULLABLE_DATETIME, STRING, bare
from computeapi.compute.keys import SSH, X509
from computeapi.db.listing import Page
from computeapi.versions import ABSENT, APIVersionRequest, added, changed, removed
from computeapi.web.contract import Field, Policy, View, attr, closed, query
from computeapi.web.controller import operation
from computeapi.web.paging import limit_of, next_link

# ------------------------------------------------------------------ policies

OWNER_OR_ADMIN = '(rule:context_is_admin) or user_id:%(user_id)s'
INDEX = Policy('os_compute_api:os-keypairs:index', OWNER_OR_ADMIN, 'List the key pairs of a user')
CREATE = Policy('os_compute_api:os-keypairs:create', OWNER_OR_ADMIN, 'Import or generate a key pair')
SHOW = Policy('os_compute_api:os-keypairs:show', OWNER_OR_ADMIN, 'Show a key pair')
DELETE = Policy('os_compute_api:os-keypairs:delete', OWNER_OR_ADMIN, 'Delete a key pair')

PAGED = APIVersionRequest.parse('2.35')

# ------------------------------------------------------------------ requests

# Before 2.10 the owner is always the caller.
OWNER = added('2.10', STRING)
LIST_QUERY = query({'user_id': OWNER, 'limit': added('2.35', LIMIT), 'marker': added('2.35', MARKER)}, strict='2.75')
SHOW_QUERY = query({'user_id': OWNER}, strict='2.75')

CHARACTERS = changed(
    {
        '2.1': {'pattern': r'^[_\- a-zA-Z0-9]+$'},
        '2.92': {'pattern': r'^[_\-\@\. a-zA-Z0-9]+$'},
    }
)
CREATE_BODY = closed(
    {
        'keypair': closed(
            {
                'name': {'allOf': [NAME, CHARACTERS]},
                'public_key': STRING,
                'type': added('2.2', {'type': 'string', 'enum': [SSH, X509]}),
                'user_id': added('2.10', {'type': 'string', 'maxLength': 255}),
            },
            required=['name', added('2.92', 'public_key')],
        )
    },
    required=['keypair'],
)

# ------------------------------------------------------------------ views

LISTED = {
    'name': Field(STRING, attr('name')),
    'type': added('2.2', Field(STRING, attr('type'))),
    'public_key': Field(STRING, attr('public_key')),
    'fingerprint': Field(STRING, attr('fingerprint')),
}
OWNED = LISTED | {'user_id': Field(STRING, attr('user_id'))}
# A key pair is never changed, and is gone when it is deleted.
NEVER = Field(NULLABLE_DATETIME, lambda pair: None)
DETAIL = OWNED | {
    'id': Field(INTEGER, attr('id')),
    'created_at': Field(NULLABLE_DATETIME, lambda pair: bare(pair.created_at)),
    'updated_at': NEVER,
    'deleted_at': NEVER,
    'deleted': Field(BOOLEAN, lambda pair: False),
}
CREATED = OWNED | {
    'private_key': removed('2.92', Field(STRING, lambda pair: pair.private_key or ABSENT, optional=True)),
}
SUMMARY, NEW_KEYPAIR, KEYPAIR = View(LISTED), View(CREATED), View(DETAIL)

LIST = closed(
    {
        'keypairs': {'type': 'array', 'items': closed({'keypair': SUMMARY}, required=['keypair'])},
        'keypairs_links': added('2.35', LINKS),
    },
    required=['keypairs'],
)

# ------------------------------------------------------------------ controller


class Keypairs(ComputeController):
    """The keys that let a user into its servers."""

    path = '/os-keypairs'

    def target(self, req, parameters):
        """Key pairs are users'; an administrator names the user."""
        body = parameters.get('body') or {}
        return {'user_id': owner(req, body.get('keypair'))}

    @operation('GET', policy=INDEX, query=LIST_QUERY, response=LIST, errors=(400,))
    def index(self, req):
        """List the key pairs of a user."""
        limit = limit_of(req, self.cloud.max_limit) if req.version >= PAGED else None
        found = self.cloud.keypairs.list(owner(req), Page(limit, req.parameter('marker')))
        link = next_link(req, 'os-keypairs', found, limit, found[-1].name if found else '')
        body = {'keypairs': [{'keypair': each} for each in SUMMARY.render_all(req, found)]}
        return body | ({'keypairs_links': link} if link else {})

    @operation(
        'POST',
        policy=CREATE,
        body=CREATE_BODY,
        response={'keypair': NEW_KEYPAIR},
        status=changed({'2.1': 200, '2.2': 201}),
        errors=(400, 403, 409),
    )
    def create(self, req, body):
        """Import a public key, or (before 2.92) generate a key pair."""
        facts = body['keypair']
        wanted = (req.context, owner(req, facts), facts['name'].strip(), facts.get('type', SSH))
        if 'public_key' in facts:
            pair = self.cloud.keypairs.add(*wanted, facts['public_key'])
        else:
            pair = self.cloud.keypairs.generate(*wanted)
        return {'keypair': NEW_KEYPAIR.render(req, pair)}

    @operation('GET', '/{id}', policy=SHOW, query=SHOW_QUERY, response={'keypair': KEYPAIR}, errors=(404,))
    def show(self, req, id):
        """Show a key pair."""
        return {'keypair': KEYPAIR.render(req, self.cloud.keypairs.get(owner(req), id))}

    @operation(
        'DELETE', '/{id}', policy=DELETE, query=SHOW_QUERY, status=changed({'2.1': 202, '2.2': 204}), errors=(404,)
    )
    def delete(self, req, id):
        """Delete a key pair; servers that were made with it keep it."""
        self.cloud.keypairs.delete(owner(req), id)


def owner(req, facts=None) -> str:
    """Whose key pairs a request is about: the caller's, unless it names a user."""
    named = facts.get('user_id') if facts else req.parameter('user_id')
    return named or req.context.user_id
