"""Where the services are: every URL is made from the one that the client came by."""

import uuid
from collections.abc import Mapping, Sequence
from typing import Any

INTERFACES = ('public', 'internal', 'admin')


class Catalog:
    """The services of a cloud that all live on one host; each is a type, a name and a path."""

    def __init__(self, services: Sequence[Mapping[str, str]], region: str):
        self.region = region
        self.services = [{'id': _stable_id(service['type'], service['name']), **service} for service in services]

    def endpoints(self, host_url: str) -> list[dict[str, Any]]:
        return [endpoint for service in self.services for endpoint in self._endpoints_of(service, host_url)]

    def document(self, host_url: str) -> list[dict[str, Any]]:
        """The catalog as a token shows it."""
        shown = ('id', 'interface', 'region', 'region_id', 'url')
        return [
            {
                'id': service['id'],
                'type': service['type'],
                'name': service['name'],
                'endpoints': [{key: each[key] for key in shown} for each in self._endpoints_of(service, host_url)],
            }
            for service in self.services
        ]

    def _endpoints_of(self, service: Mapping[str, str], host_url: str) -> list[dict[str, Any]]:
        return [
            {
                'id': _stable_id(service['type'], service['name'], self.region, interface),
                'service_id': service['id'],
                'interface': interface,
                'region': self.region,
                'region_id': self.region,
                'url': host_url + service['path'],
                'enabled': True,
            }
            for interface in INTERFACES
        ]


def _stable_id(*parts: str) -> str:
    """An id that a restart does not change."""
    return uuid.uuid5(uuid.NAMESPACE_URL, '/'.join(parts)).hex
