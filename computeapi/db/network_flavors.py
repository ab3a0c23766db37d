"""Network service flavors and their service profiles."""

from collections.abc import Sequence

import sqlalchemy as sa

from computeapi import errors
from computeapi.db.network_collection import Collection, Document, Work, ids_of
from computeapi.db.records import grouped
from computeapi.db.tables.network import network_flavor_profiles, network_flavors, network_service_profiles


def _add_profiles(work: Work, documents: list[Document]) -> None:
    pairs = network_flavor_profiles.c
    query = sa.select(pairs.flavor_id, pairs.service_profile_id).where(pairs.flavor_id.in_(ids_of(documents)))
    held = grouped((flavor_id, profile_id) for flavor_id, profile_id in work.connection.execute(query))
    for document in documents:
        document['service_profiles'] = held.get(document['id'], [])


UNSHOWN: Sequence[str] = ('created_at', 'updated_at', 'revision_number', 'tags')

NETWORK_FLAVORS = Collection(
    network_flavors,
    errors.NetworkFlavorNotFound,
    hidden=UNSHOWN,
    visible=lambda context: sa.true(),
    complete=_add_profiles,
)
SERVICE_PROFILES = Collection(network_service_profiles, errors.ServiceProfileNotFound, hidden=[*UNSHOWN, 'name'])


def associate(work: Work, flavor_id: str, profile_id: str) -> None:
    work.connection.execute(network_flavor_profiles.insert().values(flavor_id=flavor_id, service_profile_id=profile_id))


def disassociate(work: Work, flavor_id: str, profile_id: str) -> bool:
    """Whether the two were associated."""
    query = network_flavor_profiles.delete().filter_by(flavor_id=flavor_id, service_profile_id=profile_id)
    return work.connection.execute(query).rowcount > 0


def profile_is_used(work: Work, profile_id: str) -> bool:
    query = sa.select(network_flavor_profiles.c.flavor_id).filter_by(service_profile_id=profile_id).limit(1)
    return work.connection.scalar(query) is not None
