"""Who may do what in the identity service.

As in Keystone, an administrator of any project is one of the whole cloud. A token for a domain is good for what can be
in a domain only, and its lists are of that domain.
"""

from collections.abc import Iterable
from typing import TypeVar

from computeapi.db.identity import Token
from computeapi.standalone.access import RoleRule, require
from computeapi.web.request import Request

R = TypeVar('R')
NONE: frozenset[str] = frozenset()
READER = frozenset({'reader'})
MANAGER = frozenset({'manager'})
MANAGED_ROLES = frozenset({'manager', 'member', 'reader'})
"""The names of the roles that managers of a domain may see and grant."""

ANY_CALLER = RoleRule('any_caller', description='Whoever has a token.', on_domains=True)
CLOUD_READER = RoleRule('cloud_reader', roles=NONE, system_roles=READER)
SYSTEM_READER = RoleRule('system_reader', roles=NONE, system_roles=READER, on_domains=True)
DOMAIN_READER = RoleRule('domain_reader', roles=NONE, system_roles=READER, domain_roles=READER, on_domains=True)
DOMAIN_MANAGER = RoleRule('domain_manager', roles=NONE, domain_roles=MANAGER, on_domains=True)
ROLE_READER = RoleRule('role_reader', roles=NONE, system_roles=READER, domain_roles=MANAGER, on_domains=True)


def require_self(req: Request, user_id: str | None) -> None:
    """Allows users themselves, and administrators."""
    require(req.context.is_admin or req.context.user_id == user_id)


def require_self_or_reader(req: Request, user_id: str | None) -> None:
    """Allows users themselves, and readers of the system."""
    require(req.allows(SYSTEM_READER) or req.context.user_id == user_id)


def require_direct(token: Token) -> None:
    """Forbidden for a trust: the trustee could keep what it sees and makes."""
    require(token.trust_id is None)


def in_own_domain(req: Request, records: Iterable[R]) -> list[R]:
    """All of them, or with a token for a domain only those in that domain."""
    own = req.context.domain_id
    return [each for each in records if own is None or getattr(each, 'domain_id', None) == own]
