"""RBAC policies: sharing networks, QoS policies, subnet pools and address scopes with one project or all."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from computeapi import errors
from computeapi.context import Context
from computeapi.db import network_projects, rbac_policies, routers
from computeapi.db.network_collection import ACCESS_AS_SHARED, EVERYBODY, Collection, Document, Work
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
    objects = OBJECTS[facts['object_type']]
    objects.lock(work, facts['object_id'])
    thing = objects.get(work, facts['object_id'])
    _check_owned(work, thing)
    _check_target(work, facts)
    if facts['action'] == EXTERNAL:
        _open(work, facts['object_type'], thing)
    elif facts['object_type'] == 'subnetpool':
        _check_scope(work, thing, facts['target_tenant'])
    known = {name: facts[name] for name in ('object_id', 'action')}
    if RBAC_POLICIES.find(work.elevated(), **known, target_project=facts['target_tenant']):
        raise errors.Conflict('An RBAC policy already exists with those values.')
    _revise(work, facts, shared=True)
    return RBAC_POLICIES.insert(work, {**facts, 'project_id': project_id})


def update(work: Work, policy_id: str, facts: Document) -> None:
    policy, is_for_all = _held(work, policy_id)
    _check_target(work, facts)
    target = facts.get('target_tenant', policy['target_tenant'])
    if not is_for_all and target not in (EVERYBODY, policy['target_tenant']):
        # As in Neutron, whom an external network is to be opened to instead may use it already.
        _check_unused(work, policy, {str(target)} if policy['action'] == EXTERNAL else ())
    _revise(work, policy, shared=False)
    _revise(work, policy | facts, shared=True)
    RBAC_POLICIES.update(work, policy_id, facts)


def delete(work: Work, policy_id: str) -> None:
    policy, is_for_all = _held(work, policy_id)
    if not is_for_all:
        _check_unused(work, policy)
    _revise(work, policy, shared=False)
    RBAC_POLICIES.delete(work, id=policy_id)
    if policy['action'] == EXTERNAL and not _targets(work, policy['object_id'], EXTERNAL):
        NETWORKS.update(work, policy['object_id'], {'router:external': False})


def insert(work: Work, object_type: str, facts: Document) -> str:
    """Insert a thing, and the policy that shares it with everybody if it is `shared`; returns its ID."""
    thing_id = OBJECTS[object_type].insert(work, facts)
    follow(work, object_type, {'id': thing_id, 'project_id': facts['project_id']}, facts)
    return thing_id


def follow(work: Work, object_type: str, thing: Document, facts: Document) -> None:
    """Adds or deletes the policy that shares a locked thing with everybody, if `facts` set the attribute `shared`.
    Raises Conflict while other projects need the policy."""
    known = {'object_id': thing['id'], 'action': ACCESS_AS_SHARED}
    if facts.get('shared') and EVERYBODY not in _targets(work, **known):
        give_to_all(work, object_type, thing, ACCESS_AS_SHARED)
    elif facts.get('shared') is False and thing.get('shared'):
        _check_unused(work, {**known, 'object_type': object_type, 'target_tenant': EVERYBODY})
        RBAC_POLICIES.delete(work, **known, target_project=EVERYBODY)


def give_to_all(work: Work, object_type: str, thing: Document, action: str) -> None:
    """Adds the policy for everybody; it does not count against the quota."""
    known = {'object_type': object_type, 'object_id': thing['id'], 'action': action}
    RBAC_POLICIES.insert(work, {**known, 'target_tenant': EVERYBODY, 'project_id': thing['project_id']})


def _held(work: Work, policy_id: str) -> tuple[Document, bool]:
    """The policy, and whether its object is shared with everybody without it. Locks the object and then the policy."""
    policy = RBAC_POLICIES.get(work, policy_id)
    (is_for_all,) = OBJECTS[policy['object_type']].lock(work.elevated(), policy['object_id'], 'shared')
    shared_anyway = is_for_all and not _is_for_all(policy) and policy['action'] == ACCESS_AS_SHARED
    return RBAC_POLICIES.owned(work, policy_id), shared_anyway


def _is_for_all(policy: Document) -> bool:
    return bool(policy['target_tenant'] == EVERYBODY)


def _check_owned(work: Work, document: Document) -> None:
    if not work.context.is_admin and document['project_id'] != work.context.project_id:
        raise errors.Invalid(
            'Invalid input for operation: Only admins can manipulate policies on objects they do not own.'
        )


def _check_target(work: Work, facts: Document) -> None:
    if facts.get('target_tenant') == EVERYBODY and not work.context.is_admin:
        raise errors.Forbidden('rule:restrict_wildcard is disallowed by policy')


def _check_scope(work: Work, pool: Document, target: str) -> None:
    """Raises Invalid if those with whom a subnet pool would be shared cannot see its address scope."""
    scope_id, theirs = pool['address_scope_id'], replace(work, context=Context(project_id=target))
    if scope_id is not None and not ADDRESS_SCOPES.find(theirs, id=scope_id):
        raise errors.Invalid(
            f'Failed to create RBAC policy on object {pool["id"]} because project {target} has no access to its '
            f'address scope {scope_id}.'
        )


def _check_unused(work: Work, policy: Document, allowed: Iterable[str] = ()) -> None:
    """Raises Conflict while something that a project has, other than the allowed ones, depends on the policy."""
    kind, object_id, target = policy['object_type'], policy['object_id'], policy['target_tenant']
    thing = OBJECTS[kind].get(work.elevated(), object_id)
    if policy['action'] == EXTERNAL:
        users = routers.projects_through(work, object_id)
        is_needed = thing['is_default'] and target == EVERYBODY
    else:
        users, is_needed = rbac_policies.users(work, kind, object_id) - {''}, False
        if kind == 'network' or target == thing['project_id']:
            users.discard(thing['project_id'])
    others = _targets(work, object_id, policy['action']).union(allowed) - {target}
    if EVERYBODY not in others:
        is_needed = is_needed or bool(users - others if target == EVERYBODY else users & {target})
    if is_needed:
        raise errors.Conflict(
            f'RBAC policy on object {object_id} cannot be removed because other objects depend on it.'
        )


def _targets(work: Work, object_id: str, action: str) -> set[str]:
    """The projects to which policies with this action give the object."""
    found = RBAC_POLICIES.find(work.elevated(), object_id=object_id, action=action)
    return {policy['target_tenant'] for policy in found}


def _open(work: Work, kind: str, thing: Document) -> None:
    """Makes the network external, if it is not yet. If it is, and no policy says for whom, it is for everybody."""
    if kind != 'network':
        raise errors.Invalid(f'Invalid input for action. Reason: {EXTERNAL!r} is for networks only.')
    if not thing['router:external']:
        NETWORKS.update(work, thing['id'], {'router:external': True})
    elif not _targets(work, thing['id'], EXTERNAL):
        give_to_all(work, kind, thing, EXTERNAL)


def _revise(work: Work, policy: Document, *, shared: bool) -> None:
    """Sets the attribute `shared` with a policy for everybody; each policy counts as a part of its network."""
    facts = {'shared': shared} if policy['action'] == ACCESS_AS_SHARED and _is_for_all(policy) else {}
    if facts or policy['object_type'] == 'network':
        OBJECTS[policy['object_type']].update(work, policy['object_id'], facts)
