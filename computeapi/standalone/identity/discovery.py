"""The versions of the identity API, and the catalog as records."""

from collections.abc import Mapping
from typing import Any

from computeapi import errors
from computeapi.standalone.access import ADMIN, CALLER
from computeapi.standalone.identity.base import KEYSTONE, KeystoneController, collection, link
from computeapi.web.controller import operation
from computeapi.web.request import Request


def versions(url: str) -> dict[str, Any]:
    return {'versions': {'values': [_version(url)]}}


def version(url: str) -> dict[str, Any]:
    return {'version': _version(url)}


def _version(url: str) -> dict[str, Any]:
    return {
        'id': f'v{KEYSTONE.max}',
        'status': 'stable',
        'updated': '2020-04-07T00:00:00Z',
        'links': [{'rel': 'self', 'href': f'{url}/v3/'}],
        'media-types': [{'base': 'application/json', 'type': 'application/vnd.openstack.identity-v3+json'}],
    }


class CatalogRecords(KeystoneController):
    """The services, endpoints and regions of the catalog."""

    @operation('GET', '/services', policy=ADMIN)
    def services(self, req: Request) -> dict[str, Any]:
        return collection(req, 'services', _matching(req, self.catalog.services, 'type', 'name'), service_view)

    @operation('GET', '/services/{service_id}', policy=ADMIN)
    def service(self, req: Request, service_id: str) -> dict[str, Any]:
        return {'service': service_view(req, _with_id('service', self.catalog.services, service_id))}

    @operation('GET', '/endpoints', policy=ADMIN)
    def endpoints(self, req: Request) -> dict[str, Any]:
        found = _matching(req, self.catalog.endpoints(req.host_url), 'service_id', 'interface', 'region_id')
        return collection(req, 'endpoints', found, endpoint_view)

    @operation('GET', '/endpoints/{endpoint_id}', policy=ADMIN)
    def endpoint(self, req: Request, endpoint_id: str) -> dict[str, Any]:
        return {'endpoint': endpoint_view(req, _with_id('endpoint', self.catalog.endpoints(req.host_url), endpoint_id))}

    @operation('GET', '/regions', policy=CALLER)
    def regions(self, req: Request) -> dict[str, Any]:
        return collection(req, 'regions', [self.catalog.region], region_view)

    @operation('GET', '/regions/{region_id}', policy=CALLER)
    def region(self, req: Request, region_id: str) -> dict[str, Any]:
        if region_id != self.catalog.region:
            raise errors.NotFound(f'Could not find region: {region_id}.')
        return {'region': region_view(req, region_id)}


def service_view(req: Request, service: Mapping[str, Any]) -> dict[str, Any]:
    shown = {key: service[key] for key in ('id', 'type', 'name')}
    return shown | {'enabled': True, 'description': ''} | link(req, 'services', service['id'])


def endpoint_view(req: Request, endpoint: Mapping[str, Any]) -> dict[str, Any]:
    return dict(endpoint) | link(req, 'endpoints', endpoint['id'])


def region_view(req: Request, region: str) -> dict[str, Any]:
    return {'id': region, 'description': '', 'parent_region_id': None} | link(req, 'regions', region)


def _matching(req: Request, records: list[dict[str, Any]], *names: str) -> list[dict[str, Any]]:
    wanted = {name: req.parameter(name) for name in names if name in req.query}
    return [item for item in records if all(item[name] == value for name, value in wanted.items())]


def _with_id(noun: str, records: list[dict[str, Any]], record_id: str) -> dict[str, Any]:
    found = next((item for item in records if item['id'] == record_id), None)
    if found is None:
        raise errors.NotFound(f'Could not find {noun}: {record_id}.')
    return found
