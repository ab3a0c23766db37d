"""What workers do: one module per noun, one function per kind of task, under `@work(kind)`.

A function takes a Job. Its steps may run again after a worker died, so each first looks whether it was
done; the last one is `job.finish(...)`, which writes the outcome and removes the task in one transaction.
"""

from computeapi.compute.work import (
    addresses,
    attachments,
    beside,
    build,
    delete,
    live_migration,
    migration,
    power,
    rebuild,
    reset,
    shelving,
    snapshot,
)
from computeapi.compute.work.runner import Runner

__all__ = [
    'Runner',
    'addresses',
    'attachments',
    'beside',
    'build',
    'delete',
    'live_migration',
    'migration',
    'power',
    'rebuild',
    'reset',
    'shelving',
    'snapshot',
]
