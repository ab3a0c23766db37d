"""Mirrors the resources of hosts and the claims of servers to Placement, for other services that read it.

The claims are authoritative, and nothing waits for the mirror. Each change is recorded in the transaction that makes it
(see db/placement_changes.py). Soon afterwards, any process sends the state as it is by then. While Placement is away,
changes wait. The audit finds updates that were lost, and changes that others made in Placement.
"""

import contextlib
import itertools
import logging
from collections.abc import Collection, Iterator, Mapping, Sequence, Set
from datetime import datetime, timedelta
from typing import NamedTuple

from oslo_config import cfg

from computeapi.backends.hypervisor import Hypervisor
from computeapi.backends.placement import (
    INSTANCE,
    MIGRATION,
    Candidate,
    ConcurrentUpdate,
    ConsumerAllocations,
    Inventory,
    Placement,
    Provider,
    ResourceRequest,
)
from computeapi.compute.scheduler.hosts import Ratios
from computeapi.compute.traits import DISABLED, standard
from computeapi.db import placement_changes as changes
from computeapi.db import placement_content
from computeapi.db.allocations import Amounts
from computeapi.db.engine import Store
from computeapi.db.placement_changes import AGGREGATE, CONSUMER, HOST, SERVER, PlacementChange
from computeapi.db.placement_content import Claims, HostFacts
from computeapi.errors import Error, NeighbourAway
from computeapi.resource_classes import SIZES

LOG = logging.getLogger(__name__)
# How many changes are loaded at a time, and for how long one process holds a change that it sends.
BATCH = 50
LEASE = timedelta(seconds=60)
MAX_PAUSE_SECONDS = 60
MAX_TRIES = 4
MAX_ROUNDS = 10
"""How many batches of changes a server waits for that finds no host."""


class Difference(NamedTuple):
    """A difference in Placement: what, of which host or server, and the change that has to be sent again."""

    what: str
    owner: str
    name: str
    kind: str
    id: str


class Mirror:
    """Keeps Placement up to date, and compares it with the claims."""

    def __init__(self, store: Store, placement: Placement, hypervisor: Hypervisor, conf: cfg.ConfigOpts):
        self.store, self.placement, self.hypervisor = store, placement, hypervisor
        self.ratios, self.away, self.ending = Ratios.of(conf), False, False
        self.publishers = {
            HOST: self._publish_host,
            AGGREGATE: self._publish_aggregate,
            SERVER: self._publish_server,
            CONSUMER: self._publish_consumer,
        }

    def catch_up(self, rounds: int | None = None) -> None:
        """Send all pending changes, as far as Placement accepts them. rounds: send at most as many batches."""
        try:
            for _ in itertools.count() if rounds is None else range(rounds):
                found = self.store.query(changes.due, self.store.clock(), BATCH)
                if not found:
                    break
                for change in found:
                    if self.ending:
                        return
                    self.publish(change)
        except NeighbourAway:
            if not self.away:
                LOG.warning(
                    'Placement is unavailable: %d changes wait to be reported', self.store.query(changes.waiting)
                )
            self.away = True
            return
        if self.away:
            LOG.warning('Placement is available again, and all changes have been reported')
        self.away = False

    def publish(self, change: PlacementChange) -> bool:
        """Send one change, unless another process does; returns whether it was sent. NeighbourAway."""
        now = self.store.clock()
        if not self.store.change(changes.claim, change, now, now + LEASE):
            return False
        try:
            move_id = self.publishers[change.kind](change)
        except NeighbourAway:
            self.store.change(changes.put_off, change, None, change.attempts)
            raise
        except Error as error:
            self._put_off(change, now, error)
            return False
        self.store.change(changes.forget, change, move_id)
        return True

    def publish_server(self, server_id: str) -> None:
        """Send the claims of the server now, whichever process is due to; PlacementRefused, NeighbourAway."""
        for _ in range(MAX_TRIES):
            change = self.store.query(changes.get, SERVER, server_id)
            if change is None or change.change_id is None:
                return
            with contextlib.suppress(ConcurrentUpdate):
                move_id = self._publish_server(change)
                self.store.change(changes.forget, change, move_id)
                return
        raise ConcurrentUpdate()

    def hosts_for(
        self, requests: Sequence[ResourceRequest], together: Sequence[Sequence[str]], *, isolated: bool = False
    ) -> dict[str, Candidate]:
        """By host, which of its providers have the requested resources and traits."""
        found = self.placement.candidates(requests, together, isolated=isolated)
        if not found:
            # It may not have heard yet of what was released a moment ago.
            self.catch_up(MAX_ROUNDS)
            found = self.placement.candidates(requests, together, isolated=isolated)
        hosts = self.store.query(placement_content.hypervisors_by_host)
        return {host: found[provider_id] for host, provider_id in hosts.items() if provider_id in found}

    def traits_for(self, server_id: str) -> Set[str]:
        """The traits of the providers of which the server holds something."""
        claims = self.store.query(placement_content.of_servers, [server_id]).get(server_id)
        providers = [] if claims is None else [*claims.amounts, *claims.more]
        return {name for provider_id in providers for name in self.placement.traits_of(provider_id)}

    def _put_off(self, change: PlacementChange, now: datetime, error: Error) -> None:
        pause = min(2**change.attempts, MAX_PAUSE_SECONDS)
        # The first failures may only be due to the order in which changes are sent.
        level = logging.WARNING if change.attempts % 20 == 3 else logging.DEBUG
        LOG.log(level, 'Placement could not be updated with %s %s: %s', change.kind, change.id, error)
        self.store.change(changes.put_off, change, now + timedelta(seconds=pause), change.attempts + 1)

    # ------------------------------------------------------------ what is sent

    def _publish_host(self, change: PlacementChange) -> None:
        facts = self.store.query(placement_content.host, change.id)
        if facts is None:
            self.placement.withdraw(change.id)
        else:
            self.placement.declare(self._provider(facts))

    def _publish_aggregate(self, change: PlacementChange) -> None:
        self.placement.leave_aggregate(change.id, self.store.query(placement_content.hypervisor_ids))

    def _publish_consumer(self, change: PlacementChange) -> None:
        """Empty an allocation that is not, or no longer, compute's; existing claims are sent with their server."""
        stored = self.placement.allocations_of(change.id)
        servers = self.store.query(placement_content.servers_behind, [change.id])
        if _is_ours(stored, servers) and change.id not in self.store.query(
            placement_content.of_servers, list(servers.values())
        ):
            self.placement.set_allocations([_emptied(stored, stored.type if stored.type == INSTANCE else MIGRATION)])

    def _publish_server(self, change: PlacementChange) -> str | None:
        """Send the claims of a server and its migration; returns the ID of the migration's consumer, if any."""
        for _ in range(MAX_TRIES):
            compared = self._compare(change.id, change.move_id)
            if compared is None:
                continue
            wanted, differing = compared
            move_id = next((each.consumer_id for each in wanted if each.type == MIGRATION), None)
            if differing:
                if move_id not in (None, change.move_id):
                    # If this process dies now, the next one empties it.
                    self.store.change(changes.remember_move, change.id, move_id)
                self.placement.set_allocations(differing)
            return move_id
        raise ConcurrentUpdate()

    def _compare(
        self, server_id: str, move_id: str | None
    ) -> tuple[list[ConsumerAllocations], list[ConsumerAllocations]] | None:
        """The wanted allocations of the server and its migration, and those that differ in Placement, including other
        allocations of the migration; None if another migration has begun since.

        Placement is read before the claims: so what is sent is never older than what another process sent.
        """
        current_move = self.store.query(placement_content.move_of, server_id)
        consumers = {server_id, current_move, move_id} - {None}
        stored = {each: self.placement.allocations_of(each) for each in consumers if each}
        claims = self.store.query(placement_content.of_servers, [server_id])
        if not claims.keys() <= stored.keys():
            return None
        wanted = [_allocations_of(each, stored[key].generation) for key, each in claims.items()]
        gone = stored.keys() - claims.keys()
        empty = [_emptied(stored[key], INSTANCE if key == server_id else MIGRATION) for key in sorted(gone)]
        return wanted, [each for each in (*empty, *wanted) if each.resources != stored[each.consumer_id].resources]

    def _provider(self, facts: HostFacts) -> Provider:
        amounts = (('VCPU', facts.vcpus, self.ratios.cpu), ('MEMORY_MB', facts.memory_mb, self.ratios.ram))
        inventories = {
            # One server can use as much as can be allocated.
            name: Inventory(total, ratio, max_unit=max(1, min(int(total * ratio), 2**31 - 1)))
            for name, total, ratio in (*amounts, ('DISK_GB', facts.local_gb, self.ratios.disk))
        }
        inventories |= {name: Inventory(total, 1.0, total) for name, total in (facts.resources or {}).items()}
        traits = dict.fromkeys(facts.traits or (), True)
        traits |= standard(self.hypervisor.capabilities_of(facts.host)) | {DISABLED: facts.disabled}
        return Provider(facts.uuid, facts.hypervisor_hostname, inventories, traits, facts.aggregates)

    # ------------------------------------------------------------ what the audit finds

    def differences(self) -> Iterator[Difference]:
        """Differences in Placement that no pending change covers, host by host."""
        for hypervisor_id in self.store.query(placement_content.hypervisor_ids):
            facts = self.store.query(placement_content.host, hypervisor_id)
            if facts is not None and not self.store.query(changes.pending, HOST, [hypervisor_id]):
                yield from self._differences_of(facts)

    def _differences_of(self, facts: HostFacts) -> Iterator[Difference]:
        if parts := self.placement.differences(self._provider(facts)):
            yield Difference(', '.join(parts), 'host', facts.host, HOST, facts.uuid)
        consumers = self.placement.consumers_of(facts.uuid)
        server_ids = self.store.query(placement_content.servers_on, facts.host)
        claims = self.store.query(placement_content.of_servers, server_ids)
        wanted = {
            key: resources_of(each.amounts[facts.uuid]) for key, each in claims.items() if facts.uuid in each.amounts
        }
        # Other providers of the host are not searched: consumers that may hold something of them are checked instead.
        with_more = {key for key, each in claims.items() if each.more}
        suspects = with_more | {
            key for key in wanted.keys() | consumers.keys() if wanted.get(key) != consumers.get(key)
        }
        servers = {key: claims[key].server_id for key in suspects if key in claims}
        servers |= self.store.query(placement_content.servers_behind, suspects - servers.keys())
        for consumer_id in sorted(suspects):
            yield from self._difference_of(consumer_id, servers.get(consumer_id), facts)

    def _difference_of(self, consumer_id: str, server_id: str | None, facts: HostFacts) -> Iterator[Difference]:
        """Check again: the rows may have been read before Placement was updated, or the other way round."""
        if server_id is not None and self.store.query(changes.pending, SERVER, [server_id]):
            return
        what = f'the allocation on {facts.host}'
        claims = self.store.query(placement_content.of_servers, [server_id]) if server_id else {}
        stored = self.placement.allocations_of(consumer_id)
        if consumer_id in claims:
            wanted = _allocations_of(claims[consumer_id], None).resources
            if stored.resources != wanted:
                yield Difference(what, 'server', server_id or '', SERVER, server_id or '')
        elif _is_ours(stored, {consumer_id} if server_id else ()):
            yield Difference(what, 'server', server_id or consumer_id, CONSUMER, consumer_id)

    def repair(self, difference: Difference) -> None:
        """Send it again now; ConcurrentUpdate if it was not accepted, in which case it stays pending."""
        self.store.change(changes.note, difference.kind, [difference.id])
        change = self.store.query(changes.get, difference.kind, difference.id)
        if change is not None and change.change_id is not None and not self.publish(change):
            raise ConcurrentUpdate()


def _allocations_of(claims: Claims, generation: int | None) -> ConsumerAllocations:
    kind = MIGRATION if claims.moving else INSTANCE
    resources = {key: dict(resources_of(amounts)) for key, amounts in claims.amounts.items()}
    for provider_id, held in claims.more.items():
        resources[provider_id] = {**resources.get(provider_id, {}), **held}
    return ConsumerAllocations(claims.consumer_id, kind, claims.project_id, claims.user_id, resources, generation)


def _emptied(allocations: ConsumerAllocations, kind: str) -> ConsumerAllocations:
    return allocations._replace(type=kind, resources={})


def _is_ours(stored: ConsumerAllocations, known: Collection[str]) -> bool:
    """Whether the allocations were created by compute, even if compute no longer knows the consumer."""
    return bool(stored.resources) and (stored.type in (INSTANCE, MIGRATION) or stored.consumer_id in known)


def resources_of(amounts: Amounts) -> Mapping[str, int]:
    """By resource class; amounts of zero are left out."""
    return {name: amount for name, size in SIZES.items() if (amount := getattr(amounts, size))}
