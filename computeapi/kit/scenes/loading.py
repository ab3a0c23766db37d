"""Loads a document into the store of a service."""

from computeapi.backends.identity.local import LocalIdentity
from computeapi.backends.image.files import ImageFiles
from computeapi.backends.image.local import LocalImages
from computeapi.backends.network.local import LocalNetworks
from computeapi.backends.registry import built_in
from computeapi.backends.volume.local import LocalVolumes
from computeapi.compute.servers import TRANSITIONS
from computeapi.db import allocations
from computeapi.db.engine import conflicts
from computeapi.errors import Invalid
from computeapi.kit.scenes import belongings, hosts, identity, images, networks, replacing, volumes
from computeapi.kit.scenes.accounts import UserAccount, accounts
from computeapi.kit.scenes.document import SceneError, SceneSource
from computeapi.kit.scenes.scene import Scene
from computeapi.kit.scenes.servers import LoadedServers
from computeapi.main import Service

KINDS = {str(state): work.kind for work in reversed(TRANSITIONS) for state in work.doing if state is not None}
"""By task_state, the kind of task that it is part of."""


def load(service: Service, source: SceneSource) -> list[UserAccount]:
    """Add what the document describes to the store, completely or not at all; returns who can log in.

    The caller ensures that nothing else happens in the cloud. Raises Invalid with the place and line of an error.
    """
    document = source.check()
    check_built_in(service)
    try:
        with conflicts('Something that the document has is there already.'), service.store.write() as connection:
            if document.get('replace'):
                document = replacing.begin(connection, document)
            scene = Scene(connection, document, service.store.clock())
            with images.kept_at_the_end(scene, _image_files(service)):
                fill(service, scene)
                scene.write()
                allocations.count(connection)
                found = accounts(scene)
    except SceneError as error:
        raise Invalid(source.located(error.place, error.message)) from None
    return found


def check_built_in(service: Service) -> None:
    """Raise NotSupported for a cloud whose services are not built in."""
    built_in('identity', LocalIdentity, service.identity)
    built_in('image', LocalImages, service.images)
    built_in('network', LocalNetworks, service.networks)
    built_in('volume', LocalVolumes, service.volumes)


def fill(service: Service, scene: Scene) -> None:
    """Add all rows of the document to the scene."""
    users = built_in('identity', LocalIdentity, service.identity).users
    identity.load(scene, users.passwords.hash)
    hosts.load(scene)
    belongings.load(scene)
    images.load(scene, _image_files(service))
    book = networks.load(scene)
    volumes.load(scene)
    belongings.load_quotas(scene)
    servers = LoadedServers(scene, book, hosts.zones_of(scene), service.conf.default_availability_zone, KINDS)
    servers.load()
    networks.load_floating_ips(scene, book, servers.ports_of)
    servers.tell_of_floating_ips()


def _image_files(service: Service) -> ImageFiles:
    return built_in('image', LocalImages, service.images).files
