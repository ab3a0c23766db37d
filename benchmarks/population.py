"""Fills a store with servers for benchmarks, each with an address, a tag and a volume."""

from __future__ import annotations

import uuid
from datetime import timedelta

from computeapi.clock import utcnow
from computeapi.db import block_devices, server_tags
from computeapi.db import servers as rows
from computeapi.db.tables import metadata
from computeapi.main import Service

FLAVOR = {
    'id': 1,
    'flavorid': '1',
    'name': 'm1.tiny',
    'description': None,
    'memory_mb': 512,
    'vcpus': 1,
    'root_gb': 1,
    'ephemeral_gb': 0,
    'swap': 0,
    'rxtx_factor': 1.0,
    'disabled': False,
    'is_public': True,
    'extra_specs': {'hw:cpu_policy': 'shared'},
}
IMAGE = '70a599e0-31e7-49b7-b260-868f441e862b'


def fill(service: Service, count: int) -> list[str]:
    """Insert servers of user:project; return their IDs."""
    metadata.create_all(service.store.engine)
    service.hosts.register()
    ids = [str(uuid.uuid4()) for _ in range(count)]
    with service.store.write() as connection:
        for number, server_id in enumerate(ids):
            rows.insert_all(connection, [server(number, server_id)])
            server_tags.replace(connection, server_id, ['benchmark'])
            block_devices.insert(connection, device(server_id))
    return ids


def server(number: int, server_id: str) -> dict:
    now = utcnow() + timedelta(seconds=number)
    return {
        'uuid': server_id,
        'project_id': 'project',
        'user_id': 'user',
        'name': f'server{number}',
        'hostname': f'server{number}',
        'vm_state': 'active',
        'power_state': 1,
        'progress': 0,
        'host': 'compute1',
        'node': 'compute1',
        'availability_zone': 'nova',
        'scheduler_hints': {},
        'flavor': FLAVOR,
        **{name: FLAVOR[name] for name in ('vcpus', 'memory_mb', 'root_gb', 'ephemeral_gb')},
        'image_id': IMAGE,
        'image_properties': {'architecture': 'x86_64'},
        'root_device_name': '/dev/vda',
        'config_drive': '',
        'disk_config': 'MANUAL',
        'metadata': {'purpose': 'benchmark'},
        'network_info': [interface(number)],
        'reservation_id': 'r-benchmrk',
        'launch_index': 0,
        'created_at': now,
        'updated_at': now,
        'launched_at': now,
    }


def interface(number: int) -> dict:
    address = {
        'address': f'10.0.{number // 250}.{number % 250 + 2}',
        'version': 4,
        'subnet_id': str(uuid.uuid4()),
        'floating': [],
    }
    return {
        'port_id': str(uuid.uuid4()),
        'network_id': str(uuid.uuid4()),
        'network_name': 'private',
        'mac_address': 'fa:16:3e:00:00:01',
        'status': 'ACTIVE',
        'created': True,
        'tag': None,
        'addresses': [address],
        'security_groups': ['default'],
    }


def device(server_id: str) -> dict:
    return {
        'uuid': str(uuid.uuid4()),
        'server_id': server_id,
        'source_type': 'volume',
        'destination_type': 'volume',
        'device_name': '/dev/vdb',
        'volume_id': str(uuid.uuid4()),
        'attachment_id': str(uuid.uuid4()),
        'delete_on_termination': False,
        'created_at': utcnow(),
    }
