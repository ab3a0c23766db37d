"""The metadata of shares."""

from collections.abc import Callable
from typing import Any

from computeapi.standalone.access import CALLER, WRITER
from computeapi.standalone.pairs import Pairs, present, without
from computeapi.standalone.schema import having
from computeapi.standalone.share.service import ManilaController
from computeapi.standalone.share.shares import PAIRS
from computeapi.web.controller import operation
from computeapi.web.request import Request

METADATA = having({'metadata': {**PAIRS, 'type': 'object'}}, 'metadata')
MISSING = 'Share {} has no metadata with key {}.'


class ManilaMetadata(ManilaController):
    path = '/shares/{share_id}/metadata'

    @operation('GET', policy=CALLER)
    def list(self, req: Request, share_id: str) -> dict[str, Pairs]:
        return {'metadata': self.shares.get(req.context, share_id).metadata}

    @operation('POST', policy=WRITER, body=METADATA)
    def add(self, req: Request, share_id: str, body: dict[str, Any]) -> dict[str, Pairs]:
        return self._change(req, share_id, lambda pairs: {**pairs, **body['metadata']})

    @operation('PUT', policy=WRITER, body=METADATA)
    def replace(self, req: Request, share_id: str, body: dict[str, Any]) -> dict[str, Pairs]:
        return self._change(req, share_id, lambda pairs: body['metadata'])

    @operation('GET', '/{key}', policy=CALLER)
    def show(self, req: Request, share_id: str, key: str) -> dict[str, Pairs]:
        pairs = self.shares.get(req.context, share_id).metadata
        return {'meta': {key: present(pairs, key, MISSING.format(share_id, key))}}

    @operation('DELETE', '/{key}', policy=WRITER)
    def remove(self, req: Request, share_id: str, key: str) -> None:
        self._change(req, share_id, lambda pairs: without(pairs, key, MISSING.format(share_id, key)))

    def _change(self, req: Request, share_id: str, change: Callable[[Pairs], Pairs]) -> dict[str, Pairs]:
        share = self.shares.change(req.context, share_id, lambda share: {'metadata': change(share.metadata)})
        return {'metadata': share.metadata}
