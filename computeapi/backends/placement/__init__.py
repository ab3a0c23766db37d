"""Placement: tells others of the cloud what compute hosts have, and who holds what of them.

Compute decides by its own rows and tells Placement afterwards. What is told says how things are and not what changed,
so that it can be told again; what others wrote there stays as it is.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from computeapi.errors import Error

INSTANCE, MIGRATION = 'INSTANCE', 'MIGRATION'
"""The types of consumers that are compute's: servers and moves."""

Resources = Mapping[str, Mapping[str, int]]
"""Amounts by provider and resource class."""


Chosen = Mapping[str, str]
"""The provider that has what is asked for, by request."""


class ResourceRequest(NamedTuple):
    """What a port asks of one provider below a host: amounts by resource class, and traits."""

    id: str
    resources: Mapping[str, int]
    traits: Sequence[str] = ()


class Inventory(NamedTuple):
    """What a provider has of a resource class (total 0: nothing); one consumer can have `max_unit` of it."""

    total: int
    allocation_ratio: float
    max_unit: int
    reserved: int = 0


@dataclass(frozen=True)
class Provider:
    """A host. traits, aggregates: each that compute decides on, and whether it is the host's; others are left alone.

    inventories: by resource class; other classes are left alone, too.
    """

    id: str
    name: str
    inventories: Mapping[str, Inventory]
    traits: Mapping[str, bool]
    aggregates: Mapping[str, bool]


class Holding(NamedTuple):
    """What a consumer holds. generation: which version of it that is; None for a consumer that holds nothing yet."""

    consumer_id: str
    type: str = INSTANCE
    project_id: str = ''
    user_id: str = ''
    resources: Resources = {}
    generation: int | None = None


class StaleHolding(Error):
    """Somebody else has changed meanwhile what a consumer, or a provider, is."""

    text = 'Placement knows something newer.'


class PlacementRefused(Error):
    """What Placement does not take: the provider is not there, or has not so much."""


class Placement(Protocol):
    """Errors: NeighbourAway, StaleHolding, PlacementRefused."""

    def declare(self, provider: Provider) -> None:
        """Let Placement know the provider as it is here, whether it is new or known."""
        ...

    def differences(self, provider: Provider) -> list[str]:
        """What Placement knows otherwise, in words: 'inventory', 'traits', 'aggregates'; 'provider' if nothing."""
        ...

    def withdraw(self, provider_id: str) -> None:
        """The host is gone, if it was known. PlacementRefused while somebody holds something of it, or it has parts."""
        ...

    def leave_aggregate(self, aggregate_id: str, provider_ids: Sequence[str]) -> None:
        """The aggregate is gone: these providers are in it no more."""
        ...

    def holding(self, consumer_id: str) -> Holding:
        """What the consumer holds, whoever it is."""
        ...

    def hold(self, holdings: Sequence[Holding]) -> None:
        """Let these consumers hold just that, all or nothing; StaleHolding unless their generations are the last."""
        ...

    def holders(self, provider_id: str) -> Mapping[str, Mapping[str, int]]:
        """By consumer, what is held of the provider; nothing of one that is not there."""
        ...

    def candidates(
        self, requests: Sequence[ResourceRequest], together: Sequence[Sequence[str]] = ()
    ) -> Mapping[str, Chosen]:
        """By provider of a host that has all that is asked for, what would give it. together: the ids of requests that
        must be met in one part of the host."""
        ...
