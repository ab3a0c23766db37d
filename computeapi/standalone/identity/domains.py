"""Domains, which contain projects, users and groups."""

from typing import Any

from computeapi.db.identity import Domain
from computeapi.standalone.access import CALLER, SYSTEM_READER, require
from computeapi.standalone.identity.base import BOOLEAN, OPTIONS, TEXT, KeystoneCollection, Noun, shown
from computeapi.standalone.identity.projects import TAGS
from computeapi.web.controller import operation
from computeapi.web.request import Request

PROPERTIES = {
    'name': {'type': 'string', 'minLength': 1, 'maxLength': 64},
    'description': TEXT,
    'enabled': BOOLEAN,
    'tags': TAGS,
    'options': OPTIONS,
}


class KeystoneDomains(KeystoneCollection):
    path = '/domains'
    kind = 'domains'
    noun = Noun('domain', PROPERTIES, ('name',), ('name', 'enabled'))

    @operation('GET', '/{record_id}', policy=CALLER)
    def show(self, req: Request, record_id: str) -> dict[str, Any]:
        context = req.context
        own = (context.user_domain_id, context.project_domain_id, context.domain_id)
        require(req.allows(SYSTEM_READER) or record_id in own)
        return super().show(req, record_id)

    def view(self, req: Request, record: Domain) -> dict[str, Any]:
        return domain_view(req, record)


def domain_view(req: Request, domain: Domain) -> dict[str, Any]:
    return shown(req, 'domains', domain, PROPERTIES)
