"""RBAC policies: the sharing of individual network resources."""

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
    """Delete the policies of a deleted resource."""
    RBAC_POLICIES.delete(work, object_id=object_id)
