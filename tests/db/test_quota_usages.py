"""Quota usage is updated with every change and always matches the rows, even with concurrent changes."""

import random
import uuid
from concurrent.futures import ThreadPoolExecutor

import pytest
import sqlalchemy as sa

from computeapi.clock import utcnow
from computeapi.compute.quotas import Quotas
from computeapi.db import bulk, keypairs, quota_usages, quotas, schema, server_groups
from computeapi.db import servers as rows
from computeapi.db.engine import Store
from computeapi.db.quota_usages import Counted, differences
from computeapi.db.tables.compute import quota_usages as table
from computeapi.db.tables.servers import servers as table_of_servers
from computeapi.states import VMState
from tests.conftest import ACTIVE, Client
from tests.db.former import insert

USERS, PROJECTS = ('alice', 'bob'), ('p', 'q')
STATES = (VMState.ACTIVE, VMState.ERROR, VMState.STOPPED, VMState.SOFT_DELETED, VMState.SOFT_DELETED)
PAIR = {'name': 'a', 'type': 'ssh', 'fingerprint': '', 'public_key': '', 'created_at': utcnow()}


class Refused(Exception):
    pass


class RandomChanges:
    """A random sequence of changes to its own servers, and to resources that it shares with others."""

    def __init__(self, store, servers, seed):
        self.store, self.servers, self.chance, self.ids = store, servers, random.Random(seed), []
        self.steps = [self.add, self.add, self.change, self.change, self.restore, self.resize, self.delete, self.fill]
        self.steps += [self.switch_off, self.group, self.pair, self.fail, self.move]

    def step(self):
        self.chance.choice(self.steps)()

    def one(self):
        return self.chance.choice(self.ids) if self.ids else 'nobody'

    def facts(self):
        chance = self.chance
        owner = {'project_id': chance.choice(PROJECTS), 'user_id': chance.choice(USERS), 'uuid': str(uuid.uuid4())}
        size = {'vcpus': chance.randint(1, 4), 'memory_mb': chance.choice([64, 2**32])}
        return owner | size | {'server_group_id': chance.choice([None, 'g']), 'host': 'h', 'vm_state': 'active'}

    def add(self):
        self.ids.append(self.servers.add(**self.facts()))

    def change(self):
        state, states = self.chance.choice(STATES), self.chance.choice([None, [VMState.ACTIVE, VMState.SOFT_DELETED]])
        self.store.change(rows.change, self.one(), {'vm_state': state}, vm_states=states)

    def restore(self):
        task_state, states = self.chance.choice([None, 'restoring']), self.chance.choice([None, [None, 'restoring']])
        self.store.change(rows.change, self.one(), {'task_state': task_state}, task_states=states)

    def resize(self):
        self.store.change(rows.update, self.one(), {'vcpus': self.chance.randint(1, 9), 'memory_mb': 128})

    def delete(self):
        self.store.change(rows.change, self.one(), {'deleted_at': utcnow(), 'vm_state': VMState.DELETED})

    def fill(self):
        with self.store.write() as connection:
            [row] = connection.execute(sa.select(table_of_servers).limit(1)).mappings().all() or [None]
            if row is not None:
                more = [{**row, **self.facts(), 'id': self.chance.getrandbits(31)} for _ in range(3)]
                bulk.insert(connection, {'servers': more})

    def switch_off(self):
        self.store.change(rows.change_on, 'h', {'vm_state': VMState.STOPPED}, [VMState.SOFT_DELETED, VMState.ACTIVE])

    def group(self):
        owner = {'project_id': 'p', 'user_id': 'bob', 'name': '', 'policy': 'affinity', 'rules': {}}
        group = {**owner, 'uuid': str(uuid.uuid4()), 'created_at': utcnow()}
        self.store.change(server_groups.insert, group)
        self.store.change(server_groups.delete, self.chance.choice([group['uuid'], 'nobody']))

    def pair(self):
        with self.store.write() as connection:
            quotas.lock(connection, 'bob')
            if not keypairs.delete(connection, 'bob', 'a'):
                keypairs.insert(connection, PAIR | {'user_id': 'bob'})

    def fail(self):
        """Rolled-back changes do not count."""
        with pytest.raises(Refused), self.store.write() as connection:
            rows.update(connection, self.one(), {'vcpus': 99})
            raise Refused()

    def move(self):
        """Change two servers in one transaction, like a request that reserves quota first."""
        state, chosen = self.chance.choice(STATES), sorted({self.one(), self.one()})

        def change(connection):
            quotas.lock(connection, 'p')
            for server_id in chosen:
                rows.update(connection, server_id, {'vm_state': state})

        self.store.change(change)


@pytest.mark.parametrize('seed', range(3))
def test_what_is_counted_is_what_the_rows_amount_to(store, servers, seed):
    changes = RandomChanges(store, servers, seed)
    for _ in range(60):
        changes.step()
        assert store.query(differences) == []
    used = store.query(quotas.usage, 'p')
    by_user = [store.query(quotas.usage, 'p', user) for user in USERS]
    assert used == {name: sum(each[name] for each in by_user) for name in used}
    there = sa.select(sa.func.count()).where(table_of_servers.c.project_id == 'p', *quota_usages.COUNTING)
    with store.read() as connection:
        assert used['instances'] == connection.scalar(there) > 0


def test_whoever_changes_them_together(store, servers):
    """Concurrent changes do not deadlock."""

    def change_all(seed):
        changes = RandomChanges(store, servers, seed)
        for _ in range(25):
            changes.step()

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(change_all, range(6)))
    assert store.query(differences) == []


def test_a_group_that_goes_leaves_its_servers(store, servers):
    facts = {'project_id': 'p', 'user_id': 'bob', 'name': '', 'policy': 'affinity', 'rules': {}, 'created_at': utcnow()}
    store.change(server_groups.insert, facts | {'uuid': 'g'})
    for number in range(3):
        servers.add(project_id='p', user_id='bob', server_group_id='g', uuid=f'{number}', vm_state='active')
    assert store.query(quotas.group_members, 'g', 'bob') == 3
    assert store.change(server_groups.delete, 'g')
    assert store.query(quotas.group_members, 'g', 'bob') == 0
    assert store.query(quotas.usage, 'p') == {'instances': 3, 'cores': 3, 'ram': 3 * 64, 'server_groups': 0}
    assert store.query(differences) == []


def test_what_is_used_is_known_without_a_look_at_servers(store, conf, app, servers, asked):
    """Nor at anything else that is counted; each row is found by its key."""
    servers.add(project_id='project', user_id='bob', vm_state='active')
    api, managed = Client(app), Quotas(store, conf)
    managed.set_limits('project', {'instances': 5}, user_id='bob')
    asked.clear()
    assert api.get('/limits', as_='bob:project').json['limits']['absolute']['totalInstancesUsed'] == 1
    assert api.get('/os-quota-sets/project/detail').json['quota_set']['instances']['in_use'] == 1
    with store.write() as connection:
        assert managed.reserve_servers(connection, 'project', 'bob', {'cores': 1}, 1, 9) == 4
        managed.reserve_server_group(connection, 'project', 'bob')
        managed.reserve_group_members(connection, 'project', 'bob', 'g')
    assert sum('quota_usages' in statement for statement in asked) >= 4
    counted = ('FROM servers', 'FROM server_groups', 'FROM keypairs')
    assert [statement for statement in asked if any(name in statement for name in counted)] == []


@pytest.mark.parametrize('statement', [quota_usages.OF_HOLDER, quota_usages.OF_USER])
def test_they_are_found_by_their_key(stores, statement):
    with stores('sqlite').read() as connection:
        text = str(statement.compile(connection))
        plan = connection.exec_driver_sql(f'EXPLAIN QUERY PLAN {text}', ('p', 'bob')[: text.count('?')]).all()
    assert 'SEARCH quota_usages USING INDEX sqlite_autoindex_quota_usages_1 (holder_id=?' in plan[0].detail


def test_what_is_found_to_be_missing_is_counted(store, servers):
    servers.add(project_id='p', user_id='bob', vm_state='active', vcpus=3)
    with store.write() as connection:
        connection.execute(sa.update(table).where(table.c.resource == 'cores').values(amount=7))
        connection.execute(sa.delete(table).where(table.c.resource == 'ram'))
    cores, ram = Counted('p', 'bob', 'cores'), Counted('p', 'bob', 'ram')
    assert store.query(differences) == [(cores, -4), (ram, 64)]
    assert store.query(differences, ram) == [(ram, 64)]
    with store.write() as connection:
        quota_usages.count(connection, dict(differences(connection)))
    assert store.query(differences) == []


@pytest.fixture
def former(database_url):
    """The store from before usage was counted."""
    store = Store(database_url)
    with store.write() as connection:
        schema.run(connection, '0021')
    yield store
    store.close()


def test_an_upgrade_counts_what_is_there(former):
    rest = {'created_at': utcnow(), 'claims': 0}
    group = {'uuid': 'g', 'project_id': 'p', 'user_id': 'bob', 'name': '', 'policy': 'affinity', 'rules': {}}
    made = [{'vcpus': 2, 'server_group_id': 'g'}, {'vm_state': 'soft-delete'}, {'deleted_at': utcnow()}, {}]
    with former.write() as connection:
        for number, facts in enumerate(made):
            own = {'uuid': f'{number}', 'project_id': 'p', 'memory_mb': 2**32}
            insert(connection, 'servers', ACTIVE | rest | own | facts)
        insert(connection, 'server_groups', group | rest)
        insert(connection, 'keypairs', PAIR | {'user_id': 'bob'})
    assert schema.upgrade(former)
    assert former.query(quotas.usage, 'p') == {'instances': 2, 'cores': 3, 'ram': 2**33, 'server_groups': 1}
    assert former.query(quotas.group_members, 'g', 'bob') == former.query(quotas.key_pairs, 'bob') == 1
