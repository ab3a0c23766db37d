"""Administrators' resources: aggregates, hypervisors, services, hosts, and the usage of projects."""


def test_aggregates(nova):
    for _ in nova.versions():
        made = nova.aggregates.create_aggregate(name=nova.name(), availability_zone=nova.name())['aggregate']['id']
        nova.aggregates.add_host(made, host='compute1')
        nova.aggregates.set_metadata(made, metadata={'key': 'value'})
        nova.aggregates.update_aggregate(made, name=nova.name(), availability_zone='zone')
        nova.aggregates.list_aggregates()
        nova.aggregates.show_aggregate(made)
        nova.aggregates.remove_host(made, host='compute1')
        nova.aggregates.delete_aggregate(made)


def test_hypervisors(nova):
    nova.boot()
    # Tempest does not know 2.88, which removed the numbers.
    for _ in nova.versions(last='2.87'):
        first, _ = nova.hypervisors.list_hypervisors()['hypervisors']
        nova.hypervisors.list_hypervisors(detail=True)
        nova.hypervisors.show_hypervisor(first['id'])
        nova.hypervisors.show_hypervisor_statistics()
        nova.hypervisors.show_hypervisor_uptime(first['id'])
    for _ in nova.versions('2.53', '2.87'):
        nova.hypervisors.list_hypervisors(detail=True, with_servers=True)
    for _ in nova.versions(last='2.52'):
        nova.hypervisors.search_hypervisor('compute')
        nova.hypervisors.list_servers_on_hypervisor('compute')


def test_services(nova):
    for _ in nova.versions(last='2.52'):
        nova.services.list_services()
        nova.services.disable_service(host='compute1', binary='nova-compute')
        nova.services.disable_log_reason(host='compute1', binary='nova-compute', disabled_reason='repair')
        nova.services.list_services()
        nova.services.enable_service(host='compute1', binary='nova-compute')
        if nova.since('2.11'):
            nova.services.update_forced_down(host='compute1', binary='nova-compute', forced_down=True)
            nova.services.update_forced_down(host='compute1', binary='nova-compute', forced_down=False)
    for _ in nova.versions('2.53'):
        service = nova.services.list_services(binary='nova-compute')['services'][0]['id']
        nova.services.update_service(service, status='disabled', disabled_reason='repair')
        nova.services.update_service(service, status='enabled', forced_down=False)


def test_hosts(nova):
    nova.boot()
    for _ in nova.versions(last='2.42'):
        nova.hosts.list_hosts()
        nova.hosts.show_host('compute1')
        nova.hosts.update_host('compute1', status='enable', maintenance_mode='disable')


def test_usage(nova):
    nova.boot()
    for _ in nova.versions():
        nova.usages.list_tenant_usages()
        nova.usages.list_tenant_usages(detailed=1)
        nova.usages.show_tenant_usage('admin')
        nova.audits.list_instance_usage_audit_logs()
        nova.audits.show_instance_usage_audit_log('2020-01-01 00:00:00')
