"""Attachments of volumes.

An attachment is reserved, then attaching once its connector is known, then attached. The status of the volume follows
from its attachments.
"""

import builtins
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import orjson
import sqlalchemy as sa

from computeapi import errors, randomness
from computeapi.backends.rights import serving
from computeapi.backends.volume import Attachment, Volume
from computeapi.backends.volume.local.base import VolumeStore, unfit
from computeapi.context import Context
from computeapi.db import volumes
from computeapi.db.listing import NEWEST_FIRST, bounded
from computeapi.db.volumes import ATTACHMENTS, HELD_STATUSES, VOLUMES

MAX_ATTACHMENTS = 1000
"""The maximum number of attachments of a volume."""


class VolumeUse(VolumeStore):
    def reserve(
        self,
        context: Context,
        volume_id: str,
        server_id: str | None,
        *,
        mode: str = 'rw',
        beside: str | None = None,
        connector: Mapping[str, Any] | None = None,
    ) -> str:
        with self._locked(serving(context), volume_id) as (connection, volume):
            held = [] if server_id is None else _held_by(connection, volume_id, server_id)
            if others := [each for each in held if each != beside]:
                return others[0]
            if beside is not None and beside not in held:
                raise errors.AttachmentNotFound(id=beside)
            shares = volume.multiattach and volume.status in ('in-use', 'reserved', 'attaching')
            if volume.status != 'available' and not shares and not held:
                raise errors.Invalid(
                    f'Invalid volume: Volume {volume_id} status must be available or downloading to reserve, '
                    f'but the current status is {volume.status}.'
                )
            if shares and len(ATTACHMENTS.select(connection, volumes.attachments_of(volume_id))) >= MAX_ATTACHMENTS:
                raise errors.Invalid(f'Volume {volume_id} cannot have more than {MAX_ATTACHMENTS} attachments.')
            facts = {'server_id': server_id, 'status': 'reserved', 'mode': 'ro' if volume.readonly else mode}
            if connector is not None:
                facts |= {'status': 'attaching', **_place(connector)}
            reserved = self._add(connection, volume, **facts)
            self._settle(connection, volume)
        return reserved

    def connect(self, context: Context, attachment_id: str, connector: Mapping[str, Any]) -> Attachment:
        """Record the connector of the host that will use the volume."""
        facts = {'status': 'attaching', **_place(connector)}
        with self._held(context, attachment_id) as (connection, volume, attachment):
            if attachment.status == 'attached':
                raise errors.Invalid(f'Attachment {attachment_id} is already in use.')
            ATTACHMENTS.update(connection, attachment_id, facts)
            self._settle(connection, volume)
        return self.attachment(context, attachment_id)

    def complete(self, context: Context, attachment_id: str, connector: Mapping[str, Any] | None = None) -> None:
        """Without a connector, the one given to `connect` is kept."""
        place = {} if connector is None else _place(connector)
        with self._held(context, attachment_id) as (connection, volume, attachment):
            facts = {'status': 'attached', 'attached_at': attachment.attached_at or self.clock(), **place}
            ATTACHMENTS.update(connection, attachment_id, facts)
            self._settle(connection, volume)

    def release(self, context: Context, attachment_id: str) -> None:
        try:
            with self._held(context, attachment_id) as (connection, volume, _):
                ATTACHMENTS.delete(connection, ATTACHMENTS.among([attachment_id]))
                self._settle(connection, volume)
        except errors.AttachmentNotFound:
            return
        self.unexport([attachment_id])

    def connection(self, context: Context, attachment_id: str) -> Attachment:
        """The attachment with the information that its host needs to connect to the volume, if volumes are exported."""
        attachment = self.attachment(context, attachment_id)
        if self.exports is None or not attachment.connector:
            return attachment
        found = self.exports.connection(attachment_id, attachment.volume_id)
        if not self._is_held(attachment_id):
            self.exports.end(attachment_id)
            raise errors.AttachmentNotFound(id=attachment_id)
        return replace(attachment, connection=found)

    def upkeep(self) -> None:
        """Restore the exports for existing attachments, and end all others."""
        if self.exports is not None:
            self.exports.upkeep(self._is_held)

    def _is_held(self, attachment_id: str) -> bool:
        with self.store.read() as connection:
            return bool(ATTACHMENTS.select(connection, ATTACHMENTS.among([attachment_id])))

    def attachment(self, context: Context, attachment_id: str) -> Attachment:
        with self.store.read() as connection:
            return _find(connection, context, attachment_id)

    def attachments(
        self, context: Context, *, server_ids: Collection[str] = (), volume_id: str | None = None
    ) -> builtins.list[Attachment]:
        filters = {'server_id': [*server_ids], 'volume_id': volume_id}
        asked = {name: value for name, value in filters.items() if value}
        return self.list_attachments(context, filters=asked, all_projects=True)

    def list_attachments(
        self,
        context: Context,
        *,
        filters: Mapping[str, Any] | None = None,
        limit: int | None = None,
        marker: str | None = None,
        all_projects: bool = False,
    ) -> builtins.list[Attachment]:
        """Attachments in every state, newest first; `all_projects` is for administrators."""
        where = [*VOLUMES.listed(context, None, all_projects), *ATTACHMENTS.matches(filters or {})]
        page = bounded(limit, marker)
        with self.store.read() as connection:
            found = ATTACHMENTS.page(connection, context, *where, sort=NEWEST_FIRST, page=page)
        return [_attachment(facts) for facts in found]

    def attach(
        self,
        context: Context,
        volume_id: str,
        *,
        server_id: str | None = None,
        host: str | None = None,
        device: str | None = None,
        mode: str = 'rw',
    ) -> None:
        """Attach a volume at once, without a prior reservation."""
        with self._locked(serving(context), volume_id) as (connection, volume):
            shares = volume.multiattach and volume.status == 'in-use'
            if volume.status not in ('available', 'attaching') and not shares:
                raise unfit(volume, 'attached')
            if volume.readonly and mode != 'ro':
                raise errors.Invalid(f'Invalid attaching mode {mode!r} for volume {volume_id}.')
            facts = {'server_id': server_id, 'host': host, 'device': device, 'attached_at': self.clock()}
            self._add(connection, volume, status='attached', mode=mode, **facts)
            self._settle(connection, volume)

    def detach(
        self, context: Context, volume_id: str, attachment_id: str | None = None, *, force: bool = False
    ) -> None:
        """Without an ID, detach the only attachment; raises Invalid if there are several. force: ignore the volume's
        status."""
        with self._locked(serving(context), volume_id) as (connection, volume):
            found = ATTACHMENTS.select(connection, volumes.attachments_of(volume_id))
            chosen = [one['id'] for one in found if attachment_id in (None, one['id'])]
            if len(chosen) > 1:
                raise errors.Invalid('attachment_id must be given, as the volume has several attachments.')
            if attachment_id is not None and not chosen:
                raise errors.AttachmentNotFound(id=attachment_id)
            ATTACHMENTS.delete(connection, ATTACHMENTS.among(chosen))
            self._settle(connection, replace(volume, status='detaching') if force else volume)
        self.unexport(chosen)

    def begin_attaching(self, context: Context, volume_id: str) -> None:
        """Reserve the volume before it is attached."""

        def change(volume: Volume) -> dict[str, Any]:
            if volume.status == 'available':
                return {'status': 'attaching'}
            if volume.multiattach and volume.status == 'in-use':
                return {}
            raise unfit(volume, 'reserved')

        self.change(serving(context), volume_id, change)

    def stop_attaching(self, context: Context, volume_id: str) -> None:
        with self._locked(serving(context), volume_id) as (connection, volume):
            if volume.status == 'attaching':
                self._settle(connection, volume)

    def begin_detaching(self, context: Context, volume_id: str) -> None:
        def change(volume: Volume) -> dict[str, Any]:
            if volume.status != 'in-use':
                raise unfit(volume, 'detached')
            return {'status': 'detaching'}

        self.change(serving(context), volume_id, change)

    def stop_detaching(self, context: Context, volume_id: str) -> None:
        with self._locked(serving(context), volume_id) as (connection, volume):
            if volume.status == 'detaching':
                self._settle(connection, volume)

    @contextmanager
    def _held(self, context: Context, attachment_id: str) -> Iterator[tuple[sa.Connection, Volume, Attachment]]:
        """A transaction that locks the volume of the attachment, so that neither changes."""
        with self.store.write() as connection:
            volume_id = _find(connection, context, attachment_id).volume_id
            volume = self._lock(connection, serving(context), volume_id)
            # The attachment may have been deleted before the volume was locked.
            yield connection, volume, _find(connection, context, attachment_id)

    def _add(self, connection: sa.Connection, volume: Volume, **kwargs: Any) -> str:
        attachment_id = randomness.new_id()
        kwargs = {'id': attachment_id, 'volume_id': volume.id, 'created_at': self.clock(), **kwargs}
        ATTACHMENTS.insert(connection, kwargs)
        return attachment_id

    def _settle(self, connection: sa.Connection, volume: Volume) -> None:
        """Sets the status of the volume according to its attachments."""
        if volume.status in HELD_STATUSES:
            self._write(connection, volume, {'status': volumes.held_status(connection, volume.id)})


def _held_by(connection: sa.Connection, volume_id: str, server_id: str) -> list[str]:
    """The IDs of the server's attachments of the volume."""
    found = ATTACHMENTS.select(connection, volumes.attachments_of(volume_id))
    return [each['id'] for each in found if each['server_id'] == server_id]


def _place(connector: Mapping[str, Any]) -> dict[str, Any]:
    """The columns for a connector."""
    return {
        'host': _text(connector, 'host'),
        'device': _text(connector, 'mountpoint'),
        'connector': orjson.dumps(connector).decode(),
    }


def _text(connector: Mapping[str, Any], name: str) -> str | None:
    value = connector.get(name)
    if value is not None and not (isinstance(value, str) and len(value) <= 255):
        raise errors.Invalid(f'connector: {name} must be a string of at most 255 characters.')
    return value


def _find(connection: sa.Connection, context: Context, attachment_id: str) -> Attachment:
    return _attachment(ATTACHMENTS.get(connection, context, attachment_id))


def _attachment(facts: dict[str, Any]) -> Attachment:
    connector = facts['connector']
    return Attachment(**{**facts, 'connector': orjson.loads(connector) if connector else {}})
