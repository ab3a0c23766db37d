"""Rules for flavors of network services and their profiles, which administrators manage."""

from computeapi import errors
from computeapi.db import network_flavors, network_projects
from computeapi.db.network_collection import Document, Work
from computeapi.db.network_flavors import NETWORK_FLAVORS, SERVICE_PROFILES


def create(work: Work, facts: Document) -> str:
    return NETWORK_FLAVORS.insert(work, {**facts, 'project_id': network_projects.owner(work, facts)})


def update(work: Work, flavor_id: str, facts: Document) -> None:
    NETWORK_FLAVORS.owned(work, flavor_id)
    NETWORK_FLAVORS.update(work, flavor_id, facts)


def delete(work: Work, flavor_id: str) -> None:
    NETWORK_FLAVORS.owned(work, flavor_id)
    NETWORK_FLAVORS.delete(work, id=flavor_id)


def create_profile(work: Work, facts: Document) -> str:
    if not facts.get('driver') and not facts.get('metainfo'):
        raise errors.Invalid('Service Profile needs either metainfo or driver.')
    return SERVICE_PROFILES.insert(work, {**facts, 'project_id': network_projects.owner(work, facts)})


def update_profile(work: Work, profile_id: str, facts: Document) -> None:
    SERVICE_PROFILES.owned(work, profile_id)
    _check_unused(work, profile_id)
    SERVICE_PROFILES.update(work, profile_id, facts)


def delete_profile(work: Work, profile_id: str) -> None:
    SERVICE_PROFILES.owned(work, profile_id)
    _check_unused(work, profile_id)
    SERVICE_PROFILES.delete(work, id=profile_id)


def associate(work: Work, flavor_id: str, profile_id: str) -> Document:
    flavor, profile = NETWORK_FLAVORS.owned(work, flavor_id), SERVICE_PROFILES.get(work, profile_id)
    if profile['id'] in flavor['service_profiles']:
        raise errors.Conflict(f'Flavor {flavor_id} is already associated with Service Profile {profile_id}.')
    network_flavors.associate(work, flavor_id, profile_id)
    return profile


def disassociate(work: Work, flavor_id: str, profile_id: str) -> None:
    NETWORK_FLAVORS.owned(work, flavor_id)
    if not network_flavors.disassociate(work, flavor_id, profile_id):
        raise errors.NotFound(f'Flavor {flavor_id} does not have Service Profile {profile_id}.')


def _check_unused(work: Work, profile_id: str) -> None:
    if network_flavors.profile_is_used(work, profile_id):
        raise errors.Conflict(f'Service Profile {profile_id} is used by some service instance.')
