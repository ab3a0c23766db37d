"""Tables as they were in earlier releases."""

from datetime import datetime

import sqlalchemy as sa


def insert(connection, name, row):
    """Insert a row into a table of an earlier release; unknown columns are ignored."""
    known = {column['name'] for column in sa.inspect(connection).get_columns(name)}
    values = {key: value for key, value in row.items() if key in known}
    # MariaDB does not report that a column is JSON.
    kinds = {dict: sa.JSON(), list: sa.JSON(), datetime: sa.DateTime()}
    columns = [sa.column(key, kinds.get(type(value))) for key, value in values.items()]
    connection.execute(sa.table(name, *columns).insert().values(values))
