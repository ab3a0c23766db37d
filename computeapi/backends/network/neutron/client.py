"""How a Neutron is asked, and its errors as ours."""

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
    """A Neutron, asked as the caller of a context, or as this service where that has no token."""

    def __init__(self, conf: cfg.ConfigOpts):
        self.service = NeighbourService(conf, 'Neutron', 'neutron', 'network', 2)
        self.extensions = NeutronExtensions(self._aliases, conf.neutron.extension_sync_interval)

    @contextmanager
    def asked(self, context: Context) -> Iterator[Proxy]:
        with self.service.asked(context, REFUSALS):
            yield self.service.proxy(context, Proxy)

    def found(self, context: Context, listing: Callable[..., Iterable[Resource]], **filters: Any) -> list[Document]:
        """What one of Proxy's listings has with these filters, oldest first."""
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
        """The same for all that has one of the values under the name, in as few requests as there must be."""
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
    """What hardly ever changes, by its id, for REMEMBERED_SECONDS; what is not there is not remembered."""

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
    """A resource in Neutron's words; what this caller is not shown is not in it."""
    body = resource.to_dict(computed=False, original_names=True)
    return {name: value for name, value in body.items() if value is not None}


def is_id(text: str) -> bool:
    """Whether it can be the id of anything there; all that is said in the path of an URL must be one."""
    try:
        return str(UUID(text)) == text.lower()
    except ValueError:
        return False
