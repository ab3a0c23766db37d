"""Shares of this service itself: they are kept in the store, and nothing can be written to them."""

import builtins
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from computeapi import chance, errors
from computeapi.backends.share import Share
from computeapi.clock import utcnow
from computeapi.context import Context
from computeapi.db.engine import Store
from computeapi.db.listing import NEWEST_FIRST, bounded
from computeapi.db.shares import ACCESS_RULES, SHARES, listed, lock_project, rules_of

MOST_SHARES = 50
MOST_GIGABYTES = 1000
MOST_RULES = 100
HOST = '127.0.0.1'


@dataclass(frozen=True)
class AccessRule:
    """Who may use a share: an `ip`, `user`, `cert` or `cephx` name, rw or ro.

    locked: whether a service holds it, so that neither it nor the share is deleted by others.
    """

    id: str
    share_id: str
    access_type: str
    access_to: str
    access_level: str
    locked: bool
    project_id: str
    created_at: datetime | None = None
    updated_at: datetime | None = None


class LocalShares:
    """The shares in this store; see `computeapi.backends.share.Shares`, and what their REST API needs besides."""

    def __init__(self, store: Store, clock: Callable[[], datetime] = utcnow):
        self.store, self.clock = store, clock

    # ------------------------------------------------------------ shares

    def get(self, context: Context, share_id: str) -> Share:
        with self.store.read() as connection:
            return Share(**SHARES.get(connection, context, share_id))

    def list(
        self,
        context: Context,
        *,
        filters: Mapping[str, Any] | None = None,
        sort: Sequence[tuple[str, str]] = NEWEST_FIRST,
        limit: int | None = None,
        offset: int | None = None,
        public: bool = False,
        all_projects: bool = False,
    ) -> builtins.list[Share]:
        """public: also what is everybody's.  all_projects: for administrators; for others it means nothing."""
        where = [listed(context, public=public, all_projects=all_projects), *SHARES.matches(filters or {})]
        with self.store.read() as connection:
            found = SHARES.page(connection, context, *where, sort=sort, page=bounded(limit, None), offset=offset)
        return [Share(**facts) for facts in found]

    def create(self, context: Context, size: int, protocol: str, **facts: Any) -> Share:
        """A share that is available at once. facts: name, description, metadata, is_public; OverQuota."""
        if context.project_id is None:
            raise errors.Forbidden('This takes a token that is scoped to a project.')
        check_public(context, facts)
        share_id, now = chance.new_id(), self.clock()
        share = Share(
            id=share_id,
            status='available',
            size=size,
            protocol=protocol,
            project_id=context.project_id,
            user_id=context.user_id,
            export_location=exported(protocol, share_id),
            created_at=now,
            updated_at=now,
            **facts,
        )
        with self.store.write() as connection:
            check_quota(connection, context, size)
            SHARES.insert(connection, vars(share))
        return share

    def update(self, context: Context, share_id: str, **facts: Any) -> Share:
        """Change name, description, is_public or metadata."""
        with self._own(context, share_id) as (connection, share):
            check_public(context, facts, share)
            facts['updated_at'] = self.clock()
            SHARES.update(connection, share_id, facts)
        return replace(share, **facts)

    def delete(self, context: Context, share_id: str) -> None:
        """Forbidden while a service holds it."""
        with self._own(context, share_id) as (connection, share):
            if any(rule['locked'] for rule in ACCESS_RULES.select(connection, rules_of(share_id))):
                raise errors.Forbidden(f'Share {share_id} is locked: servers use it.')
            SHARES.delete(connection, SHARES.among([share_id]))

    @contextmanager
    def _own(self, context: Context, share_id: str) -> Iterator[tuple[sa.Connection, Share]]:
        """A transaction in which nobody else changes the share; Forbidden where it is only public."""
        with self.store.write() as connection:
            share = Share(**SHARES.get(connection, context, share_id, lock=True))
            if not context.is_admin and share.project_id != context.project_id:
                raise errors.Forbidden(f'Share {share_id} is of another project.')
            yield connection, share

    # ------------------------------------------------------------ who may use them

    def allow(self, context: Context, share_id: str, address: str) -> None:
        with self.store.write() as connection:
            SHARES.get(connection, context, share_id, lock=True)
            for rule in ACCESS_RULES.select(connection, rules_of(share_id)):
                if (rule['access_type'], rule['access_to']) == ('ip', address):
                    ACCESS_RULES.update(connection, rule['id'], {'locked': True, 'access_level': 'rw'})
                    return
            self._insert(connection, share_id, 'ip', address, 'rw', locked=True)

    def deny(self, context: Context, share_id: str, address: str) -> None:
        with self.store.write() as connection:
            rules = ACCESS_RULES.select(connection, rules_of(share_id))
            found = [rule['id'] for rule in rules if (rule['access_type'], rule['access_to']) == ('ip', address)]
            ACCESS_RULES.delete(connection, ACCESS_RULES.among(found))

    def rules(self, context: Context, share_id: str) -> builtins.list[AccessRule]:
        """None of a share that is only public."""
        with self.store.read() as connection:
            SHARES.get(connection, context, share_id)
            found = ACCESS_RULES.select(connection, rules_of(share_id), ACCESS_RULES.visible(context))
        return [AccessRule(**facts) for facts in found]

    def rule(self, context: Context, rule_id: str) -> AccessRule:
        """ShareAccessNotFound."""
        with self.store.read() as connection:
            return AccessRule(**ACCESS_RULES.get(connection, context, rule_id))

    def grant(
        self, context: Context, share_id: str, kind: str, name: str, level: str, *, locked: bool = False
    ) -> AccessRule:
        """Let somebody use the share; Invalid if there is a rule about the same one, or no room for more."""
        with self._own(context, share_id) as (connection, share):
            rules = ACCESS_RULES.select(connection, rules_of(share_id))
            if any((rule['access_type'], rule['access_to']) == (kind, name) for rule in rules):
                raise errors.Invalid(f'Share access {kind}:{name} exists.')
            if len(rules) >= MOST_RULES:
                raise errors.Invalid(f'A share must not have more than {MOST_RULES} access rules.')
            rule_id = self._insert(connection, share_id, kind, name, level, locked=locked)
            return AccessRule(**ACCESS_RULES.get(connection, context, rule_id))

    def revoke(self, context: Context, share_id: str, rule_id: str, *, unrestrict: bool = False) -> None:
        """Forbidden for a rule that a service holds, unless the caller lifts that; ShareAccessNotFound."""
        with self._own(context, share_id) as (connection, share):
            rule = ACCESS_RULES.get(connection, context, rule_id)
            if rule['share_id'] != share_id:
                raise errors.ShareAccessNotFound(id=rule_id)
            if rule['locked'] and not (unrestrict and context.is_admin):
                raise errors.Forbidden(f'Access rule {rule_id} is locked.')
            ACCESS_RULES.delete(connection, ACCESS_RULES.among([rule_id]))

    def _insert(
        self, connection: sa.Connection, share_id: str, kind: str, name: str, level: str, *, locked: bool
    ) -> str:
        rule_id, now = chance.new_id(), self.clock()
        facts = {'share_id': share_id, 'access_type': kind, 'access_to': name, 'access_level': level, 'locked': locked}
        ACCESS_RULES.insert(connection, {'id': rule_id, 'created_at': now, 'updated_at': now, **facts})
        return rule_id


def exported(protocol: str, share_id: str) -> str:
    """Where such a share is mounted from: as it looks, for nothing is there."""
    return f'{HOST}:6789:/volumes/{share_id}' if protocol == 'CEPHFS' else f'{HOST}:/shares/{share_id}'


def check_public(context: Context, facts: Mapping[str, Any], share: Share | None = None) -> None:
    """Forbidden to make a share everybody's, which is for administrators, as by a Manila's usual rules."""
    was_public = share is not None and share.is_public
    if facts.get('is_public') and not was_public and not context.is_admin:
        raise errors.Forbidden('You are not authorized to make a share public.')


def check_quota(connection: sa.Connection, context: Context, size: int) -> None:
    """OverQuota if the project may not have a share of that size."""
    assert context.project_id is not None
    lock_project(connection, context.project_id)
    count, gigabytes = SHARES.count(connection, *SHARES.listed(context, None, False))
    if count >= MOST_SHARES:
        raise errors.OverQuota(f'ShareLimitExceeded: Maximum number of shares allowed ({MOST_SHARES}) exceeded.')
    if gigabytes + size > MOST_GIGABYTES:
        raise errors.OverQuota(
            f'ShareSizeExceedsAvailableQuota: Requested share exceeds allowed gigabytes ({MOST_GIGABYTES}).'
        )
