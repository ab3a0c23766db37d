"""Looking up servers: one by its ID, or a page of those that match a search."""

import logging
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from oslo_config import cfg

from computeapi.compute.cells import Cells
from computeapi.compute.flavors import using
from computeapi.compute.scheduler.hosts import is_up
from computeapi.context import Context
from computeapi.db import flavors, server_search, servers
from computeapi.db.engine import Store
from computeapi.db.listing import Page
from computeapi.db.server_search import Found, Search
from computeapi.db.servers import DOMAIN_NAME, SERVICE, Server
from computeapi.errors import CellDown, ServerNotFound, ServerUnknown

LOG = logging.getLogger(__name__)


class ServerLookup:
    """Servers in the store. Callers other than administrators see only those of their project.

    needs: what is loaded in addition to the row (see db.servers).
    """

    def __init__(self, store: Store, cells: Cells, conf: cfg.ConfigOpts):
        self.store, self.cells, self.clock = store, cells, store.clock
        self.skips_down_cells: bool = conf.api.list_records_by_skipping_down_cells
        self.max_examined: int = conf.api.max_servers_looked_at
        self.name_template, self.down_after = conf.instance_name_template, conf.service_down_time

    def get(
        self,
        context: Context,
        server_id: str,
        needs: Collection[str] = (),
        *,
        deleted: bool = False,
        any_project: bool = False,
        unreachable: bool = False,
        by_cell: bool = False,
    ) -> Server:
        """ServerNotFound, also if the server belongs to another project; CellDown.

        deleted: include deleted servers.  any_project: whoever the caller is; a policy about the server then decides.
        unreachable: include servers whose cell is down.  by_cell: ServerUnknown if the server never existed.
        """
        server = self.store.query(servers.get, server_id, needs=needs, deleted=deleted)
        if server is None and by_cell and self.store.query(servers.get, server_id, deleted=True) is None:
            raise ServerUnknown(id=server_id)
        if server is None or not (any_project or sees(context, server)):
            raise ServerNotFound(id=server_id)
        if server.host in self.cells.out_of_reach():
            if not unreachable:
                self.cells.check(server.host)
            server.unreachable = True
        self._complete([server], needs)
        return server

    def list(
        self,
        context: Context,
        page: Page,
        *,
        needs: Collection[str] = (),
        all_projects: bool = False,
        deleted: bool | None = False,
        soft_deleted: bool | None = None,
        filters: Mapping[str, Any] | None = None,
        unreachable: bool = False,
        brief: bool = False,
    ) -> Found:
        """One page of the project's servers, or of everybody's, as described in db.server_search; Invalid, CellDown.

        If the caller cannot see the requested flavor, the list is empty, although servers may have had it before it was
        deleted.
        unreachable: if there is room, include servers whose cell is down; they come first.
        brief: as BriefServer, except those whose cell is down; otherwise without UNLISTED columns (see db.servers).
        """
        lost = self.cells.out_of_reach()
        if lost and not (unreachable or self.skips_down_cells):
            raise CellDown(name=', '.join(sorted(set(lost.values()))))
        project_id = None if all_projects else context.project_id or ''
        page, wanted = page._replace(marker=page.marker or None), filters or {}
        with self.store.read() as connection:
            if 'flavorid' in wanted and not flavors.get(connection, wanted['flavorid'], granted_to=using(context)):
                return Found([])
            within = {**wanted, 'host_not_in': lost} if lost else wanted
            search = Search(project_id, deleted, soft_deleted, within, self.max_examined)
            found, last = server_search.page(
                connection, page, search, needs, servers.BRIEF if brief else servers.LISTED
            )
            if lost and unreachable:
                room = page._replace(limit=page.limit and page.limit - len(found))
                search = search._replace(filters={**wanted, 'host_in': lost})
                others, _ = server_search.page(connection, room, search, needs, servers.LISTED)
                found = [*(replace(each, unreachable=True) for each in others), *found]
        self._complete(found, needs)
        if last is not None:
            LOG.info('A page ends after %d servers were examined, of which %d match.', self.max_examined, len(found))
        return Found(found, last)

    def _complete(self, found: Sequence[Server], needs: Collection[str]) -> None:
        """Add what follows from the configuration and the current time."""
        if DOMAIN_NAME in needs:
            for server in found:
                server.domain_name = self.name_template % server.id
        if SERVICE in needs:
            now = self.clock()
            for server in found:
                server.host_status = self._host_status(server, now)

    def _host_status(self, server: Server, now: datetime) -> str:
        service = server.service
        if not server.host or server.deleted_at is not None:
            return ''
        if service is None:
            return 'UNKNOWN'
        if service.forced_down:
            return 'DOWN'
        if service.disabled:
            return 'MAINTENANCE'
        return 'UP' if is_up(service, now, self.down_after) else 'UNKNOWN'


def sees(context: Context, server: Server) -> bool:
    """Whether the server is visible to the caller."""
    return context.is_admin or server.project_id == context.project_id
