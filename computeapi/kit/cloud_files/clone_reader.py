"""Reads the APIs of a cloud with the permissions of a user; what is refused is noted and left out."""

from collections.abc import Callable, Iterable, Mapping
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlencode

if TYPE_CHECKING:
    from openstack.connection import Connection

Json = dict[str, Any]
PAGE = 500
VERSIONS = {'identity': '/v3', 'image': '/v2', 'network': '/v2.0'}
SERVICES = {name: name for name in ('identity', 'image', 'network', 'compute')} | {'block_storage': 'block-storage'}
"""The type of each service, by its name in the SDK."""


class Pages(NamedTuple):
    """How to read a list in pages.

    mark: returns the marker of an entry, with which the next page begins.  numbered: use an offset instead.
    """

    mark: Callable[[Json], str] = itemgetter('id')
    numbered: bool = False


BY_ID = Pages()


class Reader:
    """Reads lists of the services of a cloud."""

    def __init__(self, connection: 'Connection'):
        self.connection = connection
        self.left_out: list[str] = []

    def all(
        self, service: str, path: str, key: str, *, pages: Pages | None = BY_ID, microversion: str | None = None
    ) -> list[Json]:
        """All entries of a list; empty, with a note, if it cannot be read. pages: None reads it at once."""
        if pages is None:
            return self._page(service, path, key, microversion)
        found: dict[str, Json] = {}
        while True:
            begin = {'offset': len(found)} if pages.numbered else {'marker': next(reversed(found), None)}
            query = {'limit': PAGE} | (begin if found else {})
            page = self._page(service, _with(path, query), key, microversion)
            new = {pages.mark(each): each for each in page if pages.mark(each) not in found}
            # A service without paging returns the same page again.
            if not new:
                return list(found.values())
            found |= new

    def _page(self, service: str, path: str, key: str, microversion: str | None) -> list[Json]:
        document = self._get(service, path, microversion) or {}
        if document.get('truncated'):
            self.left_out.append(f'{service} {path.partition("?")[0]}: items beyond the limit of lists there')
        entries: list[Json] = document.get(key, [])
        return entries

    def everyones(self, service: str, path: str, key: str, *, microversion: str | None = None) -> list[Json]:
        """The entries of all projects or, if that is refused, of the user's own."""
        noted = len(self.left_out)
        found = self.all(service, _with(path, {'all_tenants': 1}), key, microversion=microversion)
        if len(self.left_out) > noted:
            del self.left_out[noted:]
            self.left_out.append(f'{key} of other projects')
            found = self.all(service, path, key, microversion=microversion)
        return found

    def one(self, service: str, path: str, key: str, *, microversion: str | None = None) -> Any:
        """The value of a key; None if it cannot be read."""
        answer = self._get(service, path, microversion)
        return None if answer is None else answer.get(key)

    def _get(self, service: str, path: str, microversion: str | None) -> Json | None:
        from openstack import exceptions

        try:
            proxy, endpoint = getattr(self.connection, service), self.connection.endpoint_for(SERVICES[service]) or ''
            if service in VERSIONS:
                # The endpoints of these services may or may not include the version.
                root = endpoint.rstrip('/').removesuffix(VERSIONS[service])
                answer = proxy.get(root + path)
            else:
                answer = proxy.get(path, microversion=microversion)
            exceptions.raise_from_response(answer)
            document: Json = answer.json()
        except (exceptions.SDKException, AttributeError, TypeError, ValueError) as error:
            self.left_out.append(f'{service} {path.partition("?")[0]}: {str(error)[:200]}')
            return None
        return document


def _with(path: str, query: Mapping[str, Any]) -> str:
    return f'{path}{"&" if "?" in path else "?"}{urlencode(query)}' if query else path


def named(each: Json, names: Iterable[str]) -> Json:
    """Properties with the same name in a document, if they have a value."""
    return {name: each[name] for name in names if each.get(name) is not None}


def moved(each: Json, names: Mapping[str, str]) -> Json:
    """Properties with another name in a document, by their name in a response."""
    return {ours: each[theirs] for theirs, ours in names.items() if each.get(theirs) is not None}


def project_of(each: Json) -> Json:
    """The project that owns a resource, whatever the name of the property."""
    owners = ('project_id', 'tenant_id', 'os-vol-tenant-attr:tenant_id', 'os-extended-snapshot-attributes:project_id')
    found = next((each[name] for name in owners if each.get(name)), None)
    return {'project': found}
