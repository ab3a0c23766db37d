"""Flavors, key pairs, server groups and quotas."""

from collections import defaultdict
from collections.abc import Callable
from functools import partial
from typing import Any

from computeapi.backends.volume.local.quotas import OF_TYPES
from computeapi.compute import keys
from computeapi.db.quotas import EVERYBODY
from computeapi.errors import Invalid
from computeapi.kit.cloud_files.content import CloudContent, Values
from computeapi.kit.cloud_files.document import CloudFileError
from computeapi.kit.cloud_files.export import Export
from computeapi.kit.cloud_files.schema import KEYPAIR

OF_SERVICES = {
    'network': ('network_quotas', 'resource', 'limit'),
    'volume': ('volume_quotas', 'name', 'limit'),
}


def load(content: CloudContent) -> None:
    for place, entry in content.entries('flavors'):
        content.unique_name('flavors', entry['name'], (*place, 'name'))
        row = content.make('flavors', entry, place)
        row['id'] = content.number('flavors')
        row['extra_specs'] = {name: str(value) for name, value in row['extra_specs'].items()}
        for number, project in enumerate(entry.get('access', ())):
            project_id = content.resolve('projects', project, (*place, 'access', number))
            content.add('flavor_projects', flavor_id=row['id'], project_id=project_id)
    for place, entry in content.entries('keypairs'):
        owner = content.user(entry, place)
        content.unique_name('keypairs', entry['name'], (*place, 'name'), owner)
        row = content.values(KEYPAIR, entry, place)
        try:
            fingerprint = row['fingerprint'] or keys.fingerprint(row['type'], row['public_key'])
        except Invalid as error:
            raise CloudFileError((*place, 'public_key'), str(error)) from None
        row |= {'id': content.number('keypairs'), 'user_id': owner, 'fingerprint': fingerprint}
        content.add_row('keypairs', row | {'created_at': row['created_at'] or content.now}, place)
    for place, entry in content.entries('server_groups'):
        row = content.make('server_groups', entry, place)
        row['user_id'] = row['user_id'] or content.user(entry, place)


def load_quotas(content: CloudContent) -> None:
    """To be called once volume types are there, which quotas may name."""
    for place, entry in content.entries('quotas'):
        project_id = content.project(entry, place)
        user_id = content.resolve('users', entry['user'], (*place, 'user')) if entry.get('user') else EVERYBODY
        for resource, limit in entry.get('compute', {}).items():
            row = {'project_id': project_id, 'user_id': user_id, 'resource': resource}
            content.add('quotas', **row, hard_limit=limit)
        for service, (table, resource_column, limit_column) in OF_SERVICES.items():
            for resource, limit in entry.get(service, {}).items():
                if service == 'volume':
                    resource = _of_type(resource, partial(content.resolve, 'volume_types', place=(*place, service)))
                content.add(table, **{'project_id': project_id, resource_column: resource, limit_column: limit})


def export(export: Export) -> None:
    access = export.grouped('flavor_projects', 'flavor_id')
    for row, entry in export.section('flavors'):
        if row['id'] in access:
            entry['access'] = [export.called('projects', each['project_id']) for each in access[row['id']]]
    export.section('keypairs')
    export.section('server_groups')
    _export_quotas(export)


def _export_quotas(export: Export) -> None:
    found: dict[tuple[str, str], dict[str, dict[str, int]]] = defaultdict(lambda: defaultdict(dict))
    for row in export.rows('quotas'):
        found[row['project_id'], row['user_id']]['compute'][row['resource']] = row['hard_limit']
    for service, (table, resource_column, limit_column) in OF_SERVICES.items():
        for row in export.rows(table):
            resource = row[resource_column]
            if service == 'volume':
                resource = _of_type(resource, partial(export.called, 'volume_types'))
            found[row['project_id'], EVERYBODY][service][resource] = row[limit_column]
    entries = [
        _owner(export, project_id, user_id) | {service: dict(each) for service, each in limits.items()}
        for (project_id, user_id), limits in found.items()
    ]
    if entries:
        export.document['quotas'] = entries


def _of_type(resource: str, rename: Callable[[str], str]) -> str:
    """The name of a volume quota; if it is that of a volume type, with the type renamed."""
    kind, _, volume_type = resource.partition('_')
    return f'{kind}_{rename(volume_type)}' if volume_type and kind in OF_TYPES else resource


def _owner(export: Export, project_id: str, user_id: str) -> dict[str, Any]:
    owner: Values = {'project': export.called('projects', project_id)}
    return owner | ({'user': export.called('users', user_id)} if user_id != EVERYBODY else {})
