"""Server groups: servers that should share a host, or avoid doing so."""

from collections.abc import Mapping
from typing import Any

from computeapi import randomness
from computeapi.compute.notifications.outbox import Outbox
from computeapi.compute.notifications.server_groups import of_creation, of_deletion
from computeapi.compute.quotas import Quotas
from computeapi.context import Context
from computeapi.db import server_groups
from computeapi.db.engine import Store
from computeapi.db.server_groups import ServerGroup
from computeapi.errors import Invalid, ServerGroupNotFound

AFFINITY, ANTI_AFFINITY = 'affinity', 'anti-affinity'
SOFT_AFFINITY, SOFT_ANTI_AFFINITY = 'soft-affinity', 'soft-anti-affinity'


class ServerGroupManager:
    """Groups belong to a project; an administrator sees those of all projects."""

    def __init__(self, store: Store, outbox: Outbox, quotas: Quotas):
        self.store, self.outbox, self.quotas, self.clock = store, outbox, quotas, store.clock

    def get(self, context: Context, group_id: str) -> ServerGroup:
        """ServerGroupNotFound, also if the group belongs to another project."""
        group = self.store.query(server_groups.get, group_id)
        if group is None or not (context.is_admin or group.project_id == context.project_id):
            raise ServerGroupNotFound(id=group_id)
        return group

    def list(self, context: Context, limit: int, offset: int = 0, *, all_projects: bool = False) -> list[ServerGroup]:
        return self.store.query(server_groups.select, None if all_projects else context.project_id or '', limit, offset)

    def create(self, context: Context, name: str, policy: str, rules: Mapping[str, Any]) -> ServerGroup:
        """Create a group in the caller's project; OverQuota, Invalid for rules that the policy does not support."""
        if rules and policy != ANTI_AFFINITY:
            raise Invalid('Only anti-affinity policy supports rules.')
        project_id, user_id = context.project_id or '', context.user_id or ''
        group_id = randomness.new_id()
        group = {
            'uuid': group_id,
            'project_id': project_id,
            'user_id': user_id,
            'name': name,
            'policy': policy,
            'rules': dict(rules),
            'created_at': self.clock(),
        }
        with self.store.write() as connection:
            self.quotas.reserve_server_group(connection, project_id, user_id)
            server_groups.insert(connection, group)
            created: ServerGroup = server_groups.get(connection, group_id)  # type: ignore[assignment]
            self.outbox.add(connection, context, of_creation(created))
            return created

    def delete(self, context: Context, group: ServerGroup) -> None:
        """Delete the group; its servers stay where they are and belong to no group."""
        with self.store.write() as connection:
            if not server_groups.delete(connection, group.uuid):
                raise ServerGroupNotFound(id=group.uuid)
            self.outbox.add(connection, context, of_deletion(group))
