"""Creating servers: the request (`request`), its checks (`boot`, `disks`, `networks`, `destinations`), and recording it
for the workers (`builder`)."""

from computeapi.compute.servers.creation.builder import Builder
from computeapi.compute.servers.creation.request import Device, NetworkRequest, Rights, ServerRequest
from computeapi.compute.servers.creation.rows import Plan

__all__ = ['Builder', 'Device', 'NetworkRequest', 'Plan', 'Rights', 'ServerRequest']
