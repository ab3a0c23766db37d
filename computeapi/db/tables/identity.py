"""Tables of the identity service, and the records that are their rows."""

from datetime import datetime
from typing import Annotated, Any, NamedTuple

import sqlalchemy as sa

from computeapi.db.tables.columns import INDEX, KEY, UNIQUE, AnyText, ShortText, TextId, table
from computeapi.db.tables.types import Text, Timestamp, metadata


class Domain(NamedTuple):
    id: Annotated[TextId, KEY]
    name: Annotated[ShortText, UNIQUE]
    description: AnyText
    enabled: bool
    tags: list[str]
    options: dict[str, Any]
    extra: dict[str, Any]


domains = table('identity_domains', Domain)


class Project(NamedTuple):
    """`extra` holds attributes that clients have added; the parent is a project, or else the domain."""

    id: Annotated[TextId, KEY]
    domain_id: Annotated[TextId, sa.ForeignKey('identity_domains.id')]
    parent_id: Annotated[TextId, INDEX]
    name: ShortText
    description: AnyText
    enabled: bool
    tags: list[str]
    options: dict[str, Any]
    extra: dict[str, Any]


projects = table('identity_projects', Project, sa.UniqueConstraint('domain_id', 'name'))


class Ancestor(NamedTuple):
    """An ancestor of a project: a project or the domain. It does not change during the project's lifetime."""

    project_id: Annotated[TextId, sa.ForeignKey('identity_projects.id', ondelete='CASCADE'), KEY]
    ancestor_id: Annotated[TextId, KEY, INDEX]


ancestors = table('identity_ancestors', Ancestor)


class User(NamedTuple):
    """A user without a password_hash cannot log in."""

    id: Annotated[TextId, KEY]
    domain_id: Annotated[TextId, sa.ForeignKey('identity_domains.id')]
    name: str
    description: AnyText
    enabled: bool
    password_hash: ShortText | None
    default_project_id: Annotated[TextId, sa.ForeignKey('identity_projects.id', ondelete='SET NULL')] | None
    options: dict[str, Any]
    extra: dict[str, Any]


users = table('identity_users', User, sa.UniqueConstraint('domain_id', 'name'))


class UserGroup(NamedTuple):
    id: Annotated[TextId, KEY]
    domain_id: Annotated[TextId, sa.ForeignKey('identity_domains.id')]
    name: ShortText
    description: AnyText
    extra: dict[str, Any]


groups = table('identity_groups', UserGroup, sa.UniqueConstraint('domain_id', 'name'))


class Membership(NamedTuple):
    group_id: Annotated[TextId, sa.ForeignKey('identity_groups.id', ondelete='CASCADE'), KEY]
    user_id: Annotated[TextId, sa.ForeignKey('identity_users.id', ondelete='CASCADE'), KEY, INDEX]


memberships = table('identity_memberships', Membership)


class Role(NamedTuple):
    """A role without a domain is global; its domain_id is '', which unlike NULL the unique constraint covers."""

    id: Annotated[TextId, KEY]
    domain_id: TextId
    name: str
    description: AnyText
    immutable: bool
    extra: dict[str, Any]


roles = table('identity_roles', Role, sa.UniqueConstraint('domain_id', 'name'))


class Implication(NamedTuple):
    """The prior role implies the other one."""

    prior_role_id: Annotated[TextId, sa.ForeignKey('identity_roles.id', ondelete='CASCADE'), KEY]
    implied_role_id: Annotated[TextId, sa.ForeignKey('identity_roles.id', ondelete='CASCADE'), KEY, INDEX]


implications = table('identity_implications', Implication)


class Grant(NamedTuple):
    """A role of a user or a group on a project, a domain or the system; so neither ID can have a foreign key.

    inherited: it applies not to the target, but to all projects below it.
    """

    actor_id: Annotated[TextId, KEY]
    target_kind: Annotated[str, Text(16), KEY]
    target_id: Annotated[TextId, KEY]
    role_id: Annotated[TextId, sa.ForeignKey('identity_roles.id', ondelete='CASCADE'), KEY, INDEX]
    inherited: Annotated[bool, KEY]


grants = table('identity_role_assignments', Grant, sa.Index(None, 'target_kind', 'target_id'))


class CredentialRule(NamedTuple):
    """An access rule: the requests that an application credential restricted to such rules may be used for."""

    id: Annotated[TextId, KEY]
    user_id: Annotated[TextId, sa.ForeignKey('identity_users.id', ondelete='CASCADE')]
    service: str
    method: Annotated[str, Text(16)]
    path: str


access_rules = table(
    'identity_access_rules', CredentialRule, sa.UniqueConstraint('user_id', 'service', 'method', 'path')
)


class ApplicationCredential(NamedTuple):
    id: Annotated[TextId, KEY]
    user_id: Annotated[TextId, sa.ForeignKey('identity_users.id', ondelete='CASCADE')]
    project_id: Annotated[TextId, sa.ForeignKey('identity_projects.id', ondelete='CASCADE')]
    name: str
    description: AnyText
    secret_hash: ShortText
    role_ids: list[str]
    access_rule_ids: list[str] | None
    unrestricted: bool
    expires_at: datetime | None


application_credentials = table(
    'identity_application_credentials', ApplicationCredential, sa.UniqueConstraint('user_id', 'name')
)


class Trust(NamedTuple):
    """Roles of the trustor on a project that are delegated to the trustee."""

    id: Annotated[TextId, KEY]
    trustor_user_id: Annotated[TextId, sa.ForeignKey('identity_users.id', ondelete='CASCADE'), INDEX]
    trustee_user_id: Annotated[TextId, sa.ForeignKey('identity_users.id', ondelete='CASCADE'), INDEX]
    project_id: Annotated[TextId, sa.ForeignKey('identity_projects.id', ondelete='CASCADE'), INDEX]
    role_ids: list[str]
    impersonation: bool
    expires_at: datetime | None
    remaining_uses: int | None


trusts = table('identity_trusts', Trust)


class StoredCredential(NamedTuple):
    """A secret that the identity service stores for others, encrypted."""

    id: Annotated[TextId, KEY]
    user_id: Annotated[TextId, sa.ForeignKey('identity_users.id', ondelete='CASCADE'), INDEX]
    project_id: TextId | None
    type: str
    encrypted_blob: AnyText


stored_credentials = table('identity_credentials', StoredCredential)


# The token itself is never stored: its hash cannot be used to log in.
tokens = sa.Table(
    'identity_tokens',
    metadata,
    sa.Column('hash', Text(64), primary_key=True),
    sa.Column('user_id', sa.ForeignKey(users.c.id, ondelete='CASCADE'), nullable=False, index=True),
    sa.Column('project_id', sa.ForeignKey(projects.c.id, ondelete='CASCADE'), index=True),
    sa.Column('domain_id', sa.ForeignKey(domains.c.id, ondelete='CASCADE')),
    sa.Column('system', sa.Boolean, nullable=False),
    sa.Column('methods', sa.JSON, nullable=False),
    sa.Column('audit_ids', sa.JSON, nullable=False),
    sa.Column('application_credential_id', sa.ForeignKey(application_credentials.c.id, ondelete='CASCADE'), index=True),
    sa.Column('trust_id', sa.ForeignKey(trusts.c.id, ondelete='CASCADE'), index=True),
    sa.Column('issued_at', Timestamp(), nullable=False),
    sa.Column('expires_at', Timestamp(), nullable=False, index=True),
)
