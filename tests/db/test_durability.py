"""Transactions that SQLite acknowledged survive a power failure, unless the data are temporary anyway."""

import contextlib

import pytest

from computeapi.db.engine import Store

FULL, OFF = 2, 0


@pytest.mark.parametrize(('durable', 'expected'), [(True, FULL), (False, OFF)])
def test_when_sqlite_waits_for_the_disk(tmp_path, durable, expected):
    store = Store(f'sqlite:///{tmp_path}/computeapi.db', durable=durable)
    with contextlib.closing(store), store.write() as one, store.read() as other:
        assert [each.exec_driver_sql('PRAGMA synchronous').scalar() for each in (one, other)] == [expected] * 2


def test_who_has_it_alone_writes_no_log_and_others_do_again(tmp_path):
    for alone, mode in ((True, 'delete'), (False, 'wal')):
        store = Store(f'sqlite:///{tmp_path}/computeapi.db', alone=alone)
        with contextlib.closing(store), store.write() as connection:
            assert connection.exec_driver_sql('PRAGMA journal_mode').scalar() == mode
