"""The scheduler: which hosts can take a server, and which of them is the best."""

import uuid
from datetime import timedelta

import pytest
from oslo_config import cfg

from computeapi.clock import utcnow
from computeapi.compute.scheduler import AgentsSilent, NoValidHost, Scheduler, Spec
from computeapi.compute.scheduler.agent_silence import REPORTS
from computeapi.compute.scheduler.operators import matches
from computeapi.db.tables.compute import aggregate_hosts, aggregates, hypervisors, server_groups, services

SERVER = 'b1f4ca06-a5ff-4a25-a8c4-5bb2d5d6c9a1'


class Hosts:
    """Three hosts with 8 CPUs, 8 GiB of memory and 80 GiB of disk: compute1, compute2, compute3."""

    names = ('compute1', 'compute2', 'compute3')

    def __init__(self, service):
        self.service, self.store = service, service.store
        for option, value in (('hosts', 3), ('vcpus', 8), ('memory_mb', 8192), ('local_gb', 80)):
            service.conf.set_override(option, value, 'simulated')
        service.hosts.register()

    def change(self, table, host, **values):
        with self.store.write() as connection:
            connection.execute(table.update().where(table.c.host == host).values(**values))

    def aggregate(self, *hosts, **metadata):
        """Creates an aggregate of these hosts."""
        row = {'uuid': str(uuid.uuid4()), 'name': str(uuid.uuid4()), 'metadata': metadata, 'created_at': utcnow()}
        with self.store.write() as connection:
            (number,) = connection.execute(aggregates.insert().values(**row)).inserted_primary_key
            for host in hosts:
                connection.execute(aggregate_hosts.insert().values(aggregate_id=number, host=host))

    def group(self, policy, **rules):
        """Creates a server group; returns its ID."""
        row = {'uuid': str(uuid.uuid4()), 'project_id': 'project', 'user_id': 'bob', 'name': 'group'}
        with self.store.write() as connection:
            connection.execute(server_groups.insert().values(**row, policy=policy, rules=rules, created_at=utcnow()))
        return row['uuid']

    def scheduler(self, **options):
        """A scheduler with only the given filters and weighers."""
        for option, value in ({'enabled_filters': [], 'weight_classes': []} | options).items():
            self.service.conf.set_override(option, value, 'filter_scheduler')
        return Scheduler(self.store, self.service.conf)

    def passing(self, name, **kwargs):
        """The numbers of the hosts that pass a filter."""
        try:
            found = self.scheduler(enabled_filters=[name]).candidates(spec(**kwargs)).best
        except NoValidHost:
            found = []
        return {int(host.name.removeprefix('compute')) for host in found}

    def ranking(self, *names, **kwargs):
        """The numbers of all hosts, the best first."""
        found = self.scheduler(weight_classes=list(names)).candidates(spec(**kwargs)).best
        return [int(host.name.removeprefix('compute')) for host in found]


def place(scheduler, **kwargs):
    return scheduler.allocate(spec(**kwargs), lambda connection, host: None)


def spec(**kwargs):
    return Spec(**{'server_id': SERVER, 'project_id': 'project', 'vcpus': 1, 'memory_mb': 512, 'disk_gb': 1} | kwargs)


@pytest.fixture
def hosts(service):
    return Hosts(service)


# ------------------------------------------------------------------ filters


def test_all_hosts(hosts):
    hosts.change(services, 'compute1', disabled=True)
    assert hosts.passing('AllHostsFilter') == {1, 2, 3}


def test_hosts_that_are_disabled_or_down(hosts):
    hosts.change(services, 'compute1', disabled=True)
    hosts.change(services, 'compute2', forced_down=True)
    assert hosts.passing('ComputeFilter') == {3}
    hosts.change(services, 'compute3', seen_at=None)
    assert hosts.passing('ComputeFilter') == set()


def test_hosts_of_a_cell_that_is_down(hosts, service):
    service.conf.set_override('cells', 2, 'simulated')
    service.hosts.register()
    service.cloud.cells.mark('cell1', down=True)
    assert hosts.passing('AllHostsFilter') == {2}
    with pytest.raises(NoValidHost):
        place(hosts.scheduler(), host='compute1', forced=True)


def test_a_server_does_not_leave_its_cell(hosts, service):
    service.conf.set_override('cells', 2, 'simulated')
    service.hosts.register()
    assert hosts.passing('AllHostsFilter') == {1, 2, 3}
    assert hosts.passing('AllHostsFilter', current_host='compute1') == {1, 3}
    assert hosts.passing('AllHostsFilter', current_host='compute2') == {2}
    with pytest.raises(NoValidHost):
        place(hosts.scheduler(), host='compute2', current_host='compute1', forced=True)


def test_availability_zones(hosts):
    hosts.aggregate('compute1', availability_zone='north')
    assert hosts.passing('AvailabilityZoneFilter') == {1, 2, 3}
    assert hosts.passing('AvailabilityZoneFilter', availability_zone='north') == {1}
    assert hosts.passing('AvailabilityZoneFilter', availability_zone='nova') == {2, 3}
    assert hosts.passing('AvailabilityZoneFilter', availability_zone='south') == set()


def test_capabilities(hosts):
    def passing(**capabilities):
        extra_specs = {f'capabilities:{name.replace("__", ":")}': value for name, value in capabilities.items()}
        return hosts.passing('ComputeCapabilitiesFilter', extra_specs=extra_specs | {'hw:cpu_policy': 'dedicated'})

    hosts.change(hypervisors, 'compute1', cpu_info={'arch': 'aarch64', 'topology': {'cores': 8}})
    assert passing() == {1, 2, 3}
    assert passing(cpu_info__arch='aarch64') == {1}
    assert passing(cpu_info__topology__cores='>= 2', hypervisor_type='fake') == {1}
    assert passing(cpu_info__features='<all-in> sse2 pge') == {2, 3}
    assert passing(unknown='!= 1') == set()


@pytest.mark.parametrize(
    ('value', 'wanted', 'matching'),
    [
        ('simulated', 'simulated', True),
        ('simulated', 's== simulated', True),
        ('simulated', 's!= simulated', False),
        ('simulated', '<or> ironic <or> simulated', True),
        ('simulated', '<or> ironic <or> xen', False),
        ('x86_64', 's> x86', True),
        ('x86_64', 's>= x86_64', True),
        ('x86_64', 's<= x86', False),
        ('x86_64', 's< x86', False),
        ("['sse2', 'pge']", '<in> sse2', True),
        ("['sse2', 'pge']", '<in> avx512', False),
        ("['sse2', 'pge']", '<all-in> sse2 pge', True),
        ("['sse2', 'pge']", '<all-in> sse2 avx512', False),
        ('1', '= 1', True),
        ('2', '= 1', True),
        ('1', '== 2', False),
        ('1', '!= 2', True),
        ('1', '>= 1.5', False),
        ('1', '<= 1', True),
        ('1', '>= many', False),
        ('many', '>= 1', False),
    ],
)
def test_operators(value, wanted, matching):
    assert matches(value, wanted) is matching


def test_properties_of_the_image(hosts):
    hosts.change(hypervisors, 'compute1', cpu_info={'arch': 'aarch64'})
    hosts.change(hypervisors, 'compute2', hypervisor_type='QEMU')
    assert hosts.passing('ImagePropertiesFilter', image_properties={'hw_architecture': 'aarch64'}) == {1}
    assert hosts.passing('ImagePropertiesFilter', image_properties={'architecture': 'x86_64'}) == {2, 3}
    assert hosts.passing('ImagePropertiesFilter', image_properties={'img_hv_type': 'Fake'}) == {1, 3}
    assert hosts.passing('ImagePropertiesFilter', image_properties={'img_hv_type': 'hyperv'}) == set()


def test_the_host_of_another_server(hosts, servers):
    first, second = servers.add(host='compute1'), servers.add(host='compute2')
    both = [first, second]
    assert hosts.passing('SameHostFilter') == {1, 2, 3}
    assert hosts.passing('SameHostFilter', hints={'same_host': first}) == {1}
    assert hosts.passing('SameHostFilter', hints={'same_host': both}) == {1, 2}
    assert hosts.passing('SameHostFilter', hints={'same_host': str(uuid.uuid4())}) == set()
    assert hosts.passing('DifferentHostFilter') == {1, 2, 3}
    assert hosts.passing('DifferentHostFilter', hints={'different_host': first}) == {2, 3}
    assert hosts.passing('DifferentHostFilter', hints={'different_host': both}) == {3}


def test_groups_that_are_together(hosts, servers):
    group = hosts.group('affinity')
    assert hosts.passing('ServerGroupAffinityFilter', group_id=group) == {1, 2, 3}
    servers.add(host='compute2', server_group_id=group)
    assert hosts.passing('ServerGroupAffinityFilter', group_id=group) == {2}
    assert hosts.passing('ServerGroupAntiAffinityFilter', group_id=group) == {1, 2, 3}
    assert hosts.passing('ServerGroupAffinityFilter') == {1, 2, 3}


def test_groups_that_are_apart(hosts, servers):
    group = hosts.group('anti-affinity')
    servers.add(host='compute2', server_group_id=group)
    servers.add(host='compute3', server_group_id=hosts.group('anti-affinity'))
    assert hosts.passing('ServerGroupAntiAffinityFilter', group_id=group) == {1, 3}
    assert hosts.passing('ServerGroupAffinityFilter', group_id=group) == {1, 2, 3}


def test_groups_with_a_rule(hosts, servers):
    group = hosts.group('anti-affinity', max_server_per_host=2)
    for host in ('compute1', 'compute2', 'compute2'):
        servers.add(host=host, server_group_id=group)
    assert hosts.passing('ServerGroupAntiAffinityFilter', group_id=group) == {1, 3}


def test_a_server_is_no_hindrance_to_itself(hosts, servers):
    group = hosts.group('anti-affinity')
    servers.add(uuid=SERVER, host='compute2', server_group_id=group)
    assert hosts.passing('ServerGroupAntiAffinityFilter', group_id=group) == {1, 2, 3}


def test_extra_specs_of_aggregates(hosts):
    hosts.aggregate('compute1', 'compute2', disk='ssd,nvme', speed='3')
    hosts.aggregate('compute2', disk='hdd')

    def passing(**extra_specs):
        return hosts.passing('AggregateInstanceExtraSpecsFilter', extra_specs=extra_specs)

    assert passing(disk='nvme') == {1, 2}
    assert passing(disk='hdd') == {2}
    assert passing(disk='s!= hdd') == {1, 2}
    assert passing(**{'aggregate_instance_extra_specs:disk': 'hdd'}) == {2}
    assert passing(speed='>= 2', disk='ssd') == {1, 2}
    assert passing(speed='>= 4') == set()
    assert passing(**{'hw:cpu_policy': 'dedicated'}) == {1, 2, 3}
    assert passing(colour='!= 1') == set()


def test_hosts_for_some_projects(hosts):
    hosts.aggregate('compute1', filter_tenant_id='other, project')
    hosts.aggregate('compute2', filter_tenant_id='other', filter_tenant_id2='third')
    name = 'AggregateMultiTenancyIsolation'
    assert hosts.passing(name) == {1, 3}
    assert hosts.passing(name, project_id='third') == {2, 3}
    assert hosts.passing(name, project_id='nobody') == {3}


def test_hosts_for_some_images(hosts):
    hosts.aggregate('compute1', 'compute2', os_distro='windows')
    hosts.aggregate('compute2', os_distro='debian')
    name = 'AggregateImagePropertiesIsolation'
    assert hosts.passing(name) == {1, 2, 3}
    assert hosts.passing(name, image_properties={'os_distro': 'windows'}) == {1, 2, 3}
    assert hosts.passing(name, image_properties={'os_distro': 'debian'}) == {2, 3}


def test_hosts_for_some_flavors(hosts):
    hosts.aggregate('compute1', instance_type='small, tiny')
    assert hosts.passing('AggregateTypeAffinityFilter', flavor_name='tiny') == {1, 2, 3}
    assert hosts.passing('AggregateTypeAffinityFilter', flavor_name='large') == {2, 3}


# ------------------------------------------------------------------ hosts named in the request


def test_a_host_that_was_asked_for(hosts):
    scheduler = hosts.scheduler(enabled_filters=['ComputeFilter'])
    assert place(scheduler, host='compute2').name == 'compute2'
    assert place(scheduler, node='compute3').name == 'compute3'
    with pytest.raises(NoValidHost, match='No such host - host: compute2 node: compute3 $'):
        place(scheduler, host='compute2', node='compute3')


def test_a_forced_host_passes_no_filter_but_needs_room(hosts):
    hosts.change(services, 'compute2', seen_at=None)
    scheduler = hosts.scheduler(enabled_filters=['ComputeFilter'])
    with pytest.raises(NoValidHost):
        place(scheduler, host='compute2')
    assert place(scheduler, host='compute2', forced=True).name == 'compute2'
    with pytest.raises(NoValidHost, match='Claim: 0 hosts'):
        place(scheduler, host='compute2', forced=True, vcpus=10_000_000)


def test_a_disabled_host_takes_a_forced_move_but_no_new_server(hosts):
    hosts.change(services, 'compute2', disabled=True)
    with pytest.raises(NoValidHost):
        place(hosts.scheduler(), host='compute2', forced=True)
    assert place(hosts.scheduler(), host='compute2', forced=True, current_host='compute1').name == 'compute2'


def test_hosts_that_will_not_do(hosts):
    names = frozenset({'compute1', 'compute3'})
    assert place(hosts.scheduler(), ignored_hosts=names).name == 'compute2'


# ------------------------------------------------------------------ weighers


@pytest.mark.parametrize(
    ('weigher', 'size'), [('CPUWeigher', 'vcpus'), ('RAMWeigher', 'memory_mb'), ('DiskWeigher', 'local_gb')]
)
def test_more_room_is_better(hosts, weigher, size):
    for place, host in enumerate(hosts.names):
        hosts.change(hypervisors, host, **{size: 10_000 + place})
    assert hosts.ranking(weigher) == [3, 2, 1]


@pytest.mark.parametrize('weigher', ['CPUWeigher', 'RAMWeigher', 'DiskWeigher'])
def test_what_is_claimed_is_no_room(hosts, weigher):
    place(hosts.scheduler(), server_id=str(uuid.uuid4()), host='compute1')
    assert hosts.ranking(weigher) == [2, 3, 1]


def test_groups_that_had_rather_be_together_or_apart(hosts, servers):
    for policy, weigher, order in (
        ('soft-affinity', 'ServerGroupSoftAffinityWeigher', [3, 2, 1]),
        ('soft-anti-affinity', 'ServerGroupSoftAntiAffinityWeigher', [1, 2, 3]),
    ):
        group = hosts.group(policy)
        for host in ('compute2', 'compute3', 'compute3'):
            servers.add(host=host, server_group_id=group)
        assert hosts.ranking(weigher, group_id=group) == order
        assert hosts.ranking(weigher) == [1, 2, 3]


def test_the_first_weigher_is_the_most_important(hosts):
    hosts.change(hypervisors, 'compute1', vcpus=16)
    hosts.change(hypervisors, 'compute2', memory_mb=9000)
    assert hosts.ranking('CPUWeigher', 'RAMWeigher') == [1, 2, 3]
    assert hosts.ranking('RAMWeigher', 'CPUWeigher') == [2, 1, 3]


# ------------------------------------------------------------------ refusals


def test_why_there_is_no_host(hosts):
    hosts.change(services, 'compute1', disabled=True)
    hosts.aggregate('compute2', availability_zone='north')
    filters = ['ComputeFilter', 'ImagePropertiesFilter', 'AvailabilityZoneFilter']
    with pytest.raises(NoValidHost) as refusal:
        place(hosts.scheduler(enabled_filters=filters), availability_zone='south')
    assert str(refusal.value) == (
        'No valid host was found. There are not enough hosts available. Filter results: '
        '3 hosts to begin with; ComputeFilter: 2 hosts; AvailabilityZoneFilter: 0 hosts'
    )


def test_there_is_a_host_but_no_room(hosts):
    with pytest.raises(NoValidHost) as refusal:
        place(hosts.scheduler(), disk_gb=81)
    assert str(refusal.value).endswith('3 hosts to begin with; Claim: 0 hosts')


def test_hosts_behind_agents_are_waited_for_while_none_is_heard_of(hosts, service):
    service.conf.set_override('backend', 'remote', 'hypervisor')
    long_ago = service.store.clock() - timedelta(seconds=service.conf.service_down_time + 1)
    scheduler = hosts.scheduler(enabled_filters=['ComputeFilter'])
    for host in ('compute1', 'compute2'):
        hosts.change(services, host, seen_at=long_ago)
    assert place(scheduler).name == 'compute3'
    hosts.change(services, 'compute3', seen_at=long_ago)
    with pytest.raises(AgentsSilent):
        place(scheduler)
    # The others may send a heartbeat at any moment.
    hosts.change(services, 'compute3', seen_at=service.store.clock())
    assert place(scheduler).name == 'compute3'
    with pytest.raises(AgentsSilent):
        place(scheduler, host='compute1')
    scheduler.agent_silence.silence -= REPORTS * service.conf.report_interval + 1
    with pytest.raises(NoValidHost):
        place(scheduler, host='compute1')


def test_hosts_that_were_forced_down_are_not_waited_for(hosts, service):
    service.conf.set_override('backend', 'remote', 'hypervisor')
    for host in hosts.names:
        hosts.change(services, host, forced_down=True)
    with pytest.raises(NoValidHost):
        place(hosts.scheduler(enabled_filters=['ComputeFilter']))


def test_names_of_filters_and_weighers_are_checked_at_start(hosts):
    with pytest.raises(cfg.Error, match='There is no MyFilter; there are Agg'):
        hosts.scheduler(enabled_filters=['MyFilter'])
    with pytest.raises(cfg.Error, match='There is no MyWeigher'):
        hosts.scheduler(weight_classes=['MyWeigher'])
