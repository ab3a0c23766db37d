"""The config drive: a disk with the documents of a guest, for guests that cannot use a metadata service."""

from collections.abc import Mapping
from typing import Any

from computeapi.compute.guest.reader import GuestDocuments
from computeapi.compute.platform import Platform
from computeapi.compute.tasks.job import Job
from computeapi.db.servers import Server

MANDATORY = 'mandatory'
# An argument of a task, encrypted.
PASSWORD = 'password'


def of(job: Job, server: Server) -> Mapping[str, bytes] | None:
    """The files for the driver, for the job's server on the host that creates it; None: it has no config drive."""
    conf = job.platform.conf
    wanted = server.config_drive or server.image_properties.get('img_config_drive') == MANDATORY
    if not wanted and not conf.force_config_drive:
        return None
    password = job.platform.cipher.decrypt(job.arguments.get(PASSWORD))
    return GuestDocuments(job.platform).drive(job.elevated, server, password)


def with_password(platform: Platform, arguments: Mapping[str, Any], password: str | None) -> dict[str, Any]:
    """The arguments of a task that creates a guest, with the password for its config drive, if it can be encrypted
    until then."""
    encrypted = platform.cipher.encrypt(password)
    return {**arguments} if encrypted is None else {**arguments, PASSWORD: encrypted}
