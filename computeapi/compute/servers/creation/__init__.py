"""Making servers: what may be asked (`request`), whether it can be had (`boot`, `disks`, `networks`, `destinations`),
and writing it down for the workers (`builder`)."""

from computeapi.compute.servers.creation.builder import Builder
from computeapi.compute.servers.creation.request import Device, NetworkRequest, Rights, ServerRequest
from computeapi.compute.servers.creation.rows import Plan

__all__ = ['Builder', 'Device', 'NetworkRequest', 'Plan', 'Rights', 'ServerRequest']
