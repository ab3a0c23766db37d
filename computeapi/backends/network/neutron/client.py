"""Calls Neutron, and translates its errors."""

from collections.abc import Callable, Iterable, Iterator, Set
from contextlib import contextmanager
from typing import Any
from uuid import UUID

from openstack.network.v2._proxy import Proxy
from openstack.resource import Resource
from oslo_config import cfg

from computeapi import errors
from computeapi.backends.neighbour import NeighbourService, Refusals, pieces
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

    @contextmanager
    def asked(self, context: Context) -> Iterator[Proxy]:
        with self.service.asked(context, REFUSALS):
            yield self.service.proxy(context, Proxy)

    def found(self, context: Context, listing: Callable[..., Iterable[Resource]], **filters: Any) -> list[Document]:
        """The resources from one of Proxy's list methods with these filters, oldest first."""
        with self.asked(context) as neutron:
            found = [document(each) for each in listing(neutron, **filters)]
        return sorted(found, key=lambda each: (each.get('created_at') or '', each['id']))

    def found_by(
        self,
        context: Context,
        listing: Callable[..., Iterable[Resource]],
        name: str,
        values: Iterable[str],
        **filters: Any,
    ) -> list[Document]:
        """The same for several values of one filter, in as few requests as possible."""
        return [each for piece in pieces(values) for each in self.found(context, listing, **{name: piece}, **filters)]

    def by_id(
        self, context: Context, listing: Callable[..., Iterable[Resource]], ids: Iterable[str]
    ) -> dict[str, Document]:
        wanted = [each for each in ids if is_id(each)]
        return {each['id']: each for each in self.found_by(context, listing, 'id', wanted)}

    def _aliases(self) -> frozenset[str]:
        with self.asked(Context().elevated()) as neutron:
            return frozenset(each.alias for each in neutron.extensions())


class Remembered:
    """Caches things that rarely change, by ID, for REMEMBERED_SECONDS; missing ones are not cached."""

    def __init__(self, ask: Callable[[Context, Iterable[str]], dict[str, Document]]):
        self.ask = ask
        self.known: dict[str, tuple[float, Document]] = {}

    def of(self, context: Context, ids: Set[str]) -> dict[str, Document]:
        now, known = elapsed(), self.known
        found = {each: known[each][1] for each in ids if each in known and known[each][0] > now}
        if missing := ids - found.keys():
            new = self.ask(context, missing)
            found |= new
            current = {each: fact for each, fact in list(known.items()) if fact[0] > now}
            self.known = current | {each: (now + REMEMBERED_SECONDS, fact) for each, fact in new.items()}
        return found


def document(resource: Resource) -> Document:
    """A resource in Neutron's format, without attributes that this caller is not shown."""
    body = resource.to_dict(computed=False, original_names=True)
    return {name: value for name, value in body.items() if value is not None}


def is_id(text: str) -> bool:
    """Whether it can be an ID in Neutron; everything that goes into a URL path must be one."""
    try:
        return str(UUID(text)) == text.lower()
    except ValueError:
        return False
