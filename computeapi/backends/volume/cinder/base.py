"""Calls Cinder."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from openstack.block_storage.v3._proxy import Proxy
from oslo_config import cfg

from computeapi.backends.neighbour import NeighbourService
from computeapi.context import Context
from computeapi.errors import Conflict, Error, Invalid, OverQuota

REFUSALS: Mapping[int, Callable[[str], Error]] = {400: Invalid, 409: Conflict, 413: OverQuota}
"""Errors that a caller can correct, whatever the request."""


class CinderBase:
    def __init__(self, conf: cfg.ConfigOpts):
        self.service = NeighbourService(conf, 'Cinder', 'cinder', 'block-storage', 3)

    @contextmanager
    def client(
        self,
        context: Context,
        missing: Callable[[str], Error] | None = None,
        refusals: Mapping[int, Callable[[str], Error]] = REFUSALS,
    ) -> Iterator[Proxy]:
        """Cinder for this caller. missing: makes the error for a 404 from its message."""
        refusals = refusals if missing is None else {**refusals, 404: missing}
        with self.service.translating_errors(context, refusals):
            yield self.service.proxy(context, Proxy)
