"""The agents of hosts, as rows: each sends heartbeats."""

import sqlalchemy as sa

from computeapi.db.records import Rows, upsert
from computeapi.db.tables.compute import Agent, agents

__all__ = ['Agent']

AGENTS = Rows(Agent, agents)


def is_seen(connection: sa.Connection, agent: Agent) -> None:
    """Record the report of a host's agent, which may be another process than before."""
    upsert(connection, agents, [agent._asdict()])


def get(connection: sa.Connection, host: str) -> Agent | None:
    return AGENTS.find(connection, host=host)


def select(connection: sa.Connection) -> list[Agent]:
    """All agents, by host."""
    return AGENTS.all(connection, AGENTS.select.order_by(agents.c.host))
