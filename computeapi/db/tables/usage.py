"""Tables about the use of servers."""

from datetime import datetime
from typing import Annotated, NamedTuple

import sqlalchemy as sa

from computeapi.db.tables.columns import INDEX, Number, NumberElsewhere, table


class UsageAudit(NamedTuple):
    """Which servers were used in the period from `begins_at` to `ends_at`, of which other services are notified.

    last_id: of the last server that was examined.  counts: how many of them were used, by host.  ended_at: None
    while the audit is running.
    """

    id: Number
    begins_at: datetime
    ends_at: Annotated[datetime, INDEX]
    last_id: NumberElsewhere
    counts: dict[str, int]
    started_at: datetime
    ended_at: datetime | None


usage_audits = table('usage_audits', UsageAudit, sa.UniqueConstraint('begins_at', 'ends_at'))
