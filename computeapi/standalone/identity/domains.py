"""Domains, which hold projects and users."""

from typing import Any

import sqlalchemy as sa

from computeapi.db.tables import identity as tables
from computeapi.standalone.face import FaceRequest, route
from computeapi.standalone.identity.base import KeystoneFace, collection, filters, link, require


class Domains(KeystoneFace):
    @route('GET', '/v3/domains', admin=True)
    def domains(self, req: FaceRequest) -> dict[str, Any]:
        found = self.identity.domains.list(**filters(req, tables.domains, 'name', 'enabled'))
        return collection(req, 'domains', found, domain_view)

    @route('GET', '/v3/domains/{domain_id}')
    def domain(self, req: FaceRequest, domain_id: str) -> dict[str, Any]:
        context = req.context
        own = (context.user_domain_id, context.project_domain_id, context.domain_id)
        require(context.is_admin or domain_id in own)
        return {'domain': domain_view(req, self.identity.domains.get(domain_id))}


def domain_view(req: FaceRequest, domain: sa.Row) -> dict[str, Any]:
    return {
        'id': domain.id,
        'name': domain.name,
        'description': domain.description,
        'enabled': domain.enabled,
        'tags': [],
        'options': {},
        **link(req, 'domains', domain.id),
    }
