"""Calls Cinder."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from keystoneauth1.adapter import Adapter
from keystoneauth1.discover import version_to_string
from oslo_config import cfg

from computeapi.backends.neighbour import NeighbourService, next_page
from computeapi.context import Context
from computeapi.errors import Conflict, Error, Invalid, OverQuota

Document = dict[str, Any]

REFUSALS: Mapping[int, Callable[[str], Error]] = {400: Invalid, 409: Conflict, 413: OverQuota}
"""Errors that a caller can correct, whatever the request."""
NEWEST = (3, 63)
"""The newest version whose attributes are used: the ID of a volume's type."""


class CinderBase:
    def __init__(self, conf: cfg.ConfigOpts):
        self.service = NeighbourService(conf, 'Cinder', 'cinder', 'block-storage', 3)

    @contextmanager
    def client(
        self,
        context: Context,
        missing: Callable[[str], Error] | None = None,
        refusals: Mapping[int, Callable[[str], Error]] = REFUSALS,
    ) -> Iterator[Adapter]:
        """Cinder for this caller, at the newest version that both sides know. missing: makes the error for a 404 from
        its message."""
        refusals = refusals if missing is None else {**refusals, 404: missing}
        with self.service.translating_errors(context, refusals):
            cinder = self.service.adapter(context)
            newest = newest_version(cinder)
            cinder.default_microversion = version_to_string(min(newest, NEWEST)) if newest else None
            yield cinder


def newest_version(cinder: Adapter) -> tuple[float, ...] | None:
    """The newest version of this Cinder; None if it has no microversions."""
    data = cinder.get_endpoint_data()
    return None if data is None else data.max_microversion


def create(cinder: Adapter, kind: str, facts: Mapping[str, Any]) -> Document:
    """The new resource."""
    made: Document = cinder.post(f'/{kind}s', json={kind: facts}).json()[kind]
    return made


def get(cinder: Adapter, kind: str, resource_id: str) -> Document:
    found: Document = cinder.get(f'/{kind}s/{resource_id}').json()[kind]
    return found


def act(cinder: Adapter, kind: str, resource_id: str, action: str, facts: Any = None, **more: Any) -> Any:
    """The answer to an action as JSON; None if it is empty."""
    answer = cinder.post(f'/{kind}s/{resource_id}/action', json={action: facts}, **more)
    return answer.json() if answer.content else None


def pages(cinder: Adapter, path: str, collection: str, **query: Any) -> Iterator[Document]:
    """The resources of a collection that match the query, page by page."""
    params: Mapping[str, Any] | None = query
    while params is not None:
        page = cinder.get(path, params=params).json()
        yield from page[collection]
        params = next_page(page, collection)
