"""Image signatures, which the image service verifies before a host creates a disk from an image."""

from computeapi.compute.tasks.job import Job

# The argument of a task: the images that need not be checked again when it is resumed.
CHECKED = 'checked_images'


def check_own(job: Job) -> None:
    """Check the images that the server is created from. Block storage checks what it writes to a volume."""
    server = job.server
    check(job, None if job.on_volume else server.image_id, server.kernel_id, server.ramdisk_id)


def check(job: Job, *image_ids: str | None) -> None:
    """SignatureVerificationFailed or CertificateValidationFailed for images that are not signed as required."""
    checked: list[str] = job.arguments.get(CHECKED, [])
    for image_id in filter(None, image_ids):
        trusted = job.server.trusted_image_certificates or ()
        if image_id not in checked and job.platform.images.check_signature(job.context, image_id, trusted):
            checked = [*checked, image_id]
            job.platform.tasks.note(job.task, {CHECKED: checked})
