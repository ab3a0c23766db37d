"""The storage backend as administrators see it: one pool for each zone."""

from typing import Any

from computeapi.backends.volume.local.base import BACKEND, STORAGE, host_of, pool_of
from computeapi.errors import NotFound
from computeapi.standalone.access import ADMIN
from computeapi.standalone.query import truth
from computeapi.standalone.volume.service import CinderController
from computeapi.web.controller import operation
from computeapi.web.request import Request

ABILITIES = {'thin_provisioning_support': True, 'multiattach': True, 'QoS_support': False}
ENDLESS = ('infinite', 'infinite')
"""The capacity for volumes without data."""
PROPERTIES = {
    'thin_provisioning': ('Thin provisioning', 'Sets thin provisioning.', 'thin_provisioning_support'),
    'qos': ('QoS', 'Enables QoS.', 'QoS_support'),
}


class CinderBackends(CinderController):
    @operation('GET', '/scheduler-stats/get_pools', policy=ADMIN)
    def pools(self, req: Request) -> dict[str, Any]:
        wanted, names = req.parameter('name', ''), map(pool_of, self.volumes.availability_zones(req.context))
        pools: list[dict[str, Any]] = [{'name': name} for name in names if wanted in ('', name)]
        if truth('detail', req.parameter('detail', 'false')):
            capabilities = self._capabilities()
            for pool in pools:
                pool['capabilities'] = capabilities
        return {'pools': pools}

    def _capabilities(self) -> dict[str, Any]:
        """The capabilities of every pool: all pools share one disk."""
        files = self.volumes.filler.files
        total, free = ENDLESS if files is None else files.room()
        room = {'total_capacity_gb': total, 'free_capacity_gb': free, 'reserved_percentage': 0}
        seen = {'pool_name': BACKEND, 'timestamp': self.volumes.clock().isoformat()}
        return {**STORAGE, **ABILITIES, **room, **seen}

    @operation('GET', '/capabilities/{host}', policy=ADMIN)
    def capabilities(self, req: Request, host: str) -> dict[str, Any]:
        """Show what the extra specs of volume types may require."""
        if host not in map(host_of, self.volumes.availability_zones(req.context)):
            raise NotFound(f'Service {host} could not be found.')
        properties = {
            name: {'title': title, 'description': text, 'type': 'boolean', 'default': ABILITIES[ability]}
            for name, (title, text, ability) in PROPERTIES.items()
        }
        about = {'namespace': f'OS::Storage::Capabilities::{host}', 'pool_name': BACKEND, 'display_name': BACKEND}
        rest: dict[str, Any] = {'description': None, 'visibility': 'public', 'replication_targets': []}
        return {**STORAGE, **about, **rest, 'properties': properties}
