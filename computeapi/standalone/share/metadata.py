"""The metadata of shares."""

from collections.abc import Callable, Mapping
from typing import Any

from computeapi import errors
from computeapi.standalone.access import CALLER, WRITER
from computeapi.standalone.schema import having
from computeapi.standalone.share.service import ManilaController
from computeapi.standalone.share.shares import PAIRS
from computeapi.web.controller import operation
from computeapi.web.request import Request

Pairs = Mapping[str, str]
METADATA = having({'metadata': {**PAIRS, 'type': 'object'}}, 'metadata')


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
        check_key(pairs, share_id, key)
        return {'meta': {key: pairs[key]}}

    @operation('DELETE', '/{key}', policy=WRITER)
    def remove(self, req: Request, share_id: str, key: str) -> None:
        def left(pairs: Pairs) -> Pairs:
            check_key(pairs, share_id, key)
            return {name: value for name, value in pairs.items() if name != key}

        self._change(req, share_id, left)

    def _change(self, req: Request, share_id: str, change: Callable[[Pairs], Pairs]) -> dict[str, Pairs]:
        share = self.shares.change(req.context, share_id, lambda share: {'metadata': change(share.metadata)})
        return {'metadata': share.metadata}


def check_key(pairs: Pairs, share_id: str, key: str) -> None:
    """Raises NotFound if the share has no metadata with this key."""
    if key not in pairs:
        raise errors.NotFound(f'Share {share_id} has no metadata with key {key}.')
