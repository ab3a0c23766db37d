"""The servers that changed recently."""

from datetime import datetime, timedelta

import pytest

from computeapi.db import server_changes
from computeapi.db import servers as rows

NOW = datetime(2030, 1, 1, 12)
BEFORE, LATER = NOW - timedelta(minutes=1), NOW + timedelta(seconds=1)


@pytest.fixture
def known(servers):
    """Servers, named by what happened to them and when."""
    return {
        'old': servers.add(created_at=BEFORE, updated_at=BEFORE),
        'changed': servers.add(created_at=BEFORE, updated_at=LATER),
        'never changed': servers.add(created_at=LATER, updated_at=None),
        'long gone': servers.add(created_at=BEFORE, updated_at=BEFORE, deleted_at=BEFORE),
        'gone': servers.add(created_at=BEFORE, updated_at=BEFORE, deleted_at=LATER),
    }


def test_those_that_changed_came_and_went_are_found_once(store, known):
    found = store.query(server_changes.since, NOW, 10)
    assert sorted(each.uuid for each in found) == sorted(known[name] for name in ('changed', 'never changed', 'gone'))
    assert {each.project_id for each in found} == {'project'}


def test_where_there_are_more_than_one_wants_one_is_told_of_more(store, known, servers):
    newest = [servers.add(created_at=BEFORE, updated_at=LATER + timedelta(seconds=number)) for number in range(1, 5)]
    found = store.query(server_changes.since, NOW, 2)
    assert len(found) > 2 and set(newest[-3:]) <= {each.uuid for each in found}


def test_another_state_is_news(store, known):
    def seen():
        return {each.uuid: each for each in store.query(server_changes.since, NOW, 10)}[known['changed']]

    before = seen()
    assert seen() == before
    with store.write() as connection:
        rows.update(connection, before.uuid, {'task_state': 'rebooting'})
    assert seen() != before
