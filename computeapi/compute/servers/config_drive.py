"""The disk on which a guest finds its documents, where no metadata service tells it."""

from collections.abc import Mapping

from computeapi.compute.guest.reader import GuestDocuments
from computeapi.compute.tasks.job import Job

MANDATORY = 'mandatory'


def of(job: Job) -> Mapping[str, bytes] | None:
    """What the server's driver is to put there; None: the server has no config drive."""
    server, conf = job.server, job.platform.conf
    wanted = server.config_drive or server.image_properties.get('img_config_drive') == MANDATORY
    if not wanted and not conf.force_config_drive:
        return None
    return GuestDocuments(job.platform).drive(job.elevated, server)
