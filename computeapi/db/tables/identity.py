"""Tables of the identity service."""

import sqlalchemy as sa

from computeapi.db.tables.types import Id, LongText, Text, Timestamp, metadata

domains = sa.Table(
    'identity_domains',
    metadata,
    sa.Column('id', Id(), primary_key=True),
    sa.Column('name', Text(64), nullable=False, unique=True),
    sa.Column('description', LongText(), nullable=False),
    sa.Column('enabled', sa.Boolean, nullable=False),
)

projects = sa.Table(
    'identity_projects',
    metadata,
    sa.Column('id', Id(), primary_key=True),
    sa.Column('domain_id', sa.ForeignKey(domains.c.id), nullable=False),
    sa.Column('name', Text(64), nullable=False),
    sa.Column('description', LongText(), nullable=False),
    sa.Column('enabled', sa.Boolean, nullable=False),
    sa.Column('tags', sa.JSON, nullable=False),
    sa.Column('extra', sa.JSON, nullable=False),
    sa.UniqueConstraint('domain_id', 'name'),
)

users = sa.Table(
    'identity_users',
    metadata,
    sa.Column('id', Id(), primary_key=True),
    sa.Column('domain_id', sa.ForeignKey(domains.c.id), nullable=False),
    sa.Column('name', Text(255), nullable=False),
    sa.Column('description', LongText(), nullable=False),
    sa.Column('enabled', sa.Boolean, nullable=False),
    sa.Column('password_hash', Text(64)),
    sa.Column('default_project_id', sa.ForeignKey(projects.c.id, ondelete='SET NULL')),
    sa.Column('options', sa.JSON, nullable=False),
    sa.Column('extra', sa.JSON, nullable=False),
    sa.UniqueConstraint('domain_id', 'name'),
)

roles = sa.Table(
    'identity_roles',
    metadata,
    sa.Column('id', Id(), primary_key=True),
    sa.Column('name', Text(255), nullable=False, unique=True),
    sa.Column('description', LongText(), nullable=False),
    sa.Column('immutable', sa.Boolean, nullable=False),
)

# A target is a project, a domain or the system, so its id has no foreign key of its own.
grants = sa.Table(
    'identity_grants',
    metadata,
    sa.Column('user_id', sa.ForeignKey(users.c.id, ondelete='CASCADE'), primary_key=True),
    sa.Column('target_kind', Text(16), primary_key=True),
    sa.Column('target_id', Id(), primary_key=True),
    sa.Column('role_id', sa.ForeignKey(roles.c.id, ondelete='CASCADE'), primary_key=True),
    sa.Index(None, 'target_kind', 'target_id'),
)

application_credentials = sa.Table(
    'identity_application_credentials',
    metadata,
    sa.Column('id', Id(), primary_key=True),
    sa.Column('user_id', sa.ForeignKey(users.c.id, ondelete='CASCADE'), nullable=False),
    sa.Column('project_id', sa.ForeignKey(projects.c.id, ondelete='CASCADE'), nullable=False),
    sa.Column('name', Text(255), nullable=False),
    sa.Column('description', LongText(), nullable=False),
    sa.Column('secret_hash', Text(64), nullable=False),
    sa.Column('role_ids', sa.JSON, nullable=False),
    sa.Column('unrestricted', sa.Boolean, nullable=False),
    sa.Column('expires_at', Timestamp()),
    sa.UniqueConstraint('user_id', 'name'),
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
