"""Images created from the data of volumes."""

import logging
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from computeapi import errors
from computeapi.backends.image import Image
from computeapi.backends.volume import Volume
from computeapi.backends.volume.local.base import VolumeStore, unfit
from computeapi.backends.volume.local.files import UPLOADED
from computeapi.context import Context
from computeapi.db.volumes import VOLUMES

LOG = logging.getLogger(__name__)


class VolumeUpload(VolumeStore):
    def upload(
        self,
        context: Context,
        volume_id: str,
        name: str,
        *,
        disk_format: str = 'raw',
        container_format: str = 'bare',
        visibility: str = 'private',
        protected: bool = False,
        force: bool = False,
    ) -> tuple[Volume, Image]:
        """Start to create an image from an available volume (with force also one in use), which is `uploading`
        meanwhile.

        Raises Invalid for formats that cannot be written here.
        """
        if disk_format not in UPLOADED:
            raise errors.Invalid(f'disk_format must be one of {", ".join(UPLOADED)}.')
        facts: dict[str, Any] = {'disk_format': disk_format, 'container_format': container_format}
        facts |= {'visibility': visibility, 'protected': protected}
        with self._locked(context, volume_id) as (connection, former):
            if former.status not in (('available', 'in-use') if force else ('available',)):
                raise unfit(former, 'uploaded')
            volume = replace(former, status='uploading')
            # A simulated upload completes before anybody could see the status.
            if self.filler.files is not None:
                volume = self._write(connection, former, {'status': volume.status})
            data = self.filler.giving(volume_id)
        try:
            properties = volume.image_properties
            image = self.images.create(context, name, min_disk=volume.size, properties=properties, **facts)
        except BaseException:
            self.filler.settle(VOLUMES, volume_id, former.status)
            data.end()
            raise

        def done(worked: bool) -> None:
            if not worked:
                self._forget(context, image)
            self.filler.settle(VOLUMES, volume_id, former.status)

        def send(blocks: Iterator[bytes]) -> None:
            self.images.upload(context, image.id, blocks)

        data.send(disk_format, send, done)
        return volume, image

    def _forget(self, context: Context, image: Image) -> None:
        """Delete an image that has no data, and never will."""
        try:
            self.images.update(context, image.id, protected=False)
            self.images.delete(context, image.id)
        except errors.Error as error:
            LOG.warning('Image %s, which has no data, could not be deleted: %s', image.id, error)
