"""What remains of a cloud that a document replaces."""

from collections.abc import Mapping
from typing import Any

import sqlalchemy as sa

from computeapi.db import bulk
from computeapi.db.services import COMPUTE, SERVICES
from computeapi.kit.cloud_files.document import Document
from computeapi.kit.cloud_files.export import Export
from computeapi.kit.cloud_files.identity import DEFAULT_DOMAIN
from computeapi.kit.cloud_files.identity import export as export_identity
from computeapi.serve.bootstrap import USERS

KEPT = {
    *('identity_roles', 'identity_implications', 'identity_regions', 'identity_services', 'identity_endpoints'),
    *('identity_endpoint_groups', 'identity_registered_limits', 'identity_policies'),
    *('processes', 'services', 'quota_classes', 'volume_quota_classes'),
}
"""Tables that no document describes, or that only the service itself maintains."""
HOSTS = {'hypervisors', 'cells', 'hosts_off', 'declared_hosts'}
VOLUME_TYPES = bulk.names(('volume_type', 'volume_qos'))


def begin(connection: sa.Connection, document: Document) -> Document:
    """Delete everything that is not necessary; returns the document, with what it needs of the rest.

    The initial users stay, with their projects and passwords, unless the document has them. Hosts and volume types stay
    if the document has none.
    """
    before = Export(connection, hashes=True)
    export_identity(before)
    kept = set(KEPT)
    kept |= set() if document.get('hosts') else HOSTS
    kept |= set() if document.get('volume_types') else VOLUME_TYPES
    bulk.empty(connection, bulk.names() - kept)
    if document.get('hosts'):
        SERVICES.delete(connection, binary=COMPUTE)
    return _with_users(connection, document, before.document)


def _with_users(connection: sa.Connection, document: Document, before: Mapping[str, Any]) -> Document:
    ids = {entry.get('id') for entry in document.get('domains', ())}
    if DEFAULT_DOMAIN not in ids:
        row = {'id': DEFAULT_DOMAIN, 'name': 'Default', 'description': 'The default domain', 'enabled': True}
        bulk.insert(connection, {'identity_domains': [row | {'tags': [], 'options': {}, 'extra': {}}]})
    of_default = [entry for entry in before.get('users', ()) if 'domain' not in entry]
    users = {entry['name']: entry for entry in of_default if entry['name'] in USERS}
    stated = {entry['name']: entry for entry in document.get('users', ()) if _is_default(entry)}
    held = {role.get('project') for entry in users.values() for role in entry['roles']} | {
        entry.get('default_project') for entry in users.values()
    }
    projects = [entry for entry in before.get('projects', ()) if entry['name'] in held and 'domain' not in entry]
    names = {entry['name'] for entry in document.get('projects', ()) if _is_default(entry)}
    return {
        **document,
        'projects': [*document.get('projects', ()), *(each for each in projects if each['name'] not in names)],
        'users': [
            *(_with_password(entry, users) for entry in document.get('users', ())),
            *(entry for name, entry in users.items() if name not in stated),
        ],
    }


def _is_default(entry: Mapping[str, Any]) -> bool:
    return entry.get('domain') in (None, DEFAULT_DOMAIN, 'Default')


def _with_password(entry: Mapping[str, Any], before: Mapping[str, Mapping[str, Any]]) -> Mapping[str, Any]:
    """The user keeps the password of an existing user with the same name, unless the document has another one."""
    known = before.get(entry['name'], {}).get('password_hash') if _is_default(entry) else None
    if known is None or entry.get('password') or entry.get('password_hash'):
        return entry
    return {**entry, 'password_hash': known}
