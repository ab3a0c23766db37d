"""Calls Neutron, and translates its errors."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from typing import Any
from uuid import UUID

from oslo_config import cfg

from computeapi import errors
from computeapi.backends.neighbour import NeighbourService, Refusals, next_page, pieces
from computeapi.backends.network.neutron.extensions import NeutronExtensions
from computeapi.context import Context
from computeapi.db.clock import elapsed

Document = dict[str, Any]

REMEMBERED_SECONDS = 60

REFUSALS: Refusals = {
    'AutoAllocationFailure': errors.Invalid,
    'ExternalGatewayForFloatingIPNotFound': errors.Unreachable,
    'ExternalIpAddressExhausted': errors.NoMoreAddresses,
    'FloatingIPNotFound': errors.FloatingIPNotFound,
    'FloatingIPPortAlreadyAssociated': errors.FloatingIPInUse,
    'IpAddressAlreadyAllocated': errors.AddressInUse,
    'IpAddressGenerationFailure': errors.NoMoreAddresses,
    'IpAddressInUse': errors.AddressInUse,
    'NetworkNotFound': errors.NetworkNotFound,
    'OverQuota': errors.OverQuota,
    'PortBindingAlreadyActive': errors.PortBindingExists,
    'PortBindingAlreadyExists': errors.PortBindingExists,
    'PortBindingError': errors.PortBindingFailed,
    'PortNotFound': errors.PortNotFound,
    'RevisionNumberConstraintFailed': errors.RevisionMismatch,
    'SecurityGroupInUse': errors.SecurityGroupInUse,
    'SecurityGroupNotFound': errors.SecurityGroupNotFound,
    'SecurityGroupRuleExists': errors.SecurityGroupRuleExists,
    'SecurityGroupRuleNotFound': errors.SecurityGroupRuleNotFound,
    400: errors.Invalid,
    404: errors.NotFound,
    409: errors.Conflict,
}


class NeutronClient:
    """A Neutron, called as the caller of a context, or as this service if the context has no token."""

    def __init__(self, conf: cfg.ConfigOpts):
        self.service = NeighbourService(conf, 'Neutron', 'neutron', 'network', 2)
        self.extensions = NeutronExtensions(self._aliases, conf.neutron.extension_sync_interval)

    def request(
        self,
        context: Context,
        method: str,
        path: str,
        body: Document | None = None,
        *,
        headers: Mapping[str, str] | None = None,
        params: Mapping[str, Any] | None = None,
    ) -> Any:
        """The answer as JSON; None if it is empty."""
        with self.service.translating_errors(context, REFUSALS):
            neutron = self.service.adapter(context)
            answer = neutron.request(path, method, json=body, headers=headers, params=params)
            return answer.json() if answer.content else None

    def one(self, context: Context, kind: str, method: str, path: str, **kwargs: Any) -> Document:
        """The answer's only member, *kind*. kwargs: the attributes of the new or changed resource."""
        answer = self.request(context, method, path, {kind: kwargs} if kwargs else None)
        return shown(answer[kind])

    def found(self, context: Context, collection: str, **filters: Any) -> list[Document]:
        """The resources of a collection with these values, oldest first."""
        found = list(self._pages(context, collection, filters))
        return sorted(found, key=lambda each: (each.get('created_at') or '', each['id']))

    def _pages(self, context: Context, collection: str, filters: Mapping[str, Any]) -> Iterator[Document]:
        params: Mapping[str, Any] | None = filters
        while params is not None:
            page = self.request(context, 'GET', f'/{collection.replace("_", "-")}', params=params)
            yield from map(shown, page[collection])
            params = next_page(page, collection)

    def found_by(
        self, context: Context, collection: str, name: str, values: Iterable[str], **filters: Any
    ) -> list[Document]:
        """The same for several values of one filter, in as few requests as possible."""
        return [
            each for piece in pieces(values) for each in self.found(context, collection, **{name: piece}, **filters)
        ]

    def by_id(self, context: Context, collection: str, ids: Iterable[str]) -> dict[str, Document]:
        wanted = [each for each in ids if is_id(each)]
        return {each['id']: each for each in self.found_by(context, collection, 'id', wanted)}

    def _aliases(self) -> frozenset[str]:
        return frozenset(each['alias'] for each in self._pages(Context().elevated(), 'extensions', {}))


class ExpiringCache:
    """Caches things that rarely change, by ID, for REMEMBERED_SECONDS; missing ones are not cached."""

    def __init__(self, load: Callable[[Context, Iterable[str]], dict[str, Document]]):
        self.load = load
        self.known: dict[str, tuple[float, Document]] = {}

    def of(self, context: Context, ids: Set[str]) -> dict[str, Document]:
        now, known = elapsed(), self.known
        found = {each: known[each][1] for each in ids if each in known and known[each][0] > now}
        if missing := ids - found.keys():
            new = self.load(context, missing)
            found |= new
            current = {each: fact for each, fact in list(known.items()) if fact[0] > now}
            self.known = current | {each: (now + REMEMBERED_SECONDS, fact) for each, fact in new.items()}
        return found


def shown(resource: Document) -> Document:
    """Without the attributes that this caller is not shown."""
    return {name: value for name, value in resource.items() if value is not None}


def is_id(text: str) -> bool:
    """Whether it can be an ID in Neutron; everything that goes into a URL path must be one."""
    try:
        return str(UUID(text)) == text.lower()
    except ValueError:
        return False
