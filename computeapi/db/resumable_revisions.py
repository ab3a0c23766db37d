"""Revisions on MariaDB, where DDL cannot be rolled back: their progress is recorded, and resumed after a failure.

The record is a number: how many statements of the next revision were executed. For a statement that changes rows, it is
written in the same transaction. A DDL statement commits implicitly, so the process may die between the statement and
its record: the first statement of a later run may therefore have been executed already.
"""

from typing import Any

import sqlalchemy as sa

NOTES = 'upgrade_steps'
VERSIONS = 'alembic_version'
CHANGES = frozenset({'ALTER', 'CREATE', 'DELETE', 'DROP', 'INSERT', 'UPDATE'})
# MariaDB's error codes for a table, column, key or constraint that exists already, or is gone already.
DONE = frozenset({1005, 1022, 1050, 1051, 1060, 1061, 1091, 1826})
NOTHING = 'DO 0'


class ResumableRevisions:
    """Intercepts the statements on a connection, and skips those that were executed before."""

    def __init__(self, connection: sa.Connection):
        self.connection, self.count = connection, 0
        # Whether the next statement may have been executed by a process that died.
        self.unsure = sa.inspect(connection).has_table(NOTES)
        if not self.unsure:
            connection.exec_driver_sql(f'CREATE TABLE {NOTES} (done INTEGER NOT NULL)')
        found = connection.exec_driver_sql(f'SELECT done FROM {NOTES}').scalar()
        if found is None:
            connection.exec_driver_sql(f'INSERT INTO {NOTES} VALUES (0)')
        self.done = found or 0

    def __enter__(self) -> None:
        sa.event.listen(self.connection, 'before_cursor_execute', self.before, retval=True)
        sa.event.listen(self.connection, 'after_cursor_execute', self.after)

    def __exit__(self, kind: Any, *how: Any) -> None:
        sa.event.remove(self.connection, 'before_cursor_execute', self.before)
        sa.event.remove(self.connection, 'after_cursor_execute', self.after)
        if kind is None:
            self.connection.exec_driver_sql(f'DROP TABLE {NOTES}')

    def before(
        self, connection: Any, cursor: Any, statement: str, parameters: Any, context: Any, many: bool
    ) -> tuple[str, Any]:
        if not is_step(statement):
            return statement, parameters
        self.count += 1
        if self.count > self.done:
            unsure, self.unsure = self.unsure, False
            if not unsure or not was_done(cursor, statement, parameters):
                return statement, parameters
            self.note(cursor)
        return NOTHING, ()

    def after(self, connection: Any, cursor: Any, statement: str, parameters: Any, context: Any, many: bool) -> None:
        if is_step(statement):
            self.note(cursor)
        elif VERSIONS in statement and word_of(statement) in ('INSERT', 'UPDATE'):
            # The revision is complete, and the next one has not begun.
            self.count, self.done, self.unsure = 0, 0, False
            self.note(cursor)

    def note(self, cursor: Any) -> None:
        """Uses a cursor of its own in the statement's transaction: the connection would intercept the statement."""
        with cursor.connection.cursor() as other:
            other.execute(f'UPDATE {NOTES} SET done = %s', (self.count,))


def word_of(statement: str) -> str:
    return statement.split(None, 1)[0].upper()


def is_step(statement: str) -> bool:
    """Whether it is a change made by a revision; Alembic maintains its own table."""
    return word_of(statement) in CHANGES and VERSIONS not in statement


def was_done(cursor: Any, statement: str, parameters: Any) -> bool:
    """Whether it was executed before, or just now; if it fails for another reason, it will fail again later."""
    try:
        cursor.execute(statement, parameters)
    except Exception as error:
        return bool(error.args) and error.args[0] in DONE
    return True
