"""The payloads of versioned notifications: objects with the names, versions and fields of those in Nova 34.

Consumers distinguish what they receive by the versions, which grow with the fields.
"""

import traceback
from collections.abc import Callable
from typing import Any

from computeapi.backends.hypervisor import PowerState
from computeapi.compute.notifications.subject import Subject, interfaces, seconds
from computeapi.db.keypairs import SSH, X509
from computeapi.db.servers import Server

Object = dict[str, Any]

VERSIONS = {
    'AggregatePayload': '1.1',
    'AuditPeriodPayload': '1.0',
    'BlockDevicePayload': '1.0',
    'ExceptionPayload': '1.1',
    'FlavorPayload': '1.4',
    'InstanceActionPayload': '1.9',
    'InstanceActionRebuildPayload': '1.10',
    'InstanceActionRescuePayload': '1.4',
    'InstanceActionResizePrepPayload': '1.4',
    'InstanceActionSharePayload': '1.0',
    'InstanceActionSnapshotPayload': '1.10',
    'InstanceActionVolumePayload': '1.7',
    'InstanceActionVolumeSwapPayload': '1.9',
    'InstanceCreatePayload': '1.13',
    'InstanceExistsPayload': '2.1',
    'InstanceStateUpdatePayload': '1.0',
    'InstanceUpdatePayload': '2.1',
    'IpPayload': '1.0',
    'KeypairPayload': '1.0',
    'ServerGroupPayload': '1.1',
    'ServiceStatusPayload': '1.1',
}
FLAVOR = (
    *('flavorid', 'name', 'description', 'memory_mb', 'vcpus', 'root_gb', 'ephemeral_gb', 'swap', 'rxtx_factor'),
    *('disabled', 'is_public', 'extra_specs'),
)
KEYPAIR = ('user_id', 'name', 'type', 'public_key', 'fingerprint')


def payload(subject: Subject, name: str, *, disks: bool) -> Object:
    """The object of that name. disks: whether it lists the volumes of the server."""
    data = _server(subject, disks=disks) | MORE[name](subject)
    if name not in FAULTLESS:
        data['fault'] = None if subject.error is None else fault(subject.error)
    return made(name, data)


def made(name: str, data: Object) -> Object:
    return {
        'nova_object.name': name,
        'nova_object.namespace': 'nova',
        'nova_object.version': VERSIONS[name],
        'nova_object.data': data,
    }


def _server(subject: Subject, *, disks: bool) -> Object:
    server, context = subject.server, subject.context
    return {
        'uuid': server.uuid,
        'user_id': server.user_id,
        'tenant_id': server.project_id,
        'reservation_id': server.reservation_id,
        'display_name': server.name,
        'display_description': server.description,
        'host_name': server.hostname,
        'host': server.host,
        'node': server.node,
        'os_type': server.image_properties.get('os_type'),
        'architecture': server.image_properties.get('architecture'),
        'availability_zone': server.availability_zone,
        'flavor': flavor(server.flavor),
        'image_uuid': server.image_id or '',
        'key_name': server.key_name,
        'kernel_id': server.kernel_id or '',
        'ramdisk_id': server.ramdisk_id or '',
        'created_at': seconds(server.created_at),
        'launched_at': seconds(server.launched_at),
        'terminated_at': seconds(server.terminated_at),
        'deleted_at': seconds(server.deleted_at),
        'updated_at': seconds(server.updated_at),
        'state': server.vm_state,
        'power_state': power_state(server.power_state),
        'task_state': server.task_state,
        'progress': server.progress,
        'ip_addresses': addresses(server),
        'block_devices': block_devices(server) if disks else None,
        'metadata': server.metadata,
        'locked': server.locked_by is not None,
        'locked_reason': server.locked_reason,
        'auto_disk_config': server.disk_config,
        'shares': None,
        'request_id': context.request_id,
        'action_initiator_user': context.user_id,
        'action_initiator_project': context.project_id,
    }


def flavor(kept: Object) -> Object:
    """kept: what a server keeps of its flavor, or all of a flavor; with its projects, if they are told."""
    data = {name: kept.get(name) for name in FLAVOR}
    return made('FlavorPayload', data | {'vcpu_weight': 0, 'projects': kept.get('projects')})


def keypair(facts: Object) -> Object:
    return made('KeypairPayload', {name: facts[name] for name in KEYPAIR})


def power_state(number: int) -> str:
    state = PowerState(number)
    return 'pending' if state is PowerState.NOSTATE else state.name.lower()


def addresses(server: Server) -> list[Object]:
    return [
        made(
            'IpPayload',
            {
                'label': interface['network_name'],
                'mac': interface['mac_address'],
                'meta': {},
                'port_uuid': interface['port_id'],
                'version': address['version'],
                'address': address['address'],
                'device_name': f'tap{interface["port_id"]}'[:14],
            },
        )
        for interface, address in interfaces(server)
    ]


def block_devices(server: Server) -> list[Object]:
    names = ('device_name', 'boot_index', 'delete_on_termination', 'volume_id', 'tag')
    attached = [each for each in server.volumes if each.volume_id is not None]
    return [made('BlockDevicePayload', {name: getattr(each, name) for name in names}) for each in attached]


def fault(error: BaseException) -> Object:
    """The error, and where it was raised."""
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    return made(
        'ExceptionPayload',
        {
            'module_name': frames[-1].f_globals.get('__name__', 'unknown') if frames else 'unknown',
            'function_name': frames[-1].f_code.co_name if frames else 'unknown',
            'exception': type(error).__name__,
            'exception_message': str(error),
            'traceback': ''.join(traceback.format_exception(error)),
        },
    )


def _create(subject: Subject) -> Object:
    server = subject.server
    return {
        'keypairs': [_keypair(server)] if server.key_name and server.public_key else [],
        'tags': sorted(server.tags),
        'trusted_image_certificates': server.trusted_image_certificates,
        'instance_name': subject.name,
    }


def _keypair(server: Server) -> Object:
    from computeapi.compute import keys

    key = server.public_key or ''
    kind = X509 if key.startswith('-----BEGIN CERTIFICATE') else SSH
    data = {'user_id': server.user_id, 'name': server.key_name, 'public_key': key, 'type': kind}
    return keypair(data | {'fingerprint': keys.fingerprint(kind, key)})


def _resize_prep(subject: Subject) -> Object:
    return {'new_flavor': None if subject.new_flavor is None else flavor(subject.new_flavor)}


def _exists(subject: Subject) -> Object:
    period = subject.period
    assert period is not None
    data = {'audit_period_beginning': seconds(period.begin), 'audit_period_ending': seconds(period.end)}
    return {'audit_period': made('AuditPeriodPayload', data)}


def _update(subject: Subject) -> Object:
    before, after = subject.before or subject.states, subject.states
    states = {
        'old_state': before.vm_state,
        'state': after.vm_state,
        'old_task_state': before.task_state,
        'new_task_state': after.task_state,
    }
    return _exists(subject) | {
        'state_update': made('InstanceStateUpdatePayload', states),
        'old_display_name': subject.old_name,
        'tags': sorted(subject.server.tags),
    }


MORE: dict[str, Callable[[Subject], Object]] = {
    'InstanceActionPayload': lambda subject: {},
    'InstanceCreatePayload': _create,
    'InstanceExistsPayload': _exists,
    'InstanceUpdatePayload': _update,
    'InstanceActionRebuildPayload': lambda subject: {
        'trusted_image_certificates': subject.server.trusted_image_certificates
    },
    'InstanceActionRescuePayload': lambda subject: {'rescue_image_ref': subject.argument('image_id')},
    'InstanceActionResizePrepPayload': _resize_prep,
    'InstanceActionSharePayload': lambda subject: {'share_id': subject.argument('share_id')},
    'InstanceActionSnapshotPayload': lambda subject: {'snapshot_image_id': subject.argument('image_id')},
    'InstanceActionVolumePayload': lambda subject: {'volume_id': subject.argument('volume_id')},
    'InstanceActionVolumeSwapPayload': lambda subject: {
        'old_volume_id': subject.argument('old_volume_id'),
        'new_volume_id': subject.argument('volume_id'),
    },
}
"""The fields that an object has besides those of the server."""

FAULTLESS = frozenset({'InstanceExistsPayload', 'InstanceUpdatePayload'})
"""The objects that are not about the step of an action, which can fail."""
