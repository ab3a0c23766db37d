"""DNS domains, and the names in them that stand for addresses."""

import sqlalchemy as sa

from computeapi.context import Context
from computeapi.db.listing import Clause
from computeapi.db.network_collection import Document, Work
from computeapi.db.ownership import own_rows
from computeapi.db.records import dicts, upsert
from computeapi.db.tables.network import dns_domains, dns_entries


def _visible_domains(context: Context) -> Clause:
    return sa.or_(own_rows(dns_domains, context), dns_domains.c.project_id.is_(None))


def domains(work: Work, *, lock: bool = False, **values: str) -> list[Document]:
    """The domains that the caller may use, by name; *lock* keeps others from changing their entries."""
    statement = sa.select(dns_domains).where(_visible_domains(work.context)).filter_by(**values)
    return _found(work, statement.order_by(dns_domains.c.domain), lock)


def save_domain(work: Work, domain: Document) -> None:
    upsert(work.connection, dns_domains, [domain])


def delete_domain(work: Work, domain: str) -> None:
    work.connection.execute(dns_domains.delete().where(dns_domains.c.domain == domain))


def entries(work: Work, **values: str) -> list[Document]:
    """The caller's entries, by name; all for an administrator."""
    statement = sa.select(dns_entries).where(own_rows(dns_entries, work.context)).filter_by(**values)
    return _found(work, statement.order_by(dns_entries.c.name))


def save_entry(work: Work, entry: Document) -> None:
    upsert(work.connection, dns_entries, [entry])


def delete_entry(work: Work, domain: str, name: str) -> None:
    work.connection.execute(dns_entries.delete().filter_by(domain=domain, name=name))


def _found(work: Work, statement: sa.Select[tuple[object, ...]], lock: bool = False) -> list[Document]:
    rows = work.connection.execute(statement.with_for_update() if lock else statement)
    return dicts(rows.keys(), rows)
