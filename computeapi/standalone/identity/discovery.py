"""The versions of the identity API, and the catalog as records."""

from collections.abc import Iterable
from typing import Any

from computeapi import errors
from computeapi.standalone.access import ADMIN, CALLER
from computeapi.standalone.identity.base import KEYSTONE, KeystoneController, collection, url
from computeapi.web.controller import operation
from computeapi.web.request import Request


def versions(url: str) -> dict[str, Any]:
    return {'versions': {'values': [version(url)['version']]}}


def version(url: str) -> dict[str, Any]:
    return {
        'version': {
            'id': f'v{KEYSTONE.max}',
            'status': 'stable',
            'updated': '2020-04-07T00:00:00Z',
            'links': [{'rel': 'self', 'href': f'{url}/v3/'}],
            'media-types': [{'base': 'application/json', 'type': 'application/vnd.openstack.identity-v3+json'}],
        }
    }


class CatalogRecords(KeystoneController):
    """The services, endpoints and regions of the catalog."""

    @operation('GET', '/services', policy=ADMIN)
    def services(self, req: Request) -> dict[str, Any]:
        return _listed(req, 'services', self.catalog.services, 'type', 'name')

    @operation('GET', '/services/{service_id}', policy=ADMIN)
    def service(self, req: Request, service_id: str) -> dict[str, Any]:
        return _one(req, 'service', self.catalog.services, service_id)

    @operation('GET', '/endpoints', policy=ADMIN)
    def endpoints(self, req: Request) -> dict[str, Any]:
        endpoints = self.catalog.endpoints(req.host_url)
        return _listed(req, 'endpoints', endpoints, 'service_id', 'interface', 'region_id')

    @operation('GET', '/endpoints/{endpoint_id}', policy=ADMIN)
    def endpoint(self, req: Request, endpoint_id: str) -> dict[str, Any]:
        return _one(req, 'endpoint', self.catalog.endpoints(req.host_url), endpoint_id)

    @operation('GET', '/regions', policy=CALLER)
    def regions(self, req: Request) -> dict[str, Any]:
        return _listed(req, 'regions', self.catalog.regions)

    @operation('GET', '/regions/{region_id}', policy=CALLER)
    def region(self, req: Request, region_id: str) -> dict[str, Any]:
        return _one(req, 'region', self.catalog.regions, region_id)


def _listed(req: Request, name: str, records: Iterable[dict[str, Any]], *filters: str) -> dict[str, Any]:
    wanted = {each: req.parameter(each) for each in filters if each in req.query}
    found = [record for record in records if wanted.items() <= record.items()]
    return collection(req, name, found, lambda req, record: _view(req, name, record))


def _one(req: Request, noun: str, records: Iterable[dict[str, Any]], record_id: str) -> dict[str, Any]:
    for record in records:
        if record['id'] == record_id:
            return {noun: _view(req, f'{noun}s', record)}
    raise errors.NotFound(f'Could not find {noun}: {record_id}.')


def _view(req: Request, name: str, record: dict[str, Any]) -> dict[str, Any]:
    return record | {'links': {'self': url(req, name, record['id'])}}
