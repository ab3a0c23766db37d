"""The usage of projects in a period: the hours that their servers existed, multiplied by their sizes."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import groupby

from computeapi.db import usage
from computeapi.db.engine import Store
from computeapi.db.listing import Page
from computeapi.db.usage import Span
from computeapi.errors import Invalid

HOUR = timedelta(hours=1)


@dataclass(frozen=True)
class ServerUsage:
    """The usage of one server; `hours` are those within the requested period, `uptime` is its whole lifetime."""

    server: Span
    hours: float
    uptime: timedelta

    @property
    def state(self) -> str:
        return self.server.vm_state if self.server.terminated_at is None else 'terminated'


@dataclass(frozen=True)
class ProjectUsage:
    """The usage of a project from `start` to `stop`."""

    project_id: str
    start: datetime
    stop: datetime
    servers: list[ServerUsage] = field(default_factory=list)

    @property
    def hours(self) -> float:
        return sum(each.hours for each in self.servers)

    @property
    def vcpu_hours(self) -> float:
        return sum(each.hours * each.server.vcpus for each in self.servers)

    @property
    def memory_mb_hours(self) -> float:
        return sum(each.hours * each.server.memory_mb for each in self.servers)

    @property
    def disk_gb_hours(self) -> float:
        return sum(each.hours * each.server.disk_gb for each in self.servers)

    @property
    def last_server_id(self) -> str:
        return self.servers[-1].server.uuid


class UsageRecords:
    """Errors: Invalid."""

    def __init__(self, store: Store):
        self.store, self.clock = store, store.clock

    def page(
        self, start: datetime | None, stop: datetime | None, page: Page, project_id: str | None = None
    ) -> list[ProjectUsage]:
        """The usage of one page of servers, by project, for one project or all, until now; start or stop None: now.

        A project whose servers span several pages is on each of them, with the usage of the servers on that page.
        """
        now = self.clock()
        now_alone = start is None and stop is None
        start, stop = start or now, stop or now
        if start >= stop and not now_alone:
            raise Invalid('Invalid start time. The start time cannot occur after the end time.')
        # Clients request the usage until tomorrow by default.
        stop = min(stop, now)
        spans = self.store.query(usage.page, start, stop, page, project_id)
        return [
            ProjectUsage(owner, start, stop, [_usage(span, start, stop, now) for span in of_project])
            for owner, of_project in groupby(spans, lambda span: span.project_id)
        ]


def _usage(span: Span, start: datetime, stop: datetime, now: datetime) -> ServerUsage:
    within = min(span.terminated_at or stop, stop) - max(span.launched_at, start)
    return ServerUsage(span, max(within / HOUR, 0.0), (span.terminated_at or now) - span.launched_at)
