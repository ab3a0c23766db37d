"""Making images of a server."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from computeapi.backends.image import Images
from computeapi.backends.volume import Volumes
from computeapi.compute.tasks import Task, thawed
from computeapi.compute.work.job import Job, aside, unchanged, work
from computeapi.context import Context
from computeapi.db.servers import Server
from computeapi.errors import Error, ImageNotFound, SnapshotNotFound

if TYPE_CHECKING:
    from computeapi.compute.cloud import Cloud

LOG = logging.getLogger(__name__)


def discard_image(cloud: Cloud, task: Task, server: Server | None) -> None:
    """Nobody will fill the image that was made for the task."""
    if 'image_id' in task.arguments:
        discard(cloud.images, thawed(task.context).elevated(), task.arguments['image_id'])


def without_image(job: Job, error: Exception) -> None:
    """The image goes and the server stays as it was."""
    discard_image(job.cloud, job.task, job.server)
    unchanged(job, error)


@work('snapshot', 'image_snapshot', 'image_uploading', failed=without_image, undo=discard_image)
def snapshot(job: Job) -> None:
    """Fill the image that the request made."""
    with job.event('compute_snapshot_instance'):
        fill(job, job.arguments['image_id'], 'image_uploading')
    job.finish()


@work('backup', 'image_backup', failed=without_image, undo=discard_image)
def backup(job: Job) -> None:
    """The same, and the oldest backups of the type beyond the number that is kept are deleted."""
    with job.event('compute_backup_instance'):
        # An image that does not stay need not be filled, and a rotation that is run again need not find it.
        if job.arguments['rotation']:
            fill(job, job.arguments['image_id'], 'image_backup')
        rotate(job)
    job.finish()


def fill(job: Job, image_id: str, uploading: str) -> None:
    """Upload the server's disk, unless that was done before."""
    if job.cloud.images.get(job.elevated, image_id).status != 'active':
        job.save(task_state=uploading)
        job.cloud.images.upload(job.elevated, image_id, job.driver.snapshot(job.server))


def rotate(job: Job) -> None:
    """Delete old backups. One that may not be deleted is none the worse for the new one."""
    # Anybody can give an image these properties: only the project's own images are its backups.
    wanted = {
        'owner': job.context.project_id,
        'instance_uuid': job.server.uuid,
        'backup_type': job.arguments['backup_type'],
        'image_type': 'backup',
    }
    for image in job.cloud.images.list(job.elevated, filters=wanted)[job.arguments['rotation'] :]:
        try:
            discard(job.cloud.images, job.elevated, image.id)
        except Error:
            LOG.warning('Backup %s of server %s could not be deleted', image.id, job.server.uuid, exc_info=True)


def discard(images: Images, context: Context, image_id: str) -> None:
    """Delete an image; one that is gone, or never was, is no error."""
    try:
        images.delete(context, image_id)
    except ImageNotFound:
        return


@aside('image_of_volumes')
def image_of_volumes(job: Job) -> None:
    """Whoever made an image of volumes did not come to the end of it: it goes, and the snapshots of the volumes."""
    take_back(job.cloud.images, job.cloud.volumes, job.elevated, job.arguments)
    with job.store.write() as connection:
        job.close(connection, 'Error')


def take_back(images: Images, volumes: Volumes, context: Context, made: Mapping[str, Any]) -> None:
    """Delete the image and the snapshots, as far as they were made."""
    discard(images, context, made['image_id'])
    for snapshot_id in made['snapshots']:
        try:
            volumes.delete_snapshot(context, snapshot_id)
        except SnapshotNotFound:
            continue
