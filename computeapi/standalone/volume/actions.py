"""What can be done to a volume besides changing what is written about it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from computeapi import errors
from computeapi.backends.volume import Volume
from computeapi.standalone.face import FaceRequest, route
from computeapi.standalone.schema import Schema
from computeapi.standalone.volume.attachments import check_release
from computeapi.standalone.volume.documents import BOOLEAN, NAME, PAIRS, SIZE, UUID, is_true
from computeapi.standalone.volume.service import VolumeService, begins_at, minor

STATUSES = (
    'creating',
    'available',
    'reserved',
    'attaching',
    'in-use',
    'detaching',
    'maintenance',
    'deleting',
    'error',
    'error_deleting',
    'error_extending',
    'error_managing',
    'error_restoring',
)
MIGRATION_STATUSES = ('migrating', 'starting', 'completing', 'error', 'success', 'none')

EXTEND_IN_USE = 42
REIMAGE = 68

Handler = Callable[[VolumeService, FaceRequest, str, Any], Any]


@dataclass(frozen=True)
class Action:
    handler: Handler
    schema: Schema
    admin: bool


ACTIONS: dict[str, Action] = {}
"""By the only name in the body."""


def action(
    name: str,
    properties: dict[str, Any] | None = None,
    *,
    required: tuple[str, ...] = (),
    admin: bool = False,
) -> Callable[[Handler], Handler]:
    """Do this on `name`, whose argument is an object with these properties, or does not matter."""
    argument: dict[str, Any] = {}
    if properties is not None:
        argument = {'type': 'object', 'properties': properties, 'required': list(required)}

    def note(handler: Handler) -> Handler:
        ACTIONS[name] = Action(handler, Schema({'properties': {name: argument}}), admin)
        return handler

    return note


class ActionRoutes(VolumeService):
    @route('POST', '/v3/volumes/{volume_id}/action')
    def act(self, req: FaceRequest, volume_id: str) -> Any:
        """A handler answers with what `render` takes, or with nothing when all is said by 202."""
        name = next(iter(req.document), None) if len(req.document) == 1 else None
        if name not in ACTIONS:
            raise errors.Invalid(f'There is no such action: {", ".join(req.document)[:255]}')
        chosen = ACTIONS[name]
        if chosen.admin and not req.context.is_admin:
            raise errors.Forbidden(f"Policy doesn't allow {name} to be performed.")
        chosen.schema.check(req.document)
        return chosen.handler(self, req, volume_id, req.document[name]) or (202, None)


@action('os-extend', {'new_size': SIZE}, required=('new_size',))
def extend(face: VolumeService, req: FaceRequest, volume_id: str, argument: dict[str, Any]) -> None:
    in_use = minor(req) >= EXTEND_IN_USE
    face.volumes.extend(req.context, volume_id, int(argument['new_size']), in_use=in_use)


@action(
    'os-reset_status',
    {
        'status': {'type': ['string', 'null'], 'enum': [None, *STATUSES]},
        'attach_status': {'type': ['string', 'null'], 'enum': [None, 'detached']},
        'migration_status': {'type': ['string', 'null'], 'enum': [None, *MIGRATION_STATUSES]},
    },
    admin=True,
)
def reset_status(face: VolumeService, req: FaceRequest, volume_id: str, argument: dict[str, Any]) -> None:
    detached, moving = argument.get('attach_status') == 'detached', argument.get('migration_status')
    face.volumes.reset_status(
        req.context, volume_id, argument.get('status'), detached=detached, migration_status=moving
    )


@action('os-set_bootable', {'bootable': BOOLEAN}, required=('bootable',))
def set_bootable(face: VolumeService, req: FaceRequest, volume_id: str, argument: dict[str, Any]) -> tuple[int, None]:
    face.volumes.update(req.context, volume_id, bootable=is_true(argument['bootable']))
    return 200, None


@action('os-update_readonly_flag', {'readonly': BOOLEAN}, required=('readonly',))
def set_readonly(face: VolumeService, req: FaceRequest, volume_id: str, argument: dict[str, Any]) -> None:
    readonly = is_true(argument['readonly'])

    def change(volume: Volume) -> dict[str, Any]:
        if volume.status != 'available':
            raise errors.Invalid(f'Invalid volume: Volume {volume.id} must be available, but is {volume.status}.')
        return {'readonly': readonly}

    face.volumes.change(req.context, volume_id, change)


@action('os-retype', {'new_type': {'type': 'string', 'minLength': 1, 'maxLength': 255}}, required=('new_type',))
def retype(face: VolumeService, req: FaceRequest, volume_id: str, argument: dict[str, Any]) -> None:
    face.volumes.retype(req.context, volume_id, argument['new_type'])


@action('os-reimage', {'image_id': UUID, 'reimage_reserved': BOOLEAN}, required=('image_id',))
def reimage(face: VolumeService, req: FaceRequest, volume_id: str, argument: dict[str, Any]) -> None:
    begins_at(req, REIMAGE)
    volume = face.volumes.get(req.context, volume_id)
    if volume.status == 'reserved' and not is_true(argument.get('reimage_reserved')):
        raise errors.Conflict(f'Volume {volume_id} is reserved; reimage_reserved must be true to write over it.')
    face.volumes.reimage(req.context, volume_id, argument['image_id'])


@action('os-reserve')
def reserve(face: VolumeService, req: FaceRequest, volume_id: str, argument: Any) -> None:
    face.volumes.begin_attaching(req.context, volume_id)


@action('os-unreserve')
def unreserve(face: VolumeService, req: FaceRequest, volume_id: str, argument: Any) -> None:
    face.volumes.stop_attaching(req.context, volume_id)


@action('os-begin_detaching')
def begin_detaching(face: VolumeService, req: FaceRequest, volume_id: str, argument: Any) -> None:
    face.volumes.begin_detaching(req.context, volume_id)


@action('os-roll_detaching')
def roll_detaching(face: VolumeService, req: FaceRequest, volume_id: str, argument: Any) -> None:
    face.volumes.stop_detaching(req.context, volume_id)


@action(
    'os-attach',
    {
        'instance_uuid': {'anyOf': [UUID, {'type': 'null'}]},
        'host_name': NAME,
        'mountpoint': {'type': 'string', 'minLength': 1, 'maxLength': 255},
        'mode': {'type': ['string', 'null'], 'enum': [None, 'rw', 'ro']},
    },
    required=('mountpoint',),
)
def attach(face: VolumeService, req: FaceRequest, volume_id: str, argument: dict[str, Any]) -> None:
    server_id, host = argument.get('instance_uuid'), argument.get('host_name')
    if not server_id and not host:
        raise errors.Invalid('Either instance_uuid or host_name must be given.')
    mode = argument.get('mode') or 'rw'
    face.volumes.attach(
        req.context, volume_id, server_id=server_id, host=host, device=argument['mountpoint'], mode=mode
    )


@action('os-detach')
def detach(face: VolumeService, req: FaceRequest, volume_id: str, argument: Any) -> None:
    attachment_id = argument.get('attachment_id') if isinstance(argument, dict) else None
    for use in face.volumes.get(req.context, volume_id).attachments:
        if attachment_id in (None, use['attachment_id']):
            check_release(req.context, use['server_id'])
    face.volumes.detach(req.context, volume_id, attachment_id)


@action('os-force_detach', {'attachment_id': {'anyOf': [UUID, {'type': 'null'}]}}, admin=True)
def force_detach(face: VolumeService, req: FaceRequest, volume_id: str, argument: dict[str, Any]) -> None:
    face.volumes.detach(req.context, volume_id, argument.get('attachment_id'))


@action('os-force_delete', admin=True)
def force_delete(face: VolumeService, req: FaceRequest, volume_id: str, argument: Any) -> None:
    face.volumes.delete(req.context, volume_id, force=True)


@action('os-set_image_metadata', {'metadata': PAIRS}, required=('metadata',))
def set_image_metadata(face: VolumeService, req: FaceRequest, volume_id: str, argument: dict[str, Any]) -> Any:
    given = argument['metadata']
    changed = face.volumes.change(
        req.context, volume_id, lambda volume: {'image_metadata': {**volume.image_metadata, **given}}
    )
    return {'metadata': changed.image_metadata}


@action('os-show_image_metadata')
def show_image_metadata(face: VolumeService, req: FaceRequest, volume_id: str, argument: Any) -> Any:
    return {'metadata': face.volumes.get(req.context, volume_id).image_metadata}


@action('os-unset_image_metadata', {'key': {'type': 'string', 'minLength': 1, 'maxLength': 255}}, required=('key',))
def unset_image_metadata(face: VolumeService, req: FaceRequest, volume_id: str, argument: dict[str, Any]) -> Any:
    key = argument['key']

    def change(volume: Volume) -> dict[str, Any]:
        if key not in volume.image_metadata:
            raise errors.NotFound(f'There is no image metadata {key}.')
        return {'image_metadata': {name: value for name, value in volume.image_metadata.items() if name != key}}

    face.volumes.change(req.context, volume_id, change)
    return 200, None
