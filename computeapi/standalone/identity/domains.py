"""Domains, which hold projects and users."""

from typing import Any

from computeapi.db.identity import Domain
from computeapi.standalone.access import ADMIN, CALLER, require
from computeapi.standalone.identity.base import KeystoneController, collection, filters, link
from computeapi.web.controller import operation
from computeapi.web.request import Request


class KeystoneDomains(KeystoneController):
    path = '/domains'

    @operation('GET', policy=ADMIN)
    def list(self, req: Request) -> dict[str, Any]:
        found = self.identity.domains.list(**filters(req, 'name', 'enabled'))
        return collection(req, 'domains', found, domain_view)

    @operation('GET', '/{domain_id}', policy=CALLER)
    def show(self, req: Request, domain_id: str) -> dict[str, Any]:
        context = req.context
        own = (context.user_domain_id, context.project_domain_id, context.domain_id)
        require(context.is_admin or domain_id in own)
        return {'domain': domain_view(req, self.identity.domains.get(domain_id))}


def domain_view(req: Request, domain: Domain) -> dict[str, Any]:
    return {
        'id': domain.id,
        'name': domain.name,
        'description': domain.description,
        'enabled': domain.enabled,
        'tags': [],
        'options': {},
        **link(req, 'domains', domain.id),
    }
