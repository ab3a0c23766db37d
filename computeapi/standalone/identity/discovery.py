"""The versions of the identity API, and the catalog as records."""

from collections.abc import Mapping
from typing import Any

from computeapi import errors
from computeapi.standalone.face import FaceRequest, route
from computeapi.standalone.identity.base import KeystoneFace, collection, link, url


class Discovery(KeystoneFace):
    @route('GET', '/', anonymous=True)
    def versions(self, req: FaceRequest) -> tuple[int, dict[str, Any]]:
        return 300, {'versions': {'values': [version(req)]}}

    @route('GET', '/v3', anonymous=True)
    @route('GET', '/v3/', anonymous=True)
    def version(self, req: FaceRequest) -> dict[str, Any]:
        return {'version': version(req)}

    @route('GET', '/v3/services', admin=True)
    def services(self, req: FaceRequest) -> dict[str, Any]:
        return collection(req, 'services', _matching(req, self.catalog.services, 'type', 'name'), service_view)

    @route('GET', '/v3/services/{service_id}', admin=True)
    def service(self, req: FaceRequest, service_id: str) -> dict[str, Any]:
        return {'service': service_view(req, _with_id('service', self.catalog.services, service_id))}

    @route('GET', '/v3/endpoints', admin=True)
    def endpoints(self, req: FaceRequest) -> dict[str, Any]:
        found = _matching(req, self.catalog.endpoints(req.host_url), 'service_id', 'interface', 'region_id')
        return collection(req, 'endpoints', found, endpoint_view)

    @route('GET', '/v3/endpoints/{endpoint_id}', admin=True)
    def endpoint(self, req: FaceRequest, endpoint_id: str) -> dict[str, Any]:
        return {'endpoint': endpoint_view(req, _with_id('endpoint', self.catalog.endpoints(req.host_url), endpoint_id))}

    @route('GET', '/v3/regions')
    def regions(self, req: FaceRequest) -> dict[str, Any]:
        return collection(req, 'regions', [self.catalog.region], region_view)

    @route('GET', '/v3/regions/{region_id}')
    def region(self, req: FaceRequest, region_id: str) -> dict[str, Any]:
        if region_id != self.catalog.region:
            raise errors.NotFound(f'Could not find region: {region_id}.')
        return {'region': region_view(req, region_id)}


def version(req: FaceRequest) -> dict[str, Any]:
    return {
        'id': 'v3.14',
        'status': 'stable',
        'updated': '2020-04-07T00:00:00Z',
        'links': [{'rel': 'self', 'href': url(req, '')}],
        'media-types': [{'base': 'application/json', 'type': 'application/vnd.openstack.identity-v3+json'}],
    }


def service_view(req: FaceRequest, service: Mapping[str, Any]) -> dict[str, Any]:
    shown = {key: service[key] for key in ('id', 'type', 'name')}
    return shown | {'enabled': True, 'description': ''} | link(req, 'services', service['id'])


def endpoint_view(req: FaceRequest, endpoint: Mapping[str, Any]) -> dict[str, Any]:
    return dict(endpoint) | link(req, 'endpoints', endpoint['id'])


def region_view(req: FaceRequest, region: str) -> dict[str, Any]:
    return {'id': region, 'description': '', 'parent_region_id': None} | link(req, 'regions', region)


def _matching(req: FaceRequest, records: list[dict[str, Any]], *names: str) -> list[dict[str, Any]]:
    wanted = {name: req.GET[name] for name in names if name in req.GET}
    return [item for item in records if all(item[name] == value for name, value in wanted.items())]


def _with_id(noun: str, records: list[dict[str, Any]], record_id: str) -> dict[str, Any]:
    found = next((item for item in records if item['id'] == record_id), None)
    if found is None:
        raise errors.NotFound(f'Could not find {noun}: {record_id}.')
    return found
