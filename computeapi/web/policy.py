"""Authorization: oslo.policy with the rules that operations and fields declare."""

import copy
import functools
import logging
import operator
import threading
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

LOG = logging.getLogger(__name__)
UNREADABLE = (ValueError, TypeError, AttributeError)
"""The exceptions that oslo.policy raises for a file that contains no rules."""
RELOAD_SECONDS = 1.0
MAX_ANSWERS = 10_000

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
"""The facts about a caller that rules can use."""
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
"""The entry points of packages that add kinds of checks to those that oslo.policy always has."""


class KindsOfChecks(dict[str, Any]):
    """These kinds by name; each is loaded when a rule first uses it.

    oslo.policy would load all of them to read any rule; `http` imports requests, a twentieth of the startup time and
    five MiB.
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
    """A rule whose parts all enforcers share: each enforcer copies its rules, but never changes their contents.

    Copying all parts took a third of the time to create a Service.
    """

    def __deepcopy__(self, memo: dict[int, Any]) -> 'SharedRule':
        return copy.copy(self)


def defaults(operations: Iterable[Operation]) -> list[oslo_policy.RuleDefault]:
    """The rules with their defaults: the base rules, then one for each policy that is checked anywhere."""
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
        for policy, uses in _uses(operations).items()
    ]


def _uses(operations: Iterable[Operation]) -> dict[Policy, list[Any]]:
    uses: dict[Policy, list[Any]] = {}
    for operation in operations:
        for policy in operation.policies:
            path = operation.path + (f' ({operation.action})' if operation.action else '')
            use = {'method': operation.method, 'path': path}
            if use not in uses.setdefault(policy, []):
                uses[policy].append(use)
    return uses


class Rules(Protocol):
    """The checks that an app needs for its callers."""

    def allows(self, context: Context, policy: Policy, target: Mapping[str, Any] | None = None) -> bool:
        """Whether the caller passes *policy* for a target, by default its own project."""

    def check(self, context: Context, policy: Policy, target: Mapping[str, Any] | None = None) -> None:
        """Forbidden if the caller does not pass."""


class Policies:
    """The rules in force: the defaults, overridden by the operator's policy.yaml.

    Results are cached for RELOAD_SECONDS, after which the files are checked for changes.
    """

    def __init__(self, conf: cfg.ConfigOpts, rules: Sequence[oslo_policy.RuleDefault]):
        self.enforcer = oslo_policy.Enforcer(conf)
        self.enforcer.suppress_deprecation_warnings = True
        self.enforcer.register_defaults(rules)
        self.answers: dict[tuple[Any, ...], bool] = {}
        self.reloading = threading.Lock()
        self.reload()

    def reload(self) -> None:
        """Read the operator's files if they have changed; oslo.policy would check for changes at every call. cfg.Error
        if they cannot be read, in which case the previous rules stay in force."""
        self.reload_at = time.monotonic() + RELOAD_SECONDS
        # Other threads use the previous enforcer meanwhile: while it loads a file, oslo.policy has no defaults.
        enforcer = copy.copy(self.enforcer)
        with warnings.catch_warnings():
            warnings.simplefilter('ignore')
            enforcer.use_conf = True
            try:
                enforcer.load_rules()
            except UNREADABLE as error:
                reason = ' '.join(str(error).split())
                raise cfg.ConfigFileValueError(f'[oslo_policy]policy_file: no valid rules: {reason}') from None
        enforcer.use_conf = False
        self.enforcer, self.answers = enforcer, {}

    def allows(self, context: Context, policy: Policy, target: Mapping[str, Any] | None = None) -> bool:
        """Whether the caller passes *policy* for a target, by default its own project."""
        own = {'project_id': context.project_id, 'user_id': context.user_id}
        return self._answer(policy.name, context, target or own)

    def is_admin(self, context: Context) -> bool:
        return self._answer('context_is_admin', context, {})

    def _answer(self, rule: str, context: Context, target: Mapping[str, Any]) -> bool:
        if time.monotonic() > self.reload_at and self.reloading.acquire(blocking=False):
            try:
                self.reload()
            except cfg.Error as error:
                LOG.error('The previous policy rules stay in force: %s', error)
            finally:
                self.reloading.release()
        enforcer, answers = self.enforcer, self.answers
        question = (rule, *FACTS(context), *target.items())
        answer = answers.get(question)
        if answer is None:
            facts = credentials(context)
            if len(answers) >= MAX_ANSWERS:
                answers = self.answers = {}
            lists = {name: list(facts[name]) for name in ('roles', 'service_roles')}
            try:
                answer = bool(enforcer.authorize(rule, target, facts | lists))
            except oslo_policy.InvalidScope:
                answer = False
            answers[question] = answer
        return answer

    def check(self, context: Context, policy: Policy, target: Mapping[str, Any] | None = None) -> None:
        """Forbidden if the caller does not pass."""
        if not self.allows(context, policy, target):
            raise Forbidden(f"Policy doesn't allow {policy.name} to be performed.")


def credentials(context: Context) -> dict[str, Any]:
    """The caller in the form that oslo.policy expects."""
    return dict(zip(CREDENTIALS, FACTS(context), strict=True))
