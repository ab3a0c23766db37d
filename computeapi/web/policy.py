"""Who may do what: oslo.policy over the rules that operations and fields declare."""

import copy
import functools
import operator
import time
import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

from oslo_config import cfg
from oslo_policy import _checks
from oslo_policy import policy as oslo_policy
from stevedore.driver import DriverManager
from stevedore.named import NamedExtensionManager

from computeapi.context import Context
from computeapi.errors import Forbidden
from computeapi.web.contract import Operation, Policy

RELOAD_SECONDS = 1.0
MOST_ANSWERS = 10_000

CREDENTIALS = (
    'roles',
    'user_id',
    'project_id',
    'is_admin',
    'system_scope',
    'domain_id',
    'user_domain_id',
    'project_domain_id',
    'is_admin_project',
    'service_roles',
)
"""What rules can ask about a caller."""
FACTS = operator.attrgetter(*CREDENTIALS)

BASE_RULES = (
    ('context_is_admin', 'role:admin', 'Who is an administrator of the service.'),
    ('admin_or_owner', 'is_admin:True or project_id:%(project_id)s', 'Kept for older policy files.'),
    ('admin_api', 'is_admin:True', 'Kept for older policy files.'),
    ('project_manager_api', 'role:manager and project_id:%(project_id)s', 'A manager of the project.'),
    ('project_member_api', 'role:member and project_id:%(project_id)s', 'A member of the project.'),
    ('project_reader_api', 'role:reader and project_id:%(project_id)s', 'A reader of the project.'),
    ('service_api', 'role:service', 'Another service.'),
    ('project_manager_or_admin', 'rule:project_manager_api or rule:context_is_admin', 'A manager, or an admin.'),
    ('project_member_or_admin', 'rule:project_member_api or rule:context_is_admin', 'A member, or an admin.'),
    ('project_reader_or_admin', 'rule:project_reader_api or rule:context_is_admin', 'A reader, or an admin.'),
    ('service_or_admin', 'rule:service_api or rule:context_is_admin', 'Another service, or an admin.'),
)


KINDS = 'oslo.policy.rule_checks'
"""Where packages say which kinds of checks they have besides those that oslo.policy always knows."""


class KindsOfChecks(dict[str, Any]):
    """These kinds by their names, each of which is loaded for the first rule that asks for it.

    oslo.policy would load them all to read any rule: with `http` comes requests, a twentieth of a start and five MiB.
    """

    @functools.cached_property
    def known(self) -> list[str]:
        return NamedExtensionManager(KINDS, []).entry_points_names()

    def __contains__(self, kind: object) -> bool:
        return kind in self.known

    def __missing__(self, kind: str) -> Any:
        self[kind] = DriverManager(KINDS, kind).driver
        return self[kind]


_checks.extension_checks = KindsOfChecks()


class SharedRule(oslo_policy.DocumentedRuleDefault):
    """A rule whose parts all enforcers share: each enforcer copies its rules and changes none of what they hold.

    To copy all parts took a third of the time in which a Service is made.
    """

    def __deepcopy__(self, memo: dict[int, Any]) -> 'SharedRule':
        return copy.copy(self)


def defaults(operations: Iterable[Operation], also: Iterable[Policy] = ()) -> list[oslo_policy.RuleDefault]:
    """The rules with their defaults: the base ones, then one for each policy that is asked anywhere."""
    rules: list[oslo_policy.RuleDefault] = [
        oslo_policy.RuleDefault(name, check, description) for name, check, description in BASE_RULES
    ]
    return rules + [
        SharedRule(
            name=policy.name,
            check_str=policy.default,
            description=policy.description or policy.name,
            operations=uses,
            scope_types=['project'],
        )
        for policy, uses in _uses(operations, also).items()
    ]


def _uses(operations: Iterable[Operation], also: Iterable[Policy]) -> dict[Policy, list[Any]]:
    uses: dict[Policy, list[Any]] = {}
    for operation in operations:
        for policy in operation.policies:
            path = operation.path + (f' ({operation.action})' if operation.action else '')
            use = {'method': operation.method, 'path': path}
            if use not in uses.setdefault(policy, []):
                uses[policy].append(use)
    for policy in also:
        uses.setdefault(policy, [])
    return uses


class Rules(Protocol):
    """What an app asks about its callers."""

    def allows(self, context: Context, policy: Policy, target: Mapping[str, Any] | None = None) -> bool:
        """Whether the caller passes *policy* for a target, by default its own project."""

    def check(self, context: Context, policy: Policy, target: Mapping[str, Any] | None = None) -> None:
        """Forbidden if the caller does not pass."""


class Policies:
    """The rules in force: the defaults, overridden by the operator's policy.yaml.

    Answers are remembered for RELOAD_SECONDS, after which the files are looked at again.
    """

    def __init__(self, conf: cfg.ConfigOpts, rules: Sequence[oslo_policy.RuleDefault]):
        self.enforcer = oslo_policy.Enforcer(conf)
        self.enforcer.suppress_deprecation_warnings = True
        self.enforcer.register_defaults(rules)
        self.answers: dict[tuple[Any, ...], bool] = {}
        self.reload()

    def reload(self) -> None:
        """Read the operator's files if they changed; oslo.policy would look at them for every question."""
        with warnings.catch_warnings():
            warnings.simplefilter('ignore')
            self.enforcer.use_conf = True
            self.enforcer.load_rules()
        self.enforcer.use_conf = False
        self.answers = {}
        self.reload_at = time.monotonic() + RELOAD_SECONDS

    def allows(self, context: Context, policy: Policy, target: Mapping[str, Any] | None = None) -> bool:
        """Whether the caller passes *policy* for a target, by default its own project."""
        own = {'project_id': context.project_id, 'user_id': context.user_id}
        return self._answer(policy.name, context, target or own)

    def is_admin(self, context: Context) -> bool:
        return self._answer('context_is_admin', context, {})

    def _answer(self, rule: str, context: Context, target: Mapping[str, Any]) -> bool:
        if time.monotonic() > self.reload_at:
            self.reload()
        question = (rule, *FACTS(context), *target.items())
        answer = self.answers.get(question)
        if answer is None:
            facts = credentials(context)
            if len(self.answers) >= MOST_ANSWERS:
                self.answers = {}
            lists = {name: list(facts[name]) for name in ('roles', 'service_roles')}
            try:
                answer = bool(self.enforcer.authorize(rule, target, facts | lists))
            except oslo_policy.InvalidScope:
                answer = False
            self.answers[question] = answer
        return answer

    def check(self, context: Context, policy: Policy, target: Mapping[str, Any] | None = None) -> None:
        """Forbidden if the caller does not pass."""
        if not self.allows(context, policy, target):
            raise Forbidden(f"Policy doesn't allow {policy.name} to be performed.")


def credentials(context: Context) -> dict[str, Any]:
    """The caller in the words of oslo.policy."""
    return dict(zip(CREDENTIALS, FACTS(context), strict=True))
