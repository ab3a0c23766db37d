"""The tables, step by step: revisions that Alembic runs.  `computeapi db upgrade` is computeapi.db.schema.upgrade.

After a change of computeapi.db.tables,

    python -m computeapi.db.migrations 'servers have wings'     writes the next revision
    python -m computeapi.db.migrations --again                  writes the newest one anew

from what differs between the tables and the revisions. Read it, and mend what cannot be told from a difference: a
new name, or data to be moved. `--again` is for a revision that nobody has yet; what is released stays as it is.

Revisions only go up. They use the types of computeapi.db.tables.types, so a type there keeps its meaning: another
meaning is another name.
"""
