"""Common parts of the built-in volume service."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Protocol

from computeapi import errors
from computeapi.backends.image import Images
from computeapi.backends.rights import check_writer
from computeapi.backends.volume import Volume, VolumeListener, VolumeUsers
from computeapi.backends.volume.local.files import VolumeFiles
from computeapi.backends.volume.local.filling import Filler
from computeapi.backends.volume.local.messages import VolumeMessages
from computeapi.backends.volume.local.quotas import VolumeQuotas
from computeapi.backends.volume.local.records import SizedRecords
from computeapi.backends.volume.local.types import VolumeTypes
from computeapi.clock import utcnow
from computeapi.context import Context
from computeapi.db.engine import Store
from computeapi.db.volumes import VOLUMES

BACKEND = 'local'
"""The name of this storage: the backend name in extra specs, the host of its services, and the driver of its
volumes."""
STORAGE = {
    'volume_backend_name': BACKEND,
    'vendor_name': 'computeapi',
    'storage_protocol': BACKEND,
    'driver_version': '1.0',
}
"""This storage in the terms of Cinder's drivers. Extra specs of volume types may require other values."""


def host_of(zone: str) -> str:
    """The host of the volumes of a zone."""
    return f'{BACKEND}@{zone}'


def pool_of(zone: str) -> str:
    """The pool of the volumes of a zone."""
    return f'{host_of(zone)}#{BACKEND}'


class Exports(Protocol):
    """Exports of volumes to hosts on other machines, one for each attachment."""

    def connection(self, attachment_id: str, volume_id: str) -> dict[str, Any]:
        """The connection info in Cinder's format: `driver_volume_type` and its data. It is valid until `end` is
        called."""

    def end(self, attachment_id: str) -> None: ...

    def upkeep(self, is_held: Callable[[str], bool]) -> None:
        """Restart the exports that should work, and end those of attachments that no longer exist."""


class VolumeStore(SizedRecords[Volume]):
    """Volumes created from `images`, in availability `zones`; `types` are the initial types with their extra specs.

    `files` stores the data of volumes; without it they have none. `exports` makes volumes available to the hosts of
    agents. `listeners` are told when a volume that servers use was extended; `used` reports whether a server really
    uses a volume.
    """

    table, record = VOLUMES, Volume

    def __init__(
        self,
        store: Store,
        images: Images,
        *,
        types: Mapping[str, Mapping[str, str]] | None = None,
        zones: Sequence[str] = ('nova',),
        listeners: Iterable[VolumeListener] = (),
        used: VolumeUsers = lambda volume_id, server_id: True,
        clock: Callable[[], datetime] = utcnow,
        files: VolumeFiles | None = None,
        exports: Exports | None = None,
    ):
        super().__init__(store, clock)
        self.images = images
        self.zones = zones
        self.listeners = tuple(listeners)
        self.used = used
        self.types = VolumeTypes(store, types or {}, clock)
        self.quotas = VolumeQuotas(store)
        self.messages = VolumeMessages(store, clock)
        self.filler = Filler(store, clock, files)
        self.exports = exports

    def unexport(self, attachment_ids: Iterable[str]) -> None:
        """End the exports of these attachments, which no longer exist."""
        if self.exports is not None:
            for attachment_id in attachment_ids:
                self.exports.end(attachment_id)


def project_of(context: Context) -> str:
    """The project that owns what the caller creates; raises Forbidden if the caller may not create anything."""
    check_writer(context)
    if context.project_id is None:
        raise errors.Forbidden('This requires a token that is scoped to a project.')
    return context.project_id


def unfit(volume: Volume, what: str) -> errors.Invalid:
    return errors.Invalid(f'Invalid volume: Volume {volume.id} cannot be {what} while it is {volume.status}.')
