"""Shared file systems of a server: attached while it is stopped, mounted when it starts."""

import builtins
import logging
from collections.abc import Iterator
from contextlib import contextmanager

import sqlalchemy as sa

from computeapi import randomness
from computeapi.backends.hypervisor import Capability, HypervisorError, PowerState
from computeapi.backends.share import PROTOCOLS, Share
from computeapi.compute.servers.changes import Changes, check
from computeapi.compute.tasks.fence import Superseded
from computeapi.compute.tasks.job import Job
from computeapi.compute.tasks.transition import Requirement, beside
from computeapi.context import Context
from computeapi.db import hypervisors, server_shares, servers
from computeapi.db.server_shares import AttachedShare
from computeapi.db.servers import Server
from computeapi.errors import Conflict, Error, NeighbourAway, ShareNotFound
from computeapi.states import ShareStatus, VMState

LOG = logging.getLogger(__name__)
CREATE = Requirement('create share', allowed={VMState.STOPPED}, lockable=False)
DELETE = Requirement('delete share', allowed={VMState.STOPPED, VMState.ERROR}, lockable=False)
ATTACH = beside('attach_share', allowed=CREATE.allowed, lockable=False)
DETACH = beside('detach_share', allowed=DELETE.allowed, lockable=False)


class ServerShareManager:
    """Errors: ShareNotFound; Conflict, also for a share that cannot be mounted; those of Changes."""

    def __init__(self, changes: Changes):
        self.changes, self.store = changes, changes.store
        self.shares, self.hypervisor = changes.platform.shares, changes.platform.hypervisor

    def list(self, server: Server) -> builtins.list[AttachedShare]:
        return self.store.query(server_shares.of_server, server.uuid)

    def get(self, server: Server, share_id: str) -> AttachedShare:
        return self.store.query(find, server.uuid, share_id)

    def attach(self, context: Context, server: Server, share_id: str, tag: str | None = None) -> AttachedShare:
        """Let a worker give the server's host access to the share; the guest identifies it by the tag."""
        check(context, server, CREATE)
        if Capability.SHARES not in self.hypervisor.capabilities_of(server.host):
            raise Conflict('Feature not supported because either compute or instance are not configured correctly.')
        share = self.shares.get(context, share_id)
        check_share(share)
        with self.changes.tasks.adding() as connection:
            self.changes.begin_in(connection, context, server, ATTACH, {'share_id': share.id})
            check_new(connection, server.uuid, share.id, tag or share.id)
            self._insert(connection, server, share, tag or share.id)
        return self.get(server, share.id)

    def _insert(self, connection: sa.Connection, server: Server, share: Share, tag: str) -> None:
        server_shares.SHARES.insert(
            connection,
            uuid=randomness.new_id(),
            server_id=server.uuid,
            share_id=share.id,
            status=ShareStatus.ATTACHING,
            tag=tag,
            export_location=share.export_location,
            protocol=share.protocol,
            created_at=self.changes.clock(),
        )

    def detach(self, context: Context, server: Server, share_id: str) -> None:
        """Let a worker detach the share from the server."""
        check(context, server, DELETE)
        with self.changes.tasks.adding() as connection:
            self.changes.begin_in(connection, context, server, DETACH, {'share_id': share_id})
            server_shares.set_status(connection, find(connection, server.uuid, share_id), ShareStatus.DETACHING)


def find(connection: sa.Connection, server_id: str, share_id: str) -> AttachedShare:
    found = server_shares.SHARES.find(connection, server_id=server_id, share_id=share_id)
    if found is None:
        raise ShareNotFound(id=share_id)
    return found


def check_share(share: Share) -> None:
    """Conflict for a share that no host could mount."""
    if share.status != 'available':
        raise Conflict(f"Share {share.id} is in '{share.status}' instead of 'available' status.")
    if share.export_location is None:
        raise Conflict(f'Share {share.id} export location is missing.')
    if share.protocol not in PROTOCOLS:
        raise Conflict(f'Share protocol {share.protocol} is not supported.')


def check_new(connection: sa.Connection, server_id: str, share_id: str, tag: str) -> None:
    if any(share_id == each.share_id or tag == each.tag for each in server_shares.of_server(connection, server_id)):
        raise Conflict(f"Share '{share_id}' or tag '{tag}' already associated to this server.")


# ------------------------------------------------------------------ work


@ATTACH.work
def attach(job: Job) -> None:
    """Give access to the share, for the next start of the server."""
    share = share_of_task(job)
    if share is None:
        return job.end()
    with or_broken(job, share), job.event('compute_allow_share'):
        allow(job, share)
    job.store.change(server_shares.set_status, share, ShareStatus.INACTIVE)
    job.end()


@DETACH.work
def detach(job: Job) -> None:
    share = share_of_task(job)
    if share is None:
        return job.end()
    with or_broken(job, share), job.event('compute_deny_share'):
        give_back(job, share)
    job.end()


def share_of_task(job: Job) -> AttachedShare | None:
    """The share of the task; None if it is gone."""
    return job.store.query(server_shares.SHARES.find, server_id=job.server.uuid, share_id=job.arguments['share_id'])


@contextmanager
def or_broken(job: Job, share: AttachedShare) -> Iterator[None]:
    """Set the share to error if the block fails."""
    try:
        yield
    except Error:
        job.store.change(server_shares.set_status, share, ShareStatus.ERROR)
        raise


def allow(job: Job, share: AttachedShare) -> None:
    """Give the host access to the share."""
    for address in addresses(job):
        job.platform.shares.allow(job.elevated, share.share_id, address)
    # Another worker may have taken over and detached it meanwhile, without knowing of this access.
    if job.store.query(is_taken_away, share):
        deny(job, share)
        raise Superseded()


def is_taken_away(connection: sa.Connection, share: AttachedShare) -> bool:
    return (
        servers.is_gone(connection, share.server_id) or server_shares.SHARES.find(connection, uuid=share.uuid) is None
    )


def deny(job: Job, share: AttachedShare) -> None:
    """Revoke the access of the host, unless other servers on it have the share."""
    if job.server.host is not None and not job.store.query(server_shares.is_kept_by_others, job.server.host, share):
        for address in addresses(job):
            job.platform.shares.deny(job.elevated, share.share_id, address)


def give_back(job: Job, share: AttachedShare) -> None:
    """Detach the share; the host keeps its access if other servers on it mount the share."""
    if job.server.host is not None:
        job.driver.unmount_share(job.server, share)
        deny(job, share)
    job.store.change(server_shares.delete, share)


def addresses(job: Job) -> list[str]:
    """The addresses of the server's host."""
    host = job.server.host
    return [node.host_ip for node in job.store.query(hypervisors.of_host, host)] if host else []


# ------------------------------------------------------------------ while servers run


def mount(job: Job) -> None:
    """Mount the shares before the server starts. Grant access again: a detachment elsewhere may have revoked it."""
    for share in held(job):
        with or_broken(job, share):
            allow(job, share)
            job.driver.mount_share(job.server, share)


def activate(job: Job) -> None:
    """Mark the shares as active: the server has started."""
    set_all(job, ShareStatus.ACTIVE)


def unmount(job: Job) -> None:
    """Unmount the shares after the server has stopped."""
    for share in held(job):
        with or_broken(job, share):
            job.driver.unmount_share(job.server, share)
    set_all(job, ShareStatus.INACTIVE)


def release_all(job: Job) -> None:
    """Detach all shares of a deleted server. A host that does not unmount one, which may be down, loses its access as
    well: nobody could revoke it later."""
    set_all(job, ShareStatus.DETACHING)
    for share in held(job):
        with logged(job, share):
            try:
                give_back(job, share)
            except HypervisorError:
                deny(job, share)


def settle(job: Job) -> None:
    """Clean up after overtaken work: finish detachments, and set the others to the state of the machine."""
    for share in held(job):
        if share.status in (ShareStatus.ACTIVE, ShareStatus.INACTIVE):
            running = job.power() == PowerState.RUNNING
            job.store.change(server_shares.set_status, share, ShareStatus.ACTIVE if running else ShareStatus.INACTIVE)
        if share.status == ShareStatus.DETACHING:
            with logged(job, share):
                give_back(job, share)


@contextmanager
def logged(job: Job, share: AttachedShare) -> Iterator[None]:
    """Go on if the share cannot be detached, unless the share service is only away for now."""
    try:
        yield
    except NeighbourAway:
        raise
    except Error as error:
        LOG.warning('Share %s may still be open to host %s: %s', share.share_id, job.server.host, error)


def held(job: Job) -> list[AttachedShare]:
    return job.store.query(server_shares.of_server, job.server.uuid)


def set_all(job: Job, status: ShareStatus) -> None:
    job.store.change(server_shares.SHARES.update, {'status': status}, server_id=job.server.uuid)


def are_broken(job: Job) -> bool:
    return any(share.status == ShareStatus.ERROR for share in held(job))
