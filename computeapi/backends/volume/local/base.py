"""What the chapters of the local volumes share: the store, and changing one volume at a time."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from computeapi import errors
from computeapi.backends.image import Images
from computeapi.backends.volume import Volume, VolumeListener, VolumeUsers
from computeapi.backends.volume.local.messages import VolumeMessages
from computeapi.backends.volume.local.quotas import VolumeQuotas
from computeapi.backends.volume.local.types import VolumeTypes
from computeapi.clock import utcnow
from computeapi.context import Context
from computeapi.db.engine import Store
from computeapi.db.volumes import VOLUMES

MAX_METADATA = 128
MAX_IMAGE_METADATA = 256
"""All that an image may have, and more that is written about it on the volume."""

Change = Callable[[Volume], Mapping[str, Any]]
"""From a volume as it is to the facts that shall differ."""


class VolumeStore:
    """Volumes made from `images`, in availability `zones`; `types` are those to begin with and their extra specs.

    `listeners` are told when a volume that servers use has grown; `used` tells whether a server really uses one.
    """

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
    ):
        self.store = store
        self.images = images
        self.zones = zones
        self.listeners = tuple(listeners)
        self.used = used
        self.clock = clock
        self.types = VolumeTypes(store, types or {}, clock)
        self.quotas = VolumeQuotas(store)
        self.messages = VolumeMessages(store, clock)

    def change(self, context: Context, volume_id: str, change: Change) -> Volume:
        """Change facts that depend on the volume as it is: nothing comes between reading and writing."""
        with self._locked(context, volume_id) as (connection, volume):
            return self._write(connection, volume, change(volume))

    @contextmanager
    def _locked(self, context: Context, volume_id: str) -> Iterator[tuple[sa.Connection, Volume]]:
        """A transaction in which nobody else changes the volume."""
        with self.store.write() as connection:
            yield connection, self._lock(connection, context, volume_id)

    def _lock(self, connection: sa.Connection, context: Context, volume_id: str) -> Volume:
        return Volume(**VOLUMES.get(connection, context, volume_id, lock=True))

    def _write(self, connection: sa.Connection, volume: Volume, facts: Mapping[str, Any]) -> Volume:
        check_metadata(facts)
        facts = {**facts, 'updated_at': self.clock()}
        VOLUMES.update(connection, volume.id, facts)
        return replace(volume, **facts)


def check_metadata(facts: Mapping[str, Any]) -> None:
    for name, most in (('metadata', MAX_METADATA), ('image_metadata', MAX_IMAGE_METADATA)):
        if len(facts.get(name, ())) > most:
            raise errors.Invalid(f'{name} must not have more than {most} items.')


def project_of(context: Context) -> str:
    """The project that what the caller makes belongs to."""
    if context.project_id is None:
        raise errors.Forbidden('This takes a token that is scoped to a project.')
    return context.project_id


def unfit(volume: Volume, what: str) -> errors.Invalid:
    return errors.Invalid(f'Invalid volume: Volume {volume.id} cannot be {what} while it is {volume.status}.')
