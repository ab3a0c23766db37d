"""Domains, projects, users and their roles."""

from collections.abc import Callable
from typing import Any

from computeapi import randomness
from computeapi.kit.cloud_files.content import CloudContent, Entry, Values
from computeapi.kit.cloud_files.document import CloudFileError, Place
from computeapi.kit.cloud_files.export import Export

DEFAULT_DOMAIN = 'default'
TARGETS = ('project', 'domain', 'system')
NOTHING: Values = {'options': {}, 'extra': {}}


def load(content: CloudContent, hashed: Callable[[str], str]) -> None:
    """hashed: returns the hash of a password."""
    for place, entry in content.entries('domains'):
        content.unique_name('domains', entry['name'], (*place, 'name'))
        content.make('domains', entry, place).update(NOTHING)
    _load_projects(content)
    for place, entry in content.entries('users'):
        _load_user(content, entry, place, hashed)


def _load_projects(content: CloudContent) -> None:
    made = []
    for place, entry in content.entries('projects'):
        content.unique_name('projects', entry['name'], (*place, 'name'), content.owner('projects', entry, place))
        row = content.make('projects', entry, place)
        row.update(NOTHING, parent_id=row['domain_id'])
        made.append((place, entry, row))
    # A parent may come after its children.
    for place, entry, row in made:
        if entry.get('parent'):
            row['parent_id'] = content.resolve('projects', entry['parent'], (*place, 'parent'), row['domain_id'])
    projects = content.index('projects').rows
    for place, _, row in made:
        above, ancestors = row['parent_id'], []
        while above in projects:
            if above in ancestors or above == row['id']:
                raise CloudFileError((*place, 'parent'), 'the project is its own ancestor')
            ancestors.append(above)
            above = projects[above]['parent_id']
        for ancestor in (*ancestors, row['domain_id']):
            content.add('identity_ancestors', project_id=row['id'], ancestor_id=ancestor)


def _load_user(content: CloudContent, entry: Entry, place: Place, hashed: Callable[[str], str]) -> None:
    content.unique_name('users', entry['name'], (*place, 'name'), content.owner('users', entry, place))
    row = content.make('users', entry, place)
    row |= {'options': {}, 'password_hash': entry.get('password_hash')}
    if row['password_hash'] is None:
        password = entry.get('password') or randomness.password(entry['name'])
        row['password_hash'] = hashed(password)
        content.passwords[row['id']] = password
    for number, held in enumerate(entry.get('roles', ())):
        at = (*place, 'roles', number)
        kind = next((name for name in TARGETS if held.get(name)), None)
        if kind is None:
            raise CloudFileError(at, 'the role requires a project, domain or system')
        target = 'all' if kind == 'system' else content.resolve(f'{kind}s', held[kind], (*at, kind), row['domain_id'])
        grant = {'target_kind': kind, 'target_id': target, 'inherited': held.get('inherited', False)}
        content.add('identity_role_assignments', actor_id=row['id'], role_id=_role(content, held['role']), **grant)
        if kind == 'project' and row['default_project_id'] is None:
            row['default_project_id'] = target


def _role(content: CloudContent, name: str) -> str:
    """The ID of the global role with this name, created if there is none."""
    for role_id in content.index('roles').named.get(name, ()):
        if not content.row('roles', role_id)['domain_id']:
            return role_id
    row: Values = {'id': content.made_id('roles', name).replace('-', ''), 'domain_id': '', 'name': name}
    content.add_row('roles', row | {'description': '', 'immutable': False, 'extra': {}}, ())
    return str(row['id'])


def export(export: Export) -> None:
    """Groups, and roles that users have through groups, are not exported. Passwords are only exported as hashes, on
    request."""
    export.section('domains', lambda row: row['id'] != DEFAULT_DOMAIN or row['name'] != 'Default')
    for row, entry in export.section('projects'):
        if row['domain_id'] == DEFAULT_DOMAIN:
            entry.pop('domain', None)
        if row['parent_id'] != row['domain_id']:
            entry['parent'] = export.called('projects', row['parent_id'])
    grants = export.grouped('identity_role_assignments', 'actor_id')
    for row, entry in export.section('users'):
        if row['domain_id'] == DEFAULT_DOMAIN:
            entry.pop('domain', None)
        if export.hashes and row['password_hash']:
            entry['password_hash'] = row['password_hash']
        entry['roles'] = [_held(export, grant) for grant in grants.pop(row['id'], ())]
    export.leaves_out('groups', 'identity_groups')
    export.leaves_out('application credentials', 'identity_application_credentials')
    export.leaves_out('trusts', 'identity_trusts')


def _held(export: Export, grant: Values) -> dict[str, Any]:
    kind = grant['target_kind']
    target = 'all' if kind == 'system' else export.called(f'{kind}s', grant['target_id'])
    role = {'role': export.names('roles')[grant['role_id']], kind: target}
    return role | ({'inherited': True} if grant['inherited'] else {})
