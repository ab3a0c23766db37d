"""The schema migrations: revisions that Alembic runs.  `computeapi db upgrade` calls computeapi.db.schema.upgrade.

After a change of computeapi.db.tables,

    python -m computeapi.db.migrations 'servers have wings'     writes the next revision
    python -m computeapi.db.migrations --again                  rewrites the newest one

from the differences between the tables and the revisions. Review it, and fix what cannot be derived from a difference:
a renaming, or data to be migrated. `--again` is for an unreleased revision; released ones never change.

There are no downgrades. Revisions use the types of computeapi.db.tables.types, so a type there never changes its
meaning: another meaning needs another name.
"""
