"""What the chapters of the local volumes share."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Protocol

from computeapi import errors
from computeapi.backends.image import Images
from computeapi.backends.rights import check_writer
from computeapi.backends.volume import Volume, VolumeListener, VolumeUsers
from computeapi.backends.volume.local.files import VolumeFiles
from computeapi.backends.volume.local.filling import Filler
from computeapi.backends.volume.local.kept import KeptWithSize
from computeapi.backends.volume.local.messages import VolumeMessages
from computeapi.backends.volume.local.quotas import VolumeQuotas
from computeapi.backends.volume.local.types import VolumeTypes
from computeapi.clock import utcnow
from computeapi.context import Context
from computeapi.db.engine import Store
from computeapi.db.volumes import VOLUMES

BACKEND = 'local'
"""What this storage is called: by types that ask for it, as the host of its services, as the driver of its volumes."""


def host_of(zone: str) -> str:
    """What the storage of a zone is called among the hosts of volumes."""
    return f'{BACKEND}@{zone}'


def pool_of(zone: str) -> str:
    """What the volumes of a zone are in."""
    return f'{host_of(zone)}#{BACKEND}'


class Exports(Protocol):
    """How hosts on other machines reach volumes, each by its attachment."""

    def connection(self, attachment_id: str, volume_id: str) -> dict[str, Any]:
        """As Cinder says it: `driver_volume_type`, and what that takes; from now on and until `end`."""

    def end(self, attachment_id: str) -> None: ...

    def upkeep(self, is_held: Callable[[str], bool]) -> None:
        """Let those work that should, and end those of attachments that are not there any more."""


class VolumeStore(KeptWithSize[Volume]):
    """Volumes made from `images`, in availability `zones`; `types` are those to begin with and their extra specs.

    `files` hold their data; without these they have none. `exports` let the hosts of agents reach them. `listeners`
    are told when a volume that servers use has grown; `used` tells whether a server really uses one.
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
        """Whoever uses volumes by these attachments, which are gone, does not any more."""
        if self.exports is not None:
            for attachment_id in attachment_ids:
                self.exports.end(attachment_id)


def project_of(context: Context) -> str:
    """The project that what the caller makes belongs to; Forbidden to who may make nothing."""
    check_writer(context)
    if context.project_id is None:
        raise errors.Forbidden('This takes a token that is scoped to a project.')
    return context.project_id


def unfit(volume: Volume, what: str) -> errors.Invalid:
    return errors.Invalid(f'Invalid volume: Volume {volume.id} cannot be {what} while it is {volume.status}.')
