"""The extensions of a Neutron, which are looked up periodically."""

from collections.abc import Callable, Set

from computeapi.db.clock import elapsed
from computeapi.errors import NeighbourAway

BINDINGS = 'binding-extended'
DNS = 'dns-integration'
FLOATING_IP_DETAILS = 'fip-port-details'
ROUTERS = 'router'


class NeutronExtensions:
    """The aliases of a Neutron's extensions; use `alias in extensions`.

    load: fetches them.  seconds: how long an answer is valid. Only one caller refreshes it: meanwhile the others use
    the previous answer.
    """

    def __init__(self, load: Callable[[], Set[str]], seconds: float):
        self.load, self.seconds = load, seconds
        self.known: Set[str] | None = None
        self.until = 0.0

    def __contains__(self, alias: str) -> bool:
        known, now = self.known, elapsed()
        if known is None or now >= self.until:
            self.until = now + self.seconds
            known = self._loaded(known)
        return alias in known

    def _loaded(self, before: Set[str] | None) -> Set[str]:
        try:
            self.known = self.load()
        except NeighbourAway:
            if before is None:
                raise
            return before
        return self.known
