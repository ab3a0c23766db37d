"""Finds the service and the operation that a request is for, by its method, path and body, without the service."""

import difflib
import functools
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from computeapi import api
from computeapi.errors import Invalid
from computeapi.standalone import identity, image, network, share, volume
from computeapi.standalone.share.service import ManilaApp
from computeapi.standalone.volume.service import CinderApp
from computeapi.web.contract import Operation
from computeapi.web.controller import Controller
from computeapi.web.filters import SLASHES
from computeapi.web.routing import PROJECT, Match, RouteTable, route_table

VERSIONED = re.compile(r'(?P<mount>.*?)(?P<root>/v\d[\d.]*)(?P<below>(/.*)?)')
PARAMETER = re.compile('{[^{}]*}')


class ServedAPI(NamedTuple):
    """The operations of one service, and where clients expect them.

    mounts: the paths of the service in our clouds.  roots: the version prefixes of its operations.
    """

    name: str
    mounts: tuple[str, ...]
    roots: tuple[str, ...]
    kinds: tuple[type[Controller], ...]
    project: re.Pattern[str] | None = None

    @property
    def table(self) -> RouteTable:
        return route_table(self.kinds, self.project)


APIS = (
    ServedAPI('compute', ('', '/compute'), ('/v2.1', '/v2', '/v1.1'), api.CONTROLLERS, PROJECT),
    ServedAPI('identity', ('/identity',), ('/v3',), identity.CONTROLLERS),
    ServedAPI('image', ('/image',), ('/v2',), image.CONTROLLERS),
    ServedAPI('network', ('/networking',), ('/v2.0',), network.CONTROLLERS),
    ServedAPI('volume', ('/volume',), ('/v3',), volume.CONTROLLERS, CinderApp.project),
    ServedAPI('share', ('/share',), ('/v2',), share.CONTROLLERS, ManilaApp.project),
)
MOUNTED = {mount: each for each in APIS for mount in each.mounts}
SERVICES = {each.name: each for each in APIS}


class Addressed(NamedTuple):
    """What a request is for.

    service: such as `compute`; None for a path of no known service.  root: such as `/v2.1`; empty outside of the
    versions.  path: below the root, without a project.  operation: as `computeapi routes` prints it, with an action
    after the path: 'POST /servers/{server_id}/action os-stop'; None if there is none.
    """

    service: str | None
    root: str
    path: str
    operation: str | None


def addressed(method: str, path: str, body: Any = None, *, anywhere: bool = False) -> Addressed:
    """What a request is for.

    path: the complete path of the URL.  body: parsed JSON.  anywhere: whether the request may be for any cloud, whose
    services can have their own ports or other paths than ours.
    """
    path = SLASHES.sub('/', path)
    parts = VERSIONED.fullmatch(path)
    if not parts:
        mount = next((each for each in MOUNTED if each and f'{path}/'.startswith(f'{each}/')), '')
        return Addressed(MOUNTED[mount].name, '', path[len(mount) :], None)
    mount, root, below = parts['mount'], parts['root'], parts['below'] or '/'
    found = [MOUNTED[mount]] if mount in MOUNTED else []
    if anywhere and not (mount and found):
        found += APIS
    matches = ((each, _match(each, method, below)) for each in found if root in each.roots)
    nothing: tuple[ServedAPI | None, Match | None] = (found[0] if len(found) == 1 else None, None)
    served, match = next(((each, match) for each, match in matches if match), nothing)
    name = served.name if served else None
    if match is None:
        return Addressed(name, root, below, None)
    if match.project:
        below = below[len(match.project) + 1 :]
    return Addressed(name, root, below, _named(method, match, body))


def _match(served: ServedAPI, method: str, path: str) -> Match | None:
    # WSGI passes the bytes of a path decoded as Latin-1.
    return served.table.find({'REQUEST_METHOD': method, 'PATH_INFO': path.encode().decode('latin-1')})


def _named(method: str, match: Match, body: Any) -> str:
    action = next(iter(body), None) if match.endpoint.actions and isinstance(body, dict) else None
    return name_of(method, match.endpoint.path, action if action in match.endpoint.choices else None)


def name_of(method: str, path: str, action: str | None) -> str:
    """The name of an operation."""
    return f'{method} {path} {action}' if action else f'{method} {path}'


@functools.lru_cache(maxsize=1024)
def is_meant(wanted: str, operation: str) -> bool:
    """Whether an operation is the one that is wanted: parameters may have any name, `{id}` for `{server_id}`, and a
    path without an action means all of its actions."""
    words, others = wanted.split(), operation.split()
    for parts in (words, others):
        parts[1:2] = [PARAMETER.sub('{}', path) for path in parts[1:2]]
        # `computeapi routes` prints actions in braces.
        parts[2:] = [action.strip('{}') for action in parts[2:]]
    return len(words) > 1 and words == others[: max(2, len(words))]


@functools.lru_cache(maxsize=256)
def operation_meant(text: str, service: str | None = None) -> Callable[[str], bool]:
    """A function that tells whether an operation, by its name, is meant by *text*, which may be the name of an action
    alone. Raises Invalid if no operation of the service is meant."""
    known = {name for each in APIS if service in (None, each.name) for name in named_operations(each.name)}
    if ' ' in text:
        meant: Callable[[str], bool] = functools.partial(is_meant, text)
    else:
        meant = {name for name in known if name.endswith(f'/action {text}')}.__contains__
    if not any(map(meant, known)):
        names = [*known, *(name.rpartition(' ')[2] for name in known if '/action ' in name)]
        close = difflib.get_close_matches(text, names, n=1)
        raise Invalid(f'There is no operation {text}' + (f'; did you mean {close[0]}?' if close else '.'))
    return meant


def named_operations(service: str) -> Mapping[str, list[Operation]]:
    """The operations of a service by name, with the variants of all versions; KeyError."""
    named: dict[str, list[Operation]] = {}
    for each in _operations(SERVICES[service].kinds):
        named.setdefault(name_of(each.method, each.path, each.action), []).append(each)
    return named


def _operations(kinds: Iterable[type[Controller]]) -> Iterable[Operation]:
    return (each for kind in kinds for each in kind.operations)
