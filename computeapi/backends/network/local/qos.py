"""Rules for QoS policies and their rules."""

from computeapi import errors
from computeapi.backends.network.local import rbac_policies
from computeapi.db import network_projects, qos
from computeapi.db.network_collection import Document, Work
from computeapi.db.qos import POLICIES, POLICY_RULES
from computeapi.db.rbac_policies import forget


def create(work: Work, facts: Document) -> str:
    _check_rights(work)
    project_id = network_projects.owner(work, facts)
    network_projects.lock_project(work, project_id)
    _check_default(work, project_id, facts)
    return rbac_policies.insert(work, 'qos_policy', {**facts, 'project_id': project_id})


def hold_project(work: Work, policy_id: str, facts: Document | None = None) -> None:
    """Locks the project before the policy, in the same order as the creation of networks that get the policy."""
    network_projects.lock_project(work, POLICIES.get(work, policy_id)['project_id'])


def update(work: Work, policy_id: str, facts: Document) -> None:
    hold_project(work, policy_id)
    policy = _owned(work, policy_id)
    _check_default(work, policy['project_id'], facts, policy_id)
    rbac_policies.follow(work, 'qos_policy', policy, facts)
    POLICIES.update(work, policy_id, facts)


def delete(work: Work, policy_id: str) -> None:
    _owned(work, policy_id)
    if qos.policy_is_used(work, policy_id):
        raise errors.QosPolicyInUse(id=policy_id)
    forget(work, policy_id)
    POLICIES.delete(work, id=policy_id)


def _check_default(work: Work, project_id: str, facts: Document, policy_id: str = '') -> None:
    """A project has at most one default policy."""
    other = qos.default_policy(work, project_id, but=policy_id) if facts.get('is_default') else None
    if other is not None:
        raise errors.Conflict(f'A default QoS policy exists for project {project_id}: {other}.')


def check_policy(work: Work, facts: Document, before: Document | None = None) -> None:
    """Raises QosPolicyNotFound if the policy to use does not exist; locks it until the transaction ends.

    before: the resource that is changed; Forbidden if its policy would be replaced and the caller cannot see that
    policy.
    """
    former = before and before['qos_policy_id']
    if former and facts.get('qos_policy_id', former) != former and not POLICIES.find(work, id=former):
        raise errors.Forbidden(f'Unable to remove provided policy {former} because you are not authorized.')
    if facts.get('qos_policy_id') is not None:
        POLICIES.lock(work, facts['qos_policy_id'])


def default_policy(work: Work, project_id: str) -> Document:
    """The default attributes of the project's new networks."""
    return {'qos_policy_id': qos.default_policy(work, project_id)}


def create_rule(work: Work, facts: Document) -> str:
    """A policy has at most one rule of each type for each direction."""
    _check_rights(work)
    policy = POLICIES.owned(work, facts['qos_policy_id'])
    _check_only(policy, facts)
    POLICIES.update(work, policy['id'], {})
    return POLICY_RULES.insert(work, {**facts, 'project_id': policy['project_id']})


def update_rule(work: Work, rule_id: str, facts: Document) -> None:
    rule = POLICY_RULES.get(work, rule_id)
    _check_only(_owned(work, rule['qos_policy_id']), {**rule, **facts})
    POLICIES.update(work, rule['qos_policy_id'], {})
    POLICY_RULES.update(work, rule_id, facts)


def delete_rule(work: Work, rule_id: str) -> None:
    policy_id = POLICY_RULES.get(work, rule_id)['qos_policy_id']
    _owned(work, policy_id)
    POLICIES.update(work, policy_id, {})
    POLICY_RULES.delete(work, id=rule_id)


def _owned(work: Work, policy_id: str) -> Document:
    """The policy, locked; Forbidden unless the caller is an administrator."""
    policy = POLICIES.owned(work, policy_id)
    _check_rights(work)
    return policy


def _check_rights(work: Work) -> None:
    """Only administrators manage policies."""
    if not work.context.is_admin:
        raise errors.Forbidden('rule:admin_only is disallowed by policy')


def _check_only(policy: Document, rule: Document) -> None:
    wanted = (rule['type'], rule.get('direction', ''))
    for other in policy['rules']:
        if (other['type'], other.get('direction', '')) == wanted and other['id'] != rule.get('id'):
            raise errors.Conflict(f'QoS policy {policy["id"]} already has such a rule: {other["id"]}.')
