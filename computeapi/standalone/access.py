"""Access rules of the built-in services: each operation names the rule that the caller's roles must pass."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from computeapi.context import WRITERS, Context
from computeapi.errors import Forbidden
from computeapi.web.contract import Policy


@dataclass(frozen=True, eq=False)
class RoleRule(Policy):
    """A rule that administrators pass, and callers with one of these roles; None: everybody.

    system_roles: roles that count when they are held on the system.
    """

    default: str = ''
    roles: frozenset[str] | None = None
    system_roles: frozenset[str] = frozenset()


ANYBODY = RoleRule('anybody', description='Also who has no token: none is looked at.')
CALLER = RoleRule('caller', description='Whoever has a token.')
ADMIN = RoleRule('admin', roles=frozenset())
SYSTEM_READER = RoleRule('system_reader', roles=frozenset(), system_roles=frozenset({'reader'}))
WRITER = RoleRule('writer', roles=WRITERS, description='Not who may only read.')


class RoleRules:
    """The counterpart of compute's Policies; operators cannot override these rules."""

    def allows(self, context: Context, policy: Policy, target: Mapping[str, Any] | None = None) -> bool:
        """Whether the caller passes."""
        if context.is_admin or not isinstance(policy, RoleRule):
            return context.is_admin
        roles = policy.roles
        if roles is not None and context.system_scope:
            roles |= policy.system_roles
        return roles is None or not roles.isdisjoint(context.roles)

    def check(self, context: Context, policy: Policy, target: Mapping[str, Any] | None = None) -> None:
        """Raises Forbidden if the caller does not pass."""
        require(self.allows(context, policy))


def require(allowed: bool) -> None:
    """Raises Forbidden if not allowed."""
    if not allowed:
        raise Forbidden('You are not authorized to perform the requested action.')
