"""Reads compute of a real cloud for a document: flavors, hosts, servers and their history."""

from collections import defaultdict
from collections.abc import Iterator
from operator import itemgetter
from typing import Any

from computeapi.kit.cloud_files.clone_network import port_of
from computeapi.kit.cloud_files.clone_reader import BY_ID, Json, Pages, Reader, moved, named, project_of

NEWEST = '2.96'
"""The newest version that is known here; an older cloud is asked at its own newest version."""
MIGRATIONS = '2.80'
HYPERVISORS = '2.53'
FLAVOR = ('id', 'name', 'description', 'vcpus', 'ram', 'disk', 'extra_specs', 'rxtx_factor')
FLAVOR_NAMES = {'OS-FLV-EXT-DATA:ephemeral': 'ephemeral', 'os-flavor-access:is_public': 'is_public'}
HYPERVISOR = (
    'hypervisor_hostname',
    'hypervisor_type',
    'hypervisor_version',
    'host_ip',
    'vcpus',
    'memory_mb',
    'local_gb',
)
SERVER = (
    *('id', 'name', 'description', 'metadata', 'tags', 'key_name', 'progress', 'config_drive', 'locked_reason'),
    *('trusted_image_certificates', 'pinned_availability_zone'),
)
ATTRIBUTE = 'OS-EXT-SRV-ATTR:'
SERVER_NAMES = {
    'tenant_id': 'project',
    'user_id': 'user',
    'created': 'created_at',
    'updated': 'updated_at',
    'OS-SRV-USG:launched_at': 'launched_at',
    'OS-SRV-USG:terminated_at': 'terminated_at',
    'OS-EXT-STS:vm_state': 'vm_state',
    'OS-EXT-STS:task_state': 'task_state',
    'OS-EXT-STS:power_state': 'power_state',
    'OS-EXT-AZ:availability_zone': 'availability_zone',
    'OS-DCF:diskConfig': 'disk_config',
    **{f'{ATTRIBUTE}{name}': name for name in ('host', 'hostname', 'kernel_id', 'ramdisk_id', 'reservation_id')},
    **{f'{ATTRIBUTE}{name}': name for name in ('root_device_name', 'launch_index')},
}
ACTION = ('action', 'request_id', 'start_time', 'updated_at', 'message')
EVENT = ('event', 'start_time', 'finish_time', 'result', 'traceback', 'host', 'details')
MOVES = {
    'uuid': 'id',
    'migration_type': 'type',
    'status': 'status',
    **{f'{side}_{what}': f'{side}_{what}' for side in ('source', 'dest') for what in ('node',)},
    'source_compute': 'source_host',
    'dest_compute': 'dest_host',
    'user_id': 'user',
    'project_id': 'project',
    'created_at': 'created_at',
    'updated_at': 'updated_at',
}

BY_NAME = Pages(lambda each: str(each['keypair']['name']))
BY_NUMBER = Pages(numbered=True)
# Older clouds have neither UUIDs nor pages of migrations.
BY_UUID, BY_REQUEST = Pages(lambda each: str(each.get('uuid') or each['id'])), Pages(itemgetter('request_id'))


class ClonedCompute:
    """The content of compute, at the newest version that both sides know."""

    def __init__(self, reader: Reader):
        self.reader = reader
        self.version = self._version(NEWEST)
        self.flavors: dict[str, Json] = {}
        self.group_of: dict[str, str] = {}

    def _version(self, wanted: str) -> str:
        data = self.reader.connection.compute.get_endpoint_data()
        most = getattr(data, 'max_microversion', None) or (2, 1)
        return '.'.join(map(str, min(tuple(most), tuple(map(int, wanted.split('.'))))))

    def all(self, path: str, key: str, *, pages: Pages | None = BY_ID, newest: str = NEWEST) -> list[Json]:
        return self.reader.all('compute', path, key, pages=pages, microversion=self._version(newest))

    def all_but_servers(self) -> dict[str, Any]:
        """Flavors, hosts, aggregates, key pairs and server groups."""
        found: dict[str, Any] = {'flavors': list(self._flavors()), 'hosts': self._hosts()}
        found['aggregates'] = [
            named(each, ('id', 'uuid', 'name', 'hosts', 'metadata', 'created_at', 'updated_at'))
            for each in self.all('/os-aggregates', 'aggregates', pages=None)
        ]
        found['keypairs'] = [
            named(each['keypair'], ('name', 'type', 'public_key', 'fingerprint')) | {'user': self._me()}
            for each in self.all('/os-keypairs', 'keypairs', pages=BY_NAME)
        ]
        found['server_groups'] = list(self._groups())
        return found

    def _me(self) -> str:
        return str(self.reader.connection.current_user_id)

    def _flavors(self) -> Iterator[Json]:
        for each in self.all('/flavors/detail?is_public=None', 'flavors') or self.all('/flavors/detail', 'flavors'):
            entry = named(each, FLAVOR) | moved(each, FLAVOR_NAMES) | {'swap': each.get('swap') or 0}
            if not entry.get('is_public', True):
                path = f'/flavors/{each["id"]}/os-flavor-access'
                entry['access'] = [one['tenant_id'] for one in self.all(path, 'flavor_access', pages=None)]
            self.flavors[each['name']] = entry
            yield entry

    def _hosts(self) -> list[Json]:
        services = {each['host']: each for each in self.all('/os-services?binary=nova-compute', 'services', pages=None)}
        hosts = []
        for each in self.all('/os-hypervisors/detail', 'hypervisors', newest=HYPERVISORS):
            service = services.get(each['service']['host'], {})
            state: Json = {'disabled': service.get('status') == 'disabled', 'down': service.get('state') == 'down'}
            state |= {'forced_down': service.get('forced_down'), 'disabled_reason': service.get('disabled_reason')}
            facts = named(each, HYPERVISOR) | {name: value for name, value in state.items() if value}
            hosts.append({'name': each['service']['host']} | facts)
        return hosts

    def _groups(self) -> Iterator[Json]:
        for each in self.all('/os-server-groups?all_projects=true', 'server_groups', pages=BY_NUMBER):
            policy = each.get('policy') or next(iter(each.get('policies', ())), 'affinity')
            for member in each.get('members', ()):
                self.group_of[member] = each['id']
            owner = project_of(each) | moved(each, {'user_id': 'user'})
            yield named(each, ('id', 'name', 'rules')) | {'policy': policy} | owner

    # ------------------------------------------------------------ servers

    def servers(self, all_ports: list[Json]) -> Iterator[Json]:
        """The servers with their ports, disks and history."""
        ports: dict[str, list[Json]] = defaultdict(list)
        for port in all_ports:
            ports[port['device_id']].append(port)
        moves: dict[str, list[Json]] = defaultdict(list)
        for move in self.all('/os-migrations', 'migrations', pages=BY_UUID, newest=MIGRATIONS):
            moves[move['instance_uuid']].append(moved(move, MOVES))
        for each in self.reader.everyones('compute', '/servers/detail', 'servers', microversion=self.version):
            entry = named(each, SERVER) | moved(each, SERVER_NAMES) | self._beside(each)
            entry['networks'] = [port_facts(port, each) for port in _in_order(ports[each['id']], each)]
            entry['disks'] = self._disks(each)
            entry['actions'] = self._actions(each['id'])
            if each['id'] in moves:
                entry['migrations'] = moves[each['id']]
            yield entry

    def _beside(self, each: Json) -> Json:
        """Properties that have another form in the document."""
        image = each.get('image') or {}
        entry: Json = {'flavor': self._flavor(each['flavor']), 'updated_at': each.get('updated')}
        entry['launched_at'] = each.get('OS-SRV-USG:launched_at')
        if image:
            entry['image'] = image['id']
        entry |= {'locked': True} if each.get('locked') else {}
        for version, name in ((4, 'accessIPv4'), (6, 'accessIPv6')):
            entry |= {f'access_ip_v{version}': each[name]} if each.get(name) else {}
        if each['id'] in self.group_of:
            entry['server_group'] = self.group_of[each['id']]
        entry['fault'] = named(each['fault'], ('code', 'message', 'details', 'created')) if each.get('fault') else None
        return entry

    def _flavor(self, kept: Json) -> str | Json:
        """The ID of the flavor, if it still exists unchanged; otherwise its properties."""
        current = self.flavors.get(kept.get('original_name', ''))
        if 'id' in kept:
            return str(kept['id'])
        sizes = ('vcpus', 'ram', 'disk', 'swap', 'ephemeral')
        if current and all(current.get(name, 0) == kept.get(name, 0) for name in sizes):
            return str(current['id'])
        return {'name': kept.get('original_name', 'unknown')} | named(kept, (*sizes, 'extra_specs'))

    def _disks(self, server: Json) -> list[Json]:
        path = f'/servers/{server["id"]}/os-volume_attachments'
        found = self.all(path, 'volumeAttachments', pages=None) if server.get(VOLUMES) else []
        root = server.get(f'{ATTRIBUTE}root_device_name')
        disks = []
        for each in found:
            facts = {'volumeId': 'volume', 'device': 'device', 'delete_on_termination': 'delete_on_termination'}
            facts |= {'attachment_id': 'attachment_id', 'bdm_uuid': 'id', 'tag': 'tag'}
            is_root = not server.get('image') and each.get('device') in (root, '/dev/vda')
            disks.append(moved(each, facts) | ({'boot_index': 0} if is_root else {}))
        return disks

    def _actions(self, server_id: str) -> list[Json]:
        path, found = f'/servers/{server_id}/os-instance-actions', []
        for each in reversed(self.all(path, 'instanceActions', pages=BY_REQUEST)):
            one = self.reader.one(
                'compute', f'{path}/{each["request_id"]}', 'instanceAction', microversion=self.version
            )
            events = [{'finish_time': None} | named(event, EVENT) for event in (one or {}).get('events') or ()]
            who = moved(each, {'user_id': 'user', 'project_id': 'project'})
            ended = max((event['finish_time'] or '' for event in events), default='') or each.get('updated_at')
            found.append(named(each, ACTION) | who | {'finish_time': ended, 'events': events})
        return found


VOLUMES = 'os-extended-volumes:volumes_attached'


def port_facts(port: Json, server: Json) -> Json:
    """A port of a server, for the interface of the server."""
    facts = port_of(port)
    beside = ('description', 'tags', 'project', 'dns_name')
    name = {} if facts.get('name') else {'name': ''}
    return {key: value for key, value in facts.items() if key not in beside} | name


def _in_order(ports: list[Json], server: Json) -> list[Json]:
    """The ports in the order in which the server lists its addresses."""
    listed = [each['addr'] for many in server.get('addresses', {}).values() for each in many]

    def place(port: Json) -> int:
        own = [listed.index(each['ip_address']) for each in port.get('fixed_ips', ()) if each['ip_address'] in listed]
        return min(own, default=len(listed))

    return sorted(ports, key=place)
