"""Queries of the identity service: accounts, their credentials and their tokens."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple, TypeVar

import sqlalchemy as sa

from computeapi.db.records import Rows
from computeapi.db.tables.identity import (
    Ancestor,
    ApplicationCredential,
    CredentialRule,
    Domain,
    Membership,
    Project,
    Role,
    StoredCredential,
    Trust,
    User,
    UserGroup,
    access_rules,
    ancestors,
    application_credentials,
    domains,
    groups,
    memberships,
    projects,
    stored_credentials,
    tokens,
    trusts,
    users,
)

__all__ = [
    'CredentialRule',
    'ApplicationCredential',
    'Domain',
    'Membership',
    'Project',
    'Role',
    'StoredCredential',
    'Trust',
    'User',
    'UserGroup',
]

# How many rows one statement deletes.
BATCH = 500

BY_NAME = (projects.c.name, projects.c.id)

# A user, project, domain or credential: {'id': ...}, or {'name': ...} with the 'domain' or 'user' that it is unique in.
Reference = Mapping[str, Any]


class Token(NamedTuple):
    """A token with the names of everything that it refers to.

    credential_role_ids, access_rule_ids: the limits of its application credential.  trust_role_ids: the roles of its
    trust, in which case its rights are those of the trustor.  roles, access_rules: the current effective rights on the
    target, which are looked up separately.
    """

    user_id: str
    project_id: str | None
    domain_id: str | None
    system: bool
    methods: list[str]
    audit_ids: list[str]
    application_credential_id: str | None
    trust_id: str | None
    issued_at: datetime
    expires_at: datetime
    user_name: str
    user_domain_id: str
    user_domain_name: str
    project_name: str | None
    project_domain_id: str | None
    scope_domain_name: str | None
    application_credential_name: str | None
    unrestricted: bool | None
    credential_role_ids: list[str] | None
    access_rule_ids: list[str] | None
    trustor_user_id: str | None
    trustee_user_id: str | None
    impersonation: bool | None
    trust_role_ids: list[str] | None
    roles: Sequence[Role] = ()
    access_rules: Sequence[CredentialRule] | None = None


R = TypeVar('R')

DOMAINS = Rows(Domain, domains)
PROJECTS = Rows(Project, projects)
ANCESTORS = Rows(Ancestor, ancestors)
USERS = Rows(User, users)
GROUPS = Rows(UserGroup, groups)
MEMBERSHIPS = Rows(Membership, memberships)
CREDENTIALS = Rows(ApplicationCredential, application_credentials)
TRUSTS = Rows(Trust, trusts)
ACCESS_RULES = Rows(CredentialRule, access_rules)
STORED_CREDENTIALS = Rows(StoredCredential, stored_credentials)


def find_referenced(connection: sa.Connection, records: Rows[R], reference: Reference) -> R | None:
    """The record with the reference's `id`, or else with its `name` (in its `domain`, itself a reference)."""
    if 'id' in reference:
        return records.find(connection, id=reference['id'])
    # A domain is in no other, whatever the reference says.
    if records is DOMAINS:
        return _find_alike(connection, records, reference['name'])
    if 'domain' not in reference:
        return records.find(connection, name=reference['name'])
    domain = find_referenced(connection, DOMAINS, reference['domain'])
    return records.find(connection, name=reference['name'], domain_id=domain.id) if domain else None


def _find_alike(connection: sa.Connection, records: Rows[R], name: str) -> R | None:
    """The record with this name; if there is none, the only one whose name differs in case alone. Installation guides
    and the defaults of many services write the domain `default`, which Keystone finds in MariaDB."""
    if found := records.find(connection, name=name):
        return found
    alike = records.all(connection, records.select.where(sa.func.lower(records.table.c.name) == name.lower()))
    return alike[0] if len(alike) == 1 else None


def find_credential(connection: sa.Connection, reference: Reference) -> ApplicationCredential | None:
    """The application credential with this `id`, or else with this `name` of this `user`."""
    if 'id' in reference:
        return CREDENTIALS.find(connection, id=reference['id'])
    user = find_referenced(connection, USERS, reference['user'])
    return CREDENTIALS.find(connection, name=reference['name'], user_id=user.id) if user else None


# Accounts


def projects_below(connection: sa.Connection, ancestor_id: str) -> list[Project]:
    """All descendants of a project or domain, by name."""
    query = PROJECTS.select.join(ancestors, ancestors.c.project_id == projects.c.id)
    return PROJECTS.all(connection, query.where(ancestors.c.ancestor_id == ancestor_id).order_by(*BY_NAME))


def projects_above(connection: sa.Connection, project_id: str) -> list[Project]:
    """All ancestors of a project, by name, without the domain."""
    query = PROJECTS.select.join(ancestors, ancestors.c.ancestor_id == projects.c.id)
    return PROJECTS.all(connection, query.where(ancestors.c.project_id == project_id).order_by(*BY_NAME))


def insert_ancestors(connection: sa.Connection, project_id: str, parent_id: str) -> None:
    """Insert the ancestors of a new project: its parent, and the parent's ancestors."""
    above = sa.select(sa.literal(project_id), ancestors.c.ancestor_id).where(ancestors.c.project_id == parent_id)
    connection.execute(sa.insert(ancestors).from_select(['project_id', 'ancestor_id'], above))
    ANCESTORS.insert(connection, project_id=project_id, ancestor_id=parent_id)


def members(connection: sa.Connection, group_id: str) -> list[User]:
    query = USERS.select.join(memberships, memberships.c.user_id == users.c.id)
    return USERS.all(connection, query.where(memberships.c.group_id == group_id).order_by(users.c.name, users.c.id))


def groups_of(connection: sa.Connection, user_id: str) -> list[UserGroup]:
    query = GROUPS.select.join(memberships, memberships.c.group_id == groups.c.id)
    return GROUPS.all(connection, query.where(memberships.c.user_id == user_id).order_by(groups.c.name, groups.c.id))


def find_access_rules(connection: sa.Connection, rule_ids: Sequence[str]) -> list[CredentialRule]:
    query = ACCESS_RULES.select.where(access_rules.c.id.in_(rule_ids))
    return ACCESS_RULES.all(connection, query.order_by(access_rules.c.id))


def purge_trusts(connection: sa.Connection, trustor_user_id: str, now: datetime) -> None:
    """Delete the user's trusts that can no longer be used and by which no token acts any more."""
    used_up = (trusts.c.remaining_uses == 0) & ~sa.exists().where(tokens.c.trust_id == trusts.c.id)
    ended = (trusts.c.trustor_user_id == trustor_user_id, used_up | (trusts.c.expires_at <= now))
    connection.execute(sa.delete(trusts).where(*ended))


# Tokens


USER_DOMAIN, SCOPE_DOMAIN = domains.alias('user_domain'), domains.alias('scope_domain')
TOKENS = Rows(
    Token,
    tokens,
    user_name=users.c.name,
    user_domain_id=USER_DOMAIN.c.id,
    user_domain_name=USER_DOMAIN.c.name,
    project_name=projects.c.name,
    project_domain_id=projects.c.domain_id,
    scope_domain_name=SCOPE_DOMAIN.c.name,
    application_credential_name=application_credentials.c.name,
    unrestricted=application_credentials.c.unrestricted,
    credential_role_ids=application_credentials.c.role_ids,
    access_rule_ids=application_credentials.c.access_rule_ids,
    trustor_user_id=trusts.c.trustor_user_id,
    trustee_user_id=trusts.c.trustee_user_id,
    impersonation=trusts.c.impersonation,
    trust_role_ids=trusts.c.role_ids,
)
WHOLE_TOKENS = (
    TOKENS.select.select_from(tokens)
    .join(users, users.c.id == tokens.c.user_id)
    .join(USER_DOMAIN, USER_DOMAIN.c.id == users.c.domain_id)
    .outerjoin(projects, projects.c.id == tokens.c.project_id)
    .outerjoin(SCOPE_DOMAIN, SCOPE_DOMAIN.c.id == sa.func.coalesce(tokens.c.domain_id, projects.c.domain_id))
    .outerjoin(application_credentials, application_credentials.c.id == tokens.c.application_credential_id)
    .outerjoin(trusts, trusts.c.id == tokens.c.trust_id)
)


def find_token(connection: sa.Connection, token_hash: str, now: datetime) -> Token | None:
    """A valid token; None if its user, its project or one of their domains is disabled."""
    living = (
        tokens.c.hash == token_hash,
        tokens.c.expires_at > now,
        users.c.enabled,
        USER_DOMAIN.c.enabled,
        sa.or_(tokens.c.project_id.is_(None), projects.c.enabled),
        sa.or_(SCOPE_DOMAIN.c.id.is_(None), SCOPE_DOMAIN.c.enabled),
    )
    return TOKENS.first(connection, WHOLE_TOKENS.where(*living))


def insert_token(connection: sa.Connection, **values: Any) -> None:
    connection.execute(sa.insert(tokens).values(values))


def delete_tokens_of_user(connection: sa.Connection, user_id: str) -> None:
    """Delete the tokens of a user, and those based on trusts in which the user is trustor or trustee."""
    _delete_tokens(connection, sa.union(*_tokens_of(sa.select(users.c.id).where(users.c.id == user_id))))


def delete_tokens_of_domain(connection: sa.Connection, domain_id: str) -> None:
    """Delete the tokens of a domain's users, those by their trusts, and those for the domain or its projects."""
    scoped = sa.or_(
        tokens.c.domain_id == domain_id,
        tokens.c.project_id.in_(sa.select(projects.c.id).where(projects.c.domain_id == domain_id)),
    )
    inside = sa.select(users.c.id).where(users.c.domain_id == domain_id)
    _delete_tokens(connection, sa.union(sa.select(tokens.c.hash).where(scoped), *_tokens_of(inside)))


def _tokens_of(user_ids: sa.Select[tuple[str]]) -> list[sa.Select[tuple[str]]]:
    """Statements for the hashes of the users' tokens, one for each way in which a token can be a user's."""
    parties = (trusts.c.trustor_user_id, trusts.c.trustee_user_id)
    ways = [tokens.c.trust_id.in_(sa.select(trusts.c.id).where(party.in_(user_ids))) for party in parties]
    return [sa.select(tokens.c.hash).where(way) for way in (tokens.c.user_id.in_(user_ids), *ways)]


def delete_tokens(connection: sa.Connection, **values: Any) -> None:
    """Delete the tokens with these values."""
    _delete_tokens(connection, sa.select(tokens.c.hash).filter_by(**values))


def purge_tokens(connection: sa.Connection, now: datetime) -> None:
    """Delete a batch of expired tokens; the next call deletes more."""
    _delete_tokens(connection, sa.select(tokens.c.hash).where(tokens.c.expires_at <= now).limit(BATCH))


def purge_tokens_of(connection: sa.Connection, user_id: str, trust_id: str | None, most: int) -> None:
    """Keep only the newest *most* of a user's tokens: its own, or those by one trust, which count separately."""
    mine = (tokens.c.user_id == user_id, tokens.c.trust_id == trust_id)
    newest_first = sa.select(tokens.c.hash).where(*mine).order_by(tokens.c.issued_at.desc())
    _delete_tokens(connection, newest_first.offset(most).limit(BATCH))


def _delete_tokens(connection: sa.Connection, query: sa.Executable) -> None:
    # MariaDB locks index entries as it scans. By primary key, in its order, concurrent deletions cannot deadlock.
    hashes = sorted(connection.execute(query).scalars())
    for batch in range(0, len(hashes), BATCH):
        connection.execute(sa.delete(tokens).where(tokens.c.hash.in_(hashes[batch : batch + BATCH])))
