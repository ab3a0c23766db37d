"""Loads servers in any state, as if the service had created them."""

import functools
from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime

from oslo_utils.uuidutils import is_uuid_like

from computeapi.backends.hypervisor import PowerState
from computeapi.backends.network import owner_of
from computeapi.clock import parsed
from computeapi.compute.scheduler.requirements import groups_of, special, total
from computeapi.compute.scheduler.spec import needs_of
from computeapi.compute.servers.creation.rows import hints, hostname
from computeapi.db.addresses import held
from computeapi.db.flavors import Flavor
from computeapi.db.servers import derived
from computeapi.kit.cloud_files import disks, history
from computeapi.kit.cloud_files.content import CloudContent, Entry, Values
from computeapi.kit.cloud_files.document import CloudFileError, Place
from computeapi.kit.cloud_files.networks import AddressBook, finish_port, new_port
from computeapi.kit.cloud_files.schema import FLAVOR
from computeapi.kit.cloud_files.server_schema import INTERFACE, SERVER
from computeapi.states import TaskState, VMState, states_of

POWER: dict[str, PowerState] = {
    VMState.ACTIVE: PowerState.RUNNING,
    VMState.RESCUED: PowerState.RUNNING,
    VMState.RESIZED: PowerState.RUNNING,
    VMState.PAUSED: PowerState.PAUSED,
    VMState.BUILDING: PowerState.NOSTATE,
    VMState.DELETED: PowerState.NOSTATE,
    VMState.ERROR: PowerState.NOSTATE,
}
"""The power_state for a vm_state; all others are shut down."""
HOSTLESS = frozenset({VMState.BUILDING, VMState.ERROR, VMState.SHELVED_OFFLOADED, VMState.DELETED})
SHELVED = frozenset({VMState.SHELVED, VMState.SHELVED_OFFLOADED})
FOREVER = datetime(9999, 1, 1)
"""When work in progress of a loaded server continues."""
SNAPSHOT = tuple(name for name in Flavor._fields if name not in ('id', 'created_at', 'updated_at'))
"""What a server stores of its flavor, besides the number."""


def state_of(entry: Entry) -> tuple[str, str | None, int]:
    """vm_state, task_state and power_state."""
    vm_state, task_state = _meant(entry.get('status', 'ACTIVE'))
    vm_state = entry.get('vm_state', vm_state)
    power = entry.get('power_state')
    usual = POWER.get(vm_state, PowerState.SHUTDOWN)
    return vm_state, entry.get('task_state', task_state), int(usual if power is None else power)


@functools.cache
def _meant(status: str) -> tuple[str, str | None]:
    """A vm_state and task_state that result in the status."""
    found, tasks = states_of(status)[0]
    if found == VMState.BUILDING:
        return str(found), str(TaskState.SPAWNING)
    return str(found), next((str(each) for each in TaskState if each in (tasks or ())), None)


class LoadedServers:
    """Adds servers to the content.

    zones: by host, if it is not in the default zone.  kinds: by task_state, the kind of task that it is part of.
    named: whether other things in the document refer to servers or their ports.
    """

    def __init__(
        self,
        content: CloudContent,
        book: AddressBook,
        zones: Mapping[str, str],
        default_zone: str,
        kinds: Mapping[str, str],
        *,
        named: bool = True,
    ):
        self.named = named
        self.content, self.book, self.zones, self.default_zone, self.kinds = content, book, zones, default_zone, kinds
        self.ports_of: dict[str, list[Values]] = defaultdict(list)
        self.interfaces: dict[str, Values] = {}
        self._flavors: dict[str, Values] = {}
        self._creators: dict[tuple[str, str], Values] = {}
        self._room: dict[str, int] | None = None
        self.new_ports = {row['id']: row for row in content.rows['ports']}
        self.new_volumes = {row['id']: row for row in content.rows['volumes']}

    def load(self) -> None:
        for place, entry in self.content.entries('servers'):
            self.add(entry, place)

    def add(self, entry: Entry, place: Place) -> Values:
        content = self.content
        project_id = content.project(entry, place)
        row = content.values(SERVER, entry, place, project_id)
        row['project_id'], row['user_id'] = project_id, row['user_id'] or content.user(entry, place)
        row['uuid'] = row['uuid'] or content.made_id('servers', content.title('project_id', project_id), row['name'])
        vm_state, task_state, power_state = state_of(entry)
        row['vm_state'], row['task_state'], row['power_state'] = vm_state, task_state, power_state
        self._add_times(row, entry)
        flavor = self.flavor(entry['flavor'], (*place, 'flavor'))
        row['flavor'], row['vcpus'], row['memory_mb'] = flavor, flavor['vcpus'], flavor['memory_mb']
        row['root_gb'], row['ephemeral_gb'] = flavor['root_gb'], flavor['ephemeral_gb']
        self._add_image(row, entry, place)
        self._add_place(row, entry, place)
        self._add_facts(row, entry)
        row['network_info'] = []
        living = vm_state != VMState.DELETED
        if living:
            for number, interface in enumerate(entry.get('networks', ())):
                self._add_interface(row, interface, (*place, 'networks', number))
            if 'tags' in entry:
                its = {'server_id': row['uuid'], 'project_id': project_id, 'created_at': row['created_at']}
                content.rows['server_tags'] += [{**its, 'tag': tag} for tag in sorted(set(entry['tags']))]
            on_volume = disks.load(content, row, entry, place, self.new_volumes)
            self._claim(row, row['host'], flavor, on_volume, power_state)
            self._hold(row)
        else:
            on_volume = False
        moves = history.load(content, row, entry, place, self.flavor)
        if vm_state == VMState.RESIZED:
            self._add_source(row, moves, on_volume)
        self._add_row(row, place)
        return row

    def forget(self) -> None:
        """Forget the ports of the servers so far."""
        self.ports_of.clear()
        self.interfaces.clear()

    def _add_row(self, row: Values, place: Place) -> None:
        if self.named:
            index = self.content.index('servers')
            if row['uuid'] in index.rows:
                raise CloudFileError(place, f'the server {row["name"]} already exists, as {row["uuid"]}')
            index.add({name: row[name] for name in ('uuid', 'name', 'project_id')})
        self.content.rows['servers'].append(derived(row))
        self.content.rows['server_addresses'] += held(row['uuid'], row['network_info'])

    def flavor(self, named: str | Entry, place: Place) -> Values:
        """A flavor in the form in which servers store it."""
        if not isinstance(named, str):
            row = self.content.values(FLAVOR, named, place) | {'id': 0}
            row['flavorid'] = row['flavorid'] or row['name']
            return {'id': 0, **{name: row[name] for name in SNAPSHOT}}
        flavor = self._flavors.get(named)
        if flavor is None:
            row = self.content.row('flavors', self.content.resolve('flavors', named, place))
            flavor = self._flavors[named] = {'id': row['id'], **{name: row[name] for name in SNAPSHOT}}
        return flavor

    def _add_times(self, row: Values, entry: Entry) -> None:
        vm_state = row['vm_state']
        created = row['created_at'] = row['created_at'] or self.content.now
        never_ran = vm_state == VMState.BUILDING or (vm_state == VMState.ERROR and not entry.get('host'))
        if row['launched_at'] is None and not never_ran and 'launched_at' not in entry:
            row['launched_at'] = created
        if 'updated_at' not in entry:
            row['updated_at'] = row['launched_at'] or created
        if vm_state == VMState.DELETED:
            row['deleted_at'] = row['deleted_at'] or row['updated_at'] or created
            row['terminated_at'] = row['terminated_at'] or row['deleted_at']

    def _add_image(self, row: Values, entry: Entry, place: Place) -> None:
        """Add the images of a server. Its own may have been deleted; a shelved server gets one if it has none."""
        row['image_id'] = self._image(entry.get('image'), row, (*place, 'image'))
        if 'image_properties' in entry:
            row['image_properties'] = {name: str(value) for name, value in entry['image_properties'].items()}
        else:
            row['image_properties'] = self.content.image_properties.get(row['image_id'] or '', {})
        row['shelved_image_id'] = self._image(entry.get('shelved_image'), row, (*place, 'shelved_image'))
        if row['vm_state'] in SHELVED and row['shelved_image_id'] is None and row['image_id'] is not None:
            made = {'name': f'{row["name"]}-shelved', 'visibility': 'private', 'disk_format': 'raw', 'size': 0}
            shelved = self.content.make('images', {**made, 'project': row['project_id']}, place)
            row['shelved_image_id'] = shelved['id']
            self.content.add_pairs('image_properties', shelved['id'], {'image_type': 'snapshot'})

    def _image(self, named: str | None, row: Values, place: Place) -> str | None:
        if not named:
            return None
        if not self.content.index('images').find(named, None) and is_uuid_like(named):
            return named
        return self.content.resolve('images', named, place, row['project_id'])

    def _add_place(self, row: Values, entry: Entry, place: Place) -> None:
        host = entry.get('host')
        if host:
            host = self.content.resolve('hosts', host, (*place, 'host'))
        elif row['vm_state'] not in HOSTLESS:
            host = self._roomiest(row, place)
        row['host'] = host or None
        row['node'] = self.content.row('hosts', host)['hypervisor_hostname'] if host else None
        if host and row['availability_zone'] is None:
            row['availability_zone'] = self.zones.get(host, self.default_zone)

    def _roomiest(self, row: Values, place: Place) -> str:
        """The host with the most free memory, in the zone of the server if it has one."""
        hosts = self.content.index('hosts').rows
        if self._room is None:
            self._room = {name: host['memory_mb'] for name, host in hosts.items()}
            for claim in (*self.content.stored('allocations'), *self.content.rows['allocations']):
                if claim['host'] in self._room:
                    self._room[claim['host']] -= claim['memory_mb']
        zone = row['availability_zone']
        fit = [name for name in self._room if zone is None or self.zones.get(name, self.default_zone) == zone]
        # A zone without known hosts is ignored.
        fit = fit or list(self._room)
        if not fit:
            raise CloudFileError((*place, 'host'), 'there is no host for the server')
        chosen = max(fit, key=lambda name: self._room[name] if self._room else 0)
        self._room[chosen] -= row['memory_mb']
        return chosen

    def _add_facts(self, row: Values, entry: Entry) -> None:
        """Add properties that are derived from others."""
        content, key = self.content, row['key_name']
        row['hostname'] = row['hostname'] or hostname(row['name'], row['uuid'])
        row['scheduler_hints'] = hints(row['scheduler_hints'])
        row['metadata'] = {name: str(value) for name, value in row['metadata'].items()}
        row['locked_by'] = entry.get('locked_by') or ('owner' if entry.get('locked') else None)
        row['public_key'] = entry.get('public_key')
        if key and row['public_key'] is None:
            pairs = content.index('keypairs')
            for id in pairs.find(key, row['user_id'])[:1]:
                row['public_key'] = pairs.rows[id]['public_key']
        if row['creator'] is None:
            row['creator'] = self._creator(row['user_id'], row['project_id'])
        row['reservation_id'] = row['reservation_id'] or f'r-{row["uuid"][:8]}'
        row['password'] = None
        row['fault'] = _fault(row, entry)

    def _creator(self, user_id: str, project_id: str) -> Values:
        known = self._creators.get((user_id, project_id))
        if known is None:
            users, projects = self.content.index('users').rows, self.content.index('projects').rows
            names = {
                'user_name': users.get(user_id, {}).get('name'),
                'project_name': projects.get(project_id, {}).get('name'),
            }
            known = self._creators[user_id, project_id] = names | {'roles': []}
        return known

    def _claim(self, row: Values, host: str | None, flavor: Values, on_volume: bool, power_state: int) -> None:
        """Add the claim of the server on a host, and its machine there."""
        if host is None:
            return
        held = special(total(groups_of(flavor.get('extra_specs') or {}, {})))
        provider_id = self.content.row('hosts', host)['uuid']
        claim = {
            'server_id': row['uuid'],
            'host': host,
            'flavors': {flavor['flavorid']: {provider_id: held}} if held else None,
            'ports': None,
            **needs_of(flavor, on_volume=on_volume),
        }
        self.content.rows['allocations'].append(claim)
        if power_state != PowerState.NOSTATE:
            machine = {
                'server_id': row['uuid'],
                'host': host,
                'power_state': power_state,
                'console_log': f'[simulated] {row["name"]}: ready\n',
                'created_at': row['launched_at'] or row['created_at'],
            }
            self.content.rows['domains'].append(machine)

    def _hold(self, row: Values) -> None:
        """Add a task that is never due, so that the task_state lasts."""
        if row['task_state'] is not None:
            self.content.add(
                'tasks',
                kind=self.kinds.get(row['task_state'], row['task_state']),
                server_id=row['uuid'],
                context={'user_id': row['user_id'], 'project_id': row['project_id']},
                arguments={},
                action_id=None,
                owner=None,
                lease_until=None,
                not_before=FOREVER,
                attempts=0,
                created_at=self.content.now,
            )

    def _add_source(self, row: Values, moves: Sequence[Values], on_volume: bool) -> None:
        """Claim the source host of a finished resize, to which the server can be reverted."""
        for move in moves:
            if move['status'] == 'finished' and move['source_host'] not in (row['host'], None):
                self._claim(row, move['source_host'], move['old_flavor'], on_volume, PowerState.SHUTDOWN)

    # ------------------------------------------------------------ ports

    def _add_interface(self, row: Values, entry: Entry, place: Place) -> None:
        content = self.content
        server = {
            'device_id': row['uuid'],
            'device_owner': owner_of(row['availability_zone']),
            'host': row['host'] or '',
            'dns_name': row['hostname'],
        }
        created = entry.get('created', not entry.get('port'))
        if entry.get('port'):
            port = self._own_port(entry['port'], row, (*place, 'port'))
            port |= server
        elif entry.get('network'):
            network_id = content.resolve('networks', entry['network'], (*place, 'network'), row['project_id'])
            port_id = entry.get('id') or content.made_id('ports', row['uuid'], network_id)
            port = new_port(content, port_id, network_id, content.values(INTERFACE, entry, place))
            port |= {'project_id': row['project_id'], 'name': entry.get('name', ''), **server}
            port['created_at'] = port['created_at'] or row['created_at']
            port['updated_at'] = port['updated_at'] or row['created_at']
            content.rows['ports'].append(port)
            if self.named:
                content.index('ports').add({name: port[name] for name in ('id', 'name', 'project_id')})
            self._describe(port, *finish_port(content, self.book, port, entry, place))
        else:
            raise CloudFileError(place, 'neither a network nor a port is given')
        self.ports_of[row['uuid']].append(port)
        info = self.interfaces[port['id']]
        status = 'ACTIVE' if row['host'] and port['admin_state_up'] else 'DOWN'
        info |= {'status': status, 'created': created, 'tag': entry.get('tag')}
        row['network_info'].append(info)

    def _own_port(self, named: str, row: Values, place: Place) -> Values:
        port_id = self.content.resolve('ports', named, place, row['project_id'])
        port = self.new_ports.get(port_id)
        if port is None:
            raise CloudFileError(place, 'the port is not in this file')
        if port_id not in self.interfaces:
            self._describe(port, *self.book.given[port_id])
        return port

    def _describe(self, port: Values, fixed: Sequence[tuple[str, str]], group_ids: Sequence[str]) -> None:
        """Add what the server stores about the port."""
        groups = self.content.index('security_groups').rows
        self.interfaces[port['id']] = {
            'port_id': port['id'],
            'key': None,
            'network_id': port['network_id'],
            'network_name': self.content.row('networks', port['network_id'])['name'],
            'mac_address': port['mac_address'],
            'addresses': [
                {'address': address, 'version': 6 if ':' in address else 4, 'subnet_id': subnet_id, 'floating': []}
                for subnet_id, address in fixed
            ],
            'security_groups': sorted(groups[each]['name'] for each in group_ids),
        }

    def add_floating_ips(self) -> None:
        """Add floating IPs to the first address of their ports."""
        for row in self.content.rows['floating_ips']:
            addresses = self.interfaces.get(row['port_id'], {}).get('addresses')
            if addresses:
                addresses[0]['floating'].append(row['floating_ip_address'])


def _fault(row: Values, entry: Entry) -> Values | None:
    fault = entry.get('fault')
    if fault is None:
        if row['vm_state'] != VMState.ERROR or 'fault' in entry:
            return None
        fault = {'message': 'The server was loaded in this state.'}
    created = fault.get('created')
    moment = parsed(created) if created else row['updated_at'] or row['created_at']
    return {'code': 500, 'details': '', **fault, 'created': moment.isoformat()}
