"""Where the services are: every URL is made from the one that the client came by."""

import uuid
from collections.abc import Mapping, Sequence
from typing import Any

INTERFACES = ('public', 'internal', 'admin')
SHOWN = ('id', 'interface', 'region', 'region_id', 'url')


class Catalog:
    """The services of a cloud that all live on one host; each is a type, a name and a path.

    services, regions, endpoints: the records that it is made of.
    """

    def __init__(self, services: Sequence[Mapping[str, str]], region: str):
        self.region = region
        self.regions = [{'id': region, 'description': '', 'parent_region_id': None}]
        self.paths = {_stable_id(each['type'], each['name']): each['path'] for each in services}
        self.services = [
            {'id': record_id, 'type': each['type'], 'name': each['name'], 'enabled': True, 'description': ''}
            for record_id, each in zip(self.paths, services, strict=True)
        ]

    def endpoints(self, host_url: str) -> list[dict[str, Any]]:
        return [endpoint for service in self.services for endpoint in self._endpoints_of(service, host_url)]

    def document(self, host_url: str) -> list[dict[str, Any]]:
        """The catalog as a token shows it."""
        return [
            {
                **{key: service[key] for key in ('id', 'type', 'name')},
                'endpoints': [{key: each[key] for key in SHOWN} for each in self._endpoints_of(service, host_url)],
            }
            for service in self.services
        ]

    def _endpoints_of(self, service: Mapping[str, Any], host_url: str) -> list[dict[str, Any]]:
        return [
            {
                'id': _stable_id(service['type'], service['name'], self.region, interface),
                'service_id': service['id'],
                'interface': interface,
                'region': self.region,
                'region_id': self.region,
                'url': host_url + self.paths[service['id']],
                'enabled': True,
            }
            for interface in INTERFACES
        ]


def _stable_id(*parts: str) -> str:
    """An id that a restart does not change."""
    return uuid.uuid5(uuid.NAMESPACE_URL, '/'.join(parts)).hex
