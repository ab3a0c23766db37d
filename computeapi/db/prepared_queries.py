"""Executes queries on PostgreSQL with psycopg's libpq, without its cursors: for a few rows, their work in Python takes
longer than all the rest."""

import functools
import re
import select
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import psycopg
from psycopg.adapt import PyFormat, Transformer
from psycopg.errors import FeatureNotSupported, InvalidSqlStatementName, error_from_result
from psycopg.pq import ExecStatus, Format
from psycopg.pq.abc import PGresult

PLACEHOLDER = re.compile(r'%\((.+?)\)s|%%')
UNUSABLE = (InvalidSqlStatementName, FeatureNotSupported)
"""A statement is no longer prepared, because psycopg deallocates all after a rollback, or its columns have changed."""


class NumberedQuery(NamedTuple):
    """A query with the placeholders of PostgreSQL. names: of its parameters, in order."""

    text: bytes
    names: tuple[str, ...]
    formats: tuple[PyFormat, ...]


@functools.lru_cache(maxsize=1024)
def numbered(text: str) -> NumberedQuery:
    """The same query as text with the placeholders of psycopg."""
    numbers: dict[str, int] = {}

    def placeholder(found: re.Match[str]) -> str:
        return '%' if found[1] is None else f'${numbers.setdefault(found[1], len(numbers) + 1)}'

    written = PLACEHOLDER.sub(placeholder, text).encode()
    return NumberedQuery(written, tuple(numbers), (PyFormat.AUTO,) * len(numbers))


class PreparedQueries:
    """The queries that are prepared on a connection, to be executed outside of transactions.

    seconds: how long to wait for any response; None: forever.
    """

    def __init__(self, connection: psycopg.Connection[Any], seconds: float | None):
        self.libpq, self.seconds = connection.pgconn, seconds
        # It knows how to convert values of the types that it has seen.
        self.transformer = Transformer(connection)
        self.poll = select.poll()
        self.names: dict[tuple[bytes, tuple[int, ...] | None], bytes] = {}
        self.prepared = 0

    def fetch(self, text: str, parameters: Mapping[str, Any]) -> Sequence[tuple[Any, ...]]:
        """All rows of a query; TimeoutError."""
        query, transformer = numbered(text), self.transformer
        values = transformer.dump_sequence([parameters[name] for name in query.names], query.formats)
        types, formats = transformer.types, transformer.formats
        try:
            result = self._execute(query.text, types, values, formats)
        except UNUSABLE:
            self.names.pop((query.text, types), None)
            result = self._execute(query.text, types, values, formats)
        transformer.set_pgresult(result)
        rows = transformer.load_rows(0, result.ntuples, tuple)
        transformer.set_pgresult(None)
        return rows

    def _execute(
        self, text: bytes, types: tuple[int, ...] | None, values: Sequence[Any], formats: list[Format] | None
    ) -> PGresult:
        # The type of a number depends on its size.
        name = self.names.get((text, types))
        if name is None:
            name = f'computeapi_{self.prepared}'.encode()
            self.prepared += 1
            self.libpq.send_prepare(name, text, types)
            self._result()
            self.names[text, types] = name
        self.libpq.send_query_prepared(name, values, formats)
        return self._result()

    def _result(self) -> PGresult:
        """The result of what was sent; it is sent completely first."""
        libpq = self.libpq
        while libpq.flush():
            self._wait(select.POLLIN | select.POLLOUT)
        while libpq.is_busy():
            self._wait(select.POLLIN)
        result = libpq.get_result()
        while libpq.get_result() is not None:
            pass
        assert result is not None
        if result.status not in (ExecStatus.TUPLES_OK, ExecStatus.COMMAND_OK):
            raise error_from_result(result)
        return result

    def _wait(self, events: int) -> None:
        self.poll.register(self.libpq.socket, events)
        if not self.poll.poll(None if self.seconds is None else self.seconds * 1000):
            raise TimeoutError(f'No response after {self.seconds:g} s.')
        self.libpq.consume_input()
