"""Volume types, volumes and snapshots of volumes."""

from computeapi.kit.cloud_files.content import CloudContent
from computeapi.kit.cloud_files.document import CloudFileError
from computeapi.kit.cloud_files.export import Export

DEFAULT_TYPE = '__DEFAULT__'
HELD = ('available', 'reserved', 'attaching', 'detaching', 'in-use')
"""Statuses that follow from the attachments of a volume."""


def load(content: CloudContent) -> None:
    """Load volumes; the status of attached ones is set when servers are loaded."""
    for place, entry in content.entries('volume_types'):
        content.unique_name('volume_types', entry['name'], (*place, 'name'))
        row = content.make('volume_types', entry, place)
        content.add_pairs('volume_type_specs', row['id'], entry.get('extra_specs', {}))
        for number, project in enumerate(entry.get('access', ())):
            project_id = content.resolve('projects', project, (*place, 'access', number))
            content.add('volume_type_projects', type_id=row['id'], project_id=project_id)
    for place, entry in content.entries('volumes'):
        row = content.make('volumes', entry, place)
        row['user_id'] = row['user_id'] or content.user(entry, place)
        row['status'] = entry.get('status', 'available')
        if row['volume_type_id'] is None:
            types = content.index('volume_types')
            if not types.rows:
                raise CloudFileError((*place, 'type'), 'there is no volume type')
            row['volume_type_id'] = next(iter(types.named.get(DEFAULT_TYPE) or types.rows))
        content.add_pairs('volume_metadata', row['id'], entry.get('metadata', {}))
        content.add_pairs('volume_image_metadata', row['id'], entry.get('image_metadata', {}))
    for place, entry in content.entries('volume_snapshots'):
        row = content.make('volume_snapshots', entry, place)
        row['user_id'] = row['user_id'] or content.user(entry, place)
        row['size'] = row['size'] or content.row('volumes', row['volume_id'])['size']
        content.add_pairs('volume_snapshot_metadata', row['id'], entry.get('metadata', {}))


def export(export: Export) -> None:
    access = export.grouped('volume_type_projects', 'type_id')
    for row, entry in export.section('volume_types', beside={'extra_specs': export.pairs('volume_type_specs')}):
        if row['id'] in access:
            entry['access'] = [export.called('projects', each['project_id']) for each in access[row['id']]]
    beside = {'metadata': export.pairs('volume_metadata'), 'image_metadata': export.pairs('volume_image_metadata')}
    for row, entry in export.section('volumes', beside=beside):
        if row['status'] not in HELD:
            entry['status'] = row['status']
    export.section('volume_snapshots', beside={'metadata': export.pairs('volume_snapshot_metadata')})
    export.leaves_out('backups of volumes', 'volume_backups')
    export.leaves_out('groups of volumes', 'volume_groups')
    export.leaves_out('qualities of service of volumes', 'volume_qos')
