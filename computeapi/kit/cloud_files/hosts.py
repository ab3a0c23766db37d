"""Compute hosts and host aggregates."""

from collections.abc import Mapping
from typing import Any

from computeapi.backends.hypervisor.simulated_hosts import CPU, address
from computeapi.db.aggregates import ZONE
from computeapi.db.declared_hosts import DECLARED
from computeapi.db.services import COMPUTE
from computeapi.kit.cloud_files.content import CloudContent, Entry, Values
from computeapi.kit.cloud_files.document import Place
from computeapi.kit.cloud_files.export import Export

PHYSICAL = (
    *('host', 'cell', 'hypervisor_hostname', 'hypervisor_type', 'hypervisor_version', 'host_ip', 'cpu_info'),
    *('vcpus', 'memory_mb', 'local_gb', 'traits', 'resources'),
)


def load(content: CloudContent) -> None:
    """Declare hosts. The first declared hosts are added to the existing ones, which are therefore declared as well."""
    if content.document.get('hosts'):
        known = set(content.index('hosts').rows) if DECLARED.number_of(content.connection) == 0 else ()
        for name in known:
            _declare(content, content.row('hosts', name))
    zones: dict[str, list[str]] = {}
    for place, entry in content.entries('hosts'):
        _load_host(content, entry, place)
        if entry.get('zone'):
            zones.setdefault(entry['zone'], []).append(entry['name'])
    for place, entry in content.entries('aggregates'):
        hosts = [content.resolve('hosts', name, (*place, 'hosts', n)) for n, name in enumerate(entry.get('hosts', ()))]
        _load_aggregate(content, entry, place, [*hosts, *zones.pop(entry.get('metadata', {}).get(ZONE), ())])
    for zone, hosts in zones.items():
        existing = [id for id, each in _zones_of_aggregates(content).items() if each == zone]
        if existing:
            _join(content, existing[0], hosts)
        else:
            _load_aggregate(content, {'name': zone, 'metadata': {ZONE: zone}}, ('hosts',), hosts)


def _declare(content: CloudContent, row: Values) -> None:
    content.add('declared_hosts', **{name: row[name] for name in PHYSICAL})


def _load_host(content: CloudContent, entry: Entry, place: Place) -> None:
    number, name = len(content.index('hosts').rows) + 1, entry['name']
    usual = {'hypervisor_hostname': name, 'host_ip': address(number), 'cpu_info': CPU}
    row = content.make('hosts', usual | dict(entry), place)
    times = {'created_at': content.now, 'updated_at': None}
    id = content.number('hypervisors')
    row |= {'id': id, 'uuid': content.made_id('hypervisors', name), 'started_at': content.now, **times}
    _declare(content, row)
    if row['cell'] not in content.cells:
        content.cells.add(row['cell'])
        content.add('cells', uuid=content.made_id('cells', row['cell']), name=row['cell'], down=False)
    down = entry.get('down', False)
    if down:
        content.add('hosts_off', host=name, since=content.now)
    content.add(
        'services',
        uuid=content.made_id('services', name),
        host=name,
        binary=COMPUTE,
        disabled=entry.get('disabled', False),
        disabled_reason=entry.get('disabled_reason'),
        forced_down=entry.get('forced_down', False),
        seen_at=None if down else content.now,
        **times,
    )


def _load_aggregate(content: CloudContent, entry: Entry, place: Place, hosts: list[str]) -> None:
    content.unique_name('aggregates', entry['name'], (*place, 'name'))
    number = entry.get('id') or content.number('aggregates')
    row = content.make('aggregates', {**entry, 'id': number}, place)
    row['uuid'] = row['uuid'] or content.made_id('aggregates', entry['name'])
    _join(content, number, hosts)


def _join(content: CloudContent, number: int, hosts: list[str]) -> None:
    for host in dict.fromkeys(hosts):
        content.add('aggregate_hosts', aggregate_id=number, host=host)


def zones_of(content: CloudContent) -> Mapping[str, str]:
    """The zone of each host, unless that is the default zone."""
    in_zones = _zones_of_aggregates(content)
    members = [*content.stored('aggregate_hosts'), *content.rows['aggregate_hosts']]
    return {row['host']: in_zones[row['aggregate_id']] for row in members if row['aggregate_id'] in in_zones}


def _zones_of_aggregates(content: CloudContent) -> dict[Any, str]:
    aggregates = content.index('aggregates').rows
    return {id: row['metadata'][ZONE] for id, row in aggregates.items() if ZONE in row['metadata']}


def export(export: Export) -> None:
    services = {row['host']: row for row in export.rows('services') if row['binary'] == COMPUTE}
    off = {row['host'] for row in export.rows('hosts_off')}
    for row, entry in export.section('hosts'):
        service = services.get(row['host'], {})
        states: dict[str, Any] = {name: service.get(name) for name in ('disabled', 'disabled_reason', 'forced_down')}
        entry |= {name: value for name, value in states.items() if value} | (
            {'down': True} if row['host'] in off else {}
        )
        if row['hypervisor_hostname'] == row['host']:
            del entry['hypervisor_hostname']
        if row['cpu_info'] == CPU:
            del entry['cpu_info']
    members = export.grouped('aggregate_hosts', 'aggregate_id')
    for row, entry in export.section('aggregates'):
        entry['hosts'] = sorted(each['host'] for each in members.get(row['id'], ()))
