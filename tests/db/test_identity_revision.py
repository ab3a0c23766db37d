"""Rights from before the introduction of groups and project trees are preserved."""

import pytest
import sqlalchemy as sa

from computeapi.backends.identity.local import LocalIdentity
from computeapi.db import schema
from computeapi.db.engine import Store

BEFORE = '0002'
ROWS = {
    'identity_domains': [{'id': 'default', 'name': 'Default', 'description': '', 'enabled': True}],
    'identity_projects': [{'id': 'p', 'name': 'demo', 'enabled': True, 'tags': ['red'], 'extra': {'color': 'blue'}}],
    'identity_users': [{'id': 'u', 'name': 'demo', 'enabled': True, 'options': {}, 'extra': {}}],
    'identity_roles': [
        {'id': name, 'name': name, 'immutable': True} for name in ('admin', 'manager', 'member', 'reader')
    ],
    'identity_grants': [{'user_id': 'u', 'target_kind': 'project', 'target_id': 'p', 'role_id': 'manager'}],
    'identity_application_credentials': [
        {'id': 'c', 'user_id': 'u', 'project_id': 'p', 'name': 'robot', 'secret_hash': '', 'role_ids': ['manager']}
    ],
}
EVERYWHERE = {'domain_id': 'default', 'description': '', 'unrestricted': False}


@pytest.fixture
def former(database_url):
    """The store of that revision, with a user that has a role on a project."""
    store = Store(database_url)
    with store.write() as connection:
        schema.run(connection, BEFORE)
    with store.write() as connection:
        tables = sa.MetaData()
        tables.reflect(connection, only=list(ROWS))
        for name, rows in ROWS.items():
            table = tables.tables[name]
            for row in rows:
                values = {key: value for key, value in (EVERYWHERE | row).items() if key in table.c}
                # MariaDB does not report that a column is JSON.
                columns = [sa.column(key, sa.JSON() if type(values[key]) in (dict, list) else None) for key in values]
                connection.execute(sa.table(name, *columns).insert().values(values))
    yield store
    store.close()


def test_rights_are_what_they_were(former):
    schema.upgrade(former)
    identity = LocalIdentity(former, bcrypt_cost=4)
    [project] = identity.projects.granted('u')
    assert (project.parent_id, project.tags, project.options, project.extra) == (
        'default',
        ['red'],
        {},
        {'color': 'blue'},
    )
    assert [each.id for each in identity.projects.list(parent_id='default')] == ['p']
    held = identity.grants.assignments(effective=True, user_id='u')
    assert [each.role_name for each in held] == ['manager', 'member', 'reader']
    assert [each.target_id for each in held] == ['p'] * 3
    assert identity.roles.implications() == {'admin': ['manager'], 'manager': ['member'], 'member': ['reader']}
    assert identity.application_credentials.get('c').access_rule_ids is None
    domain = identity.domains.get('default')
    assert (domain.tags, domain.options) == ([], {})
