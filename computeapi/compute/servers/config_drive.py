"""The disk on which a guest finds its documents, where no metadata service tells it."""

from collections.abc import Mapping
from typing import Any

from computeapi.compute.guest.reader import GuestDocuments
from computeapi.compute.platform import Platform
from computeapi.compute.tasks.job import Job

MANDATORY = 'mandatory'
# Among the arguments of a task, sealed.
PASSWORD = 'password'


def of(job: Job) -> Mapping[str, bytes] | None:
    """What the server's driver is to put there; None: the server has no config drive."""
    server, conf = job.server, job.platform.conf
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
