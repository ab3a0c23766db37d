"""Images: the sources of servers, and the results of snapshots."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol

import orjson

from computeapi.context import Context


@dataclass(frozen=True)
class Image:
    """An image as Glance knows it; `size` in bytes, `min_disk` in GiB, `min_ram` in MiB.

    `status` is queued, saving, active or deactivated; `checksum` is the MD5 of the data, `hash_value` its SHA-512.
    `properties` holds everything that has no attribute here (hw_*, os_*, block_device_mapping ...), as text.
    """

    id: str
    name: str | None
    status: str
    owner: str | None
    visibility: str = 'private'
    size: int | None = None
    virtual_size: int | None = None
    min_disk: int = 0
    min_ram: int = 0
    disk_format: str | None = None
    container_format: str | None = None
    checksum: str | None = None
    hash_value: str | None = None
    protected: bool = False
    hidden: bool = False
    tags: Sequence[str] = ()
    properties: Mapping[str, Any] = field(default_factory=dict)
    created_at: datetime | None = None
    updated_at: datetime | None = None


class Images(Protocol):
    """Queries are restricted to what the caller may see; all other images raise ImageNotFound.

    trusted_certificates: the default IDs of trusted certificates for servers whose owners give none; may be empty.
    """

    trusted_certificates: Sequence[str]

    def address(self, context: Context) -> str | None:
        """The URL of the image service for clients; None if it is this service itself."""

    def get(self, context: Context, image_id: str) -> Image: ...

    def get_many(self, context: Context, image_ids: Iterable[str]) -> dict[str, Image]:
        """Those of the images that exist and are visible, by ID, without a query for each."""

    def list(
        self,
        context: Context,
        *,
        filters: Mapping[str, Any] | None = None,
        sort: Sequence[tuple[str, str]] = (('created_at', 'desc'),),
        limit: int | None = None,
        marker: str | None = None,
    ) -> list[Image]:
        """Visible images, newest first unless `sort` says otherwise, at most 1000; Invalid for an unknown marker.

        A filter is an attribute of Image or a property with its value, or a list of alternative values. An image must
        have all of `tags`; `size_min` and `size_max` are bounds; `created_at` and `updated_at` take a pair such as
        ('gte', moment). Hidden images are left out; with `hidden` True only they are returned. Community images are
        left out unless `visibility` is community or all."""

    def create(self, context: Context, name: str, *, image_id: str | None = None, **kwargs: Any) -> Image:
        """Create a queued image of the caller's project without data; `kwargs` are attributes of Image. As with Glance
        the caller may choose the ID; Conflict if it is taken.

        Properties that are not text are converted (lists and dicts become JSON, None is omitted)."""

    def upload(self, context: Context, image_id: str, data: Iterable[bytes]) -> Image:
        """Store the data; the image becomes active, with size and checksum.

        Conflict if it has data already, TooLarge above the configured size. After a failed upload the image returns to
        queued, at once or soon."""

    def download(self, context: Context, image_id: str) -> Iterator[bytes]:
        """The data in pieces; ImageNotActive if there are none, Forbidden if the image is deactivated."""

    def check_signature(self, context: Context, image_id: str, trusted: Sequence[str]) -> bool:
        """Whether the data must be signed; if so, they are verified: SignatureVerificationFailed if the signature is
        wrong, CertificateValidationFailed if its certificate is not issued by any of those with the IDs *trusted*."""

    def update(self, context: Context, image_id: str, **kwargs: Any) -> Image:
        """Change attributes; `properties` replaces the whole mapping."""

    def delete(self, context: Context, image_id: str) -> None:
        """Forbidden if the image is protected or belongs to another project."""


def texts(properties: Mapping[str, Any]) -> dict[str, str]:
    """Properties as image services store them."""
    return {name: _text(value) for name, value in properties.items() if value is not None}


def _text(value: Any) -> str:
    return orjson.dumps(value).decode() if isinstance(value, dict | list | tuple) else str(value)
