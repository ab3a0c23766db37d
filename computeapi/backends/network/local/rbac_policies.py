"""RBAC policies: sharing networks, QoS policies, subnet pools and address scopes with one project or all."""

from collections.abc import Mapping

from computeapi import errors
from computeapi.db import network_projects, ports, routers
from computeapi.db.network_collection import EVERYBODY, Collection, Document, Work
from computeapi.db.networks import EXTERNAL, NETWORKS
from computeapi.db.qos import POLICIES
from computeapi.db.rbac_policies import RBAC_POLICIES
from computeapi.db.subnet_pools import ADDRESS_SCOPES, SUBNET_POOLS

OBJECTS: Mapping[str, Collection] = {
    'address_scope': ADDRESS_SCOPES,
    'network': NETWORKS,
    'qos_policy': POLICIES,
    'subnetpool': SUBNET_POOLS,
}


def create(work: Work, facts: Document) -> str:
    project_id = network_projects.owner(work, facts)
    network_projects.reserve(work, project_id, 'rbac_policy')
    thing = OBJECTS[facts['object_type']].owned(work, facts['object_id'])
    _check_target(work, facts)
    if facts['action'] == EXTERNAL:
        _open(work, facts['object_type'], thing)
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
    if policy['action'] == EXTERNAL and not _targets(work, policy['object_id']):
        NETWORKS.update(work, policy['object_id'], {'router:external': False})


def _check_target(work: Work, facts: Document) -> None:
    if facts.get('target_tenant') == EVERYBODY and not work.context.is_admin:
        raise errors.Forbidden('rule:restrict_wildcard is disallowed by policy')


def _check_unused(work: Work, policy: Document) -> None:
    """Raises Conflict while the network has ports, or gateways, of other projects that may depend on the policy."""
    if policy['object_type'] != 'network':
        return
    network = NETWORKS.get(work, policy['object_id'])
    if policy['action'] == EXTERNAL:
        used = network['is_default'] and policy['target_tenant'] == EVERYBODY or _is_needed(work, policy)
    else:
        used = ports.network_has_foreign_ports(work, network['id'], network['project_id'])
    if used:
        raise errors.Conflict(f'RBAC policy on object {network["id"]} cannot be removed: other projects use it.')


def _is_needed(work: Work, policy: Document) -> bool:
    """Whether routers have gateways on the external network that no other policy opens to their projects."""
    target, network_id = policy['target_tenant'], policy['object_id']
    left = _targets(work, network_id) - {target}
    through = routers.projects_through(work, network_id)
    return EVERYBODY not in left and bool(through - left if target == EVERYBODY else through & {target})


def _targets(work: Work, network_id: str) -> set[str]:
    """The projects to which policies open the network as an external one."""
    found = RBAC_POLICIES.find(work.elevated(), object_id=network_id, action=EXTERNAL)
    return {policy['target_tenant'] for policy in found}


def _open(work: Work, kind: str, thing: Document) -> None:
    """Makes the network external, if it is not yet. If it is, and no policy says for whom, it is for everybody."""
    if kind != 'network':
        raise errors.Invalid(f'Invalid input for action. Reason: {EXTERNAL!r} is for networks only.')
    if not thing['router:external']:
        NETWORKS.update(work, thing['id'], {'router:external': True})
    elif not _targets(work, thing['id']):
        open_to_all(work, thing['id'], thing['project_id'])


def open_to_all(work: Work, network_id: str, project_id: str) -> None:
    """Adds the policy that opens an external network to everybody; it does not count against the quota."""
    known = {'object_type': 'network', 'object_id': network_id, 'action': EXTERNAL}
    RBAC_POLICIES.insert(work, {**known, 'target_tenant': EVERYBODY, 'project_id': project_id})
