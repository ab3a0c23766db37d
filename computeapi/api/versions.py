"""/ and /versions: the version document again, for callers with a token (and a project in the URL)."""

from typing import Any

from computeapi.api.controller import ComputeController
from computeapi.api.documents import V20, V21, document
from computeapi.api.types import OBJECT
from computeapi.errors import NotFound
from computeapi.web.contract import closed, query
from computeapi.web.controller import operation
from computeapi.web.request import Request

ANYTHING = query({}, strict=None)
DOCUMENT = closed({'version': OBJECT}, required=['version'])


class Versions(ComputeController):
    """What the API can do, by version."""

    @operation('GET', '/', policy=None, query=ANYTHING, response=DOCUMENT, errors=(404,))
    def index(self, req: Request) -> dict[str, Any]:
        """Show the version of this endpoint."""
        return self.describe(req, V20 if req.legacy else V21)

    @operation('GET', '/versions/{id}', policy=None, query=ANYTHING, response=DOCUMENT, errors=(404,))
    def show(self, req: Request, id: str) -> dict[str, Any]:
        """Show one version; /v2 knows only itself."""
        if req.legacy:
            return self.describe(req, V20)
        found = {version['id']: version for version in (V20, V21)}.get(id)
        if found is None:
            raise NotFound()
        return self.describe(req, found)

    def describe(self, req: Request, version: dict[str, Any]) -> dict[str, Any]:
        return document(version, req.link_prefix + req.script_name)
