"""Groups of users: each member has the roles of the group."""

from typing import Any

from computeapi.standalone.access import ADMIN, CALLER, SYSTEM_READER
from computeapi.standalone.identity.base import (
    ID,
    SHORT_NAME,
    TEXT,
    KeystoneCollection,
    KeystoneController,
    Noun,
    collection,
    require_self_or_reader,
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

    @operation('GET', '/{group_id}/users', policy=SYSTEM_READER)
    def members(self, req: Request, group_id: str) -> dict[str, Any]:
        return collection(req, 'users', self.identity.groups.members(group_id), user_view)

    @operation('PUT', '/{group_id}/users/{user_id}', policy=ADMIN, status=204)
    def add_member(self, req: Request, group_id: str, user_id: str) -> None:
        self.identity.groups.add_member(group_id, user_id)

    @operation('GET', '/{group_id}/users/{user_id}', policy=SYSTEM_READER, status=204)
    def check_member(self, req: Request, group_id: str, user_id: str) -> None:
        self.identity.groups.check_member(group_id, user_id)

    @operation('DELETE', '/{group_id}/users/{user_id}', policy=ADMIN, status=204)
    def remove_member(self, req: Request, group_id: str, user_id: str) -> None:
        self.identity.groups.remove_member(group_id, user_id)


class GroupsOfUser(KeystoneController):
    path = '/users/{user_id}/groups'

    @operation('GET', policy=CALLER)
    def list(self, req: Request, user_id: str) -> dict[str, Any]:
        require_self_or_reader(req, user_id)
        self.identity.users.get(user_id)
        found = self.identity.groups.of_user(user_id)
        return collection(req, 'groups', found, lambda req, group: shown(req, 'groups', group, PROPERTIES))
