"""The built-in share service: shares exist in the store only, and nothing can be written to them."""

import builtins
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from computeapi import errors, randomness
from computeapi.backends.share import Share
from computeapi.clock import utcnow
from computeapi.context import Context
from computeapi.db.engine import Store
from computeapi.db.listing import NEWEST_FIRST, bounded
from computeapi.db.shares import ACCESS_RULES, SHARES, listed, lock_project, rules_of

MAX_SHARES = 50
MAX_GIGABYTES = 1000
MAX_RULES = 100
MAX_PAIRS = 128
HOST = '127.0.0.1'


@dataclass(frozen=True)
class AccessRule:
    """Who may use a share: an `ip`, `user`, `cert` or `cephx` name, with level rw or ro.

    locked: whether neither the rule nor the share can be deleted.  hidden: whether `access_to` is not shown.
    locked_by: the user whom this does not concern; None: only administrators.
    """

    id: str
    share_id: str
    access_type: str
    access_to: str
    access_level: str
    locked: bool
    hidden: bool
    locked_by: str | None
    project_id: str
    metadata: Mapping[str, str] = field(default_factory=dict)
    created_at: datetime | None = None
    updated_at: datetime | None = None

    def concerns(self, context: Context) -> bool:
        """Whether the caller has to observe that the rule is locked or hidden."""
        return not context.is_admin and (self.locked_by is None or self.locked_by != context.user_id)

    def is_hidden_from(self, context: Context) -> bool:
        return self.hidden and self.concerns(context)


class LocalShares:
    """The shares in this store; implements `computeapi.backends.share.Shares`, and what the REST API needs besides."""

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
        """public: include public shares.  all_projects: for administrators; ignored for others."""
        where = [listed(context, public=public, all_projects=all_projects), *SHARES.matches(filters or {})]
        with self.store.read() as connection:
            found = SHARES.page(connection, context, *where, sort=sort, page=bounded(limit, None), offset=offset)
        return [Share(**facts) for facts in found]

    def count(self, context: Context, *, filters: Mapping[str, Any], public: bool, all_projects: bool) -> int:
        """The number of shares that `list` returns on all pages."""
        where = [listed(context, public=public, all_projects=all_projects), *SHARES.matches(filters)]
        with self.store.read() as connection:
            return SHARES.count(connection, *where)[0]

    def usage(self, context: Context) -> tuple[int, int]:
        """The number of the project's shares, and their size."""
        with self.store.read() as connection:
            return SHARES.count(connection, *SHARES.listed(context, None, False))

    def create(self, context: Context, size: int, protocol: str, **kwargs: Any) -> Share:
        """Create a share, which is available at once; raises OverQuota. kwargs: name, description, metadata,
        is_public."""
        if context.project_id is None:
            raise errors.Forbidden('This requires a token that is scoped to a project.')
        check_public(context, kwargs)
        share_id, now = randomness.new_id(), self.clock()
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
            **kwargs,
        )
        with self.store.write() as connection:
            check_quota(connection, context.project_id, size)
            SHARES.insert(connection, vars(share))
        return share

    def update(self, context: Context, share_id: str, **kwargs: Any) -> Share:
        """Change name, description, is_public or metadata."""
        return self.change(context, share_id, lambda share: kwargs)

    def change(self, context: Context, share_id: str, change: Callable[[Share], Mapping[str, Any]]) -> Share:
        """Like `update`, with changes computed from the current share, which stays locked between reading and
        writing."""
        with self._own(context, share_id) as (connection, share):
            facts = {**change(share), 'updated_at': self.clock()}
            check_public(context, facts, share)
            check_pairs('A share', facts.get('metadata', {}))
            SHARES.update(connection, share_id, facts)
        return replace(share, **facts)

    def resize(self, context: Context, share_id: str, size: int, *, grow: bool) -> None:
        """Raises Invalid unless the share becomes larger (grow) or smaller (otherwise), and OverQuota."""
        with self._own(context, share_id) as (connection, share):
            if share.status != 'available':
                raise errors.Invalid(f'Share {share_id} cannot be resized while it is {share.status}.')
            if share.size == size or grow != (size > share.size):
                raise errors.Invalid(f'New size must be {"greater" if grow else "less"} than the current {share.size}.')
            if grow:
                check_quota(connection, share.project_id, size - share.size, count=0)
            SHARES.update(connection, share_id, {'size': size, 'updated_at': self.clock()})

    def delete(self, context: Context, share_id: str) -> None:
        """Raises Forbidden while an access rule of the share is locked."""
        with self._own(context, share_id) as (connection, share):
            if any(rule['locked'] for rule in ACCESS_RULES.select(connection, rules_of(share_id))):
                raise errors.Forbidden(f'Share {share_id} is locked, like one of its access rules.')
            SHARES.delete(connection, SHARES.among([share_id]))

    @contextmanager
    def _own(self, context: Context, share_id: str) -> Iterator[tuple[sa.Connection, Share]]:
        """A transaction that locks the share; raises Forbidden for a public share of another project."""
        with self.store.write() as connection:
            share = Share(**SHARES.get(connection, context, share_id, lock=True))
            if not context.is_admin and share.project_id != context.project_id:
                raise errors.Forbidden(f'Share {share_id} belongs to another project.')
            yield connection, share

    # ------------------------------------------------------------ access rules

    def allow(self, context: Context, share_id: str, address: str) -> None:
        with self.store.write() as connection:
            SHARES.get(connection, context, share_id, lock=True)
            facts = {'access_level': 'rw', 'locked': True, 'hidden': True, 'locked_by': None}
            for rule in ACCESS_RULES.select(connection, rules_of(share_id)):
                if (rule['access_type'], rule['access_to']) == ('ip', address):
                    ACCESS_RULES.update(connection, rule['id'], facts)
                    return
            self._insert(connection, share_id, access_type='ip', access_to=address, **facts)

    def deny(self, context: Context, share_id: str, address: str) -> None:
        with self.store.write() as connection:
            rules = ACCESS_RULES.select(connection, rules_of(share_id))
            found = [rule['id'] for rule in rules if (rule['access_type'], rule['access_to']) == ('ip', address)]
            ACCESS_RULES.delete(connection, ACCESS_RULES.among(found))

    def rules(self, context: Context, share_id: str) -> builtins.list[AccessRule]:
        """The access rules of a share; empty for a public share of another project."""
        with self.store.read() as connection:
            SHARES.get(connection, context, share_id)
            found = ACCESS_RULES.select(connection, rules_of(share_id), ACCESS_RULES.visible(context))
        return [AccessRule(**facts) for facts in found]

    def rule(self, context: Context, rule_id: str) -> AccessRule:
        """Raises ShareAccessNotFound."""
        with self.store.read() as connection:
            return AccessRule(**ACCESS_RULES.get(connection, context, rule_id))

    def grant(
        self,
        context: Context,
        share_id: str,
        kind: str,
        name: str,
        level: str,
        *,
        locked: bool = False,
        hidden: bool = False,
        metadata: Mapping[str, str] | None = None,
    ) -> AccessRule:
        """Create an access rule, which the caller may lock or hide from others; raises Invalid if there is one for the
        same name, or if the share has too many rules, or the rule too much metadata."""
        check_pairs('An access rule', metadata or {})
        with self._own(context, share_id) as (connection, share):
            rules = ACCESS_RULES.select(connection, rules_of(share_id))
            if any((rule['access_type'], address(rule['access_to'])) == (kind, address(name)) for rule in rules):
                raise errors.Invalid(f'Share access {kind}:{name} exists.')
            if len(rules) >= MAX_RULES:
                raise errors.Invalid(f'A share must not have more than {MAX_RULES} access rules.')
            facts = {'access_type': kind, 'access_to': name, 'access_level': level, 'locked': locked, 'hidden': hidden}
            more = {'locked_by': None if context.is_admin else context.user_id, 'metadata': metadata or {}}
            rule_id = self._insert(connection, share_id, **facts, **more)
            return AccessRule(**ACCESS_RULES.get(connection, context, rule_id))

    def change_rule(
        self, context: Context, rule_id: str, change: Callable[[Mapping[str, str]], Mapping[str, str]]
    ) -> AccessRule:
        """Change the metadata of an access rule."""
        with self._own(context, self.rule(context, rule_id).share_id) as (connection, share):
            metadata = change(AccessRule(**ACCESS_RULES.get(connection, context, rule_id)).metadata)
            check_pairs('An access rule', metadata)
            ACCESS_RULES.update(connection, rule_id, {'metadata': metadata, 'updated_at': self.clock()})
            return AccessRule(**ACCESS_RULES.get(connection, context, rule_id))

    def revoke(self, context: Context, share_id: str, rule_id: str, *, unrestrict: bool = False) -> None:
        """Delete an access rule. Raises ShareAccessNotFound, or Forbidden if the rule is locked, unless who locked it
        or an administrator passes `unrestrict`."""
        with self._own(context, share_id) as (connection, share):
            rule = AccessRule(**ACCESS_RULES.get(connection, context, rule_id))
            if rule.share_id != share_id:
                raise errors.ShareAccessNotFound(id=rule_id)
            if rule.locked and (not unrestrict or rule.concerns(context)):
                raise errors.Forbidden(f'Access rule {rule_id} is locked.')
            ACCESS_RULES.delete(connection, ACCESS_RULES.among([rule_id]))

    def _insert(self, connection: sa.Connection, share_id: str, **kwargs: Any) -> str:
        rule_id, now = randomness.new_id(), self.clock()
        ACCESS_RULES.insert(
            connection, {'id': rule_id, 'share_id': share_id, 'created_at': now, 'updated_at': now, **kwargs}
        )
        return rule_id


def exported(protocol: str, share_id: str) -> str:
    """An export location in the format of the protocol; nothing is served there."""
    return f'{HOST}:6789:/volumes/{share_id}' if protocol == 'CEPHFS' else f'{HOST}:/shares/{share_id}'


def address(name: str) -> str:
    """The name without the prefix length of a network that consists of one address."""
    return name.removesuffix('/32' if '.' in name else '/128')


def check_pairs(whose: str, pairs: Mapping[str, str]) -> None:
    if len(pairs) > MAX_PAIRS:
        raise errors.Invalid(f'{whose} must not have more than {MAX_PAIRS} metadata items.')


def check_public(context: Context, facts: Mapping[str, Any], share: Share | None = None) -> None:
    """Raises Forbidden if a caller other than an administrator makes a share public, as under Manila's default
    policy."""
    was_public = share is not None and share.is_public
    if facts.get('is_public') and not was_public and not context.is_admin:
        raise errors.Forbidden('You are not authorized to make a share public.')


def check_quota(connection: sa.Connection, project_id: str, size: int, *, count: int = 1) -> None:
    """Raises OverQuota if the project may not have another share of that size; count=0: so much more in its shares."""
    lock_project(connection, project_id)
    shares, gigabytes = SHARES.count(connection, *SHARES.matches({'project_id': project_id}))
    if shares + count > MAX_SHARES:
        raise errors.OverQuota(f'ShareLimitExceeded: Maximum number of shares allowed ({MAX_SHARES}) exceeded.')
    if gigabytes + size > MAX_GIGABYTES:
        raise errors.OverQuota(
            f'ShareSizeExceedsAvailableQuota: Requested share exceeds allowed gigabytes ({MAX_GIGABYTES}).'
        )
