"""The payloads of unversioned notifications, which Ceilometer and Designate read."""

from datetime import datetime
from typing import Any

from computeapi.compute.notifications.subject import Subject, interfaces
from computeapi.db.servers import Server


def payload(subject: Subject, event_type: str) -> dict[str, Any]:
    """The server in flat fields, and the addresses, in which IP addresses are repeated with those of the interface."""
    server = subject.server
    data = _server(server) | {'fixed_ips': addresses(server)} | _period(subject) | _update(subject, event_type)
    if subject.error is not None:
        error = subject.error
        data |= {'code': 500, 'message': str(error), 'exception': type(error).__name__}
    elif event_type == 'compute.instance.create.end':
        data['message'] = 'Success'
    return data


def _server(server: Server) -> dict[str, Any]:
    flavor = server.flavor
    return {
        'tenant_id': server.project_id,
        'user_id': server.user_id,
        'instance_id': server.uuid,
        'display_name': server.name,
        'reservation_id': server.reservation_id,
        'hostname': server.hostname,
        'instance_type': flavor['name'],
        'instance_type_id': flavor.get('id'),
        'instance_flavor_id': flavor['flavorid'],
        'architecture': server.image_properties.get('architecture'),
        'memory_mb': flavor['memory_mb'],
        'disk_gb': flavor['root_gb'] + flavor['ephemeral_gb'],
        'vcpus': flavor['vcpus'],
        'root_gb': flavor['root_gb'],
        'ephemeral_gb': flavor['ephemeral_gb'],
        'host': server.host,
        'node': server.node,
        'availability_zone': server.availability_zone,
        'cell_name': '',
        'created_at': f'{server.created_at:%Y-%m-%d %H:%M:%S}+00:00',
        'terminated_at': moment(server.terminated_at),
        'deleted_at': moment(server.deleted_at),
        'launched_at': moment(server.launched_at),
        'image_ref_url': server.image_id or '',
        'os_type': server.image_properties.get('os_type'),
        'kernel_id': server.kernel_id or '',
        'ramdisk_id': server.ramdisk_id or '',
        'state': server.vm_state,
        'state_description': server.task_state or '',
        'progress': server.progress or '',
        'access_ip_v4': server.access_ip_v4,
        'access_ip_v6': server.access_ip_v6,
        'image_meta': {**server.image_properties, 'base_image_ref': server.image_id or ''},
        'metadata': server.metadata,
    }


def _period(subject: Subject) -> dict[str, Any]:
    if subject.period is None:
        return {}
    return {
        'audit_period_beginning': moment(subject.period.begin),
        'audit_period_ending': moment(subject.period.end),
        'bandwidth': {},
    }


def _update(subject: Subject, event_type: str) -> dict[str, Any]:
    if event_type != 'compute.instance.update':
        return {}
    server, before = subject.server, subject.before or subject.states
    states = {
        'old_state': before.vm_state,
        'old_task_state': before.task_state,
        'new_task_state': server.task_state,
    }
    return states | ({'old_display_name': subject.old_name} if subject.old_name else {})


def addresses(server: Server) -> list[dict[str, Any]]:
    return [
        {
            'address': address['address'],
            'version': address['version'],
            'type': 'fixed',
            'meta': {},
            'floating_ips': [],
            'label': interface['network_name'],
            'vif_mac': interface['mac_address'],
        }
        for interface, address in interfaces(server)
    ]


def moment(found: datetime | None) -> str:
    return '' if found is None else f'{found:%Y-%m-%dT%H:%M:%S.%f}'
