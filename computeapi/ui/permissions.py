"""What the page needs to know of the logged-in user, besides what the cloud responds."""

from collections.abc import Mapping
from contextlib import suppress
from typing import Any, NamedTuple

from computeapi import api
from computeapi.api.servers import DETAIL_EVERYWHERE, LIST_DETAIL
from computeapi.backends.identity.local import LocalIdentity
from computeapi.backends.registry import built_in
from computeapi.context import Context
from computeapi.errors import NotAuthenticated, NotFound
from computeapi.main import Service


class ChangeScope(NamedTuple):
    """The servers of a project, or of all (None)."""

    project_id: str | None


class PagePermissions:
    """The users of tokens, and what the policy rules allow them."""

    def __init__(self, service: Service):
        self.service = service
        self.rules = {rule.name: rule for operation in api.operations() for rule in operation.policies}

    def of(self, token: str) -> Context:
        """The context of a token; NotAuthenticated if the token is not valid (any more)."""
        found = self.service.identity.authenticate(token)
        return found.of_request(self.service.policies.is_admin(found), None, None)

    def rights(self, token: str, target: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """`refused`: the rules that the user does not pass for a target, by default their own project.  `all`: whether
        the user may list the servers of all projects.  `admin`: whether locks do not apply to the user. Raises
        NotAuthenticated."""
        context = self.of(token)
        allows = self.service.policies.allows
        refused = sorted(name for name, rule in self.rules.items() if not allows(context, rule, target))
        return {'refused': refused, 'all': self.sees_all(context), 'admin': context.is_admin}

    def is_administrator(self, user: str, project: str) -> bool:
        """Whether a user of the built-in identity is an administrator in a project, both by name. This does not depend
        on a token, because the control API can make tokens expire, and must be able to undo that."""
        identity = built_in('identity', LocalIdentity, self.service.identity)
        with suppress(NotFound, NotAuthenticated):
            return self.service.policies.is_admin(identity.acting_as(user, project))
        return False

    def sees_all(self, context: Context) -> bool:
        """Whether the user may list the servers of all projects."""
        return self.service.policies.allows(context, DETAIL_EVERYWHERE)

    def change_scope(self, token: str) -> ChangeScope | None:
        """Which servers the user is notified of: those that they may list; None if there are none. Raises
        NotAuthenticated."""
        context = self.of(token)
        if self.sees_all(context):
            return ChangeScope(None)
        is_allowed = self.service.policies.allows(context, LIST_DETAIL)
        return ChangeScope(context.project_id) if is_allowed and context.project_id is not None else None
