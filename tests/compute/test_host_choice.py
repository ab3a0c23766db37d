"""The database selects the same hosts that filtering and weighing all hosts would select."""

import random
import uuid
from datetime import timedelta

import pytest
import sqlalchemy as sa

from computeapi.clock import utcnow
from computeapi.compute.scheduler import NoValidHost, Scheduler, Spec
from computeapi.compute.scheduler import choice as choice_of
from computeapi.compute.scheduler.filters import FILTERS
from computeapi.compute.scheduler.weighers import WEIGHERS
from computeapi.db import allocations
from computeapi.db.allocations import Amounts
from computeapi.db.tables.compute import aggregate_hosts, aggregates, cells, hypervisors, server_groups, services

HOSTS = 40
ZONES = ('north', 'south', 'nova')
POLICIES = ('affinity', 'anti-affinity', 'soft-affinity', 'soft-anti-affinity')
REQUIRED = [
    {'trait:CUSTOM_A': 'required', 'trait:CUSTOM_B': 'forbidden'},
    {'resources:CUSTOM_R': '1'},
    {'resources1:CUSTOM_S': '1', 'trait1:CUSTOM_B': 'required', 'resources:CUSTOM_R': '2'},
]
DEFAULT = ['ServerGroupSoftAffinityWeigher', 'ServerGroupSoftAntiAffinityWeigher', 'RAMWeigher', 'CPUWeigher']


class RandomHosts:
    """Hosts of few sizes (so that many are equal), in random states, zones, cells and aggregates, and partly used."""

    def __init__(self, service, servers, draw):
        self.service, self.store, self.servers, self.draw = service, service.store, servers, draw
        service.conf.set_override('hosts', HOSTS, 'simulated')
        service.conf.set_override('cells', 2, 'simulated')
        service.hosts.register()
        self.names = [f'compute{number}' for number in range(1, HOSTS + 1)]
        self.others = [servers.add(host=draw.choice(self.names)) for _ in range(5)]
        with self.store.write() as connection:
            self.change(connection)
            self.group_up(connection)
            for name in self.names:
                self.use(connection, name)

    def change(self, connection):
        draw = self.draw
        for name in self.names:
            size = {
                'vcpus': draw.choice([2, 4]),
                'memory_mb': draw.choice([1000, 2001]),
                'local_gb': draw.choice([5, 9]),
            }
            kind = {
                'hypervisor_type': draw.choice(['fake', 'QEMU']),
                'traits': draw.choice([None, ['CUSTOM_A'], ['CUSTOM_A', 'CUSTOM_B']]),
                'resources': draw.choice([None, {'CUSTOM_R': 1}, {'CUSTOM_R': 2, 'CUSTOM_S': 1}]),
            }
            connection.execute(sa.update(hypervisors).where(hypervisors.c.host == name).values(**size, **kind))
            if draw.random() < 0.3:
                seen = draw.choice([None, utcnow() - timedelta(hours=1), utcnow()])
                state = {'disabled': draw.random() < 0.3, 'forced_down': draw.random() < 0.3, 'seen_at': seen}
                connection.execute(sa.update(services).where(services.c.host == name).values(**state))
        if draw.random() < 0.2:
            connection.execute(sa.update(cells).where(cells.c.name == 'cell2').values(down=True))

    def group_up(self, connection):
        draw = self.draw
        for _ in range(6):
            metadata = draw.choice(
                [{'availability_zone': draw.choice(ZONES)}, {'availability_zone': ''}, {'disk': 'ssd'}]
            )
            row = {'uuid': str(uuid.uuid4()), 'name': str(uuid.uuid4()), 'metadata': metadata, 'created_at': utcnow()}
            (number,) = connection.execute(sa.insert(aggregates).values(**row)).inserted_primary_key
            for name in draw.sample(self.names, HOSTS // 3):
                connection.execute(sa.insert(aggregate_hosts).values(aggregate_id=number, host=name))

    def use(self, connection, name):
        amounts = Amounts(self.draw.choice([0, 1, 2, 8]), self.draw.choice([0, 500, 1001]), self.draw.choice([0, 5]))
        server_id = str(uuid.uuid4())
        allocations.replace(connection, server_id, name, Amounts(), amounts)
        hypervisor_id = connection.scalar(sa.select(hypervisors.c.uuid).where(hypervisors.c.host == name))
        held = {hypervisor_id: {'CUSTOM_R': self.draw.choice([1, 2])}}
        if self.draw.random() < 0.3:
            allocations.hold_for_flavor(connection, server_id, name, '1', held)

    def group(self):
        """Creates a server group with random members; returns its ID."""
        row = {'uuid': str(uuid.uuid4()), 'project_id': 'project', 'user_id': 'bob', 'name': 'group', 'rules': {}}
        policy = self.draw.choice(POLICIES)
        with self.store.write() as connection:
            connection.execute(sa.insert(server_groups).values(**row, policy=policy, created_at=utcnow()))
        host = self.draw.choice(self.names)
        for member in range(self.draw.randrange(3)):
            self.servers.add(host=host if policy == 'affinity' else self.names[member], server_group_id=row['uuid'])
        return row['uuid']

    def spec(self):
        """A random request for a server."""
        draw = self.draw
        hints = {name: draw.sample(self.others, 2) for name in ('same_host', 'different_host') if draw.random() < 0.1}
        facts = {
            'availability_zone': draw.choice([None, None, 'elsewhere', *ZONES]),
            'host': draw.choice([None] * 6 + self.names[:2]),
            'node': draw.choice([None] * 6 + self.names[:2]),
            'current_host': draw.choice([None, None, *self.names[:2]]),
            'ignored_hosts': frozenset(draw.sample(self.names, draw.choice([0, 5]))),
            'extra_specs': draw.choice([{}, {}, {'capabilities:hypervisor_type': 'QEMU'}, {'disk': 'ssd'}, *REQUIRED]),
            'hints': hints,
            'group_id': draw.choice([None, self.group()]),
        }
        sizes = {'vcpus': draw.choice([1, 3]), 'memory_mb': draw.choice([1, 600]), 'disk_gb': draw.choice([0, 4])}
        return Spec(server_id=str(uuid.uuid4()), project_id='project', **sizes, **facts)

    def scheduler(self):
        draw, conf = self.draw, self.service.conf
        filters = (
            sorted(draw.sample(sorted(FILTERS), 4))
            if draw.random() < 0.3
            else list(conf.filter_scheduler.enabled_filters)
        )
        weighers = draw.choice([DEFAULT, draw.sample(sorted(WEIGHERS), 2), []])
        scheduler = Scheduler(self.store, conf)
        scheduler.filters = [(name, FILTERS[name]) for name in filters]
        scheduler.weighers = [WEIGHERS[name] for name in weighers]
        scheduler.choice = choice_of.HostChoice(conf, scheduler.ratios, filters, weighers)
        return scheduler


@pytest.mark.parametrize('seed', range(4))
def test_the_first_host_is_that_of_all_that_are_weighed(service, servers, monkeypatch, seed):
    monkeypatch.setattr(choice_of, 'HOSTS_PER_PAGE', 3)
    monkeypatch.setattr('computeapi.compute.scheduler.HOSTS_PER_PAGE', 3)
    for option in ('cpu_allocation_ratio', 'ram_allocation_ratio', 'disk_allocation_ratio'):
        service.conf.set_override(option, [1.0, 1.5, 1.1, 0.7][seed], 'filter_scheduler')
    hosts = RandomHosts(service, servers, random.Random(seed))
    found = 0
    for _ in range(30):
        scheduler = hosts.scheduler()
        spec = service.store.query(scheduler.narrowed, hosts.spec())
        best = [host.name for host in service.store.query(scheduler.survey, spec).best if host.has_room(spec)]
        if service.store.query(scheduler.choice.is_possible, spec):
            assert [host.name for host in scheduler.promising(spec)] == best
        else:
            assert list(scheduler.promising(spec)) == []
        found += bool(best)
    assert found


def test_a_host_is_found_wherever_it_is(service, servers):
    """Even behind many hosts that pass according to the database."""
    hosts = RandomHosts(service, servers, random.Random(1))
    service.store.change(lambda connection: connection.execute(sa.update(cells).values(down=False)))
    facts = {'disabled': False, 'forced_down': False, 'seen_at': utcnow()}
    service.store.change(lambda connection: connection.execute(sa.update(services).values(**facts)))
    last = {'hypervisor_type': 'special', 'memory_mb': 1002, 'vcpus': 20, 'local_gb': 10}
    special = sa.update(hypervisors).where(hypervisors.c.host == 'compute7').values(**last)
    service.store.change(lambda connection: connection.execute(special))
    wanted = {'extra_specs': {'capabilities:hypervisor_type': 'special'}}
    spec = Spec(server_id=str(uuid.uuid4()), project_id='project', vcpus=1, memory_mb=1, disk_gb=0, **wanted)
    scheduler = Scheduler(hosts.store, service.conf)
    assert scheduler.allocate(spec, lambda connection, host: None).name == 'compute7'
    wanted = {'extra_specs': {'capabilities:hypervisor_type': 'unknown'}}
    spec = Spec(server_id=str(uuid.uuid4()), project_id='project', vcpus=1, memory_mb=1, disk_gb=0, **wanted)
    with pytest.raises(NoValidHost, match=f'{HOSTS} hosts to begin with; ComputeCapabilitiesFilter: 0 hosts'):
        scheduler.allocate(spec, lambda connection, host: None)


@pytest.mark.parametrize('number', [2, 40])
def test_no_more_hosts_are_read_than_are_looked_at(service, number):
    service.conf.set_override('hosts', number, 'simulated')
    service.hosts.register()
    spec = Spec(server_id=str(uuid.uuid4()), project_id='project', vcpus=1, memory_mb=1, disk_gb=0)
    choice = Scheduler(service.store, service.conf).choice
    assert len(service.store.query(choice.page, spec, utcnow(), 0)) == min(number, choice_of.HOSTS_PER_PAGE)


@pytest.mark.parametrize(('required', 'advised'), [({}, True), ({'trait:CUSTOM_C': 'required'}, False)])
def test_another_host_is_advised_only_if_it_would_help(service, required, advised):
    service.conf.set_override('hosts', 1, 'simulated')
    service.hosts.register()
    scheduler = Scheduler(service.store, service.conf, lonely='Start another host.')
    facts = {'vcpus': 1, 'memory_mb': 1, 'disk_gb': 1, 'ignored_hosts': frozenset({'compute1'})}
    with pytest.raises(NoValidHost) as refused:
        spec = Spec(str(uuid.uuid4()), 'project', **facts, extra_specs=required)
        scheduler.allocate(spec, lambda connection, host: None)
    assert ('Start another host.' in str(refused.value)) == advised
