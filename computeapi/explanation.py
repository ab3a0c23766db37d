"""`computeapi explain policy`: the rules that an operation checks, how they evaluate, and whether a caller passes."""

import argparse
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, TextIO

from oslo_config import cfg
from oslo_policy import _checks as checks

from computeapi import api
from computeapi.backends.identity.local.roles import IMPLIES
from computeapi.context import Context
from computeapi.kit.operations import name_of, operation_meant
from computeapi.web.contract import Operation, Policy
from computeapi.web.policy import Policies, credentials

OWN, OTHER = 'the-project', 'another-project'
USER, OTHER_USER = 'the-user', 'another-user'
INDENT = '    '
Facts = Mapping[str, Any]


def add(command: argparse.ArgumentParser) -> None:
    """The arguments of `computeapi explain`."""
    command.add_argument('what', choices=['policy'])
    command.add_argument('operation', nargs='+', metavar='OPERATION', help='as `computeapi routes` prints it')
    command.add_argument(
        '--role', action='append', default=[], metavar='ROLE', help='a role of the caller; implied roles are added'
    )
    whose = command.add_mutually_exclusive_group()
    whose.add_argument(
        '--project-owner',
        action='store_true',
        help="the request is for a resource of the caller's own project (default)",
    )
    whose.add_argument(
        '--other-project', action='store_true', help='the request is for a resource of another project and user'
    )
    command.add_argument('--system', action='store_true', help='the token is system-scoped, and not for a project')


def explain(conf: cfg.ConfigOpts, options: argparse.Namespace, out: TextIO) -> int:
    """Print the explanation; returns 0 if the caller may, else 1. Invalid for an unknown operation."""
    found = list(_operations(' '.join(options.operation)))
    policies = Policies(conf, api.rules())
    roles = frozenset(_implied(role.lower() for role in options.role))
    scope: dict[str, Any] = {'system_scope': 'all'} if options.system else {'project_id': OWN}
    context = Context(user_id=USER, roles=roles, **scope)
    context = replace(context, is_admin=policies.is_admin(context))
    other = options.other_project
    target = {'project_id': OTHER if other else OWN, 'user_id': OTHER_USER if other else USER}
    where = 'with system scope' if options.system else 'in a project'
    about = 'another project' if other or options.system else 'the same project'
    print(f'Caller: {_listed(roles)}, {where}. Target: {about}.', file=out)
    return max([_explain(each, policies, context, target, out) for each in found])


def _operations(wanted: str) -> Iterator[Operation]:
    meant = operation_meant(wanted, 'compute')
    found = [each for each in api.operations() if meant(_name(each))]
    named: dict[tuple[str, tuple[Policy, ...]], Operation] = {}
    for each in found:
        # Handlers of one operation for different versions are listed once if they check the same rules.
        named.setdefault((_name(each), tuple(each.policies)), each)
    yield from named.values()


def _name(operation: Operation) -> str:
    return name_of(operation.method, operation.path, operation.action)


def _implied(roles: Iterable[str]) -> Iterator[str]:
    """These roles and those that they imply, by Keystone's default rules."""
    for role in roles:
        yield role
        if role in IMPLIES:
            yield from _implied([IMPLIES[role]])


def _listed(roles: Iterable[str]) -> str:
    return f'roles {", ".join(sorted(roles))}' if roles else 'no roles'


def _explain(operation: Operation, policies: Policies, context: Context, target: Facts, out: TextIO) -> int:
    print(f'\n{_name(operation)}, {operation.min} to {operation.max}', file=out)
    if not operation.policies:
        print(f'{INDENT}No rule is checked.', file=out)
    for policy in operation.policies:
        when = '' if policy is operation.policy else ', checked only if it applies'
        allowed = policies.allows(context, policy, target)
        print(f'{INDENT}{policy}: {"allowed" if allowed else "refused"}{when}', file=out)
        source = 'from the policy file' if policy.name in policies.enforcer.file_rules else 'the default'
        for line in _resolved(policies, policies.enforcer.rules[policy.name], _caller(context), target):
            print(f'{INDENT * 2}{line}', file=out)
        print(f'{INDENT * 2}({source})', file=out)
        if not allowed and _holds(policies, policies.enforcer.rules[policy.name], _caller(context), target):
            print(f'{INDENT * 2}but a system-scoped token is not valid for a project', file=out)
    needed = [operation.policy] if operation.policy else []
    return int(not all(policies.allows(context, policy, target) for policy in needed))


def _caller(context: Context) -> dict[str, Any]:
    facts = credentials(context)
    return facts | {name: sorted(facts[name]) for name in ('roles', 'service_roles')}


def _resolved(policies: Policies, check: Any, caller: Facts, target: Facts) -> Iterator[str]:
    """A check and, below it, what it refers to, each with whether it holds."""
    yield f'{check}: {"yes" if _holds(policies, check, caller, target) else "no"}'
    for part in _parts(policies, check):
        yield from (f'{INDENT}{line}' for line in _resolved(policies, part, caller, target))


def _parts(policies: Policies, check: Any) -> list[Any]:
    if isinstance(check, checks.RuleCheck):
        rule = policies.enforcer.rules.get(check.match)
        return [] if rule is None else [rule]
    if isinstance(check, checks.NotCheck):
        return [check.rule]
    if isinstance(check, checks.AndCheck | checks.OrCheck):
        return list(check.rules)
    return []


def _holds(policies: Policies, check: Any, caller: Facts, target: Facts) -> bool:
    return bool(check(dict(target), dict(caller), policies.enforcer))
