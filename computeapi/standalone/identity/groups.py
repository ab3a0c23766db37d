"""Groups of users: each member has the roles of the group."""

from typing import Any

from computeapi.backends.identity.local.projects import DEFAULT_DOMAIN
from computeapi.standalone.access import RoleRule
from computeapi.standalone.identity.access import ANY_CALLER, DOMAIN_MANAGER, DOMAIN_READER, in_own_domain
from computeapi.standalone.identity.base import (
    ID,
    OBJECT,
    SHORT_NAME,
    TEXT,
    KeystoneCollection,
    KeystoneController,
    Noun,
    collection,
    filters,
    shown,
)
from computeapi.standalone.identity.users import user_view
from computeapi.web.controller import operation
from computeapi.web.request import Request

PROPERTIES = {'name': SHORT_NAME, 'domain_id': ID, 'description': TEXT}


class KeystoneGroups(KeystoneCollection):
    path = '/groups'
    kind = 'groups'
    noun = Noun('group', PROPERTIES, ('name',), ('name', 'domain_id'), ('domain_id',))
    revealing = ('DELETE',)

    @operation('GET', policy=DOMAIN_READER)
    def list(self, req: Request) -> dict[str, Any]:
        found = self.manager.list(**filters(req, *self.noun.filters))
        return collection(req, self.kind, in_own_domain(req, found), self.view)

    @operation('POST', policy=DOMAIN_MANAGER, body=OBJECT, status=201)
    def create(self, req: Request, body: Any) -> dict[str, Any]:
        values = self.noun.new(body)
        req.check(DOMAIN_MANAGER, {'group': values.get('domain_id')})
        place = {'domain_id': req.context.domain_id or DEFAULT_DOMAIN}
        return self.single(req, self.manager.create(**place | values))

    @operation('GET', '/{record_id}', policy=DOMAIN_READER)
    def show(self, req: Request, record_id: str) -> dict[str, Any]:
        self.check_domain(req, DOMAIN_READER, record_id)
        return super().show(req, record_id)

    @operation('PATCH', '/{record_id}', policy=DOMAIN_MANAGER, body=OBJECT)
    def update(self, req: Request, record_id: str, body: Any) -> dict[str, Any]:
        self.check_domain(req, DOMAIN_MANAGER, record_id)
        return super().update(req, record_id, body)

    @operation('DELETE', '/{record_id}', policy=DOMAIN_MANAGER, status=204)
    def delete(self, req: Request, record_id: str) -> None:
        self.check_domain(req, DOMAIN_MANAGER, record_id)
        super().delete(req, record_id)

    @operation('GET', '/{group_id}/users', policy=DOMAIN_READER)
    def members(self, req: Request, group_id: str) -> dict[str, Any]:
        self.check_domain(req, DOMAIN_READER, group_id)
        return collection(req, 'users', in_own_domain(req, self.identity.groups.members(group_id)), user_view)

    @operation('PUT', '/{group_id}/users/{user_id}', policy=DOMAIN_MANAGER, status=204)
    def add_member(self, req: Request, group_id: str, user_id: str) -> None:
        self.check_domain(req, DOMAIN_MANAGER, group_id, user_id)
        self.identity.groups.add_member(group_id, user_id)

    @operation('GET', '/{group_id}/users/{user_id}', policy=DOMAIN_READER, status=204)
    def check_member(self, req: Request, group_id: str, user_id: str) -> None:
        self.check_domain(req, DOMAIN_READER, group_id, user_id)
        self.identity.groups.check_member(group_id, user_id)

    @operation('DELETE', '/{group_id}/users/{user_id}', policy=DOMAIN_MANAGER, status=204)
    def remove_member(self, req: Request, group_id: str, user_id: str) -> None:
        self.check_domain(req, DOMAIN_MANAGER, group_id, user_id)
        self.identity.groups.remove_member(group_id, user_id)

    def check_domain(self, req: Request, policy: RoleRule, group_id: str, user_id: str | None = None) -> None:
        """Check the rule for the domain of the group, and of the user if one is given."""
        target = {'group': self.domain_of('groups', group_id)}
        req.check(policy, target if user_id is None else target | {'user': self.domain_of('users', user_id)})


class GroupsOfUser(KeystoneController):
    path = '/users/{user_id}/groups'

    @operation('GET', policy=ANY_CALLER)
    def list(self, req: Request, user_id: str) -> dict[str, Any]:
        self.require_self_or_domain_reader(req, user_id)
        self.identity.users.get(user_id)
        found = in_own_domain(req, self.identity.groups.of_user(user_id))
        return collection(req, 'groups', found, lambda req, group: shown(req, 'groups', group, PROPERTIES))
