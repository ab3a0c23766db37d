"""The disk on which a guest finds its documents, where no metadata service tells it."""

from collections.abc import Mapping
from typing import Any

from computeapi.compute.guest.reader import GuestDocuments
from computeapi.compute.platform import Platform
from computeapi.compute.tasks.job import Job
from computeapi.db.servers import Server

MANDATORY = 'mandatory'
# Among the arguments of a task, sealed.
PASSWORD = 'password'


def of(job: Job, server: Server) -> Mapping[str, bytes] | None:
    """What the driver is to put there, for the job's server on the host that makes it; None: it has no config drive."""
    conf = job.platform.conf
    wanted = server.config_drive or server.image_properties.get('img_config_drive') == MANDATORY
    if not wanted and not conf.force_config_drive:
        return None
    password = job.platform.seal.opened(job.arguments.get(PASSWORD))
    return GuestDocuments(job.platform).drive(job.elevated, server, password)


def with_password(platform: Platform, arguments: Mapping[str, Any], password: str | None) -> dict[str, Any]:
    """The arguments of a task that makes a guest, whose config drive is to say this password, if it can be sealed
    until then."""
    sealed = platform.seal.closed(password)
    return {**arguments} if sealed is None else {**arguments, PASSWORD: sealed}
