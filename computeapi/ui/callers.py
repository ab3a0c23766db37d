"""What the page has to know of who is logged in, besides what the cloud answers them."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from computeapi import api
from computeapi.api.servers import DETAIL_EVERYWHERE, LIST_DETAIL
from computeapi.context import Context
from computeapi.main import Service


class NewsReach(NamedTuple):
    """The servers of a project, or of all (None)."""

    project_id: str | None


class PageCallers:
    """Who is behind a token, and what the rules in force let them do."""

    def __init__(self, service: Service):
        self.service = service
        self.rules = {rule.name: rule for operation in api.operations() for rule in operation.policies}

    def of(self, token: str) -> Context:
        """NotAuthenticated for a token that is good for nothing (any more)."""
        found = self.service.identity.authenticate(token)
        return found.of_request(self.service.policies.is_admin(found), None, None)

    def rights(self, token: str, target: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """`refused`: the rules that they do not pass for a target, by default their own project.  `all`: whether the
        servers of all projects are theirs to list.  `admin`: whether locks hold them. NotAuthenticated."""
        context = self.of(token)
        allows = self.service.policies.allows
        refused = sorted(name for name, rule in self.rules.items() if not allows(context, rule, target))
        return {'refused': refused, 'all': self.sees_all(context), 'admin': context.is_admin}

    def sees_all(self, context: Context) -> bool:
        """Whether the servers of all projects are theirs to list."""
        return self.service.policies.allows(context, DETAIL_EVERYWHERE)

    def hears(self, token: str) -> NewsReach | None:
        """Of whose servers they hear: those that they may list; None if there are none. NotAuthenticated."""
        context = self.of(token)
        if self.sees_all(context):
            return NewsReach(None)
        is_let = self.service.policies.allows(context, LIST_DETAIL)
        return NewsReach(context.project_id) if is_let and context.project_id is not None else None
