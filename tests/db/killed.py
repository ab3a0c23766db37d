"""`python killed.py URL STEP SEED`: upgrades a database repeatedly, dying in each attempt, until an attempt completes.

Each process dies at the n-th statement that no earlier process has reached, either before or after executing it; n is a
random number from 1 to STEP. Prints how often a process died.
"""

import os
import random
import sys
import tempfile
from pathlib import Path

import sqlalchemy as sa

from computeapi.db import schema
from computeapi.db.engine import Store

WORDS = ('ALTER', 'CREATE', 'DELETE', 'DROP', 'INSERT', 'UPDATE')


def upgrade(url, met, step):
    """Runs in a process of its own, which may die before it returns."""
    known, occurred = set(met.read_text().splitlines()), {}
    left = step

    def come_to(when, statement):
        nonlocal left
        if statement.split(None, 1)[0] not in WORDS:
            return
        occurred[when, statement] = occurred.get((when, statement), 0) + 1
        key = repr((when, statement, occurred[when, statement]))
        if key in known:
            return
        with met.open('a') as file:
            file.write(key + '\n')
        left -= 1
        if left == 0:
            os._exit(9)

    @sa.event.listens_for(sa.Engine, 'before_cursor_execute')
    def before(connection, cursor, statement, parameters, context, many):
        come_to('before', statement)

    @sa.event.listens_for(sa.Engine, 'after_cursor_execute')
    def after(connection, cursor, statement, parameters, context, many):
        come_to('after', statement)

    schema.upgrade(Store(url))


def main(url, step, seed):
    chance, deaths = random.Random(seed), 0
    with tempfile.TemporaryDirectory() as folder:
        met = Path(folder, 'met')
        met.touch()
        while True:
            child = os.fork()
            number = chance.randint(1, int(step))
            if not child:
                status = 1
                try:
                    upgrade(url, met, number)
                    status = 0
                finally:
                    sys.stderr.flush() if status == 0 else sys.excepthook(*sys.exc_info())
                    os._exit(status)
            status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            if status != 9:
                print(deaths)
                return status
            deaths += 1


if __name__ == '__main__':
    sys.exit(main(*sys.argv[1:]))
