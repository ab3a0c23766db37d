"""QoS specs: what volume types require of hosts or of the storage."""

from typing import Any

from computeapi import errors
from computeapi.backends.volume.local.qos import QosSpecs
from computeapi.standalone.access import ADMIN
from computeapi.standalone.fields import each
from computeapi.standalone.query import truth
from computeapi.standalone.schema import having
from computeapi.standalone.volume.documents import FILLED, TEXT
from computeapi.standalone.volume.lists import page
from computeapi.standalone.volume.service import CinderController
from computeapi.web.contract import View
from computeapi.web.controller import operation
from computeapi.web.request import Request

CONSUMER = {'type': 'string', 'enum': ['front-end', 'back-end', 'both']}
SPECS = {
    'type': 'object',
    'properties': {'consumer': CONSUMER},
    'propertyNames': {'minLength': 1, 'maxLength': 255},
    'additionalProperties': {'type': 'string', 'maxLength': 255},
    'maxProperties': 64,
}
NAMED = {**SPECS, 'properties': {'name': FILLED, 'consumer': CONSUMER}, 'required': ['name']}
CREATE = having({'qos_specs': NAMED}, 'qos_specs')
SET = having({'qos_specs': SPECS}, 'qos_specs')
UNSET = having({'keys': {'type': 'array', 'items': TEXT, 'minItems': 1, 'maxItems': 64}}, 'keys')

SHOWN = View(each('id', 'name', 'consumer', 'specs'))


class CinderQos(CinderController):
    path = '/qos-specs'

    @operation('GET', policy=ADMIN)
    def list(self, req: Request) -> dict[str, Any]:
        return {'qos_specs': SHOWN.render_all(req, self.volumes.qos.list(req.context, **page(req)))}

    @operation('POST', policy=ADMIN, body=CREATE)
    def create(self, req: Request, body: dict[str, Any]) -> dict[str, Any]:
        specs = dict(body['qos_specs'])
        name, consumer = specs.pop('name'), specs.pop('consumer', 'back-end')
        return self._document(req, self.volumes.qos.create(name, consumer, specs))

    @operation('GET', '/{qos_id}', policy=ADMIN)
    def show(self, req: Request, qos_id: str) -> dict[str, Any]:
        return self._document(req, self.volumes.qos.get(req.context, qos_id))

    @operation('PUT', '/{qos_id}', policy=ADMIN, body=SET)
    def update(self, req: Request, qos_id: str, body: dict[str, Any]) -> dict[str, Any]:
        self.volumes.qos.set(req.context, qos_id, body['qos_specs'])
        return body

    @operation('PUT', '/{qos_id}/delete_keys', policy=ADMIN, body=UNSET, status=202)
    def unset(self, req: Request, qos_id: str, body: dict[str, Any]) -> None:
        self.volumes.qos.unset(req.context, qos_id, body['keys'])

    @operation('DELETE', '/{qos_id}', policy=ADMIN, status=202)
    def delete(self, req: Request, qos_id: str) -> None:
        self.volumes.qos.delete(req.context, qos_id, force=truth('force', req.parameter('force', '0')))

    @operation('GET', '/{qos_id}/associations', policy=ADMIN)
    def list_types(self, req: Request, qos_id: str) -> dict[str, Any]:
        types = self.volumes.qos.types(req.context, qos_id)
        named = [{'association_type': 'volume_type', 'id': kind.id, 'name': kind.name} for kind in types]
        return {'qos_associations': named}

    @operation('GET', '/{qos_id}/associate', policy=ADMIN, status=202)
    def associate(self, req: Request, qos_id: str) -> None:
        self.volumes.qos.associate(req.context, qos_id, type_in(req))

    @operation('GET', '/{qos_id}/disassociate', policy=ADMIN, status=202)
    def disassociate(self, req: Request, qos_id: str) -> None:
        self.volumes.qos.disassociate(req.context, qos_id, type_in(req))

    @operation('GET', '/{qos_id}/disassociate_all', policy=ADMIN, status=202)
    def disassociate_all(self, req: Request, qos_id: str) -> None:
        self.volumes.qos.disassociate(req.context, qos_id)

    def _document(self, req: Request, specs: QosSpecs) -> dict[str, Any]:
        return {'qos_specs': SHOWN.render(req, specs), 'links': req.links('qos-specs', specs.id)}


def type_in(req: Request) -> str:
    """The volume type given in the query."""
    if not (given := req.query.get('vol_type_id')):
        raise errors.Invalid('Volume Type id must not be None.')
    return given[-1]
