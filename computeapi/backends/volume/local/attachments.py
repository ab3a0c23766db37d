"""Who holds or uses a volume.

An attachment is reserved, then attaching once it is known from where, then attached. The status of the
volume follows from its attachments.
"""

import builtins
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import orjson
import sqlalchemy as sa

from computeapi import errors
from computeapi.backends.rights import serving
from computeapi.backends.volume import Attachment, Volume
from computeapi.backends.volume.local.base import VolumeStore, unfit
from computeapi.context import Context
from computeapi.db import volumes
from computeapi.db.listing import NEWEST_FIRST, bounded
from computeapi.db.volumes import ATTACHMENTS, VOLUMES

# A status that follows from the attachments; any other stays until somebody changes it.
HELD = ('available', 'reserved', 'attaching', 'detaching', 'in-use')


class VolumeUse(VolumeStore):
    def reserve(
        self,
        context: Context,
        volume_id: str,
        server_id: str | None,
        *,
        mode: str = 'rw',
        attachment_id: str | None = None,
    ) -> str:
        with self._locked(serving(context), volume_id) as (connection, volume):
            if attachment_id and ATTACHMENTS.select(connection, ATTACHMENTS.among([attachment_id])):
                return attachment_id
            shares = volume.multiattach and volume.status in ('in-use', 'reserved', 'attaching')
            if volume.status != 'available' and not shares:
                raise errors.Invalid(
                    f'Invalid volume: Volume {volume_id} status must be available or downloading to reserve, '
                    f'but the current status is {volume.status}.'
                )
            facts = {'server_id': server_id, 'status': 'reserved', 'mode': mode}
            reserved = self._add(connection, volume, attachment_id, **facts)
            self._settle(connection, volume)
        return reserved

    def connect(self, context: Context, attachment_id: str, connector: Mapping[str, Any]) -> Attachment:
        """Note from where the volume will be used."""
        facts = {
            'status': 'attaching',
            'host': _text(connector, 'host'),
            'device': _text(connector, 'mountpoint'),
            'connector': orjson.dumps(connector).decode(),
        }
        with self._held(context, attachment_id) as (connection, volume, attachment):
            if attachment.status == 'attached':
                raise errors.Invalid(f'Attachment {attachment_id} is in use already.')
            ATTACHMENTS.update(connection, attachment_id, facts)
            self._settle(connection, volume)
        return self.attachment(context, attachment_id)

    def complete(
        self, context: Context, attachment_id: str, *, host: str | None = None, device: str | None = None
    ) -> None:
        """Without host and device they stay what `connect` said."""
        with self._held(context, attachment_id) as (connection, volume, attachment):
            facts = {
                'status': 'attached',
                'host': host or attachment.host,
                'device': device or attachment.device,
                'attached_at': attachment.attached_at or self.clock(),
            }
            ATTACHMENTS.update(connection, attachment_id, facts)
            self._settle(connection, volume)

    def disconnect(self, context: Context, attachment_id: str) -> str:
        facts = {'status': 'reserved', **dict.fromkeys(('host', 'device', 'connector', 'attached_at'))}
        with self._held(context, attachment_id) as (connection, volume, _):
            ATTACHMENTS.update(connection, attachment_id, facts)
            self._settle(connection, volume)
        return attachment_id

    def release(self, context: Context, attachment_id: str) -> None:
        try:
            with self._held(context, attachment_id) as (connection, volume, _):
                ATTACHMENTS.delete(connection, ATTACHMENTS.among([attachment_id]))
                self._settle(connection, volume)
        except errors.AttachmentNotFound:
            return

    def attachment(self, context: Context, attachment_id: str) -> Attachment:
        with self.store.read() as connection:
            return _find(connection, context, attachment_id)

    def attachments(
        self,
        context: Context,
        *,
        filters: Mapping[str, Any] | None = None,
        limit: int | None = None,
        marker: str | None = None,
        all_projects: bool = False,
    ) -> builtins.list[Attachment]:
        """Newest first, in every state; `all_projects` is for administrators."""
        where = [*VOLUMES.listed(context, None, all_projects), *ATTACHMENTS.matches(filters or {})]
        page = bounded(limit, marker)
        with self.store.read() as connection:
            found = ATTACHMENTS.page(connection, context.elevated(), *where, sort=NEWEST_FIRST, page=page)
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
        """Use a volume at once, without reserving it before."""
        with self._locked(serving(context), volume_id) as (connection, volume):
            shares = volume.multiattach and volume.status == 'in-use'
            if volume.status not in ('available', 'attaching') and not shares:
                raise unfit(volume, 'attached')
            facts = {'server_id': server_id, 'host': host, 'device': device, 'attached_at': self.clock()}
            self._add(connection, volume, None, status='attached', mode=mode, **facts)
            self._settle(connection, volume)

    def detach(
        self, context: Context, volume_id: str, attachment_id: str | None = None, *, force: bool = False
    ) -> None:
        """Without an id the only attachment there is; Invalid if there are several. `force`: whatever the status."""
        with self._locked(serving(context), volume_id) as (connection, volume):
            found = ATTACHMENTS.select(connection, volumes.attachments_of(volume_id))
            chosen = [one['id'] for one in found if attachment_id in (None, one['id'])]
            if len(chosen) > 1:
                raise errors.Invalid('attachment_id must be given, as the volume has several attachments.')
            if attachment_id is not None and not chosen:
                raise errors.AttachmentNotFound(id=attachment_id)
            ATTACHMENTS.delete(connection, ATTACHMENTS.among(chosen))
            self._settle(connection, replace(volume, status='detaching') if force else volume)

    def begin_attaching(self, context: Context, volume_id: str) -> None:
        """Keep others off the volume before it is attached."""

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
        """A transaction in which nobody else changes the attachment or its volume."""
        with self.store.write() as connection:
            volume_id = _find(connection, context, attachment_id).volume_id
            volume = self._lock(connection, serving(context), volume_id)
            # It may have gone before the volume was locked.
            yield connection, volume, _find(connection, context, attachment_id)

    def _add(self, connection: sa.Connection, volume: Volume, attachment_id: str | None = None, /, **facts: Any) -> str:
        attachment_id = attachment_id or str(uuid.uuid4())
        facts = {'id': attachment_id, 'volume_id': volume.id, 'created_at': self.clock(), **facts}
        ATTACHMENTS.insert(connection, facts)
        return attachment_id

    def _settle(self, connection: sa.Connection, volume: Volume) -> None:
        """Let the status of the volume say what its attachments do."""
        held = volumes.attachment_statuses(connection, volume.id)
        if volume.status in HELD:
            self._write(connection, volume, {'status': _status(held)})


def _status(held: set[str]) -> str:
    for attachment, volume in (('attached', 'in-use'), ('attaching', 'attaching'), ('reserved', 'reserved')):
        if attachment in held:
            return volume
    return 'available'


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
