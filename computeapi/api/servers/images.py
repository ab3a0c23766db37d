"""POST /servers/{id}/action: making images of a server, once or as one of its backups."""

from typing import Any

from computeapi.api.servers.schemas import METADATA
from computeapi.api.servers.subject import ServerController, action
from computeapi.api.types import NAME, NON_NEGATIVE, STRING
from computeapi.compute.servers.images import is_volume_backed
from computeapi.db.servers import VOLUMES
from computeapi.versions import MIN, APIVersionRequest, added, changed, resolve
from computeapi.web.contract import HTML, JSON, MEMBER_OR_ADMIN, Policy, closed, lone
from computeapi.web.request import Reply

# ------------------------------------------------------------------ policies

CREATE_IMAGE = Policy('os_compute_api:servers:create_image', MEMBER_OR_ADMIN, 'Make an image of a server')
CREATE_VOLUME_IMAGE = Policy(
    'os_compute_api:servers:create_image:allow_volume_backed', MEMBER_OR_ADMIN, 'Make an image of a server on volumes'
)
CREATE_BACKUP = Policy('os_compute_api:os-create-backup', MEMBER_OR_ADMIN, 'Back up a server')

METADATA_IS_UNLIMITED = APIVersionRequest.parse('2.39')
IMAGE_ID_IN_BODY = APIVersionRequest.parse('2.45')

# ------------------------------------------------------------------ requests and answers

# Unlike other names, this one never had spaces around it on /v2.
IMAGE = closed({'name': resolve(NAME, MIN), 'metadata': METADATA}, ['name'])
BACKUP = closed(
    {'name': NAME, 'backup_type': STRING, 'rotation': NON_NEGATIVE, 'metadata': METADATA},
    ['name', 'backup_type', 'rotation'],
)
ANSWER: dict[str, Any] = {
    'response': added('2.45', closed({'image_id': STRING}, ['image_id'])),
    'media_type': changed({'2.1': HTML, '2.45': JSON}),
    'errors': (403, 404, 409),
}

# ------------------------------------------------------------------ controller


class ServerImages(ServerController):
    """Images that are made of servers."""

    needs = (VOLUMES,)

    @action('createImage', policy=CREATE_IMAGE, also=(CREATE_VOLUME_IMAGE,), body=lone('createImage', IMAGE), **ANSWER)
    def create_image(self, req, server, body):
        """Make an image of a server."""
        wanted = body['createImage']
        if is_volume_backed(server, server.volumes):
            req.check(CREATE_VOLUME_IMAGE, {'project_id': server.project_id, 'user_id': server.user_id})
        metadata = self.metadata(req, wanted)
        image_id = self.cloud.snapshots.create(req.context, server, wanted['name'], metadata)
        prefix = self.cloud.conf.api.glance_link_prefix or req.host_url + '/image'
        return answer(req, image_id, prefix)

    @action('createBackup', policy=CREATE_BACKUP, body=lone('createBackup', BACKUP), **ANSWER)
    def create_backup(self, req, server, body):
        """Make an image of a server, and delete the oldest of this type."""
        wanted = body['createBackup']
        rotation = int(wanted['rotation'])
        metadata = self.metadata(req, wanted)
        image_id = self.cloud.snapshots.create_backup(
            req.context, server, wanted['name'].strip(), wanted['backup_type'], rotation, metadata
        )
        return answer(req, image_id, req.endpoint if rotation else None)

    def metadata(self, req, wanted):
        """What is to be noted about the image."""
        metadata = wanted.get('metadata', {})
        if req.version < METADATA_IS_UNLIMITED:
            self.cloud.snapshots.check_metadata(req.context, metadata)
        return metadata


def answer(req, image_id, prefix):
    """Below 2.45 the id is the end of a Location header, without a prefix nowhere: the image will not stay."""
    if req.version >= IMAGE_ID_IN_BODY:
        return {'image_id': image_id}
    return Reply(headers={'Location': f'{prefix}/images/{image_id}'} if prefix else {})
