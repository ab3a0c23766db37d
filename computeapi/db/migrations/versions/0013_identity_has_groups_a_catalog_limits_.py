"""Identity has groups, a catalog, limits and trees of projects."""

import sqlalchemy as sa
from alembic import op

from computeapi.db.tables.types import LongText, Text

revision = '0013'
down_revision = '0012'


def upgrade() -> None:
    op.create_table(
        'identity_endpoint_groups',
        sa.Column('id', Text(64), nullable=False),
        sa.Column('name', Text(255), nullable=False),
        sa.Column('description', LongText(), nullable=False),
        sa.Column('filters', sa.JSON(none_as_null=True), nullable=False),
        sa.PrimaryKeyConstraint('id', name='pk_identity_endpoint_groups'),
    )
    op.create_table(
        'identity_policies',
        sa.Column('id', Text(64), nullable=False),
        sa.Column('type', Text(255), nullable=False),
        sa.Column('blob', LongText(), nullable=False),
        sa.Column('extra', sa.JSON(none_as_null=True), nullable=False),
        sa.PrimaryKeyConstraint('id', name='pk_identity_policies'),
    )
    op.create_table(
        'identity_regions',
        sa.Column('id', Text(255), nullable=False),
        sa.Column('description', LongText(), nullable=False),
        sa.Column('parent_region_id', Text(255)),
        sa.Column('extra', sa.JSON(none_as_null=True), nullable=False),
        sa.ForeignKeyConstraint(
            ['parent_region_id'], ['identity_regions.id'], name='fk_identity_regions_parent_region_id'
        ),
        sa.PrimaryKeyConstraint('id', name='pk_identity_regions'),
    )
    op.create_table(
        'identity_registered_limits',
        sa.Column('id', Text(64), nullable=False),
        sa.Column('service_id', Text(64), nullable=False),
        sa.Column('region_id', Text(255), nullable=False),
        sa.Column('resource_name', Text(255), nullable=False),
        sa.Column('default_limit', sa.Integer(), nullable=False),
        sa.Column('description', LongText(), nullable=False),
        sa.PrimaryKeyConstraint('id', name='pk_identity_registered_limits'),
        sa.UniqueConstraint('service_id', 'region_id', 'resource_name', name='uq_identity_registered_limits_place'),
    )
    op.create_table(
        'identity_services',
        sa.Column('id', Text(64), nullable=False),
        sa.Column('type', Text(255), nullable=False),
        sa.Column('name', Text(255)),
        sa.Column('description', LongText(), nullable=False),
        sa.Column('enabled', sa.Boolean(), nullable=False),
        sa.Column('extra', sa.JSON(none_as_null=True), nullable=False),
        sa.PrimaryKeyConstraint('id', name='pk_identity_services'),
    )
    op.create_table(
        'identity_endpoints',
        sa.Column('id', Text(64), nullable=False),
        sa.Column('service_id', Text(64), nullable=False),
        sa.Column('region_id', Text(255)),
        sa.Column('interface', Text(8), nullable=False),
        sa.Column('url', LongText(), nullable=False),
        sa.Column('enabled', sa.Boolean(), nullable=False),
        sa.Column('extra', sa.JSON(none_as_null=True), nullable=False),
        sa.ForeignKeyConstraint(['region_id'], ['identity_regions.id'], name='fk_identity_endpoints_region_id'),
        sa.ForeignKeyConstraint(
            ['service_id'], ['identity_services.id'], name='fk_identity_endpoints_service_id', ondelete='CASCADE'
        ),
        sa.PrimaryKeyConstraint('id', name='pk_identity_endpoints'),
    )
    with op.batch_alter_table('identity_endpoints', schema=None) as batch_op:
        batch_op.create_index('ix_identity_endpoints_service_id', ['service_id'])

    op.create_table(
        'identity_groups',
        sa.Column('id', Text(64), nullable=False),
        sa.Column('domain_id', Text(64), nullable=False),
        sa.Column('name', Text(64), nullable=False),
        sa.Column('description', LongText(), nullable=False),
        sa.Column('extra', sa.JSON(none_as_null=True), nullable=False),
        sa.ForeignKeyConstraint(['domain_id'], ['identity_domains.id'], name='fk_identity_groups_domain_id'),
        sa.PrimaryKeyConstraint('id', name='pk_identity_groups'),
        sa.UniqueConstraint('domain_id', 'name', name='uq_identity_groups_domain_id_name'),
    )
    op.create_table(
        'identity_implications',
        sa.Column('prior_role_id', Text(64), nullable=False),
        sa.Column('implied_role_id', Text(64), nullable=False),
        sa.ForeignKeyConstraint(
            ['implied_role_id'],
            ['identity_roles.id'],
            name='fk_identity_implications_implied_role_id',
            ondelete='CASCADE',
        ),
        sa.ForeignKeyConstraint(
            ['prior_role_id'], ['identity_roles.id'], name='fk_identity_implications_prior_role_id', ondelete='CASCADE'
        ),
        sa.PrimaryKeyConstraint('prior_role_id', 'implied_role_id', name='pk_identity_implications'),
    )
    with op.batch_alter_table('identity_implications', schema=None) as batch_op:
        batch_op.create_index('ix_identity_implications_implied_role_id', ['implied_role_id'])

    op.create_table(
        'identity_limits',
        sa.Column('id', Text(64), nullable=False),
        sa.Column('registered_limit_id', Text(64), nullable=False),
        sa.Column('owner_id', Text(64), nullable=False),
        sa.Column('resource_limit', sa.Integer(), nullable=False),
        sa.Column('description', LongText(), nullable=False),
        sa.ForeignKeyConstraint(
            ['registered_limit_id'], ['identity_registered_limits.id'], name='fk_identity_limits_registered_limit_id'
        ),
        sa.PrimaryKeyConstraint('id', name='pk_identity_limits'),
        sa.UniqueConstraint('registered_limit_id', 'owner_id', name='uq_identity_limits_registered_limit_id_owner_id'),
    )
    op.create_table(
        'identity_role_assignments',
        sa.Column('actor_id', Text(64), nullable=False),
        sa.Column('target_kind', Text(16), nullable=False),
        sa.Column('target_id', Text(64), nullable=False),
        sa.Column('role_id', Text(64), nullable=False),
        sa.Column('inherited', sa.Boolean(), nullable=False),
        sa.ForeignKeyConstraint(
            ['role_id'], ['identity_roles.id'], name='fk_identity_role_assignments_role_id', ondelete='CASCADE'
        ),
        sa.PrimaryKeyConstraint(
            'actor_id', 'target_kind', 'target_id', 'role_id', 'inherited', name='pk_identity_role_assignments'
        ),
    )
    with op.batch_alter_table('identity_role_assignments', schema=None) as batch_op:
        batch_op.create_index('ix_identity_role_assignments_role_id', ['role_id'])
        batch_op.create_index('ix_identity_role_assignments_target_kind_target_id', ['target_kind', 'target_id'])

    op.create_table(
        'identity_ancestors',
        sa.Column('project_id', Text(64), nullable=False),
        sa.Column('ancestor_id', Text(64), nullable=False),
        sa.ForeignKeyConstraint(
            ['project_id'], ['identity_projects.id'], name='fk_identity_ancestors_project_id', ondelete='CASCADE'
        ),
        sa.PrimaryKeyConstraint('project_id', 'ancestor_id', name='pk_identity_ancestors'),
    )
    with op.batch_alter_table('identity_ancestors', schema=None) as batch_op:
        batch_op.create_index('ix_identity_ancestors_ancestor_id', ['ancestor_id'])

    op.create_table(
        'identity_project_endpoint_groups',
        sa.Column('project_id', Text(64), nullable=False),
        sa.Column('endpoint_group_id', Text(64), nullable=False),
        sa.ForeignKeyConstraint(
            ['endpoint_group_id'],
            ['identity_endpoint_groups.id'],
            name='fk_identity_project_endpoint_groups_endpoint_group_id',
            ondelete='CASCADE',
        ),
        sa.ForeignKeyConstraint(
            ['project_id'],
            ['identity_projects.id'],
            name='fk_identity_project_endpoint_groups_project_id',
            ondelete='CASCADE',
        ),
        sa.PrimaryKeyConstraint('project_id', 'endpoint_group_id', name='pk_identity_project_endpoint_groups'),
    )
    with op.batch_alter_table('identity_project_endpoint_groups', schema=None) as batch_op:
        batch_op.create_index('ix_identity_project_endpoint_groups_endpoint_group_id', ['endpoint_group_id'])

    op.create_table(
        'identity_project_endpoints',
        sa.Column('project_id', Text(64), nullable=False),
        sa.Column('endpoint_id', Text(64), nullable=False),
        sa.ForeignKeyConstraint(
            ['endpoint_id'],
            ['identity_endpoints.id'],
            name='fk_identity_project_endpoints_endpoint_id',
            ondelete='CASCADE',
        ),
        sa.ForeignKeyConstraint(
            ['project_id'],
            ['identity_projects.id'],
            name='fk_identity_project_endpoints_project_id',
            ondelete='CASCADE',
        ),
        sa.PrimaryKeyConstraint('project_id', 'endpoint_id', name='pk_identity_project_endpoints'),
    )
    with op.batch_alter_table('identity_project_endpoints', schema=None) as batch_op:
        batch_op.create_index('ix_identity_project_endpoints_endpoint_id', ['endpoint_id'])

    op.create_table(
        'identity_access_rules',
        sa.Column('id', Text(64), nullable=False),
        sa.Column('user_id', Text(64), nullable=False),
        sa.Column('service', Text(255), nullable=False),
        sa.Column('method', Text(16), nullable=False),
        sa.Column('path', Text(255), nullable=False),
        sa.ForeignKeyConstraint(
            ['user_id'], ['identity_users.id'], name='fk_identity_access_rules_user_id', ondelete='CASCADE'
        ),
        sa.PrimaryKeyConstraint('id', name='pk_identity_access_rules'),
        sa.UniqueConstraint(
            'user_id', 'service', 'method', 'path', name='uq_identity_access_rules_user_id_service_method_path'
        ),
    )
    op.create_table(
        'identity_credentials',
        sa.Column('id', Text(64), nullable=False),
        sa.Column('user_id', Text(64), nullable=False),
        sa.Column('project_id', Text(64)),
        sa.Column('type', Text(255), nullable=False),
        sa.Column('encrypted_blob', LongText(), nullable=False),
        sa.ForeignKeyConstraint(
            ['user_id'], ['identity_users.id'], name='fk_identity_credentials_user_id', ondelete='CASCADE'
        ),
        sa.PrimaryKeyConstraint('id', name='pk_identity_credentials'),
    )
    with op.batch_alter_table('identity_credentials', schema=None) as batch_op:
        batch_op.create_index('ix_identity_credentials_user_id', ['user_id'])

    op.create_table(
        'identity_memberships',
        sa.Column('group_id', Text(64), nullable=False),
        sa.Column('user_id', Text(64), nullable=False),
        sa.ForeignKeyConstraint(
            ['group_id'], ['identity_groups.id'], name='fk_identity_memberships_group_id', ondelete='CASCADE'
        ),
        sa.ForeignKeyConstraint(
            ['user_id'], ['identity_users.id'], name='fk_identity_memberships_user_id', ondelete='CASCADE'
        ),
        sa.PrimaryKeyConstraint('group_id', 'user_id', name='pk_identity_memberships'),
    )
    with op.batch_alter_table('identity_memberships', schema=None) as batch_op:
        batch_op.create_index('ix_identity_memberships_user_id', ['user_id'])

    _move_grants()
    with op.batch_alter_table('identity_application_credentials', schema=None) as batch_op:
        batch_op.add_column(sa.Column('access_rule_ids', sa.JSON(none_as_null=True)))
    _add('identity_domains', options={}, extra={})
    _add('identity_projects', options={})
    _build_trees()
    _add('identity_roles', domain_id='')
    with op.batch_alter_table('identity_roles', schema=None) as batch_op:
        batch_op.drop_constraint('uq_identity_roles_name', type_='unique')
        batch_op.create_unique_constraint('uq_identity_roles_domain_id_name', ['domain_id', 'name'])
    _imply()
    with op.batch_alter_table('identity_tokens', schema=None) as batch_op:
        batch_op.drop_column('roles')


def _add(table: str, **columns: str | dict[str, str]) -> None:
    """Columns that are the same in every row that there is."""
    for name, value in columns.items():
        kind = Text(64) if isinstance(value, str) else sa.JSON(none_as_null=True)
        with op.batch_alter_table(table, schema=None) as batch_op:
            batch_op.add_column(sa.Column(name, kind))
        op.execute(sa.table(table, sa.column(name, kind)).update().values({name: value}))
        with op.batch_alter_table(table, schema=None) as batch_op:
            batch_op.alter_column(name, existing_type=kind, nullable=False)


def _move_grants() -> None:
    """What users were given is what it was; groups and heirs come later."""
    names = ('target_kind', 'target_id', 'role_id')
    former = sa.table('identity_grants', sa.column('user_id'), *map(sa.column, names))
    now = sa.table('identity_role_assignments', *map(sa.column, ('actor_id', *names, 'inherited')))
    rows = sa.select(former.c.user_id, *(former.c[name] for name in names), sa.false())
    op.execute(now.insert().from_select(['actor_id', *names, 'inherited'], rows))
    op.drop_table('identity_grants')


def _build_trees() -> None:
    """Every project is below its domain alone."""
    projects = sa.table('identity_projects', *map(sa.column, ('id', 'domain_id', 'parent_id')))
    ancestors = sa.table('identity_ancestors', *map(sa.column, ('project_id', 'ancestor_id')))
    with op.batch_alter_table('identity_projects', schema=None) as batch_op:
        batch_op.add_column(sa.Column('parent_id', Text(64)))
    op.execute(projects.update().values(parent_id=projects.c.domain_id))
    with op.batch_alter_table('identity_projects', schema=None) as batch_op:
        batch_op.alter_column('parent_id', existing_type=Text(64), nullable=False)
        batch_op.create_index('ix_identity_projects_parent_id', ['parent_id'])
    op.execute(
        ancestors.insert().from_select(['project_id', 'ancestor_id'], sa.select(projects.c.id, projects.c.domain_id))
    )


def _imply() -> None:
    """The rules that were the same everywhere are records."""
    roles = sa.table('identity_roles', *map(sa.column, ('id', 'name')))
    rules = sa.table('identity_implications', *map(sa.column, ('prior_role_id', 'implied_role_id')))
    prior, implied = roles.alias(), roles.alias()
    for names in (('admin', 'manager'), ('manager', 'member'), ('member', 'reader')):
        named = sa.and_(prior.c.name == names[0], implied.c.name == names[1])
        pair = sa.select(prior.c.id, implied.c.id).select_from(prior.join(implied, named))
        op.execute(rules.insert().from_select(['prior_role_id', 'implied_role_id'], pair))
