"""Cleans up virtual machines and exports when a temporary cloud ends."""

import logging

from computeapi.backends.hypervisor import HypervisorError
from computeapi.backends.volume.local import LocalVolumes
from computeapi.compute.servers import placement
from computeapi.db import servers
from computeapi.main import Service

LOG = logging.getLogger(__name__)


def end_all(service: Service) -> None:
    """Destroy the machines of all servers, including deleted ones."""
    for server_id, host in service.hypervisor.machines():
        with service.store.read() as connection:
            server = servers.get(connection, server_id, deleted=True)
        try:
            if server is not None:
                service.hypervisor.destroy(placement.at(server, host))
        except HypervisorError as error:
            LOG.warning('The virtual machine of %s is still running: %s', server_id, error)


def end_exports(service: Service) -> None:
    """Stop exporting volumes to hosts."""
    if isinstance(service.volumes, LocalVolumes) and service.volumes.exports is not None:
        service.volumes.exports.upkeep(lambda attachment_id: False)
