"""Quotas: how much of the cloud a project, or one user in it, may use, and uses."""

import math
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

import sqlalchemy as sa
from oslo_config import cfg

from computeapi.context import Context
from computeapi.db import quotas
from computeapi.db.engine import Store
from computeapi.errors import Invalid, OverQuota

UNLIMITED = -1

# By resource, the option with its default limit.
OPTIONS = {
    'instances': 'instances',
    'cores': 'cores',
    'ram': 'ram',
    'metadata_items': 'metadata_items',
    'injected_files': 'injected_files',
    'injected_file_content_bytes': 'injected_file_content_bytes',
    'injected_file_path_bytes': 'injected_file_path_length',
    'key_pairs': 'key_pairs',
    'server_groups': 'server_groups',
    'server_group_members': 'server_group_members',
}
# Limits that are kept for older clients; the effective quotas are those of the network service.
NETWORK = ('fixed_ips', 'floating_ips', 'security_groups', 'security_group_rules')

# The quota class whose limits override those of the configuration.
DEFAULT_CLASS = 'default'

Limits = Mapping[str, int]


class Scope(NamedTuple):
    """Limits and the usage that counts against them."""

    limits: Limits
    used: Mapping[str, int]

    def short_of(self, wanted: Mapping[str, int]) -> list[str]:
        """The resources of which there is not enough."""
        return [name for name, amount in wanted.items() if amount > 0 and not self.has_room(name, amount)]

    def has_room(self, resource: str, amount: int) -> bool:
        return within(self.limits.get(resource, UNLIMITED), self.used[resource] + amount)

    def room(self, sizes: Mapping[str, int]) -> float:
        """How many things of these sizes fit."""
        bounded = [name for name, size in sizes.items() if size and self.limits.get(name, UNLIMITED) != UNLIMITED]
        return min(((self.limits[name] - self.used[name]) // sizes[name] for name in bounded), default=math.inf)


class Quotas:
    """Limits in the store override those of the configuration; usage is counted as it changes.

    A reservation is part of the transaction that creates the thing: other reservations for the same project wait
    until that transaction has ended.
    """

    def __init__(self, store: Store, conf: cfg.ConfigOpts):
        self.store = store
        self.configured = {resource: conf.quota[option] for resource, option in OPTIONS.items()}
        self.configured |= dict.fromkeys(NETWORK, UNLIMITED)

    # ------------------------------------------------------------ limits

    def class_limits(self, class_name: str = DEFAULT_CLASS) -> dict[str, int]:
        """The limits of a quota class, by resource."""
        return self.store.query(self._class_limits, class_name)

    def limits(self, project_id: str, user_id: str | None = None) -> dict[str, int]:
        """The limits of the project, or of one user in it, by resource."""
        return self.store.query(self._limits, project_id, user_id)

    def usage(self, project_id: str, user_id: str | None = None) -> Scope:
        """The limits of the project (or of one user in it) and their usage; 0 for resources that are not counted."""
        found = self.store.query(quotas.bounds, DEFAULT_CLASS, project_id, user_id, of_user=user_id is not None)
        limits = self._merged(found)
        return Scope(limits, dict.fromkeys(limits, 0) | quotas.of_servers(found.used))

    def _class_limits(self, connection: sa.Connection, class_name: str) -> dict[str, int]:
        return self.configured | quotas.class_limits(connection, class_name)

    def _limits(self, connection: sa.Connection, project_id: str, user_id: str | None = None) -> dict[str, int]:
        return self._merged(quotas.limits(connection, DEFAULT_CLASS, project_id, user_id))

    def _merged(self, bounds: quotas.QuotaBounds) -> dict[str, int]:
        return self.configured | bounds.of_class | bounds.project | bounds.user

    def check_contents(
        self, context: Context, metadata: Mapping[str, str], files: Collection[Mapping[str, str]]
    ) -> None:
        """OverQuota for the metadata of a single server, or for the files to be injected into it."""
        if metadata or files:
            limits = self.limits(context.project_id or '', context.user_id)
            check_metadata(limits, len(metadata))
            check_injected_files(limits, files)

    # ------------------------------------------------------------ changes

    def set_limits(
        self, project_id: str, changes: Mapping[str, int], *, user_id: str | None = None, force: bool = False
    ) -> dict[str, int]:
        """Change limits of the project, or of one user in it; returns all limits after the change.

        Invalid for a limit below the usage, or above what the project can give a user, unless forced.
        """
        with self.store.write() as connection:
            quotas.lock(connection, project_id)
            if not force:
                self._check_limits(connection, project_id, user_id, changes)
            quotas.set_limits(connection, project_id, user_id, changes)
            return self._limits(connection, project_id, user_id)

    def _check_limits(
        self, connection: sa.Connection, project_id: str, user_id: str | None, changes: Mapping[str, int]
    ) -> None:
        given = quotas.given_to_users(connection, project_id, exclude=user_id)
        used = quotas.usage(connection, project_id, user_id)
        project = self._limits(connection, project_id)
        for resource, limit in changes.items():
            if user_id is None:
                minimum, maximum = max(used.get(resource, 0), given.get(resource, 0)), UNLIMITED
            else:
                minimum, maximum = used.get(resource, 0), project[resource]
                maximum = maximum if maximum == UNLIMITED else max(maximum - given.get(resource, 0), 0)
            check_limit(resource, limit, minimum, maximum)

    def reset(self, project_id: str, user_id: str | None = None) -> None:
        """Restore the defaults, for the project and all users in it, or for one user."""
        self.store.change(quotas.delete_limits, project_id, user_id)

    def set_class_limits(self, class_name: str, changes: Mapping[str, int]) -> dict[str, int]:
        """Change limits of a quota class; returns all limits after the change."""
        with self.store.write() as connection:
            quotas.set_class_limits(connection, class_name, changes)
            return self._class_limits(connection, class_name)

    # ------------------------------------------------------------ reservations

    def reserve(self, connection: sa.Connection, project_id: str, user_id: str, **wanted: int) -> None:
        """Reserve this much more (instances, cores, ram) until the caller's transaction ends; OverQuota.

        Call it before writing the rows that count."""
        check_room(self._lock(connection, project_id, user_id), wanted)

    def reserve_servers(
        self,
        connection: sa.Connection,
        project_id: str,
        user_id: str,
        sizes: Mapping[str, int],
        min_count: int,
        max_count: int,
    ) -> int:
        """Like `reserve`: returns how many servers, from *min_count* to *max_count*, fit; OverQuota, about
        *max_count*, if fewer do.

        sizes: what one server uses ({'cores': ..., 'ram': ...})."""
        scopes = self._lock(connection, project_id, user_id)
        sizes = {'instances': 1, **sizes}
        fitting = int(min(max_count, *(scope.room(sizes) for scope in scopes)))
        if fitting < min_count:
            instances = str(max_count) if min_count == max_count else f'{min_count}-{max_count}'
            check_room(scopes, {name: size * max_count for name, size in sizes.items()}, {'instances': instances})
        return fitting

    def reserve_key_pair(self, connection: sa.Connection, context: Context, user_id: str) -> None:
        """Like `reserve`, for one more key pair of a user."""
        quotas.lock(connection, user_id)
        limit = self._limits(connection, context.project_id or '', user_id)['key_pairs']
        if not within(limit, quotas.key_pairs(connection, user_id) + 1):
            raise OverQuota('Quota exceeded, too many key pairs.')

    def reserve_server_group(self, connection: sa.Connection, project_id: str, user_id: str) -> None:
        """Like `reserve`, for one more server group."""
        scopes = self._lock(connection, project_id, user_id)
        if any(scope.short_of({'server_groups': 1}) for scope in scopes):
            raise OverQuota('Quota exceeded, too many server groups.')

    def reserve_group_members(
        self, connection: sa.Connection, project_id: str, user_id: str, group_id: str, count: int = 1
    ) -> None:
        """Like `reserve`, for more servers of the user in a server group; `reserve` must come first, for its lock."""
        limit = self._limits(connection, project_id, user_id)['server_group_members']
        if not within(limit, quotas.group_members(connection, group_id, user_id) + count):
            raise OverQuota('Quota exceeded, too many servers in group')

    def _lock(self, connection: sa.Connection, project_id: str, user_id: str) -> list[Scope]:
        """Lock the project's reservations; returns the scope of the project, and of the user if it has own limits."""
        quotas.lock(connection, project_id)
        bounds = quotas.bounds(connection, DEFAULT_CLASS, project_id, user_id)
        scopes = [Scope(self.configured | bounds.of_class | bounds.project, bounds.used)]
        if bounds.user:
            scopes.append(Scope(bounds.user, quotas.usage(connection, project_id, user_id)))
        return scopes


# ------------------------------------------------------------------ checks


def within(limit: int, amount: float) -> bool:
    return limit == UNLIMITED or amount <= limit


def check_room(scopes: Sequence[Scope], wanted: Mapping[str, int], texts: Mapping[str, str] | None = None) -> None:
    """OverQuota, naming what is short, with the usage and limits of the project, or of the user if only
    the user's are short.

    texts: how the message states an amount, if not as a number."""
    short = {name: scope for scope in reversed(scopes) for name in scope.short_of(wanted)}
    if short:
        over = sorted(short)
        names = ', '.join(over)
        requested = ', '.join(str({**wanted, **(texts or {})}[name]) for name in over)
        used = ', '.join(str(short[name].used[name]) for name in over)
        limits = ', '.join(str(short[name].limits[name]) for name in over)
        raise OverQuota(
            f'Quota exceeded for {names}: Requested {requested}, but already used {used} of {limits} {names}'
        )


def check_limit(resource: str, limit: int, minimum: int, maximum: int) -> None:
    """Invalid unless minimum <= limit <= maximum, where -1 means unlimited."""
    requested = math.inf if limit == UNLIMITED else limit
    if requested < minimum:
        raise Invalid(
            f'Quota limit {limit} for {resource} must be greater than or equal to already used and reserved {minimum}.'
        )
    if not within(maximum, requested):
        raise Invalid(f'Quota limit {limit} for {resource} must be less than or equal to {maximum}.')


def check_metadata(limits: Limits, count: int) -> None:
    """OverQuota if a server would have more metadata items than allowed."""
    if not within(limits['metadata_items'], count):
        raise OverQuota(f'Maximum number of metadata items exceeds {limits["metadata_items"]}')


def check_image_metadata(limits: Limits, count: int) -> None:
    """OverQuota if an image would have more metadata items than a server may have."""
    if not within(limits['metadata_items'], count):
        raise OverQuota('Image metadata limit exceeded')


def check_injected_files(limits: Limits, files: Collection[Mapping[str, str]]) -> None:
    """OverQuota for too many files, or for one whose path or contents are too long."""
    if not within(limits['injected_files'], len(files)):
        raise OverQuota('Personality file limit exceeded')
    for file in files:
        if not within(limits['injected_file_path_bytes'], len(file['path'].encode())):
            raise OverQuota(f'Personality file path exceeds maximum {limits["injected_file_path_bytes"]}')
        if not within(limits['injected_file_content_bytes'], len(file['contents'].encode())):
            raise OverQuota(f'Personality file content exceeds maximum {limits["injected_file_content_bytes"]}')
