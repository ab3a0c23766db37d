"""Invariants of a cloud at rest: nothing is lost, nothing is left behind, nothing is held twice.

`problems(store)` reads the store directly, bypassing all services, so that it can also check what a process left
behind.
"""

from collections import defaultdict
from collections.abc import Iterator

import sqlalchemy as sa

from computeapi.clock import utcnow
from computeapi.compute.scheduler.spec import needs_of
from computeapi.db import quota_usages
from computeapi.db import servers as records
from computeapi.db.allocations import miscounted
from computeapi.db.servers import BlockDevice, Server, is_volume_backed
from computeapi.db.tables import compute, servers
from computeapi.db.tables.image import image_properties, images
from computeapi.db.tables.network import ports
from computeapi.db.tables.share import share_access_rules
from computeapi.db.tables.volume import volume_attachments, volume_snapshots, volumes

# The power states that are valid for each state of a server at rest.
POWER = {
    'active': {1},
    'stopped': {4},
    'paused': {3},
    'suspended': {4},
    'rescued': {1},
    'resized': {1, 4},
    'soft-delete': {4},
    'shelved': {4},
    'shelved_offloaded': {4},
    'error': {0, 1, 3, 4},
}
OVER = {'error', 'failed', 'cancelled', 'completed', 'done', 'confirmed', 'reverted'}
# Kinds of tasks that wait for their time, and the state of the server meanwhile.
WAITING = {'reclaim': 'soft-delete', 'shelveOffload': 'shelved', 'auto_confirm': 'resized'}


def problems(store) -> list[str]:
    """The violated invariants of a store that nobody is working on."""
    return list(Cloud(store).problems())


class Cloud:
    """Everything in the store that is related to servers."""

    def __init__(self, store):
        with store.read() as connection:

            def rows(table):
                return connection.execute(sa.select(table)).all()

            self.everyone = {row.uuid: Server(*row) for row in rows(servers.servers)}
            self.devices = grouped(BlockDevice(*row) for row in rows(servers.block_devices))
            self.actions, self.events = rows(servers.server_actions), rows(servers.server_action_events)
            self.tasks, self.migrations = rows(servers.tasks), rows(servers.migrations)
            self.claims, self.domains = grouped(rows(compute.allocations)), grouped(rows(servers.domains))
            self.tags, self.tokens = rows(servers.server_tags), rows(servers.console_tokens)
            self.ports = [row for row in rows(ports) if row.device_owner.startswith('compute:')]
            self.volumes, self.attachments = rows(volumes), rows(volume_attachments)
            self.originals = {row.volume_id for row in rows(volume_snapshots)}
            self.shares, self.access_rules = rows(servers.server_shares), rows(share_access_rules)
            self.miscounted_hosts = miscounted(connection, 100)
            self.images = {row.id: row for row in rows(images)}
            self.image_properties = rows(image_properties)
            self.miscounted = quota_usages.differences(connection)
        self.servers = {key: server for key, server in self.everyone.items() if server.deleted_at is None}
        # After a state was reset by hand, it need not be true.
        self.reset = {row.server_id for row in self.actions if row.action == 'resetState'}

    def problems(self) -> Iterator[str]:
        for server in self.servers.values():
            name = f'server {server.uuid} ({server.vm_state})'
            for check in (state, place, machine, interfaces, disks):
                yield from (f'{name}: {problem}' for problem in check(self, server))
        for host in self.miscounted_hosts:
            yield f'host {host} has other claims than are counted'
        for check in (remains, work, history, block_storage, file_systems, pictures, counts):
            yield from check(self)


def grouped(rows):
    """Rows by server."""
    found = defaultdict(list)
    for row in rows:
        found[row.server_id].append(row)
    return found


# ------------------------------------------------------------------ each server


def state(cloud, server):
    if server.task_state is not None:
        yield f'is still {server.task_state}'
    if server.uuid not in cloud.reset and server.power_state not in POWER.get(server.vm_state, ()):
        yield f'has power state {server.power_state}'
    if server.vm_state == 'error' and server.fault is None and server.uuid not in cloud.reset:
        yield 'has no fault'
    if server.fault is not None and server.fault['message'].isidentifier():
        yield f'stumbled over its own code: {server.fault}'
    if (server.vcpus, server.memory_mb) != sizes(server.flavor):
        yield f'counts {server.vcpus} CPUs and {server.memory_mb} MiB, its flavor {sizes(server.flavor)}'


def sizes(flavor):
    return flavor['vcpus'], flavor['memory_mb']


def place(cloud, server):
    """A server holds one host, two while a resize awaits confirmation, none when it has left its host."""
    held = {claim.host: (claim.vcpus, claim.memory_mb, claim.disk_gb) for claim in cloud.claims[server.uuid]}
    expected = {server.host} - {None}
    if server.vm_state == 'resized':
        expected |= {move.source_host for move in cloud.migrations if waits(move, server)}
    if set(held) != expected:
        yield f'holds {sorted(held)} instead of {sorted(expected)}'
    on_volume = is_volume_backed(server, cloud.devices[server.uuid])
    needs = tuple(needs_of(server.flavor, on_volume=on_volume).values())
    if len(held) == 1 and held != {server.host: needs}:
        yield f'holds {held} instead of {needs}'
    if server.vm_state == 'shelved_offloaded' and server.host is not None:
        yield f'is on {server.host}'


def waits(move, server):
    return move.server_id == server.uuid and move.status == 'finished'


def machine(cloud, server):
    """The simulated hypervisor runs the machines that it should, on the hosts where it should."""
    running = {domain.host: domain.power_state for domain in cloud.domains[server.uuid]}
    held = {claim.host for claim in cloud.claims[server.uuid]}
    if set(running) - held:
        yield f'runs on {sorted(running)}, where it holds {sorted(held)}'
    # A server that was offloaded keeps the power state of its former machine, also if it is soft-deleted then.
    is_offloaded = server.host is None and server.vm_state in ('shelved_offloaded', 'soft-delete')
    power = running.get(server.host, 4 if is_offloaded else 0)
    if power != server.power_state:
        yield f'has power state {server.power_state} and its machine {power}'


def interfaces(cloud, server):
    held = {port.id: port for port in cloud.ports if port.device_id == server.uuid}
    known = [entry['port_id'] for entry in server.network_info]
    if sorted(held) != sorted(known):
        yield f'holds ports {sorted(held)} and knows {sorted(known)}'
    for port in held.values():
        if port.host != (server.host or ''):
            yield f'port {port.id} is bound to {port.host}, not to {server.host}'
    for entry in server.network_info:
        if entry['mac_address'] is None:
            yield f'port {entry["port_id"]} was never described'


def disks(cloud, server):
    held = {each.id: each for each in cloud.attachments if each.server_id == server.uuid}
    known = {each.attachment_id: each for each in cloud.devices[server.uuid] if each.destination_type == 'volume'}
    if server.vm_state == 'error' and server.host is None:
        known = {key: device for key, device in known.items() if key in held}
    if set(held) != set(known):
        yield f'holds attachments {sorted(held)} and knows {sorted(map(str, known))}'
        return
    for key, attachment in held.items():
        if attachment.volume_id != known[key].volume_id:
            yield f'attachment {key} is of volume {attachment.volume_id}, not {known[key].volume_id}'
        if server.host is not None and (attachment.status, attachment.host) != ('attached', server.host):
            yield f'volume {attachment.volume_id} is {attachment.status} at {attachment.host}, not at {server.host}'
        if server.host is None and attachment.host:
            yield f'volume {attachment.volume_id} is used from {attachment.host}'
        if server.host is not None and attachment.device != known[key].device_name:
            yield f'volume {attachment.volume_id} is {attachment.device}, not {known[key].device_name}'


# ------------------------------------------------------------------ the whole cloud


def remains(cloud):
    """Nothing belongs to a deleted server."""
    belongings = {
        'claim': cloud.claims,
        'machine': cloud.domains,
        'disk': cloud.devices,
        'tag': {row.server_id for row in cloud.tags},
        'console token': {row.server_id for row in cloud.tokens},
        'share': {row.server_id for row in cloud.shares},
        'port': {row.device_id for row in cloud.ports},
        'attachment': {row.server_id for row in cloud.attachments if row.server_id},
    }
    for what, owners in belongings.items():
        held = {key for key in owners if not isinstance(owners, dict) or owners[key]}
        yield from (f'there is a {what} of {owner}, which is gone' for owner in held - set(cloud.servers))
    for server in set(cloud.everyone) - set(cloud.servers):
        row = cloud.everyone[server]
        if (row.vm_state, row.task_state) != ('deleted', None):
            yield f'server {server} was deleted in state {row.vm_state}, {row.task_state}'


def work(cloud):
    now = utcnow()
    for task in cloud.tasks:
        server = cloud.servers.get(task.server_id)
        fits = server is not None and server.vm_state == WAITING.get(task.kind)
        if not (fits and task.owner is None and task.not_before and task.not_before > now):
            yield f'a task is left: {task.kind} of {task.server_id}, due {task.not_before}, attempt {task.attempts}'


def history(cloud):
    for action in cloud.actions:
        if action.finish_time is None:
            yield f'the action {action.action} of {action.server_id} never ended'
    for event in cloud.events:
        if event.finish_time is None:
            yield f'the event {event.event} of action {event.action_id} never ended'
        if (event.details or '').isidentifier():
            yield f'the event {event.event} stumbled over its own code: {event.details}'
    for move in cloud.migrations:
        server = cloud.servers.get(move.server_id)
        waiting = server is not None and server.vm_state == 'resized' and waits(move, server)
        if move.status not in OVER and not waiting:
            yield f'the {move.migration_type} {move.id} of {move.server_id} is still {move.status}'


def block_storage(cloud):
    """The status of a volume follows from its attachments."""
    held = defaultdict(set)
    for attachment in cloud.attachments:
        held[attachment.volume_id].add(attachment.status)
    for volume in cloud.volumes:
        statuses = held[volume.id]
        expected = 'in-use' if 'attached' in statuses else 'reserved' if statuses else 'available'
        if volume.status != expected:
            yield f'volume {volume.id} is {volume.status}, its attachments are {statuses}'
    made = {device.volume_id for devices in cloud.devices.values() for device in devices}
    for volume in cloud.volumes:
        # Volumes that tests create have names. Those created for a server are deleted with it, unless they have
        # snapshots.
        if volume.name is None and volume.id not in made | cloud.originals:
            yield f'volume {volume.id} was made for a server that does not have it'


def file_systems(cloud):
    """A share is mounted where its server runs, and only the hosts of its servers have access to it."""
    for share in cloud.shares:
        server = cloud.servers[share.server_id]
        expected = {'active': 'active', 'stopped': 'inactive'}.get(server.vm_state, share.status)
        if share.status not in ('active', 'inactive', 'error') or share.status not in (expected, 'error'):
            yield f'share {share.share_id} is {share.status} to a server that is {server.vm_state}'
    held = {share.share_id for share in cloud.shares if share.status != 'error'}
    opened = {rule.share_id for rule in cloud.access_rules}
    yield from (f'share {share_id} is not open to the hosts that mount it' for share_id in held - opened)
    yield from (f'share {share_id} is open and attached to no server' for share_id in opened - held)


def counts(cloud):
    yield from (f'{amount} of {held} are not counted' for held, amount in cloud.miscounted)


def pictures(cloud):
    for image in cloud.images.values():
        if image.status not in ('active', 'deactivated'):
            yield f'image {image.id} ({image.name}) is {image.status}'
    wanted = {server.shelved_image_id for server in cloud.servers.values()} - {None}
    yield from (f'the image {image_id} of a shelved server is gone' for image_id in wanted - set(cloud.images))
    for image in cloud.images.values():
        if (image.name or '').endswith('-shelved') and image.id not in wanted:
            yield f'image {image.id} is of a server that is not shelved any more'


__all__ = ['Cloud', 'problems', 'records']
