"""Finding servers, and changes that need no work on a host: names, metadata, tags."""

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from oslo_config import cfg

from computeapi.compute.cells import Cells
from computeapi.compute.flavors import using
from computeapi.compute.quotas import Quotas, check_injected_files, check_metadata
from computeapi.compute.scheduler.hosts import is_up
from computeapi.compute.servers.changes import locked
from computeapi.compute.tasks.transition import Requirement
from computeapi.context import Context
from computeapi.db import flavors, server_search
from computeapi.db import servers as rows
from computeapi.db.engine import Store
from computeapi.db.listing import Page
from computeapi.db.server_search import Found, Search
from computeapi.db.servers import DOMAIN_NAME, SERVICE, TAGS, Server
from computeapi.errors import CellDown, Conflict, Invalid, NotFound, ServerNotFound, ServerUnknown
from computeapi.states import VMState

LOG = logging.getLogger(__name__)
MOST_TAGS = 50
LONGEST_METADATA = 255

AWAKE = frozenset({VMState.ACTIVE, VMState.PAUSED, VMState.SUSPENDED, VMState.STOPPED})
UPDATE_METADATA = Requirement('update metadata', allowed=AWAKE, while_doing=None)
DELETE_METADATA = Requirement('delete metadata', allowed=AWAKE, while_doing=None)
UPDATE_TAGS = Requirement('update tags', allowed=AWAKE, while_doing=None, lockable=False, launched=False)
UPDATE_TAG = replace(UPDATE_TAGS, name='update tag')
DELETE_TAGS = replace(UPDATE_TAGS, name='delete tags')
DELETE_TAG = replace(UPDATE_TAGS, name='delete tag')


class ServerManager:
    """Servers in the store; callers other than administrators see those of their project.

    needs: what is loaded in addition to the row (see db.servers).
    """

    def __init__(self, store: Store, quotas: Quotas, cells: Cells, conf: cfg.ConfigOpts):
        self.store, self.quotas, self.cells, self.clock = store, quotas, cells, store.clock
        self.skips_down_cells: bool = conf.api.list_records_by_skipping_down_cells
        self.most_looked_at: int = conf.api.max_servers_looked_at
        self.name_template, self.down_after = conf.instance_name_template, conf.service_down_time

    # ------------------------------------------------------------ look-ups

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
        server = self.store.query(rows.get, server_id, needs=needs, deleted=deleted)
        if server is None and by_cell and self.store.query(rows.get, server_id, deleted=True) is None:
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
            search = Search(project_id, deleted, soft_deleted, within, self.most_looked_at)
            found, last = server_search.page(connection, page, search, needs, rows.BRIEF if brief else rows.LISTED)
            if lost and unreachable:
                room = page._replace(limit=page.limit and page.limit - len(found))
                search = search._replace(filters={**wanted, 'host_in': lost})
                others, _ = server_search.page(connection, room, search, needs, rows.LISTED)
                found = [*(replace(each, unreachable=True) for each in others), *found]
        self._complete(found, needs)
        if last is not None:
            LOG.info('A page ends after %d servers were examined, of which %d match.', self.most_looked_at, len(found))
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

    # ------------------------------------------------------------ updates

    def update(self, server: Server, **changes: Any) -> Server:
        """Change columns of the row that nothing else depends on; returns the updated server.

        Conflict for a pinned_availability_zone that the server cannot be pinned to.
        """
        if changes:
            zone = changes.get('pinned_availability_zone')
            with self.store.write() as connection:
                current = rows.get(connection, server.uuid, lock=True) if zone is not None else None
                if current is not None:
                    check_pin(current, zone)
                self._write(connection, server, **changes)
        return server

    def _write(self, connection: sa.Connection, server: Server, **changes: Any) -> None:
        changes['updated_at'] = self.clock()
        if not rows.change(connection, server.uuid, changes, task_states=None):
            raise ServerNotFound(id=server.uuid)
        for name, value in changes.items():
            setattr(server, name, value)

    # ------------------------------------------------------------ metadata

    def add_metadata(self, context: Context, server: Server, items: Mapping[str, str]) -> dict[str, str]:
        """Set these items, keep the others, and return all of them."""
        return self._set_metadata(context, server, lambda current: {**current, **items})

    def replace_metadata(self, context: Context, server: Server, items: Mapping[str, str]) -> dict[str, str]:
        return self._set_metadata(context, server, lambda current: dict(items))

    def _set_metadata(
        self, context: Context, server: Server, change: Callable[[dict[str, str]], dict[str, str]]
    ) -> dict[str, str]:
        limits = self.quotas.limits(server.project_id)
        with self.store.write() as connection:
            current = locked(connection, context, server, UPDATE_METADATA)
            metadata = change(current.metadata)
            check_items(metadata)
            check_metadata(limits, len(metadata))
            self._write(connection, current, metadata=metadata)
        return metadata

    def delete_metadata(self, context: Context, server: Server, key: str) -> None:
        """NotFound for an absent key, which takes precedence over errors of the server's state."""
        if key not in server.metadata:
            raise NotFound('Metadata item was not found')
        with self.store.write() as connection:
            current = locked(connection, context, server, DELETE_METADATA)
            rest = {name: value for name, value in current.metadata.items() if name != key}
            self._write(connection, current, metadata=rest)

    # ------------------------------------------------------------ tags

    def replace_tags(self, context: Context, server: Server, tags: Collection[str]) -> Sequence[str]:
        """Replace the tags; returns them in the stored order."""
        kept = sorted(set(tags))
        with self.store.write() as connection:
            locked(connection, context, server, UPDATE_TAGS if kept else DELETE_TAGS)
            rows.set_tags(connection, server.uuid, kept)
        return kept

    def add_tag(self, context: Context, server: Server, tag: str) -> bool:
        """Add the tag; returns whether it is new. Invalid if the server has the maximum number of tags."""
        with self.store.write() as connection:
            tags = locked(connection, context, server, UPDATE_TAG, (TAGS,)).tags
            if tag in tags:
                return False
            if len(tags) >= MOST_TAGS:
                raise Invalid(f'The number of tags exceeded the per-server limit {MOST_TAGS}')
            rows.set_tags(connection, server.uuid, [*tags, tag])
            return True

    def delete_tag(self, context: Context, server: Server, tag: str) -> None:
        with self.store.write() as connection:
            tags = locked(connection, context, server, DELETE_TAG, (TAGS,)).tags
            if tag not in tags:
                raise NotFound(f"Instance {server.uuid} has no tag '{tag}'")
            rows.set_tags(connection, server.uuid, [other for other in tags if other != tag])


# ------------------------------------------------------------------ checks


def sees(context: Context, server: Server) -> bool:
    """Whether the server is visible to the caller."""
    return context.is_admin or server.project_id == context.project_id


def check_items(metadata: Mapping[str, str]) -> None:
    """Invalid for a key or value that is too long, a value that is not text, and an empty key."""
    for key, value in metadata.items():
        if not isinstance(value, str):
            raise Invalid(f'Invalid metadata: {value} is not a string or unicode')
        if not key:
            raise Invalid('Invalid metadata:  has 0 characters, less than 1.')
        for what, text in (('key', key), ('value', value)):
            if len(text) > LONGEST_METADATA:
                raise Invalid(
                    f'Invalid metadata size: Metadata property {what} greater than {LONGEST_METADATA} characters'
                )


def check_contents(
    quotas: Quotas, context: Context, metadata: Mapping[str, str], files: Collection[Mapping[str, str]]
) -> None:
    """Check the metadata of a single server, and the files to be injected into it; Invalid, OverQuota."""
    if metadata or files:
        check_items(metadata)
        limits = quotas.limits(context.project_id or '', context.user_id)
        check_metadata(limits, len(metadata))
        check_injected_files(limits, [(file['path'], file['contents'].encode()) for file in files])


def check_pin(server: Server, zone: Any) -> None:
    """Conflict unless the server is pinned to that zone already, or is pinned to none and is in that one."""
    pinned, current = server.pinned_availability_zone, server.availability_zone
    if zone != (current if pinned is None else pinned):
        reason = f'it is in {current or "none"}' if pinned is None else f'unpin it from {pinned} first'
        raise Conflict(f'Cannot pin instance {server.uuid} to availability zone {zone}: {reason}.')
