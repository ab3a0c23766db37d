"""The control API: the tools of a kit, for other processes."""

from computeapi.kit.control.clock import CloudTime
from computeapi.kit.control.content import ContentController
from computeapi.kit.control.dry_run import DryRuns
from computeapi.kit.control.events import EventHistory
from computeapi.kit.control.faults import FaultRules
from computeapi.kit.control.hints import GivenHints
from computeapi.kit.control.journal import RequestJournal
from computeapi.kit.control.outages import CellsDown, HostsDown, NeighboursAway
from computeapi.kit.control.plans import StatePlans
from computeapi.kit.control.service import ControlApp
from computeapi.kit.control.state import CloudState, NamedSnapshots
from computeapi.kit.control.webhooks import EventWebhooks
from computeapi.kit.tools import Tools
from computeapi.web.filters import FaultWrap, RequestId, WSGIApp

CONTROLLERS = (
    CloudState,
    NamedSnapshots,
    ContentController,
    CloudTime,
    RequestJournal,
    EventHistory,
    EventWebhooks,
    GivenHints,
    DryRuns,
    FaultRules,
    StatePlans,
    CellsDown,
    HostsDown,
    NeighboursAway,
)


def control(tools: Tools, token: str) -> WSGIApp:
    """The control API as a WSGI app."""
    return RequestId(FaultWrap(ControlApp(CONTROLLERS, tools, token)), ['x-openstack-request-id'])
