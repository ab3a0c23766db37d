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
from computeapi.kit.cloud_files import belongings, hosts, identity, images, networks, replacing, volumes
from computeapi.kit.cloud_files.accounts import UserAccount, accounts
from computeapi.kit.cloud_files.content import CloudContent
from computeapi.kit.cloud_files.document import CloudFileError, CloudFileSource
from computeapi.kit.cloud_files.servers import LoadedServers
from computeapi.main import Service

KINDS = {str(state): work.kind for work in reversed(TRANSITIONS) for state in work.doing if state is not None}
"""By task_state, the kind of task that it is part of."""


def load(service: Service, source: CloudFileSource) -> list[UserAccount]:
    """Add what the document describes to the store, completely or not at all; returns who can log in.

    The caller ensures that nothing else happens in the cloud. Raises Invalid with the place and line of an error.
    """
    document = source.check()
    check_built_in(service)
    try:
        with conflicts('Something that the document has is there already.'), service.store.write() as connection:
            if document.get('replace'):
                document = replacing.begin(connection, document)
            content = CloudContent(connection, document, service.store.clock())
            with images.stored_at_end(content, _image_files(service)):
                fill(service, content)
                content.write()
                allocations.count(connection)
                found = accounts(content)
    except CloudFileError as error:
        raise Invalid(source.located(error.place, error.message)) from None
    return found


def check_built_in(service: Service) -> None:
    """Raise NotSupported for a cloud whose services are not built in."""
    built_in('identity', LocalIdentity, service.identity)
    built_in('image', LocalImages, service.images)
    built_in('network', LocalNetworks, service.networks)
    built_in('volume', LocalVolumes, service.volumes)


def fill(service: Service, content: CloudContent) -> None:
    """Add all rows of the document."""
    users = built_in('identity', LocalIdentity, service.identity).users
    identity.load(content, users.passwords.hash)
    hosts.load(content)
    belongings.load(content)
    images.load(content, _image_files(service))
    book = networks.load(content)
    volumes.load(content)
    belongings.load_quotas(content)
    servers = LoadedServers(content, book, hosts.zones_of(content), service.conf.default_availability_zone, KINDS)
    servers.load()
    networks.load_floating_ips(content, book, servers.ports_of)
    servers.add_floating_ips()


def _image_files(service: Service) -> ImageFiles:
    return built_in('image', LocalImages, service.images).files
