"""Tables of the identity service, and the records that are their rows."""

from datetime import datetime
from typing import Annotated, Any, NamedTuple

import sqlalchemy as sa

from computeapi.db.tables.columns import KEY, UNIQUE, AnyText, ShortText, TextId, table
from computeapi.db.tables.types import Text, Timestamp, metadata


class Domain(NamedTuple):
    id: Annotated[TextId, KEY]
    name: Annotated[ShortText, UNIQUE]
    description: AnyText
    enabled: bool


domains = table('identity_domains', Domain)


class Project(NamedTuple):
    """`extra` holds the attributes that clients thought of."""

    id: Annotated[TextId, KEY]
    domain_id: Annotated[TextId, sa.ForeignKey('identity_domains.id')]
    name: ShortText
    description: AnyText
    enabled: bool
    tags: list[str]
    extra: dict[str, Any]


projects = table('identity_projects', Project, sa.UniqueConstraint('domain_id', 'name'))


class User(NamedTuple):
    """Without a password_hash a user cannot log in."""

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


class Role(NamedTuple):
    id: Annotated[TextId, KEY]
    name: Annotated[str, UNIQUE]
    description: AnyText
    immutable: bool


roles = table('identity_roles', Role)


class Grant(NamedTuple):
    """A role of a user on a project, a domain or the system; so the id of the target has no foreign key of its own."""

    user_id: Annotated[TextId, sa.ForeignKey('identity_users.id', ondelete='CASCADE'), KEY]
    target_kind: Annotated[str, Text(16), KEY]
    target_id: Annotated[TextId, KEY]
    role_id: Annotated[TextId, sa.ForeignKey('identity_roles.id', ondelete='CASCADE'), KEY]


grants = table('identity_grants', Grant, sa.Index(None, 'target_kind', 'target_id'))


class ApplicationCredential(NamedTuple):
    id: Annotated[TextId, KEY]
    user_id: Annotated[TextId, sa.ForeignKey('identity_users.id', ondelete='CASCADE')]
    project_id: Annotated[TextId, sa.ForeignKey('identity_projects.id', ondelete='CASCADE')]
    name: str
    description: AnyText
    secret_hash: ShortText
    role_ids: list[str]
    unrestricted: bool
    expires_at: datetime | None


application_credentials = table(
    'identity_application_credentials', ApplicationCredential, sa.UniqueConstraint('user_id', 'name')
)


# The token itself is never stored: who reads this table cannot use what it finds.
tokens = sa.Table(
    'identity_tokens',
    metadata,
    sa.Column('hash', Text(64), primary_key=True),
    sa.Column('user_id', sa.ForeignKey(users.c.id, ondelete='CASCADE'), nullable=False, index=True),
    sa.Column('project_id', sa.ForeignKey(projects.c.id, ondelete='CASCADE'), index=True),
    sa.Column('domain_id', sa.ForeignKey(domains.c.id, ondelete='CASCADE')),
    sa.Column('system', sa.Boolean, nullable=False),
    sa.Column('roles', sa.JSON, nullable=False),
    sa.Column('methods', sa.JSON, nullable=False),
    sa.Column('audit_ids', sa.JSON, nullable=False),
    sa.Column('application_credential_id', sa.ForeignKey(application_credentials.c.id, ondelete='CASCADE'), index=True),
    sa.Column('issued_at', Timestamp(), nullable=False),
    sa.Column('expires_at', Timestamp(), nullable=False, index=True),
)
