"""The virtual machines of the simulated hypervisor."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import sqlalchemy as sa

from computeapi.db.records import Rows
from computeapi.db.tables.servers import VirtualMachine, domains

__all__ = ['VirtualMachine']

DOMAINS = Rows(VirtualMachine, domains)


def get(connection: sa.Connection, server_id: str, host: str) -> VirtualMachine | None:
    return DOMAINS.first(connection, DOMAINS.select.where(_is(server_id, host)))


def insert(connection: sa.Connection, domain: VirtualMachine) -> None:
    connection.execute(sa.insert(domains).values(domain._asdict()))


def update(connection: sa.Connection, server_id: str, host: str, values: Mapping[str, Any]) -> None:
    connection.execute(sa.update(domains).where(_is(server_id, host)).values(values))


def delete(connection: sa.Connection, server_id: str, host: str) -> None:
    connection.execute(sa.delete(domains).where(_is(server_id, host)))


def _is(server_id: str, host: str) -> sa.ColumnElement[bool]:
    return (domains.c.server_id == server_id) & (domains.c.host == host)
