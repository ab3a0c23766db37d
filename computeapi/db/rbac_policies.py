"""With whom the resources of a network service are shared, one by one."""

from computeapi import errors
from computeapi.db.network_collection import Collection, Work
from computeapi.db.tables.network import rbac_policies

RBAC_POLICIES = Collection(
    rbac_policies,
    errors.RbacPolicyNotFound,
    renamed={'target_project': 'target_tenant'},
    hidden=['name', 'description', 'created_at', 'updated_at'],
)


def forget(work: Work, object_id: str) -> None:
    """What is gone is shared with nobody."""
    RBAC_POLICIES.delete(work, object_id=object_id)
