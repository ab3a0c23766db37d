"""/os-migrations: migrations of servers."""

from datetime import datetime, timedelta

import pytest

from computeapi.context import Context
from computeapi.db import server_migrations as moves
from computeapi.db import servers as rows
from computeapi.states import MigrationStatus

BEGUN = datetime(2026, 1, 31, 12)
OWNER = Context(user_id='ann', project_id='project')


@pytest.fixture
def moved(servers):
    """The IDs of two servers that were migrated, the first of them twice, at intervals of a second."""
    ids = [servers.add(host='compute1') for _ in range(2)]
    with servers.store.write() as connection:
        for second, server_id in enumerate([ids[0], ids[1], ids[0]]):
            server, now = rows.get(connection, server_id), BEGUN + timedelta(seconds=second)
            moves.insert(connection, OWNER, server, 'migration', MigrationStatus.CONFIRMED, now)
    return ids


@pytest.fixture
def listed(api):
    def get(version, query=''):
        answer = api.get(f'/os-migrations{query}', version)
        return [int(move['created_at'][17:19]) for move in answer.json['migrations']]

    return get


def test_2_59_the_newest_come_first(listed, moved):
    assert (listed('2.58'), listed('2.59')) == ([0, 1, 2], [2, 1, 0])


def test_the_moves_of_a_deleted_server_are_told_no_more(api, listed, servers, moved):
    gone = api.get(f'/os-migrations?instance_uuid={moved[1]}', '2.59').json['migrations'][0]['uuid']
    servers.change(moved[1], deleted_at=BEGUN, vm_state='deleted')
    assert (listed('2.58'), listed('2.59')) == ([0, 2], [2, 0])
    assert api.get(f'/os-migrations?marker={gone}', '2.59').status == 400


@pytest.mark.parametrize(
    ('query', 'statuses'),
    [
        ('limit=1&limit=2', (200, 400)),
        ('marker=x&marker=y', (200, 400)),
        ('changes-since=2026-01-01&changes-since=2026-01-01', (200, 400)),
        ('status=x&status=y&host=a&host=b', (200, 200)),
    ],
)
def test_2_59_some_parameters_stand_once(api, query, statuses):
    assert tuple(api.get(f'/os-migrations?{query}', version).status for version in ('2.58', '2.59')) == statuses


def test_moves_come_in_pages(api, listed, moved):
    page = api.get('/os-migrations?limit=2&host=compute1', '2.59').json
    [link] = page['migrations_links']
    assert link['href'].endswith(f'?host=compute1&limit=2&marker={page["migrations"][-1]["uuid"]}')
    assert listed('2.59', '?' + link['href'].partition('?')[2]) == [0]
