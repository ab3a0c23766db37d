"""RBAC policies: sharing networks, QoS policies, subnet pools and address scopes with one project or all."""

from collections.abc import Mapping

from computeapi import errors
from computeapi.db import network_projects, ports
from computeapi.db.network_collection import EVERYBODY, Collection, Document, Work
from computeapi.db.networks import NETWORKS
from computeapi.db.qos import POLICIES
from computeapi.db.rbac_policies import RBAC_POLICIES
from computeapi.db.subnet_pools import ADDRESS_SCOPES, SUBNET_POOLS

SHARED = 'access_as_shared'
OBJECTS: Mapping[str, Collection] = {
    'address_scope': ADDRESS_SCOPES,
    'network': NETWORKS,
    'qos_policy': POLICIES,
    'subnetpool': SUBNET_POOLS,
}


def create(work: Work, facts: Document) -> str:
    project_id = network_projects.owner(work, facts)
    network_projects.reserve(work, project_id, 'rbac_policy')
    OBJECTS[facts['object_type']].owned(work, facts['object_id'])
    _check_target(work, facts)
    known = {name: facts[name] for name in ('object_id', 'action')}
    if RBAC_POLICIES.find(work.elevated(), **known, target_project=facts['target_tenant']):
        raise errors.Conflict('An RBAC policy already exists with those values.')
    return RBAC_POLICIES.insert(work, {**facts, 'project_id': project_id})


def update(work: Work, policy_id: str, facts: Document) -> None:
    policy = RBAC_POLICIES.owned(work, policy_id)
    _check_target(work, facts)
    _check_unused(work, policy)
    RBAC_POLICIES.update(work, policy_id, facts)


def delete(work: Work, policy_id: str) -> None:
    policy = RBAC_POLICIES.owned(work, policy_id)
    _check_unused(work, policy)
    RBAC_POLICIES.delete(work, id=policy_id)


def _check_target(work: Work, facts: Document) -> None:
    if facts.get('target_tenant') == EVERYBODY and not work.context.is_admin:
        raise errors.Forbidden('rule:restrict_wildcard is disallowed by policy')


def _check_unused(work: Work, policy: Document) -> None:
    """Raises Conflict while the network has ports of other projects, which may depend on the policy."""
    if policy['object_type'] == 'network' and ports.network_has_foreign_ports(
        work, policy['object_id'], NETWORKS.get(work, policy['object_id'])['project_id']
    ):
        raise errors.Conflict(f'RBAC policy on object {policy["object_id"]} cannot be removed: other projects use it.')
