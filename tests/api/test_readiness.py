"""/readyz: whether the service can do its work now; it needs no token."""

import threading
from datetime import timedelta

import pytest
import sqlalchemy as sa

from computeapi.clock import utcnow
from computeapi.compute.tasks.heartbeat import Heartbeat
from computeapi.compute.tasks.queue import Tasks
from computeapi.db import schema
from computeapi.db.engine import Store
from computeapi.readiness import Condition, Readiness, ReadinessApp, RecentConditions
from tests.conftest import Client


@pytest.fixture
def ready(store):
    """The tables are marked as being at the current revision, and there is a worker."""
    with store.write() as connection:
        connection.execute(sa.text('CREATE TABLE alembic_version (version_num VARCHAR(32))'))
        connection.execute(sa.text('INSERT INTO alembic_version VALUES (:head)'), {'head': schema.head()})
    worker = Heartbeat(Tasks(store, 12, store.clock), 'computeapi-worker', 'control', 2)
    worker.begin()
    yield worker
    with store.write() as connection:
        connection.execute(sa.text('DROP TABLE alembic_version'))


def conditions(answer):
    return {name: each['ok'] for name, each in answer.json['checks'].items()}


def test_a_service_that_is_ready_says_so_without_a_token(app, ready):
    answer = Client(app, token=' ', prefix='').get('/readyz')
    assert (answer.status, answer.json['ready'], answer.headers['Cache-Control']) == (200, True, 'no-store')
    assert conditions(answer) == {'database': True, 'schema': True, 'workers': True, 'disk': True}
    assert all(each['why'] for each in answer.json['checks'].values())
    head = Client(app, prefix='').request('HEAD', '/readyz')
    assert (head.status, head.text) == (200, '')


def test_without_workers_it_is_not_ready(conf, app, store, ready):
    ready.end()
    answer = Client(app, prefix='').get('/readyz')
    assert (answer.status, answer.json['ready']) == (503, False)
    assert conditions(answer) == {'database': True, 'schema': True, 'workers': False, 'disk': True}
    dead = Heartbeat(Tasks(store, 12, lambda: utcnow() - timedelta(seconds=30)), 'computeapi-worker', 'control', 2)
    dead.begin()
    idle = Heartbeat(Tasks(store, 12, store.clock), 'computeapi-api', 'control', 0)
    idle.begin()
    assert not Readiness(conf, store).check()['workers'].ok


def test_with_old_tables_it_is_not_ready(app, store, ready):
    with store.write() as connection:
        connection.execute(sa.text("UPDATE alembic_version SET version_num = '0001'"))
    answer = Client(app, prefix='').get('/readyz')
    assert (answer.status, conditions(answer)['schema']) == (503, False)
    assert 'computeapi db upgrade' in answer.json['checks']['schema']['why']


def test_while_another_release_takes_its_place_it_is_ready(app, store, ready):
    with store.write() as connection:
        connection.execute(sa.text("UPDATE alembic_version SET version_num = '9999'"))
    answer = Client(app, prefix='').get('/readyz')
    assert (answer.status, answer.json['checks']['schema']['why']) == (200, 'The tables are at revision 9999.')


def test_without_room_on_the_disk_it_is_not_ready(conf, app, ready):
    conf.set_override('min_free_disk_mb', 2**40)
    answer = Client(app, prefix='').get('/readyz')
    assert (answer.status, conditions(answer)['disk']) == (503, False)


def test_what_is_wrong_with_the_database_is_for_operators_alone(conf):
    store = Store('postgresql+psycopg://me:hidden@127.0.0.1:1/none')
    answer = Client(ReadinessApp(Readiness(conf, store).check), prefix='').get('/readyz')
    assert (answer.status, conditions(answer)['database'], conditions(answer)['workers']) == (503, False, False)
    assert not [word for word in ('hidden', 'me', '127.0.0.1') if word in answer.text.split()]
    assert 'refused' not in answer.text
    store.close()


def test_it_looks_once_a_second_however_often_it_is_asked():
    looks, now = [], [0.0]
    recent = RecentConditions(lambda: {'looks': Condition(True, str(looks.append(1) or len(looks)))}, lambda: now[0])
    assert [recent()['looks'].why for _ in range(5)] == ['1'] * 5
    now[0] = 1.1
    assert [recent()['looks'].why for _ in range(5)] == ['2'] * 5


def test_nobody_waits_for_a_database_that_hangs(monkeypatch):
    monkeypatch.setattr('computeapi.readiness.MAX_SECONDS', 0.1)
    end, looks = threading.Event(), []
    recent = RecentConditions(lambda: looks.append(1) or end.wait(30) or {})
    assert [recent()['database'].ok for _ in range(3)] == [False] * 3 and len(looks) == 1
    end.set()


def test_a_check_that_fails_is_no_answer_of_the_service():
    assert not RecentConditions(lambda: {}['nothing'])()['service'].ok
