"""Exports servers to a document."""

from typing import Any

from computeapi.kit.cloud_files.content import Values
from computeapi.kit.cloud_files.export import Export, moment
from computeapi.kit.cloud_files.network_export import Ports
from computeapi.kit.cloud_files.schema import FLAVOR
from computeapi.kit.cloud_files.server_schema import ACTION, DISK, EVENT, INTERFACE, MIGRATION, SERVER
from computeapi.kit.cloud_files.servers import SNAPSHOT
from computeapi.states import VMState

STATES = ('vm_state', 'task_state', 'power_state')


class ServerExport:
    """Servers, with everything that belongs to them."""

    def __init__(self, export: Export, ports: Ports):
        self.export, self.ports = export, ports
        self.tags = export.grouped('server_tags', 'server_id')
        self.devices = export.grouped('block_devices', 'server_id')
        self.attachments = {row['id']: row for row in export.rows('volume_attachments')}
        self.actions = export.grouped('server_actions', 'server_id')
        self.events = export.grouped('server_action_events', 'action_id')
        self.migrations = export.grouped('migrations', 'server_id')
        self.flavors = {row['flavorid']: row for row in export.rows('flavors')}

    def write(self) -> None:
        """Add them to the document, in the order in which they were created."""
        entries = [self.entry(row) for row in self.export.servers()]
        if entries:
            self.export.document['servers'] = entries
        self.export.leaves_out('shares', 'shares')
        self.export.leaves_out('archived servers', 'archived_servers')

    def entry(self, row: Values) -> Values:
        export, living = self.export, row['vm_state'] != VMState.DELETED
        entry = export.entry(SERVER, row)
        entry |= {name: row[name] for name in STATES if row[name] is not None}
        entry['flavor'] = self.flavor(row['flavor'])
        # If these are null, say so, because the default is another value.
        for name in ('launched_at', 'updated_at'):
            entry.setdefault(name, None)
        for name, image_id in (('image', row['image_id']), ('shelved_image', row['shelved_image_id'])):
            if image_id is not None:
                entry[name] = export.called('images', image_id)
        entry['image_properties'] = row['image_properties']
        entry |= {name: row[name] for name in ('host', 'locked_by', 'public_key') if row[name] is not None}
        entry['fault'] = row['fault'] and row['fault'] | {'created': f'{row["fault"]["created"].removesuffix("Z")}Z'}
        if row['uuid'] in self.tags:
            entry['tags'] = [each['tag'] for each in self.tags[row['uuid']]]
        if living:
            entry['networks'] = [self.interface(each) for each in row['network_info'] if each['port_id']]
            entry['disks'] = [self.disk(each) for each in self.devices.get(row['uuid'], ())]
        entry['actions'] = [self.action(each) for each in self.actions.get(row['uuid'], ())]
        if row['uuid'] in self.migrations:
            entry['migrations'] = [self.migration(each) for each in self.migrations[row['uuid']]]
        return entry

    def flavor(self, kept: Values) -> str | Values:
        """The ID of the flavor, if it is unchanged; otherwise all of its properties."""
        current = self.flavors.get(kept.get('flavorid', ''), {})
        if all(current.get(name) == kept.get(name) for name in SNAPSHOT):
            return str(kept['flavorid'])
        now: Values = {'created_at': None, 'updated_at': None}
        return self.export.entry(FLAVOR, {**dict.fromkeys(SNAPSHOT), **kept, **now})

    def interface(self, known: Values) -> Values:
        port = self.ports.by_id.get(known['port_id'])
        tag = {'tag': known['tag']} if known.get('tag') else {}
        if port is None:
            return {'network': known['network_id']} | tag
        if not known['created']:
            return {'port': port['id']} | tag
        entry = {'id': port['id'], 'network': self.export.called('networks', port['network_id'])}
        name = {'name': port['name']} if port['name'] else {}
        return entry | name | self.export.entry(INTERFACE, port) | self.ports.beside(port) | tag

    def disk(self, row: Values) -> Values:
        entry = self.export.entry(DISK, row)
        attachment = self.attachments.get(row['attachment_id'] or '')
        if attachment and attachment['attached_at']:
            entry['attached_at'] = moment(attachment['attached_at'])
        return entry

    def action(self, row: Values) -> Values:
        entry: dict[str, Any] = {'finish_time': None} | self.export.entry(ACTION, row)
        events = [{'finish_time': None} | self.export.entry(EVENT, each) for each in self.events.get(row['id'], ())]
        return entry | ({'events': events} if events else {})

    def migration(self, row: Values) -> Values:
        entry = self.export.entry(MIGRATION, row)
        for name in ('old_flavor', 'new_flavor'):
            if row[name] is not None:
                entry[name] = self.flavor(row[name])
        return entry
