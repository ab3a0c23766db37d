"""Consistency checks of the whole cloud: finds what no task holds and counts that are wrong, and repairs them.

Everything that begins is recorded together with the task that ends it, so nothing should be found. Findings come from
a bug of this service, from a restored backup, or from manual changes in the database.
"""

import itertools
import logging
from collections.abc import Callable, Collection, Iterable, Iterator
from datetime import timedelta
from functools import partial
from operator import itemgetter
from typing import NamedTuple

import sqlalchemy as sa

from computeapi.backends.hypervisor import NotYet, Outdated
from computeapi.compute.platform import Platform
from computeapi.compute.servers import placement
from computeapi.compute.servers.deletion import DELETE, SOFT_DELETE
from computeapi.compute.servers.leftovers import RESET
from computeapi.compute.tasks.transition import Transition
from computeapi.context import Context
from computeapi.db import allocations, audits, quota_usages, quotas, server_tags, servers
from computeapi.db.quota_usages import Counted
from computeapi.errors import Error, NeighbourAway
from computeapi.states import GOING, TaskState, VMState

LOG = logging.getLogger(__name__)
# How much of one kind one audit checks; the next one continues.
MAX_FINDINGS = 1000
# How many of the machines that one host reports are treated as strays in one audit: each takes a call of its agent.
STRAYS = 20
# The host in a pair of a server and a host.
HOST = itemgetter(1)
# For how long other services are asked for leftovers of a deleted server.
REMEMBERED = timedelta(days=1)
# An image that waits this long for its data will get none: uploads are recorded before they start.
MAX_UPLOAD_DURATION = timedelta(hours=1)

NOBODY = Context(user_id='', project_id='', user_name='audit').elevated()


class Finding(NamedTuple):
    """What was found, of which server, and the function that repairs it; None if an administrator has to decide.

    owner: the kind of owner, if it is not a server."""

    what: str
    server_id: str
    repair: Callable[[], None] | None
    owner: str = 'server'

    def __str__(self) -> str:
        return f'{self.what} of {self.owner} {self.server_id}'


class CloudAudit:
    def __init__(self, platform: Platform):
        self.platform, self.store = platform, platform.store

    def findings(self) -> Iterator[Finding]:
        """What no task holds, at most MAX_FINDINGS of each kind."""
        ours = (self.states, self.claims, self.use, self.tags, self.machines)
        for look in (*ours, self.belongings, self.images, self.placement, self.counts):
            yield from look()

    def repair(self) -> Iterator[tuple[Finding, bool]]:
        """Each finding, and whether it was repaired; each is logged. Repairs of existing servers are
        queued as tasks."""
        yield from self._repaired(list(self.findings()))

    def return_agent(self, host: str, machines: Collection[str]) -> None:
        """Remove the machines that a starting agent found on its host, of servers that are now deleted or elsewhere."""
        list(self._repaired(list(self._strays([(server_id, host) for server_id in machines]))))

    def _repaired(self, findings: Iterable[Finding]) -> Iterator[tuple[Finding, bool]]:
        for finding in findings:
            repaired = self._repair(finding)
            LOG.warning('Found %s; it is %s', finding, 'repaired' if repaired else 'left alone')
            yield finding, repaired

    def _repair(self, finding: Finding) -> bool:
        if finding.repair is None:
            return False
        try:
            finding.repair()
        except Error:
            LOG.exception('The audit could not repair %s', finding)
            return False
        except (NotYet, Outdated):
            # A task holds it after all.
            return False
        return True

    # ------------------------------------------------------------ kinds of findings

    def states(self) -> Iterator[Finding]:
        for server_id in self.store.query(audits.stuck, MAX_FINDINGS):
            yield Finding('the transient state', server_id, partial(self._go_on, server_id))

    def claims(self) -> Iterator[Finding]:
        for server_id, host, alive in self.store.query(audits.stray_claims, MAX_FINDINGS):
            repair = self._settle if alive else self._give_back
            yield Finding(f'the claim on {host}', server_id, partial(repair, server_id, host))

    def use(self) -> Iterator[Finding]:
        """Hosts whose counted usage differs from the claims on them."""
        for host in self.store.query(allocations.miscounted, MAX_FINDINGS):
            recount = partial(self.store.change, allocations.count, [host])
            yield Finding('the usage count', host, recount, 'host')

    def tags(self) -> Iterator[Finding]:
        """Tags without an age, written by a process of an older release."""
        for server_id in self.store.query(audits.ageless_tags, MAX_FINDINGS):
            yield Finding(
                'the age stored with the tags', server_id, partial(self.store.change, server_tags.fill_age, server_id)
            )

    def machines(self) -> Iterator[Finding]:
        """Machines on hosts on which the server has no claim."""
        for _, found in itertools.groupby(sorted(self.platform.hypervisor.machines(), key=HOST), HOST):
            yield from self._strays(list(found))

    def _strays(self, found: Collection[tuple[str, str]]) -> Iterator[Finding]:
        """At most STRAYS stray machines among these (server, host) pairs of one host, first those to be removed."""
        strays = sorted(self._all_strays(found), key=lambda finding: finding.repair is None)
        return iter(strays[:STRAYS])

    def _all_strays(self, found: Collection[tuple[str, str]]) -> Iterator[Finding]:
        ids = {server_id for server_id, _ in found}
        with self.store.read() as connection:
            unheld, claimed = audits.unheld(connection, ids), audits.claims_of(connection, ids)
            known, places = audits.known(connection, ids), audits.places_of(connection, ids) | claimed
        for server_id, host in found:
            if (server_id, host) not in places:
                # It belongs to another cloud, or the database was restored: its data may be needed. Or its host has
                # been taken over, and must learn nothing of a server that was never there.
                owner = 'a server that was never there' if server_id in known else 'an unknown server'
                yield Finding(f'the machine on {host}', server_id, None, owner)
            elif server_id in unheld and (server_id, host) not in claimed:
                repair = partial(placement.remove_stray, self.platform, server_id, host)
                yield Finding(f'the machine on {host}', server_id, repair)

    def belongings(self) -> Iterator[Finding]:
        """Ports and volumes that are still attached to recently deleted servers."""
        gone = self.store.query(audits.deleted_since, self.platform.clock() - REMEMBERED, MAX_FINDINGS)
        if not gone:
            return
        networks, volumes = self.platform.networks, self.platform.volumes
        for port in networks.ports(NOBODY, server_ids=gone):
            if port.made or port.device_owner.startswith('compute:'):
                give_back = networks.delete_port if port.made else networks.unbind_port
                yield Finding(f'the port {port.id}', port.device_id, partial(give_back, NOBODY, port.id))
        for held in volumes.attachments(NOBODY, server_ids=gone):
            what = f'the attachment of volume {held.volume_id}'
            yield Finding(what, held.server_id or '', partial(volumes.release, NOBODY, held.id))

    def images(self) -> Iterator[Finding]:
        """Snapshots and backups of servers whose data nobody uploads."""
        images, before = self.platform.images, self.platform.clock() - MAX_UPLOAD_DURATION
        kinds = ['snapshot', 'backup']
        filters = {'status': ['queued', 'saving'], 'image_type': kinds, 'created_at': ('lt', before)}
        waiting = images.list(NOBODY, filters=filters | {'visibility': 'all'}, limit=MAX_FINDINGS)
        of = {image.id: image.properties.get('instance_uuid', '') for image in waiting}
        unheld = self.store.query(audits.unheld, set(of.values()))
        for image_id, server_id in of.items():
            if server_id in unheld:
                yield Finding(f'the unfinished image {image_id}', server_id, partial(images.delete, NOBODY, image_id))

    def placement(self) -> Iterator[Finding]:
        """Differences in Placement, in hosts and in the allocations on them."""
        mirror = self.platform.mirror
        if mirror is None:
            return
        try:
            for found in itertools.islice(mirror.differences(), MAX_FINDINGS):
                yield Finding(f'{found.what} in Placement', found.name, partial(mirror.repair, found), found.owner)
        except NeighbourAway:
            LOG.warning('Placement is unavailable: its records are not audited')

    def counts(self) -> Iterator[Finding]:
        """Quota usage that differs from the rows."""
        for held, amount in itertools.islice(self.store.query(quota_usages.differences), MAX_FINDINGS):
            what = f'the count of {held.resource}, too {"low" if amount > 0 else "high"} by {abs(amount)},'
            owner = quota_usages.OWNERS.get(held.resource, 'project')
            yield Finding(what, held.holder_id or held.user_id, partial(self._count, held), owner)

    # ------------------------------------------------------------ repairs

    def _go_on(self, server_id: str) -> None:
        """Queue a deletion again if one was in progress; anything else has failed."""
        with self.platform.tasks.adding() as connection:
            server = self._free(connection, server_id)
            if server is None or (server.task_state is None and server.vm_state != VMState.BUILDING):
                return
            if server.task_state in GOING:
                work = SOFT_DELETE if server.task_state == TaskState.SOFT_DELETING else DELETE
                self._queue(connection, work, server_id)
                return
            now = self.platform.clock()
            message = f'No worker continued {server.task_state or server.vm_state}.'
            fault = {'code': 500, 'message': message, 'details': '', 'created': now.isoformat()}
            values = {'vm_state': VMState.ERROR, 'task_state': None, 'fault': fault, 'updated_at': now}
            servers.update(connection, server_id, values)
            self._queue(connection, RESET, server_id)

    def _settle(self, server_id: str, host: str) -> None:
        """Let a worker clean up what the server has on a host that is not its own."""
        with self.platform.tasks.adding() as connection:
            if self._free(connection, server_id) is not None:
                self._queue(connection, RESET, server_id, {'stray': [host]})

    def _give_back(self, server_id: str, host: str) -> None:
        with self.store.write() as connection:
            if audits.is_unheld(connection, server_id):
                allocations.leave(connection, server_id, [host])

    def _count(self, held: Counted) -> None:
        """Recount under the lock: concurrent repairs wait, and find nothing to do."""
        with self.store.write() as connection:
            quotas.lock(connection, held.holder_id or held.user_id)
            quota_usages.count(connection, dict(quota_usages.differences(connection, held)))

    def _free(self, connection: sa.Connection, server_id: str) -> servers.Server | None:
        """The server, unless it is deleted or a task holds it."""
        return servers.get(connection, server_id) if audits.is_unheld(connection, server_id) else None

    def _queue(
        self, connection: sa.Connection, work: Transition, server_id: str, arguments: dict[str, list[str]] | None = None
    ) -> None:
        self.platform.tasks.add(connection, work, server_id, NOBODY, arguments)
