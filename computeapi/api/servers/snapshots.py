"""POST /servers/{id}/action: creates images of a server, as snapshots or rotated backups."""

from typing import Any

from computeapi.api.images import image_address
from computeapi.api.servers.controller import ServerController, action
from computeapi.api.servers.schemas import METADATA
from computeapi.api.types import NAME, STRING, UNBOUNDED
from computeapi.db.servers import VOLUMES, Server, is_volume_backed
from computeapi.versions import MIN, added, changed, removed, resolve
from computeapi.web.contract import HTML, JSON, MEMBER_OR_ADMIN, Policy
from computeapi.web.controller import api_version
from computeapi.web.request import Reply, Request, target_of
from computeapi.web.schemas import closed, lone

CREATE_IMAGE = Policy('os_compute_api:servers:create_image', MEMBER_OR_ADMIN, 'Create an image of a server')
CREATE_VOLUME_IMAGE = Policy(
    'os_compute_api:servers:create_image:allow_volume_backed',
    MEMBER_OR_ADMIN,
    'Create an image of a volume-backed server',
)
CREATE_BACKUP = Policy('os_compute_api:os-create-backup', MEMBER_OR_ADMIN, 'Back up a server')

# ------------------------------------------------------------------ requests and responses

ID_IN_BODY = '2.45'
# Unlike other names, this one could never have leading or trailing spaces on /v2.
IMAGE = closed({'name': resolve(NAME, MIN), 'metadata': METADATA}, ['name'])
BACKUP = closed(
    {'name': NAME, 'backup_type': STRING, 'rotation': UNBOUNDED, 'metadata': METADATA},
    ['name', 'backup_type', 'rotation'],
)
FACTS: dict[str, Any] = {
    'response': added(ID_IN_BODY, lone('image_id', STRING)),
    'media_type': changed({'2.1': HTML, ID_IN_BODY: JSON}),
    'errors': (403, 404, 409),
    'behaviour': {'quota_on_metadata': removed('2.39', True)},
}


class ServerImages(ServerController):
    """Creating images and backups of servers. Below 2.45, the Location header contains the ID."""

    needs = (VOLUMES,)

    @action('createImage', policy=CREATE_IMAGE, also=(CREATE_VOLUME_IMAGE,), takes=IMAGE, **FACTS)
    def create_image(self, req: Request, server: Server, body: Any) -> Reply:
        """Create an image of a server, and return its location."""
        prefix = image_address(self.cloud, req.context) or req.host_url + '/image'
        return located(prefix, self.make_image(req, server, body['createImage']))

    @api_version(ID_IN_BODY)
    def create_image(self, req: Request, server: Server, body: Any) -> dict[str, str]:
        """Create an image of a server, and return its ID."""
        return {'image_id': self.make_image(req, server, body['createImage'])}

    @action('createBackup', policy=CREATE_BACKUP, takes=BACKUP, **FACTS)
    def create_backup(self, req: Request, server: Server, body: Any) -> Reply:
        """Create an image of a server, delete the oldest of this type, and return the location of the new one."""
        image_id = self.make_backup(req, server, body['createBackup'])
        # With a rotation of 0 the image is deleted again, so it has no location.
        return located(req.endpoint, image_id) if int(body['createBackup']['rotation']) else Reply()

    @api_version(ID_IN_BODY)
    def create_backup(self, req: Request, server: Server, body: Any) -> dict[str, str]:
        """Create an image of a server, delete the oldest of this type, and return the ID of the new one."""
        return {'image_id': self.make_backup(req, server, body['createBackup'])}

    def make_image(self, req: Request, server: Server, wanted: Any) -> str:
        if is_volume_backed(server, server.volumes):
            req.check(CREATE_VOLUME_IMAGE, target_of(server))
        return self.cloud.snapshots.create(req.context, server, wanted['name'].strip(), self.metadata(req, wanted))

    def make_backup(self, req: Request, server: Server, wanted: Any) -> str:
        name, kind, rotation = wanted['name'].strip(), wanted['backup_type'], int(wanted['rotation'])
        metadata = self.metadata(req, wanted)
        return self.cloud.snapshots.create_backup(req.context, server, name, kind, rotation, metadata)

    def metadata(self, req: Request, wanted: Any) -> dict[str, str]:
        """The metadata of the new image."""
        metadata: dict[str, str] = wanted.get('metadata', {})
        if req.behaviour.quota_on_metadata:
            self.cloud.snapshots.check_metadata(req.context, metadata)
        return metadata


def located(prefix: str, image_id: str) -> Reply:
    return Reply(headers={'Location': f'{prefix}/images/{image_id}'})
