"""An in-memory Placement, for tests of what compute reports: it refuses what the real one does, and can be
unavailable."""

import threading
from collections import defaultdict
from dataclasses import replace

from computeapi.backends.placement import Candidate, ConcurrentUpdate, ConsumerAllocations, PlacementRefused
from computeapi.errors import NeighbourAway


class PlacementInMemory:
    """away: whether it cannot be reached.  told: the consumers of each change, in order."""

    def __init__(self):
        self.providers, self.consumers, self.told, self.roots = {}, {}, [], {}
        self.away, self.lock, self.generation = False, threading.RLock(), 0

    def _ask(self):
        if self.away:
            raise NeighbourAway(name='Placement')

    def declare(self, provider):
        self._ask()
        with self.lock:
            names = {each.name for key, each in self.providers.items() if key != provider.id}
            if provider.name in names:
                raise PlacementRefused(f'There is another {provider.name}.')
            self.providers[provider.id] = self._merged(provider)

    def _merged(self, provider):
        there = self.providers.get(provider.id)
        found = there or replace(provider, inventories={}, traits={}, aggregates={})
        inventories = {**found.inventories, **provider.inventories}
        return replace(
            provider,
            inventories={name: each for name, each in inventories.items() if each.total},
            traits=_true({**found.traits, **provider.traits}),
            aggregates=_true({**found.aggregates, **provider.aggregates}),
        )

    def differences(self, provider):
        self._ask()
        there = self.providers.get(provider.id)
        if there is None:
            return ['provider']
        merged = self._merged(provider)
        return [
            part for part in ('inventories', 'traits', 'aggregates') if getattr(there, part) != getattr(merged, part)
        ]

    def withdraw(self, provider_id):
        self._ask()
        if self.consumers_of(provider_id):
            raise PlacementRefused('It is in use.')
        self.providers.pop(provider_id, None)

    def leave_aggregate(self, aggregate_id, provider_ids):
        self._ask()
        for provider_id in set(provider_ids) & set(self.providers):
            self.providers[provider_id].aggregates.pop(aggregate_id, None)

    def allocations_of(self, consumer_id):
        self._ask()
        return self.consumers.get(consumer_id, ConsumerAllocations(consumer_id))

    def set_allocations(self, allocations):
        self._ask()
        with self.lock:
            for each in allocations:
                if each.generation != self.allocations_of(each.consumer_id).generation:
                    raise ConcurrentUpdate()
            kept = {
                key: each for key, each in self.consumers.items() if key not in {new.consumer_id for new in allocations}
            }
            for each in allocations:
                self.generation += 1
                if each.resources:
                    kept[each.consumer_id] = each._replace(generation=self.generation)
            self._check(kept, {provider_id for each in allocations for provider_id in each.resources})
            self.consumers = kept
            self.told.append([each.consumer_id for each in allocations])

    def _check(self, consumers, provider_ids):
        used = defaultdict(int)
        for each in consumers.values():
            for provider_id, resources in each.resources.items():
                for name, amount in resources.items():
                    used[provider_id, name] += amount
        if not provider_ids <= set(self.providers):
            raise PlacementRefused('There is no such provider.')
        for (provider_id, name), amount in used.items():
            if provider_id not in provider_ids:
                continue
            inventory = self.providers[provider_id].inventories.get(name)
            if inventory is None or amount > (inventory.total - inventory.reserved) * inventory.allocation_ratio:
                raise PlacementRefused('It has not so much.')

    def part(self, root_id, provider):
        """Declare a provider below a host, as another client of Placement."""
        self.providers[provider.id] = self._merged(provider)
        self.roots[provider.id] = root_id

    def traits_of(self, provider_id):
        self._ask()
        return set(self.providers[provider_id].traits) if provider_id in self.providers else set()

    def candidates(self, requests, together=(), *, isolated=False):
        self._ask()
        assert all(each.resources for each in requests), 'All request groups must specify resources.'
        found = {}
        for root_id in {self.roots.get(key, key) for key in self.providers}:
            parts = [key for key in self.providers if root_id in (key, self.roots.get(key))]
            candidate = self._candidate(parts, requests, isolated=isolated)
            if candidate is not None:
                found[root_id] = candidate
        return found

    def _candidate(self, parts, requests, *, isolated):
        chosen, resources = {}, defaultdict(lambda: defaultdict(int))
        for each in requests:
            taken = set(chosen.values()) if isolated and each.id else set()
            mine = self._met(each, [key for key in parts if key not in taken], resources)
            if mine is None:
                return None
            chosen[each.id] = mine[0]
        return Candidate(chosen, {key: dict(held) for key, held in resources.items()})

    def _met(self, request, parts, resources):
        """The providers of a request, whose resources are added; several of them if it has no ID."""
        several = [request._replace(resources={name: n}, traits=()) for name, n in request.resources.items()]
        found = []
        for piece in [request] if request.id else several:
            fit = [key for key in parts if self._has(key, piece, resources.get(key, {}))]
            best = max(fit, key=lambda key: len(set(request.traits) & set(self.providers[key].traits)), default=None)
            if best is None:
                return None
            found.append(best)
            for name, amount in piece.resources.items():
                resources[best][name] += amount
        traits = {name for key in found for name in self.providers[key].traits}
        return found if set(request.traits) <= traits else None

    def _has(self, provider_id, request, besides):
        there, taken = self.providers[provider_id], [*self.consumers_of(provider_id).values(), besides]
        traits, amounts = set(there.traits), there.inventories
        return (
            set(request.traits) <= traits
            and not set(request.forbidden) & traits
            and all(
                name in amounts
                and sum(each.get(name, 0) for each in taken) + amount
                <= (amounts[name].total - amounts[name].reserved) * amounts[name].allocation_ratio
                for name, amount in request.resources.items()
            )
        )

    def consumers_of(self, provider_id):
        self._ask()
        found = {key: each.resources.get(provider_id) for key, each in self.consumers.items()}
        return {key: resources for key, resources in found.items() if resources}


def _true(decided):
    return {name: True for name, wanted in decided.items() if wanted}
