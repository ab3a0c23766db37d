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

    system_roles: roles that count when they are held on the system.  domain_roles: roles that count when they are held
    on the domain that the request is about.  on_domains: whether tokens for a domain pass at all.
    """

    default: str = ''
    roles: frozenset[str] | None = None
    system_roles: frozenset[str] = frozenset()
    domain_roles: frozenset[str] = frozenset()
    on_domains: bool = False


ANYBODY = RoleRule('anybody', description='Also who has no token: none is looked at.', on_domains=True)
CALLER = RoleRule('caller', description='Whoever has a token that is not for a domain.')
ADMIN = RoleRule('admin', roles=frozenset())
WRITER = RoleRule('writer', roles=WRITERS, description='Not who may only read.')


class RoleRules:
    """The counterpart of compute's Policies; operators cannot override these rules.

    on_system: whether tokens for the system pass at all.
    """

    def __init__(self, on_system: bool = True):
        self.on_system = on_system

    def allows(self, context: Context, policy: Policy, target: Mapping[str, Any] | None = None) -> bool:
        """Whether the caller passes. target: the domains of all that the request is about, None for what is in none; if
        it is left out, the role on any domain counts."""
        if not isinstance(policy, RoleRule):
            return context.is_admin
        if (context.domain_id and not policy.on_domains) or (context.system_scope and not self.on_system):
            return False
        if context.is_admin or policy.roles is None:
            return True
        roles = policy.roles
        if context.system_scope:
            roles |= policy.system_roles
        if context.domain_id and all(each == context.domain_id for each in (target or {}).values()):
            roles |= policy.domain_roles
        return not roles.isdisjoint(context.roles)

    def check(self, context: Context, policy: Policy, target: Mapping[str, Any] | None = None) -> None:
        """Raises Forbidden if the caller does not pass."""
        require(self.allows(context, policy, target))


def require(allowed: bool) -> None:
    """Raises Forbidden if not allowed."""
    if not allowed:
        raise Forbidden('You are not authorized to perform the requested action.')
