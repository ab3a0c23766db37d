"""The console pages for browsers. All files come with the package, and may load nothing from elsewhere."""

from collections.abc import Sequence
from http import HTTPStatus
from importlib.resources import files

from websockets.datastructures import Headers
from websockets.http11 import Response

PAGES = {
    'novnc': {'/': 'vnc.html', '/vnc_auto.html': 'vnc.html', '/vnc_lite.html': 'vnc.html', '/vnc.html': 'vnc.html'},
    'serial': {'/': 'serial.html', '/serial.html': 'serial.html'},
    'spice-html5': {'/': 'spice.html', '/spice_auto.html': 'spice.html', '/spice.html': 'spice.html'},
}
"""The page at each path, by console type; in addition to the scripts and styles."""
ASSETS = frozenset(each.name for each in files(__name__).iterdir() if each.name.endswith(('.css', '.js')))
TYPES = {'html': 'text/html', 'css': 'text/css', 'js': 'text/javascript', 'txt': 'text/plain'}
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'"
)


def answer(kind: str, path: str, framing: Sequence[str]) -> Response:
    """The page of that console type, or one of its files.

    framing: hosts, besides its own, whose pages may embed it.
    """
    name = PAGES[kind].get(path) or (path[1:] if path[1:] in ASSETS else None)
    if name is not None:
        return _response(HTTPStatus.OK, name.rpartition('.')[2], _read(name), framing)
    return _response(HTTPStatus.NOT_FOUND, 'txt', b'There is no such page.\n', framing)


def _read(name: str) -> bytes:
    return files(__name__).joinpath(name).read_bytes()


def _response(status: HTTPStatus, ending: str, body: bytes, framing: Sequence[str]) -> Response:
    # Dashboards embed consoles in frames.
    ancestors = ' '.join(["'self'", *(f'{scheme}://{host}:*' for host in framing for scheme in ('http', 'https'))])
    headers = {
        'Content-Type': f'{TYPES[ending]}; charset=utf-8',
        'Content-Length': str(len(body)),
        'Content-Security-Policy': f'{POLICY}; frame-ancestors {ancestors}',
        'Cache-Control': 'no-store',
        # The URL of a page contains a token.
        'Referrer-Policy': 'no-referrer',
        'X-Content-Type-Options': 'nosniff',
        'Connection': 'close',
    }
    return Response(status.value, status.phrase, Headers(headers), body)
