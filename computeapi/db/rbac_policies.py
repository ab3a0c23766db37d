"""RBAC policies: the sharing of individual network resources."""

import sqlalchemy as sa

from computeapi import errors
from computeapi.db.network_collection import Collection, Work
from computeapi.db.tables.network import networks, ports, rbac_policies, subnet_pools, subnets

RBAC_POLICIES = Collection(
    rbac_policies,
    errors.RbacPolicyNotFound,
    renamed={'target_project': 'target_tenant'},
    hidden=['name', 'description', 'created_at', 'updated_at', 'revision_number', 'tags'],
)

USES: dict[str, tuple[sa.Column[str], ...]] = {
    'address_scope': (subnet_pools.c.address_scope_id,),
    'network': (ports.c.network_id,),
    'qos_policy': (networks.c.qos_policy_id, ports.c.qos_policy_id),
    'subnetpool': (subnets.c.subnetpool_id,),
}
"""By type of object, the references to it from what depends on it."""


def users(work: Work, object_type: str, object_id: str) -> set[str]:
    """The projects that have something that depends on the object."""
    found = (sa.select(each.table.c.project_id).where(each == object_id) for each in USES[object_type])
    return set(work.connection.scalars(sa.union(*found)))


def forget(work: Work, object_id: str) -> None:
    """Delete the policies of a deleted resource."""
    RBAC_POLICIES.delete(work, object_id=object_id)
