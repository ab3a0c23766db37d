"""Readers of the fields of a server, which compute them from its record alone: no queries, no clock."""

import functools
import hashlib
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

from computeapi.api.servers.image_properties import STANDARD
from computeapi.api.types import iso
from computeapi.db.servers import Server
from computeapi.states import status_of
from computeapi.versions import ABSENT
from computeapi.web.contract import ADMIN, READER_OR_ADMIN, Policy, Reader, absent, attr
from computeapi.web.request import Request

EXTRA_SPECS = Policy(
    'os_compute_api:servers:show:flavor-extra-specs', READER_OR_ADMIN, "Show the extra specs of a server's flavor"
)
HOST_STATUS = Policy('os_compute_api:servers:show:host_status', ADMIN, "Show the status of a server's host")
HOST_UNKNOWN = Policy(
    'os_compute_api:servers:show:host_status:unknown-only',
    ADMIN,
    "Show only that the status of a server's host is unknown",
)

WITH_PROGRESS = frozenset({'ACTIVE', 'BUILD', 'REBUILD', 'RESIZE', 'VERIFY_RESIZE', 'MIGRATING'})
WITH_FAULT = frozenset({'ERROR', 'DELETED'})


def links(req: Request) -> Reader:
    """Like Request.links, for an ID that needs no quoting."""
    here, bookmark = f'{req.endpoint}/servers/', f'{req.bookmark}/servers/'

    def read(server: Server) -> list[dict[str, str]]:
        return [{'rel': 'self', 'href': here + server.uuid}, {'rel': 'bookmark', 'href': bookmark + server.uuid}]

    return read


def status(server: Server) -> str:
    return status_of(server.vm_state, server.task_state)


def progress(server: Server) -> Any:
    return server.progress if status(server) in WITH_PROGRESS else ABSENT


def fault(req: Request) -> Reader:
    """The fault; the details of internal errors are for administrators only."""
    is_admin = req.context.is_admin

    def read(server: Server) -> Any:
        if not server.fault or status(server) not in WITH_FAULT:
            return ABSENT
        kept = server.fault
        shown = {'code': kept['code'], 'created': f'{kept["created"][:19]}Z', 'message': kept['message']}
        if kept.get('details') and (is_admin or kept['code'] != 500):
            shown['details'] = kept['details']
        return shown

    return read


def updated(server: Server) -> str | None:
    return iso(server.updated_at or server.created_at)


def host_id(server: Server) -> str:
    return host_id_of(server.project_id, server.host)


@functools.lru_cache(maxsize=4096)
def host_id_of(project_id: str, host: str | None) -> str:
    """Distinguishes a project's hosts without naming them; cached, because a page has the same few hosts repeatedly."""
    if not host:
        return ''
    return hashlib.sha224((project_id + host).encode()).hexdigest()


def host_status(req: Request) -> Reader:
    if req.allows(HOST_STATUS):
        return attr('host_status')
    if not req.allows(HOST_UNKNOWN):
        return absent
    return lambda server: server.host_status if server.host_status == 'UNKNOWN' else ABSENT


# ------------------------------------------------------------------ configuration


def image(req: Request) -> Reader:
    """A link; empty for a volume-backed server."""
    images = f'{req.bookmark}/images/'

    def read(server: Server) -> Any:
        if not server.image_id:
            return ''
        return {'id': server.image_id, 'links': [{'rel': 'bookmark', 'href': images + server.image_id}]}

    return read


def image_with_properties(req: Request) -> Reader:
    """A link, with the standard properties of the image."""
    link = image(req)

    def read(server: Server) -> Any:
        shown = link(server)
        if shown:
            kept = server.image_properties.items()
            shown['properties'] = {name: value for name, value in kept if name in STANDARD}
        return shown

    return read


def flavor_link(req: Request) -> Reader:
    flavors = f'{req.bookmark}/flavors/'

    def read(server: Server) -> dict[str, Any]:
        flavorid = server.flavor['flavorid']
        return {'id': flavorid, 'links': [{'rel': 'bookmark', 'href': flavors + quote(flavorid)}]}

    return read


def flavor(req: Request) -> Reader:
    """The flavor as it was when the server got it."""
    return flavor_with_extra_specs if req.allows(EXTRA_SPECS) else flavor_without_extra_specs


def flavor_without_extra_specs(server: Server) -> dict[str, Any]:
    kept = server.flavor
    return {
        'vcpus': kept['vcpus'],
        'ram': kept['memory_mb'],
        'disk': kept['root_gb'],
        'ephemeral': kept['ephemeral_gb'],
        'swap': kept['swap'],
        'original_name': kept['name'],
    }


def flavor_with_extra_specs(server: Server) -> dict[str, Any]:
    return flavor_without_extra_specs(server) | {'extra_specs': server.flavor['extra_specs']}


def volume_ids(server: Server) -> list[dict[str, Any]]:
    return [{'id': device.volume_id} for device in server.volumes]


def volumes(server: Server) -> list[dict[str, Any]]:
    return [
        {'id': device.volume_id, 'delete_on_termination': device.delete_on_termination} for device in server.volumes
    ]


# ------------------------------------------------------------------ addresses


def interfaces(server: Server) -> Iterator[tuple[str, dict[str, Any], str, dict[str, Any]]]:
    """The addresses of the server: (network, interface, kind, {version, addr})."""
    for interface in server.network_info:
        for fixed in interface['addresses']:
            name = interface['network_name']
            yield name, interface, 'fixed', {'version': fixed['version'], 'addr': fixed['address']}
            for floating in fixed['floating']:
                yield name, interface, 'floating', {'version': 4, 'addr': floating}


def networks(server: Server) -> dict[str, list[dict[str, Any]]]:
    """The networks of the server, without its addresses; interfaces that do not exist yet do not count."""
    return {each['network_name']: [] for each in server.network_info if each['addresses'] or each['mac_address']}


def plain_addresses(server: Server) -> dict[str, list[dict[str, Any]]]:
    """The addresses, by network."""
    found = networks(server)
    for network, _, _, address in interfaces(server):
        found[network].append(address)
    return found


def addresses(server: Server) -> dict[str, list[dict[str, Any]]]:
    """The addresses by network, with their MAC addresses, and whether they are fixed or floating."""
    found = networks(server)
    for network, interface, kind, address in interfaces(server):
        address['OS-EXT-IPS:type'] = kind
        address['OS-EXT-IPS-MAC:mac_addr'] = interface['mac_address']
        found[network].append(address)
    return found


def security_groups(server: Server) -> Any:
    """Without duplicates; the field is omitted if there are none."""
    names = {name: None for interface in server.network_info for name in interface['security_groups']}
    return [{'name': name} for name in names] or ABSENT
