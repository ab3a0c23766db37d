"""Parses requests to the proxy: whether they are for a console, their token, and their origin."""

from collections.abc import Collection
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qsl, urlsplit

from websockets.datastructures import Headers
from websockets.http11 import Request

MAX_PARAMETERS = 100


def wants_console(request: Request) -> bool:
    return 'websocket' in ' '.join(request.headers.get_all('Upgrade')).lower()


def path_of(request: Request) -> str:
    """The path without the query, which contains secrets."""
    return request.path.partition('?')[0]


def token_of(request: Request) -> str:
    """The token: `?token=...`, `?path=?token=...`, which noVNC was given, or a cookie; '' if there is none."""
    query = _query(request.path)
    for found in (query, _query(query.get('path', ''))):
        if found.get('token'):
            return found['token']
    return _cookie(request.headers)


def _query(path: str) -> dict[str, str]:
    """The query parameters of a path, the last one of each name; none if there are too many."""
    try:
        return dict(parse_qsl(path.partition('?')[2], max_num_fields=MAX_PARAMETERS))
    except ValueError:
        return {}


def _cookie(headers: Headers) -> str:
    # Other cookies may be malformed, which does not matter here.
    for part in '; '.join(headers.get_all('Cookie')).split(';'):
        cookie = SimpleCookie()
        try:
            cookie.load(part.strip())
        except CookieError:
            continue
        if 'token' in cookie:
            return str(cookie['token'].value)
    return ''


def comes_from(request: Request, allowed: Collection[str]) -> bool:
    """Whether a page of this host or of an allowed one sent the request; only browsers send an Origin."""
    origins = request.headers.get_all('Origin')
    hosts = request.headers.get_all('Host')
    if not origins:
        return True
    if len(origins) > 1 or len(hosts) != 1:
        return False
    return _host(origins[0]) in {_host(f'//{hosts[0]}'), *(name.lower() for name in allowed)} - {None}


def _host(url: str) -> str | None:
    try:
        return urlsplit(url).hostname
    except ValueError:
        return None
