"""Attachments of volumes to servers, by the attachment API of Cinder's version 3.44 and later."""

import builtins
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from typing import Any

from keystoneauth1.adapter import Adapter
from keystoneauth1.discover import version_to_string

from computeapi.backends.volume import Attachment
from computeapi.backends.volume.cinder.base import (
    REFUSALS,
    CinderBase,
    Document,
    act,
    create,
    get,
    newest_version,
    pages,
)
from computeapi.backends.volume.cinder.records import attachment_of
from computeapi.backends.volume.cinder.volumes import MAX_ITEMS, missing_volume
from computeapi.context import Context
from computeapi.errors import AttachmentNotFound, Error, Invalid, NotSupported

NEEDED = (3, 44)
PASSING, TRIES = (500, 504), 5
"""The statuses that Cinder returns while its hosts are busy with a volume, and the number of tries in that case."""


class CinderUse(CinderBase):
    def reserve(
        self,
        context: Context,
        volume_id: str,
        server_id: str,
        *,
        beside: str | None = None,
        connector: Mapping[str, Any] | None = None,
    ) -> str:
        refusals = {**REFUSALS, 400: not_available}
        with self.client(context, missing_volume(volume_id), refusals) as cinder:
            if (newest_version(cinder) or ()) < NEEDED:
                needed = version_to_string(NEEDED)
                raise NotSupported(f'Attaching volumes requires version {needed} of the API of Cinder.')
            held = [each['id'] for each in held_by(cinder, volume_id=volume_id, instance_id=server_id)]
            if others := [each for each in held if each != beside]:
                return str(others[0])
            if beside is not None and beside not in held:
                raise AttachmentNotFound(id=beside)
            facts = {'volume_uuid': volume_id, 'instance_uuid': server_id, 'connector': connector}
            return str(create(cinder, 'attachment', facts)['id'])

    def attachments(
        self, context: Context, *, server_ids: Collection[str] = (), volume_id: str | None = None
    ) -> builtins.list[Attachment]:
        """For several servers they are filtered here, because Cinder has no such filter."""
        asked: dict[str, Any] = {'volume_id': volume_id} if volume_id else {}
        if len(server_ids) == 1:
            asked['instance_id'] = next(iter(server_ids))
        if not asked:
            # There may be more than one page.
            asked['limit'] = MAX_ITEMS
        with self.client(context) as cinder:
            found = [attachment_of(each) for each in held_by(cinder, **asked)]
        return [each for each in found if not server_ids or each.server_id in server_ids]

    def connect(self, context: Context, attachment_id: str, connector: Mapping[str, Any]) -> None:
        refusals = {**REFUSALS, 400: not_available}
        with self.client(context, lambda words: AttachmentNotFound(id=attachment_id), refusals) as cinder:
            reconnect(cinder, attachment_id, connector)

    def connection(self, context: Context, server_id: str, volume_id: str, host: str) -> dict[str, Any]:
        """How that host connects to the server's volume, including secrets: `driver_volume_type`, and what that kind of
        storage needs; AttachmentNotFound."""
        held = [each.id for each in self.attachments(context, server_ids=[server_id], volume_id=volume_id)]
        with self.client(context, lambda words: AttachmentNotFound(id=volume_id)) as cinder:
            if len(held) > 1:
                # One for each of two hosts, while the server moves.
                users = {
                    use['attachment_id']: use['host_name'] for use in get(cinder, 'volume', volume_id)['attachments']
                }
                held = [each for each in held if users.get(each) == host]
            if not held:
                raise AttachmentNotFound(id=f'of volume {volume_id} on host {host}')
            return dict(get(cinder, 'attachment', held[0])['connection_info'] or {})

    def complete(self, context: Context, attachment_id: str, connector: Mapping[str, Any] | None = None) -> None:
        with self.client(context, lambda words: AttachmentNotFound(id=attachment_id)) as cinder:
            if connector is not None:
                reconnect(cinder, attachment_id, connector)
            act(cinder, 'attachment', attachment_id, 'os-complete')

    def begin_detaching(self, context: Context, volume_id: str) -> None:
        with self.client(context, missing_volume(volume_id)) as cinder:
            act(cinder, 'volume', volume_id, 'os-begin_detaching')

    def stop_detaching(self, context: Context, volume_id: str) -> None:
        with self.client(context, missing_volume(volume_id)) as cinder:
            act(cinder, 'volume', volume_id, 'os-roll_detaching')

    def release(self, context: Context, attachment_id: str) -> None:
        gone = suppress(AttachmentNotFound)
        with gone, self.client(context, lambda words: AttachmentNotFound(id=attachment_id)) as cinder:
            patient(cinder).delete(f'/attachments/{attachment_id}')


def not_available(words: str) -> Error:
    return Invalid(f'Invalid input received: {words}')


def held_by(cinder: Adapter, **query: Any) -> Iterator[Document]:
    """The attachments that match the query, of all projects."""
    return pages(cinder, '/attachments', 'attachments', all_tenants=True, **query)


def reconnect(cinder: Adapter, attachment_id: str, connector: Mapping[str, Any]) -> None:
    """Set where the attachment is used from."""
    patient(cinder).put(f'/attachments/{attachment_id}', json={'attachment': {'connector': connector}})


def patient(cinder: Adapter) -> Adapter:
    """Retries requests for a while if Cinder did not finish them."""
    cinder.retriable_status_codes, cinder.status_code_retries = [*PASSING], TRIES - 1
    return cinder
