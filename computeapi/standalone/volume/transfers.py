"""Transfers of volumes between projects."""

from collections.abc import Iterable
from typing import Any

from computeapi.backends.volume.local.transfers import Transfer
from computeapi.booleans import is_true
from computeapi.standalone.access import WRITER
from computeapi.standalone.fields import constant, each, read, time
from computeapi.standalone.schema import wrapped
from computeapi.standalone.volume.documents import BOOLEAN, NAME, TEXT, UUID, links_to
from computeapi.standalone.volume.lists import TRANSFER_FILTERS, CinderCollection, window
from computeapi.standalone.volume.service import added
from computeapi.web.contract import View, attr
from computeapi.web.controller import Bounds, operation
from computeapi.web.request import Request

ACCEPT = wrapped('accept', {'auth_key': TEXT}, 'auth_key')
CREATE = wrapped(
    'transfer', {'volume_id': UUID, 'name': NAME, 'no_snapshots': added('3.55', BOOLEAN)}, 'volume_id', extra=True
)
CREATE_LATER = wrapped('transfer', {'volume_id': UUID, 'name': NAME, 'no_snapshots': BOOLEAN}, 'volume_id')

LINKS = links_to('volume-transfers')
SUMMARY = View({**each('id', 'name', 'volume_id'), 'links': LINKS})
TRANSFER = View(
    {
        **each('id', 'name', 'volume_id'),
        'created_at': read(lambda transfer: time(transfer.created_at)),
        'no_snapshots': added('3.55', read(attr('no_snapshots'))),
        'source_project_id': added('3.57', read(attr('project_id'))),
        'destination_project_id': added('3.57', constant(None)),
        'accepted': added('3.57', constant(False)),
        'links': LINKS,
    }
)


class CinderTransfers(CinderCollection):
    path = '/os-volume-transfer'
    noun, summary, detail, filters = 'transfers', SUMMARY, TRANSFER, TRANSFER_FILTERS
    counted = False

    def found(self, req: Request, **options: Any) -> Iterable[Transfer]:
        return self.volumes.transfers.list(req.context, **window(req), **options)

    @operation('POST', policy=WRITER, body=CREATE, status=202)
    def create(self, req: Request, body: dict[str, Any]) -> dict[str, Any]:
        requested = body['transfer']
        no_snapshots = is_true(requested.get('no_snapshots'))
        offered = self.volumes.transfers.create(
            req.context, requested['volume_id'], name=requested.get('name'), no_snapshots=no_snapshots
        )
        transfer, key = offered
        return {'transfer': {**TRANSFER.render(req, transfer), 'auth_key': key}}

    @operation('GET', '/{transfer_id}', policy=WRITER)
    def show(self, req: Request, transfer_id: str) -> dict[str, Any]:
        return {'transfer': TRANSFER.render(req, self.volumes.transfers.get(req.context, transfer_id))}

    @operation('POST', '/{transfer_id}/accept', policy=WRITER, body=ACCEPT, status=202)
    def accept(self, req: Request, transfer_id: str, body: dict[str, Any]) -> dict[str, Any]:
        transfer = self.volumes.transfers.accept(req.context, transfer_id, body['accept']['auth_key'])
        return {'transfer': SUMMARY.render(req, transfer)}

    @operation('DELETE', '/{transfer_id}', policy=WRITER, status=202)
    def delete(self, req: Request, transfer_id: str) -> None:
        self.volumes.transfers.delete(req.context, transfer_id)


class CinderVolumeTransfers(CinderTransfers):
    """Transfers at their later path, where snapshots can be excluded."""

    path = '/volume-transfers'
    versions = Bounds('3.55')

    @operation('POST', policy=WRITER, body=CREATE_LATER, status=202)
    def create(self, req: Request, body: dict[str, Any]) -> dict[str, Any]:
        return super().create(req, body)
