"""What the chapters of the volume face share: the version, the project in the path, faults and links."""

import re
from collections.abc import Callable
from typing import Any

import microversion_parse
import webob

from computeapi import errors
from computeapi.backends.volume.local import LocalVolumes
from computeapi.backends.volume.local.base import MAX_PAGE
from computeapi.context import Context
from computeapi.standalone.face import Face, FaceRequest
from computeapi.standalone.query import link, number, truth

MINOR = 68
"""The newest microversion is 3.68: volumes can be reimaged."""

FAULTS = {
    400: 'badRequest',
    401: 'unauthorized',
    403: 'forbidden',
    404: 'itemNotFound',
    406: 'notAcceptable',
    409: 'conflictingRequest',
    413: 'overLimit',
    501: 'notImplemented',
    503: 'serviceUnavailable',
}

VERSION = re.compile(r'(\d{1,4})\.(\d{1,4})')
PROJECT_PATH = re.compile(r'/v3/([^/]+)(/.*)')

MINOR_KEY = 'computeapi.volume.minor'
PROJECT_KEY = 'computeapi.volume.project'


class VolumeService(Face):
    """A face on local volumes; readers may only read."""

    name = 'volume'
    writers = frozenset({'admin', 'manager', 'member', 'service'})

    def __init__(self, volumes: LocalVolumes, authenticate: Callable[[str], Context]):
        super().__init__(authenticate)
        self.volumes = volumes
        paths = [route.routepath for route in self.mapper.matchlist]
        self.collections = {path.split('/')[2] for path in paths if path.startswith('/v3/')}

    def answer(self, req: FaceRequest) -> webob.Response:
        if req.path_info.strip('/') in ('', 'v3'):
            # A client that asks which versions there are cannot know yet which to ask for.
            return super().answer(req)
        major, minor_version = asked(req)
        if major != 3 or minor_version > MINOR:
            wanted = f'Version {major}.{minor_version} is not supported by the API.'
            return self.fault(406, f'{wanted} Minimum is 3.0 and maximum is 3.{MINOR}.')
        req.environ[MINOR_KEY] = minor_version
        response = super().answer(req)
        response.headers['OpenStack-API-Version'] = f'volume 3.{minor_version}'
        response.headers['Vary'] = 'OpenStack-API-Version'
        return response

    def find(self, req: FaceRequest) -> tuple[Callable, dict[str, str], bool, bool]:
        """Everything is at /v3/... and, as catalogs of old have it, at /v3/{project_id}/... too."""
        match = PROJECT_PATH.fullmatch(req.path_info)
        if match and match[1] not in self.collections:
            req.environ[PROJECT_KEY] = match[1]
            req.path_info = f'/v3{match[2]}'
        return super().find(req)

    def admit(self, req: FaceRequest, anonymous: bool, admin: bool) -> None:
        super().admit(req, anonymous, admin)
        if req.environ.get(PROJECT_KEY, req.context.project_id) != req.context.project_id:
            raise errors.Invalid('Malformed request url')

    def fault(self, status: int, message: str) -> webob.Response:
        return self.render((status, {FAULTS.get(status, 'computeFault'): {'code': status, 'message': message}}))


def asked(req: FaceRequest) -> tuple[int, int]:
    """The version that the request asks for, 3.0 if it does not."""
    text = microversion_parse.get_version(req.headers, service_type='volume') or '3.0'
    if text.lower() == 'latest':
        return 3, MINOR
    match = VERSION.fullmatch(text)
    if not match:
        raise errors.Invalid(f'API Version String {text[:64]} is of invalid format. Must be of format 3.N.')
    return int(match[1]), int(match[2])


def minor(req: FaceRequest) -> int:
    """The N of the microversion 3.N that the request is answered in."""
    return req.environ[MINOR_KEY]


def begins_at(req: FaceRequest, first: int) -> None:
    """NotFound for what is not there yet in the version of the request."""
    if minor(req) < first:
        raise errors.NotFound()


def address(req: FaceRequest, path: str, version: str = '/v3') -> str:
    """The URL of a path below the version, with the project if the request has it."""
    project = req.environ.get(PROJECT_KEY)
    return f'{req.application_url}{version}{f"/{project}" if project else ""}{path}'


def links(req: FaceRequest, path: str) -> list[dict[str, str]]:
    return [
        {'rel': 'self', 'href': address(req, path)},
        {'rel': 'bookmark', 'href': address(req, path, version='')},
    ]


def paging(req: FaceRequest) -> dict[str, Any]:
    """The page of a list that the query asks for, and whether it is that of all projects."""
    return {
        'limit': number('limit', req.GET['limit']) if 'limit' in req.GET else None,
        'marker': req.GET.get('marker') or None,
        'all_projects': truth('all_tenants', req.GET.get('all_tenants') or '0'),
    }


def offset(req: FaceRequest) -> int | None:
    return number('offset', req.GET['offset']) if 'offset' in req.GET else None


def page(req: FaceRequest, name: str, items: list[dict[str, Any]]) -> dict[str, Any]:
    """A list, with the address of the next page if this one is full."""
    document: dict[str, Any] = {name: items}
    limit = min(number('limit', req.GET['limit']), MAX_PAGE) if 'limit' in req.GET else MAX_PAGE
    if items and len(items) == limit:
        path = address(req, req.path_info.removeprefix('/v3'))
        query = req.GET.copy()
        query.pop('offset', None)
        document[f'{name}_links'] = [{'rel': 'next', 'href': link(path, query, marker=items[-1]['id'])}]
    return document
