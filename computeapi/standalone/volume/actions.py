"""Actions on volumes other than changes to their descriptive attributes."""

from collections.abc import Callable
from typing import Any

from computeapi import errors
from computeapi.backends.volume import Volume
from computeapi.backends.volume.local.base import BACKEND
from computeapi.booleans import is_true
from computeapi.standalone.access import ADMIN
from computeapi.standalone.fields import time
from computeapi.standalone.image.documents import CONTAINER_FORMATS
from computeapi.standalone.pairs import Pairs, without
from computeapi.standalone.volume.attachments import check_release
from computeapi.standalone.volume.documents import BOOLEAN, NAME, NOTHING, PAIRS, SIZE, TEXT, UUID
from computeapi.standalone.volume.service import USER, CinderController, added, argued
from computeapi.web.controller import action, api_version
from computeapi.web.request import Request

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
RESET = {
    'status': {'type': ['string', 'null'], 'enum': [None, *STATUSES]},
    'attach_status': {'type': ['string', 'null'], 'enum': [None, 'detached']},
    'migration_status': {'type': ['string', 'null'], 'enum': [None, *MIGRATION_STATUSES]},
}
ATTACH = {
    'instance_uuid': {'anyOf': [UUID, NOTHING]},
    'host_name': NAME,
    'mountpoint': TEXT,
    'mode': {'type': ['string', 'null'], 'enum': [None, 'rw', 'ro']},
}
DETACH = {'type': ['object', 'null'], 'properties': {'attachment_id': {'anyOf': [UUID, NOTHING]}}}
UPLOAD = {
    'image_name': TEXT,
    'force': BOOLEAN,
    'protected': BOOLEAN,
    'visibility': {'enum': ['public', 'private', 'shared', 'community']},
    'disk_format': TEXT,
    'container_format': {'enum': list(CONTAINER_FORMATS)},
}
CONNECTION = {'connector': {'type': 'object', 'maxProperties': 64}}
Body = dict[str, Any]


class CinderVolumeActions(CinderController):
    path = '/volumes'

    @argued('os-extend', {'new_size': SIZE}, 'new_size', behaviour={'in_use': added('3.42', True)})
    def extend(self, req: Request, id: str, body: Body) -> None:
        in_use = bool(req.behaviour.in_use)
        self.volumes.extend(req.context, id, int(body['new_size']), in_use=in_use)

    @argued('os-reset_status', RESET, policy=ADMIN)
    def reset_status(self, req: Request, id: str, body: Body) -> None:
        if not any(body.get(name) for name in RESET):
            raise errors.Invalid("Must specify 'status', 'attach_status' or 'migration_status' for update.")
        detached, moving = body.get('attach_status') == 'detached', body.get('migration_status')
        self.volumes.reset_status(req.context, id, body.get('status'), detached=detached, migration_status=moving)

    @argued('os-set_bootable', {'bootable': BOOLEAN}, 'bootable', status=200)
    def set_bootable(self, req: Request, id: str, body: Body) -> None:
        self.volumes.update(req.context, id, bootable=is_true(body['bootable']))

    @argued('os-update_readonly_flag', {'readonly': BOOLEAN}, 'readonly')
    def set_readonly(self, req: Request, id: str, body: Body) -> None:
        readonly = is_true(body['readonly'])

        def change(volume: Volume) -> dict[str, Any]:
            if volume.status != 'available':
                raise errors.Invalid(f'Invalid volume: Volume {volume.id} must be available, but is {volume.status}.')
            return {'readonly': readonly}

        self.volumes.change(req.context, id, change)

    @argued('os-retype', {'new_type': TEXT, 'migration_policy': {'enum': ['never', 'on-demand']}}, 'new_type')
    def retype(self, req: Request, id: str, body: Body) -> None:
        self.volumes.retype(req.context, id, body['new_type'])

    @argued('os-reimage', {'image_id': UUID, 'reimage_reserved': BOOLEAN}, 'image_id')
    @api_version('3.68')
    def reimage(self, req: Request, id: str, body: Body) -> None:
        self.volumes.reimage(req.context, id, body['image_id'], reserved=is_true(body.get('reimage_reserved')))

    @argued('revert', {'snapshot_id': UUID}, 'snapshot_id')
    @api_version('3.40')
    def revert(self, req: Request, id: str, body: Body) -> None:
        self.volumes.revert(req.context, id, body['snapshot_id'])

    @argued('os-volume_upload_image', UPLOAD, 'image_name', status=202)
    def upload(self, req: Request, id: str, body: Body) -> dict[str, Any]:
        facts = {name: body[name] for name in ('disk_format', 'container_format', 'visibility') if body.get(name)}
        facts |= {name: is_true(body.get(name)) for name in ('force', 'protected')}
        volume, image = self.volumes.upload(req.context, id, body['image_name'], **facts)
        shown = ('disk_format', 'container_format', 'visibility', 'protected')
        about = {'id': volume.id, 'status': volume.status, 'size': volume.size, 'updated_at': time(volume.updated_at)}
        made = {'image_id': image.id, 'image_name': image.name, 'display_description': volume.description}
        kind = {'id': volume.volume_type_id, 'name': volume.volume_type}
        named = {name: getattr(image, name) for name in shown}
        return {'os-volume_upload_image': about | made | named | {'volume_type': kind}}

    @action('os-reserve', policy=USER)
    def reserve(self, req: Request, id: str) -> None:
        self.volumes.begin_attaching(req.context, id)

    @action('os-unreserve', policy=USER)
    def unreserve(self, req: Request, id: str) -> None:
        self.volumes.stop_attaching(req.context, id)

    @action('os-begin_detaching', policy=USER)
    def begin_detaching(self, req: Request, id: str) -> None:
        self.volumes.begin_detaching(req.context, id)

    @action('os-roll_detaching', policy=USER)
    def roll_detaching(self, req: Request, id: str) -> None:
        self.volumes.stop_detaching(req.context, id)

    @argued('os-initialize_connection', CONNECTION, 'connector', status=200, policy=USER)
    def initialize_connection(self, req: Request, id: str, body: Body) -> dict[str, Any]:
        """Describe how the connector's host reaches the volume. If the volume has data, only hosts in this process
        can."""
        volume = self.volumes.get(req.context, id)
        return {'connection_info': {'driver_volume_type': BACKEND, 'data': {'volume_id': volume.id}}}

    @argued('os-terminate_connection', CONNECTION, 'connector', policy=USER)
    def terminate_connection(self, req: Request, id: str, body: Body) -> None:
        self.volumes.get(req.context, id)

    @argued('os-attach', ATTACH, 'mountpoint', policy=USER)
    def attach(self, req: Request, id: str, body: Body) -> None:
        server_id, host = body.get('instance_uuid'), body.get('host_name')
        if not server_id and not host:
            raise errors.Invalid('Either instance_uuid or host_name must be given.')
        mode = body.get('mode') or 'rw'
        self.volumes.attach(req.context, id, server_id=server_id, host=host, device=body['mountpoint'], mode=mode)

    @action('os-detach', policy=USER, takes=DETACH)
    def detach(self, req: Request, id: str, body: Body | None) -> None:
        attachment_id = (body or {}).get('attachment_id')
        # A merely reserved attachment is checked too: the server is about to use it.
        for held in self.volumes.attachments(req.context, volume_id=id):
            if attachment_id in (None, held.id):
                check_release(req, self.volumes, id, held.server_id)
        self.volumes.detach(req.context, id, attachment_id)

    @argued('os-force_detach', {'attachment_id': {'anyOf': [UUID, NOTHING]}}, policy=ADMIN)
    def force_detach(self, req: Request, id: str, body: Body) -> None:
        self.volumes.detach(req.context, id, body.get('attachment_id'), force=True)

    @action('os-force_delete', policy=ADMIN)
    def force_delete(self, req: Request, id: str) -> None:
        self.volumes.delete(req.context, id, force=True)

    @argued('os-set_image_metadata', {'metadata': PAIRS}, 'metadata', status=200)
    def set_image_metadata(self, req: Request, id: str, body: Body) -> dict[str, Any]:
        return {'metadata': self._change_image(req, id, lambda pairs: {**pairs, **body['metadata']})}

    @action('os-show_image_metadata', policy=USER, status=200)
    def show_image_metadata(self, req: Request, id: str) -> dict[str, Any]:
        return {'metadata': self.volumes.get(req.context, id).image_metadata}

    @argued('os-unset_image_metadata', {'key': TEXT}, 'key', status=200)
    def unset_image_metadata(self, req: Request, id: str, body: Body) -> None:
        missing = f'There is no image metadata {body["key"]}.'

        self._change_image(req, id, lambda pairs: without(pairs, body['key'], missing))

    def _change_image(self, req: Request, id: str, change: Callable[[Pairs], Pairs]) -> Pairs:
        changed = self.volumes.change(req.context, id, lambda volume: {'image_metadata': change(volume.image_metadata)})
        return changed.image_metadata
