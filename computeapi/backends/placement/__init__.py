"""Placement: publishes the resources of compute hosts and their allocations to the cloud.

Compute decides with its own rows, and updates Placement afterwards. Updates state the whole result and not the change,
so that they can be repeated; entries of other services are left as they are.
"""

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from computeapi.errors import Error

INSTANCE, MIGRATION = 'INSTANCE', 'MIGRATION'
"""The consumer types of compute: servers and migrations."""

Resources = Mapping[str, Mapping[str, int]]
"""Amounts by provider and resource class."""


Chosen = Mapping[str, str]
"""The chosen provider, by request ID."""


class ResourceRequest(NamedTuple):
    """What a port or a flavor requests from one provider of a host: amounts by resource class, and traits.

    id: empty for what several providers of a host can meet together.
    """

    id: str
    resources: Mapping[str, int]
    traits: Sequence[str] = ()
    forbidden: Sequence[str] = ()


class Candidate(NamedTuple):
    """Providers that meet all requests. resources: of all requests together."""

    chosen: Chosen
    resources: Resources


class Inventory(NamedTuple):
    """The inventory of a resource class at a provider (total 0: none); a consumer can allocate up to `max_unit`."""

    total: int
    allocation_ratio: float
    max_unit: int
    reserved: int = 0


@dataclass(frozen=True)
class Provider:
    """A host. traits, aggregates: those that compute manages, each with whether the host has it; others are left alone.

    inventories: by resource class; other classes are left alone, too. New custom traits and classes are created.
    """

    id: str
    name: str
    inventories: Mapping[str, Inventory]
    traits: Mapping[str, bool]
    aggregates: Mapping[str, bool]


class ConsumerAllocations(NamedTuple):
    """The allocations of a consumer. generation: of the consumer; None if it has no allocations yet."""

    consumer_id: str
    type: str = INSTANCE
    project_id: str = ''
    user_id: str = ''
    resources: Resources = {}
    generation: int | None = None


class ConcurrentUpdate(Error):
    """A consumer or a provider was changed concurrently."""

    text = 'Placement has newer data.'


class PlacementRefused(Error):
    """Placement rejected the request: the provider does not exist, or lacks the resources."""


class Placement(Protocol):
    """Errors: NeighbourAway, ConcurrentUpdate, PlacementRefused."""

    def declare(self, provider: Provider) -> None:
        """Create or update the provider in Placement."""
        ...

    def differences(self, provider: Provider) -> list[str]:
        """The parts that differ: 'name', 'inventories', 'traits', 'aggregates'; 'provider' if it is missing."""
        ...

    def withdraw(self, provider_id: str) -> None:
        """Delete the provider, if it exists. PlacementRefused while it has allocations or child providers."""
        ...

    def leave_aggregate(self, aggregate_id: str, provider_ids: Sequence[str]) -> None:
        """Remove these providers from a deleted aggregate."""
        ...

    def allocations_of(self, consumer_id: str) -> ConsumerAllocations:
        """The allocations of a consumer of any type."""
        ...

    def set_allocations(self, allocations: Sequence[ConsumerAllocations]) -> None:
        """Replace the allocations of these consumers, all or none; ConcurrentUpdate for old generations."""
        ...

    def consumers_of(self, provider_id: str) -> Mapping[str, Mapping[str, int]]:
        """The allocations of a provider, by consumer; empty if the provider does not exist."""
        ...

    def traits_of(self, provider_id: str) -> Set[str]:
        """All traits of the provider; none if it does not exist."""
        ...

    def candidates(
        self, requests: Sequence[ResourceRequest], together: Sequence[Sequence[str]] = (), *, isolated: bool = False
    ) -> Mapping[str, Candidate]:
        """By host provider, one candidate for each host that meets all requests. together: groups of request IDs that
        must be met in one subtree of the host.  isolated: whether each request with an ID needs its own provider. None
        if Placement does not know one of the traits or resource classes."""
        ...
