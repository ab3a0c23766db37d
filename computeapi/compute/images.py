"""Images as the compute API shows and changes them: their metadata are the properties of the image."""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import orjson

from computeapi.backends.image import Image, Images
from computeapi.compute.quotas import Quotas, check_image_metadata
from computeapi.context import Context
from computeapi.errors import Forbidden, ImageNotFound, NotFound

Metadata = dict[str, Any]
ATTRIBUTES = frozenset(field.name for field in fields(Image)) | {'size_min', 'size_max'}
"""The attributes that a filter of images may name, in addition to properties."""
# Properties that contain lists of disks, which image services store as text.
LISTS = frozenset({'block_device_mapping', 'mappings'})


class ImageProxy:
    """Errors: ImageNotFound; Forbidden for changes to an image of another project."""

    def __init__(self, images: Images, quotas: Quotas):
        self.images, self.quotas = images, quotas

    def get(self, context: Context, image_id: str) -> Image:
        try:
            return self.images.get(context, image_id)
        except ImageNotFound:
            raise ImageNotFound('Image not found.') from None

    def delete(self, context: Context, image_id: str) -> None:
        self.get(context, image_id)
        try:
            self.images.delete(context, image_id)
        except Forbidden:
            raise Forbidden('You are not allowed to delete the image.') from None

    # ------------------------------------------------------------ metadata

    def metadata(self, context: Context, image_id: str) -> Metadata:
        return metadata_of(self.get(context, image_id))

    def add_metadata(self, context: Context, image_id: str, items: Mapping[str, Any]) -> Metadata:
        """Set these items, keep the others, and return all of them. OverQuota."""
        return self._write(context, image_id, {**self.metadata(context, image_id), **items})

    def replace_metadata(self, context: Context, image_id: str, items: Mapping[str, Any]) -> Metadata:
        self.get(context, image_id)
        return self._write(context, image_id, items)

    def delete_metadata(self, context: Context, image_id: str, key: str) -> None:
        """NotFound if the image has no such item."""
        items = self.metadata(context, image_id)
        if key not in items:
            raise NotFound('Invalid metadata key')
        del items[key]
        self._write(context, image_id, items)

    def _write(self, context: Context, image_id: str, items: Mapping[str, Any]) -> Metadata:
        check_image_metadata(self.quotas.limits(context.project_id or '', context.user_id), len(items))
        try:
            return metadata_of(self.images.update(context, image_id, properties=dict(items)))
        except Forbidden:
            raise Forbidden(f'Not authorized for image {image_id}.') from None


def metadata_of(image: Image) -> Metadata:
    """The properties of an image; lists of disks are decoded."""
    return {name: disks(value) if name in LISTS else value for name, value in image.properties.items()}


def disks(text: Any) -> Any:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        # Users can write anything into the properties of an image.
        return text
