"""Information about the share service itself."""

import uuid
from typing import Any

from computeapi.backends.share import ZONE
from computeapi.backends.share.local import MAX_GIGABYTES, MAX_SHARES
from computeapi.standalone.access import CALLER
from computeapi.standalone.share.service import ManilaController
from computeapi.web.controller import api_version, operation
from computeapi.web.request import Request

# Of what this service does not have.
NONE = dict.fromkeys(('ShareNetworks', 'ShareSnapshots', 'SnapshotGigabytes'), 0)


class ManilaInformation(ManilaController):
    @operation('GET', '/limits', policy=CALLER)
    def limits(self, req: Request) -> dict[str, Any]:
        shares, gigabytes = self.shares.usage(req.context)
        most = NONE | {'Shares': MAX_SHARES, 'ShareGigabytes': MAX_GIGABYTES}
        used = NONE | {'Shares': shares, 'ShareGigabytes': gigabytes}
        absolute = {f'maxTotal{name}': limit for name, limit in most.items()}
        absolute |= {f'total{name}Used': count for name, count in used.items()}
        return {'limits': {'rate': [], 'absolute': absolute}}

    @operation('GET', '/availability-zones', policy=CALLER)
    @api_version('2.7')
    def zones(self, req: Request) -> dict[str, Any]:
        zone = {'id': str(uuid.uuid5(uuid.NAMESPACE_URL, f'computeapi:share-zone:{ZONE}')), 'name': ZONE}
        return {'availability_zones': [{**zone, 'created_at': None, 'updated_at': None}]}
