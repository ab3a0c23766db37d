"""Metadata of volumes and snapshots."""

from collections.abc import Callable
from typing import Any

from computeapi import errors
from computeapi.backends.volume.local.records import Records
from computeapi.standalone.access import CALLER, WRITER
from computeapi.standalone.pairs import Pairs, present, without
from computeapi.standalone.schema import having
from computeapi.standalone.volume.documents import ONE_PAIR, PAIRS
from computeapi.standalone.volume.service import CinderController
from computeapi.web.controller import operation
from computeapi.web.request import Request

ITEMS = having({'metadata': PAIRS}, 'metadata')
ITEM = having({'meta': ONE_PAIR}, 'meta')


class CinderMetadata(CinderController):
    """The metadata of one kind of owner, which subclasses have in their paths."""

    @property
    def owners(self) -> Records[Any]:
        raise NotImplementedError

    @operation('GET', policy=CALLER)
    def list(self, req: Request, owner_id: str) -> dict[str, Any]:
        return {'metadata': self.owners.get(req.context, owner_id).metadata}

    @operation('POST', policy=WRITER, body=ITEMS)
    def add(self, req: Request, owner_id: str, body: dict[str, Any]) -> dict[str, Any]:
        return {'metadata': self._change(req, owner_id, lambda metadata: {**metadata, **body['metadata']})}

    @operation('PUT', policy=WRITER, body=ITEMS)
    def replace(self, req: Request, owner_id: str, body: dict[str, Any]) -> dict[str, Any]:
        return {'metadata': self._change(req, owner_id, lambda metadata: body['metadata'])}

    @operation('GET', '/{key}', policy=CALLER)
    def show(self, req: Request, owner_id: str, key: str) -> dict[str, Any]:
        metadata = self.owners.get(req.context, owner_id).metadata
        return {'meta': {key: present(metadata, key, f'There is no metadata {key}.')}}

    @operation('PUT', '/{key}', policy=WRITER, body=ITEM)
    def set(self, req: Request, owner_id: str, key: str, body: dict[str, Any]) -> dict[str, Any]:
        given = body['meta']
        if key not in given:
            raise errors.Invalid('Request body and URI mismatch: meta must hold the key of the path.')
        self._change(req, owner_id, lambda metadata: {**metadata, **given})
        return {'meta': given}

    @operation('DELETE', '/{key}', policy=WRITER)
    def remove(self, req: Request, owner_id: str, key: str) -> None:
        self._change(req, owner_id, lambda metadata: without(metadata, key, f'There is no metadata {key}.'))

    def _change(self, req: Request, owner_id: str, change: Callable[[Pairs], Pairs]) -> Pairs:
        changed = self.owners.change(req.context, owner_id, lambda owner: {'metadata': change(owner.metadata)})
        metadata: Pairs = changed.metadata
        return metadata


class CinderVolumeMetadata(CinderMetadata):
    path = '/volumes/{owner_id}/metadata'

    @property
    def owners(self) -> Records[Any]:
        return self.volumes


class CinderSnapshotMetadata(CinderMetadata):
    path = '/snapshots/{owner_id}/metadata'

    @property
    def owners(self) -> Records[Any]:
        return self.volumes.snapshots
