"""A handwritten application for one version and one role: WebOb, the same SELECTs, the same dicts.

It has no versions, policy, validation or filters: the minimum that returns the same JSON.
"""

from __future__ import annotations

import hashlib
import re

import orjson
import sqlalchemy as sa
import webob
import webob.dec

from computeapi.api.version_documents import document, v21
from computeapi.db.block_devices import DEVICES
from computeapi.db.engine import Store
from computeapi.db.servers import LISTED, SERVERS, TAGS_AND_VOLUMES_OF
from computeapi.db.tables.servers import servers
from computeapi.versions import MAX

PATH = re.compile('/v2.1/servers/([^/]+)')
VERSION_PATH = re.compile('/v2.1/versions/([^/]+)')
LIVING = SERVERS.select.where(servers.c.uuid == sa.bindparam('id'), servers.c.deleted_at.is_(None))


def answer(body) -> webob.Response:
    return webob.Response(body=orjson.dumps(body), content_type='application/json')


class Frame:
    @webob.dec.wsgify
    def __call__(self, req: webob.Request) -> webob.Response:
        if VERSION_PATH.fullmatch(req.path_info) is None:
            return webob.Response(status=404)
        return answer(document(v21(str(MAX)), req.host_url + '/v2.1'))


class Server:
    def __init__(self, store: Store):
        self.store = store

    @webob.dec.wsgify
    def __call__(self, req: webob.Request) -> webob.Response:
        match = PATH.fullmatch(req.path_info)
        if match is None:
            return webob.Response(status=404)
        with self.store.read() as connection:
            (shown,) = described(connection, connection.execute(LIVING, {'id': match[1]}), req.host_url)
        return answer({'server': shown | {'server_groups': []}})


class Servers:
    def __init__(self, store: Store):
        self.store = store

    @webob.dec.wsgify
    def __call__(self, req: webob.Request) -> webob.Response:
        chosen = (
            LISTED.select.where(servers.c.project_id == 'project', servers.c.deleted_at.is_(None))
            .order_by(servers.c.created_at.desc(), servers.c.id.desc())
            .limit(100_000)
        )
        with self.store.read() as connection:
            return answer({'servers': described(connection, connection.execute(chosen), req.host_url)})


def described(connection: sa.Connection, found: sa.Result, url: str) -> list[dict]:
    rows = found.all()
    tags: dict[str, list[str]] = {row.uuid: [] for row in rows}
    volumes: dict[str, list[dict]] = {row.uuid: [] for row in rows}
    for row in DEVICES.of(TAGS_AND_VOLUMES_OF.rows(connection, tags)):
        if row.id is None:
            tags[row.server_id].append(row.tag)
        else:
            volumes[row.server_id].append({'id': row.volume_id, 'delete_on_termination': row.delete_on_termination})
    return [shown(row, tags[row.uuid], volumes[row.uuid], url) for row in rows]


def shown(row, tags: list[str], volumes: list[dict], url: str) -> dict:
    flavor = row.flavor
    addresses: dict[str, list[dict]] = {}
    groups: dict[str, None] = {}
    for interface in row.network_info:
        for fixed in interface['addresses']:
            addresses.setdefault(interface['network_name'], []).append(
                {
                    'version': fixed['version'],
                    'addr': fixed['address'],
                    'OS-EXT-IPS:type': 'fixed',
                    'OS-EXT-IPS-MAC:mac_addr': interface['mac_address'],
                }
            )
        groups.update(dict.fromkeys(interface['security_groups']))
    return {
        'id': row.uuid,
        'name': row.name,
        'links': [
            {'rel': 'self', 'href': f'{url}/v2.1/servers/{row.uuid}'},
            {'rel': 'bookmark', 'href': f'{url}/servers/{row.uuid}'},
        ],
        'status': 'ACTIVE',
        'tenant_id': row.project_id,
        'user_id': row.user_id,
        'metadata': row.metadata,
        'hostId': hashlib.sha224((row.project_id + row.host).encode()).hexdigest(),
        'image': {'id': row.image_id, 'links': [{'rel': 'bookmark', 'href': f'{url}/images/{row.image_id}'}]},
        'flavor': {
            'vcpus': flavor['vcpus'],
            'ram': flavor['memory_mb'],
            'disk': flavor['root_gb'],
            'ephemeral': flavor['ephemeral_gb'],
            'swap': flavor['swap'],
            'original_name': flavor['name'],
            'extra_specs': flavor['extra_specs'],
        },
        'created': row.created_at.isoformat(timespec='seconds') + 'Z',
        'updated': row.updated_at.isoformat(timespec='seconds') + 'Z',
        'addresses': addresses,
        'accessIPv4': row.access_ip_v4 or '',
        'accessIPv6': row.access_ip_v6 or '',
        'OS-DCF:diskConfig': row.disk_config,
        'progress': row.progress,
        'locked': row.locked_by is not None,
        'description': row.description,
        'tags': tags,
        'trusted_image_certificates': row.trusted_image_certificates,
        'locked_reason': row.locked_reason,
        'key_name': row.key_name,
        'config_drive': row.config_drive,
        'security_groups': [{'name': name} for name in groups],
        'os-extended-volumes:volumes_attached': volumes,
        'OS-EXT-AZ:availability_zone': row.availability_zone or '',
        'OS-EXT-STS:vm_state': row.vm_state,
        'OS-EXT-STS:task_state': row.task_state,
        'OS-EXT-STS:power_state': row.power_state,
        'OS-SRV-USG:launched_at': row.launched_at.isoformat(timespec='microseconds'),
        'OS-SRV-USG:terminated_at': None,
        'OS-EXT-SRV-ATTR:hostname': row.hostname,
        'pinned_availability_zone': row.pinned_availability_zone,
    }
