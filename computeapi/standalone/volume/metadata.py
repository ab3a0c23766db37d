"""Metadata of volumes and snapshots."""

from collections.abc import Callable
from typing import Any

from computeapi import errors
from computeapi.standalone.face import FaceRequest, route
from computeapi.standalone.schema import Schema
from computeapi.standalone.volume.documents import PAIRS
from computeapi.standalone.volume.service import VolumeService

ITEMS = Schema({'type': 'object', 'properties': {'metadata': PAIRS}, 'required': ['metadata']})
ITEM = Schema(
    {
        'type': 'object',
        'properties': {'meta': PAIRS | {'minProperties': 1, 'maxProperties': 1}},
        'required': ['meta'],
    }
)

ALL = '/v3/{kind:volumes|snapshots}/{owner_id}/metadata'
ONE = ALL + '/{key}'

Metadata = dict[str, str]


class MetadataRoutes(VolumeService):
    @route('GET', ALL)
    def list_metadata(self, req: FaceRequest, kind: str, owner_id: str) -> dict[str, Any]:
        return {'metadata': self._read(req, kind, owner_id)}

    @route('POST', ALL)
    def add_metadata(self, req: FaceRequest, kind: str, owner_id: str) -> dict[str, Any]:
        given = _items(req)
        return {'metadata': self._change(req, kind, owner_id, lambda metadata: metadata | given)}

    @route('PUT', ALL)
    def replace_metadata(self, req: FaceRequest, kind: str, owner_id: str) -> dict[str, Any]:
        given = _items(req)
        return {'metadata': self._change(req, kind, owner_id, lambda metadata: given)}

    @route('GET', ONE)
    def show_metadata_item(self, req: FaceRequest, kind: str, owner_id: str, key: str) -> dict[str, Any]:
        metadata = self._read(req, kind, owner_id)
        _check_present(metadata, key)
        return {'meta': {key: metadata[key]}}

    @route('PUT', ONE)
    def set_metadata_item(self, req: FaceRequest, kind: str, owner_id: str, key: str) -> dict[str, Any]:
        ITEM.check(req.document)
        given = req.member('meta')
        if key not in given:
            raise errors.Invalid('Request body and URI mismatch: meta must hold the key of the path.')
        self._change(req, kind, owner_id, lambda metadata: metadata | given)
        return {'meta': given}

    @route('DELETE', ONE)
    def remove_metadata_item(self, req: FaceRequest, kind: str, owner_id: str, key: str) -> tuple[int, None]:
        def without(metadata: Metadata) -> Metadata:
            _check_present(metadata, key)
            return {name: value for name, value in metadata.items() if name != key}

        self._change(req, kind, owner_id, without)
        return 200, None

    def _read(self, req: FaceRequest, kind: str, owner_id: str) -> Metadata:
        get = self.volumes.get if kind == 'volumes' else self.volumes.get_snapshot
        return dict(get(req.context, owner_id).metadata)

    def _change(self, req: FaceRequest, kind: str, owner_id: str, change: Callable[[Metadata], Metadata]) -> Metadata:
        write: Any = self.volumes.change if kind == 'volumes' else self.volumes.change_snapshot
        return write(req.context, owner_id, lambda owner: {'metadata': change(dict(owner.metadata))}).metadata


def _items(req: FaceRequest) -> Metadata:
    ITEMS.check(req.document)
    return req.member('metadata')


def _check_present(metadata: Metadata, key: str) -> None:
    if key not in metadata:
        raise errors.NotFound(f'There is no metadata {key}.')
