"""Key pairs of users, as rows."""

from collections.abc import Mapping
from typing import Any

import sqlalchemy as sa

from computeapi.db import listing, quota_usages
from computeapi.db.index_scans import HINTS
from computeapi.db.listing import NO_MARKER, Page
from computeapi.db.records import Rows
from computeapi.db.tables.compute import Keypair, keypairs

__all__ = ['Keypair']

KEYPAIRS = Rows(Keypair, keypairs)
OF_USER = KEYPAIRS.select.where(keypairs.c.user_id == sa.bindparam('user_id'))
for dialect in ('mysql', 'mariadb'):
    # Otherwise MariaDB would scan the index from the user's first entry instead of from the marker.
    OF_USER = OF_USER.with_hint(keypairs, HINTS[dialect].format('uq_keypairs_user_id_name'), dialect)

SSH, X509 = 'ssh', 'x509'
"""The types of key pairs."""


def get(connection: sa.Connection, user_id: str, name: str) -> Keypair | None:
    return KEYPAIRS.find(connection, user_id=user_id, name=name)


def page(connection: sa.Connection, user_id: str, page: Page) -> list[Keypair]:
    """One page of the user's key pairs, by name; Invalid for an unknown marker."""
    order, parameters = ((keypairs.c.name, False),), {'user_id': user_id}
    if page.marker is None:
        return KEYPAIRS.all(connection, *listing.beginning(OF_USER, order, page.limit, parameters))
    marked = [keypairs.c.name == page.marker]
    statement = listing.paged(connection, OF_USER.params(parameters), order, page, marked=marked, unknown=NO_MARKER)
    return KEYPAIRS.all(connection, statement)


def insert(connection: sa.Connection, values: Mapping[str, Any]) -> None:
    KEYPAIRS.insert(connection, **values)
    quota_usages.count(connection, quota_usages.of_key_pair(values))


def delete(connection: sa.Connection, user_id: str, name: str) -> bool:
    """Whether there was such a key pair."""
    found = KEYPAIRS.delete(connection, user_id=user_id, name=name) > 0
    if found:
        quota_usages.count(connection, quota_usages.of_key_pair({'user_id': user_id}), -1)
    return found
