"""Exports everything in a cloud as a document."""

from typing import Any

from computeapi.backends.image.local import LocalImages
from computeapi.backends.registry import built_in
from computeapi.kit.cloud_files import belongings, hosts, identity, images, network_export, volumes
from computeapi.kit.cloud_files.export import Export
from computeapi.kit.cloud_files.loading import check_built_in
from computeapi.kit.cloud_files.sections import SECTIONS
from computeapi.kit.cloud_files.server_export import ServerExport
from computeapi.main import Service


def export(service: Service, *, hashes: bool = False) -> tuple[dict[str, Any], list[str]]:
    """A document that makes another cloud like this one, and a list of what it leaves out.

    It contains no passwords, and hashes only with *hashes*; nor tokens, nor what guests were given.
    """
    check_built_in(service)
    files = built_in('image', LocalImages, service.images).files
    with service.store.read() as connection:
        exported = Export(connection, hashes=hashes)
        identity.export(exported)
        hosts.export(exported)
        belongings.export(exported)
        images.export(exported, files)
        ports = network_export.export(exported)
        volumes.export(exported)
        ServerExport(exported, ports).write()
    order = ['version', 'replace', *SECTIONS]
    return {name: exported.document[name] for name in order if name in exported.document}, exported.left_out
