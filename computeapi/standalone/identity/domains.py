"""Domains, which contain projects, users and groups."""

from typing import Any

from computeapi.db.identity import Domain
from computeapi.standalone.access import ADMIN, require
from computeapi.standalone.identity.access import ANY_CALLER, DOMAIN_READER, SYSTEM_READER
from computeapi.standalone.identity.base import (
    BOOLEAN,
    OPTIONS,
    SHORT_NAME,
    TEXT,
    KeystoneCollection,
    Noun,
    collection,
    filters,
    shown,
)
from computeapi.standalone.identity.projects import TAGS
from computeapi.standalone.schema import having
from computeapi.web.controller import operation
from computeapi.web.request import Request

PROPERTIES = {
    'name': SHORT_NAME,
    'description': TEXT,
    'enabled': BOOLEAN,
    'tags': TAGS,
    'options': OPTIONS,
}
# A domain that is also known to another Keystone, which federates with this one, has the same ID there.
CREATE = having({'domain': having({'explicit_domain_id': {'type': 'string', 'pattern': '^[0-9a-f]{32}$'}})}, 'domain')


class KeystoneDomains(KeystoneCollection):
    path = '/domains'
    kind = 'domains'
    noun = Noun('domain', PROPERTIES, ('name',), ('name', 'enabled'))
    revealing = ('PATCH', 'DELETE')

    @operation('GET', policy=DOMAIN_READER)
    def list(self, req: Request) -> dict[str, Any]:
        own = req.context.domain_id
        found = self.manager.list(**filters(req, *self.noun.filters))
        return collection(req, self.kind, [each for each in found if own in (None, each.id)], self.view)

    @operation('POST', policy=ADMIN, body=CREATE, status=201)
    def create(self, req: Request, body: Any) -> dict[str, Any]:
        values = self.noun.new(body)
        chosen = values.get('extra', {}).pop('explicit_domain_id', None)
        return self.single(req, self.manager.create(**values, **({'id': chosen} if chosen else {})))

    @operation('GET', '/{record_id}', policy=ANY_CALLER)
    def show(self, req: Request, record_id: str) -> dict[str, Any]:
        require(req.allows(SYSTEM_READER) or record_id in (req.context.project_domain_id, req.context.domain_id))
        return super().show(req, record_id)

    def view(self, req: Request, record: Domain) -> dict[str, Any]:
        return domain_view(req, record)


def domain_view(req: Request, domain: Domain) -> dict[str, Any]:
    return shown(req, 'domains', domain, PROPERTIES)
