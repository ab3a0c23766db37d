"""A Placement service.

Providers and consumers have generations: a writer states which one it has read, and is refused after a concurrent
change.
"""

import logging
from collections.abc import Callable, Collection, Mapping, Sequence, Set
from typing import Any
from urllib.parse import urlencode

from keystoneauth1.exceptions import from_response
from oslo_config import cfg
from requests import Response

from computeapi.backends.neighbour import MAX_MESSAGE_LENGTH, NeighbourService
from computeapi.backends.placement import (
    INSTANCE,
    Candidate,
    ConcurrentUpdate,
    ConsumerAllocations,
    Inventory,
    PlacementRefused,
    Provider,
    ResourceRequest,
)
from computeapi.context import Context
from computeapi.errors import Error

LOG = logging.getLogger(__name__)
# Needed for consumer types, and for generations in answers about aggregates.
MICROVERSION = '1.38'
STALE = 'placement.concurrent_update'
CUSTOM = 'CUSTOM_'
KINDS = {'traits': 'traits', 'inventories': 'resource_classes'}
"""Where Placement has the names in the parts of providers."""
MAX_TRIES = 4
MAX_CANDIDATES = 1000
ITSELF = Context(user_id='', project_id='', user_name='placement').elevated()


class PlacementService:
    def __init__(self, conf: cfg.ConfigOpts):
        self.service = NeighbourService(conf, 'Placement', 'placement', 'placement', 1)
        self.traits: set[str] = set()

    # ------------------------------------------------------------ providers

    def declare(self, provider: Provider) -> None:
        for _ in range(MAX_TRIES):
            try:
                return self._declare(provider)
            except ConcurrentUpdate:
                continue
        raise ConcurrentUpdate()

    def _declare(self, provider: Provider) -> None:
        known = self._known(provider.id)
        if known is None:
            self._request('POST', '/resource_providers', {'uuid': provider.id, 'name': provider.name})
        elif known['name'] != provider.name:
            self._request('PUT', _path(provider.id), {'name': provider.name})
        for part, wanted in self._wanted(provider).items():
            found = self._request('GET', _path(provider.id, part))
            changed = wanted(found[part])
            if changed != found[part]:
                self._create(part, set(changed) - set(found[part]))
                generation = {'resource_provider_generation': found['resource_provider_generation']}
                self._request('PUT', _path(provider.id, part), {part: changed, **generation})

    def _create(self, part: str, names: Collection[str]) -> None:
        """Make these custom traits or resource classes known."""
        for name in sorted(name for name in names if name.startswith(CUSTOM) and part in KINDS):
            self._request('PUT', f'/{KINDS[part]}/{name}')

    def differences(self, provider: Provider) -> list[str]:
        known = self._known(provider.id)
        if known is None:
            return ['provider']
        found = ['name'] if known['name'] != provider.name else []
        for part, wanted in self._wanted(provider).items():
            there = self._request('GET', _path(provider.id, part))[part]
            if wanted(there) != there:
                found.append(part)
        return found

    def _wanted(self, provider: Provider) -> dict[str, Callable[[Any], Any]]:
        """By part of a provider, a function from its current to its wanted value."""

        def inventories(there: Mapping[str, Any]) -> dict[str, Any]:
            others = {name: each for name, each in there.items() if name not in provider.inventories}
            return others | {name: _document(each) for name, each in provider.inventories.items() if each.total}

        def traits(there: Sequence[str]) -> list[str]:
            known = self._traits([name for name in provider.traits if not name.startswith(CUSTOM)])
            wanted = {name: each for name, each in provider.traits.items() if name in known or name.startswith(CUSTOM)}
            return _chosen(there, wanted)

        def aggregates(there: Sequence[str]) -> list[str]:
            return _chosen(there, provider.aggregates)

        return {'inventories': inventories, 'traits': traits, 'aggregates': aggregates}

    def _traits(self, names: Collection[str]) -> Set[str]:
        """The known traits, after looking up new names; Placement never forgets one, but an upgrade may add some."""
        if unknown := sorted(set(names) - self.traits):
            self.traits |= set(self._request('GET', f'/traits?name=in:{",".join(unknown)}')['traits'])
        return self.traits

    def withdraw(self, provider_id: str) -> None:
        self._request('DELETE', _path(provider_id), missing=True)

    def leave_aggregate(self, aggregate_id: str, provider_ids: Sequence[str]) -> None:
        members = self._request('GET', f'/resource_providers?member_of={aggregate_id}')['resource_providers']
        for provider_id in {each['uuid'] for each in members} & set(provider_ids):
            found = self._request('GET', _path(provider_id, 'aggregates'))
            # Another process may have removed it meanwhile.
            found['aggregates'] = _chosen(found['aggregates'], {aggregate_id: False})
            self._request('PUT', _path(provider_id, 'aggregates'), found)

    def _known(self, provider_id: str) -> Mapping[str, Any] | None:
        found: Mapping[str, Any] | None = self._request('GET', _path(provider_id), missing=True)
        return found

    # ------------------------------------------------------------ consumers

    def allocations_of(self, consumer_id: str) -> ConsumerAllocations:
        found = self._request('GET', f'/allocations/{consumer_id}')
        if not found['allocations']:
            return ConsumerAllocations(consumer_id)
        resources = {provider: each['resources'] for provider, each in found['allocations'].items()}
        kind, generation = found.get('consumer_type', INSTANCE), found['consumer_generation']
        return ConsumerAllocations(consumer_id, kind, found['project_id'], found['user_id'], resources, generation)

    def set_allocations(self, allocations: Sequence[ConsumerAllocations]) -> None:
        self._request('POST', '/allocations', {each.consumer_id: _allocations(each) for each in allocations})

    def consumers_of(self, provider_id: str) -> Mapping[str, Mapping[str, int]]:
        found = self._request('GET', _path(provider_id, 'allocations'), missing=True) or {'allocations': {}}
        return {consumer: each['resources'] for consumer, each in found['allocations'].items()}

    def traits_of(self, provider_id: str) -> Set[str]:
        found = self._request('GET', _path(provider_id, 'traits'), missing=True)
        return set() if found is None else set(found['traits'])

    def candidates(
        self, requests: Sequence[ResourceRequest], together: Sequence[Sequence[str]] = (), *, isolated: bool = False
    ) -> Mapping[str, Candidate]:
        query = [('limit', str(MAX_CANDIDATES)), ('group_policy', 'isolate' if isolated else 'none')]
        for each in requests:
            suffix = f'_{each.id}' if each.id else ''
            query.append((f'resources{suffix}', ','.join(f'{name}:{n}' for name, n in each.resources.items())))
            if traits := [*each.traits, *(f'!{name}' for name in each.forbidden)]:
                query.append((f'required{suffix}', ','.join(traits)))
        query += [('same_subtree', ','.join(f'_{name}' for name in group)) for group in together]
        try:
            answer = self._request('GET', f'/allocation_candidates?{urlencode(query)}')
        except PlacementRefused as error:
            LOG.warning('Placement rejects a search for providers: %s', error)
            return {}
        found: dict[str, Candidate] = {}
        for each in answer['allocation_requests']:
            chosen = {name.removeprefix('_'): providers[0] for name, providers in each['mappings'].items()}
            resources = {provider: part['resources'] for provider, part in each['allocations'].items()}
            for root in {answer['provider_summaries'][provider]['root_provider_uuid'] for provider in resources}:
                found.setdefault(root, Candidate(chosen, resources))
        return found

    # ------------------------------------------------------------ requests

    def _request(self, method: str, path: str, body: Mapping[str, Any] | None = None, *, missing: bool = False) -> Any:
        """The answer as JSON. missing: return None for a 404 instead of raising an error."""
        with self.service.translating_errors(ITSELF):
            placement = self.service.adapter(ITSELF)
            answer = placement.request(path, method, json=body, microversion=MICROVERSION, raise_exc=False)
            if missing and answer.status_code == 404:
                return None
            if answer.status_code in (400, 409):
                raise _refusal(answer)
            if answer.status_code >= 400:
                raise from_response(answer, method, path)
        return answer.json() if answer.content else None


def _refusal(answer: Response) -> Error:
    try:
        error = answer.json()['errors'][0]
    except (ValueError, KeyError, IndexError, TypeError):
        return PlacementRefused(f'Placement answered {answer.status_code}.')
    words = ' '.join(str(error.get('detail', '')).split())[:MAX_MESSAGE_LENGTH]
    return ConcurrentUpdate() if error.get('code') == STALE else PlacementRefused(words)


def _path(provider_id: str, part: str = '') -> str:
    return f'/resource_providers/{provider_id}' + (f'/{part}' if part else '')


def _document(inventory: Inventory) -> dict[str, Any]:
    return {**inventory._asdict(), 'min_unit': 1, 'step_size': 1}


def _chosen(there: Sequence[str], wanted: Mapping[str, bool]) -> list[str]:
    """The current names plus the wanted ones and minus the unwanted; an equal list if nothing changes."""
    missing = [name for name, is_wanted in sorted(wanted.items()) if is_wanted and name not in there]
    return [name for name in there if wanted.get(name, True)] + missing


def _allocations(allocations: ConsumerAllocations) -> dict[str, Any]:
    return {
        'allocations': {provider: {'resources': dict(each)} for provider, each in allocations.resources.items()},
        'project_id': allocations.project_id,
        'user_id': allocations.user_id,
        'consumer_generation': allocations.generation,
        'consumer_type': allocations.type,
    }
