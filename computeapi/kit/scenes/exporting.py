"""All that a cloud has, as a document."""

from typing import Any

from computeapi.backends.image.local import LocalImages
from computeapi.backends.registry import built_in
from computeapi.kit.scenes import belongings, hosts, identity, images, network_export, volumes
from computeapi.kit.scenes.export import Export
from computeapi.kit.scenes.loading import check_built_in
from computeapi.kit.scenes.sections import SECTIONS
from computeapi.kit.scenes.server_export import ServerExport
from computeapi.main import Service


def export(service: Service, *, hashes: bool = False) -> tuple[dict[str, Any], list[str]]:
    """A document that replaces another cloud by one that is like this one, and what it leaves out.

    Passwords are no part of it, unless *hashes* asks for hashes of them; nor are tokens, and what guests were told.
    """
    check_built_in(service)
    files = built_in('image', LocalImages, service.images).files
    with service.store.read() as connection:
        told = Export(connection, hashes=hashes)
        identity.export(told)
        hosts.export(told)
        belongings.export(told)
        images.export(told, files)
        ports = network_export.export(told)
        volumes.export(told)
        ServerExport(told, ports).write()
    order = ['version', 'replace', *SECTIONS]
    return {name: told.document[name] for name in order if name in told.document}, told.left_out
