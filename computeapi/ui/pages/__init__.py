"""The files of the page, which are part of the package and load nothing from other sites."""

from importlib.resources import files as packaged

from computeapi.ui.files import File

TYPES = {
    'html': 'text/html; charset=utf-8',
    'css': 'text/css; charset=utf-8',
    'js': 'text/javascript; charset=utf-8',
    'svg': 'image/svg+xml',
}

SCRIPTS = b'    <!-- scripts -->\n'
"""Where links to the scripts are inserted into the page."""


def files() -> dict[str, File]:
    """The files by their paths below the page."""
    found = {
        each.name: each.read_bytes() for each in packaged(__name__).iterdir() if each.name.rpartition('.')[2] in TYPES
    }
    page = found.pop('index.html').replace(SCRIPTS, b''.join(_ahead(name) for name in sorted(found)))
    sent = {f'/{name}': File(body, TYPES[name.rpartition('.')[2]]) for name, body in found.items()}
    return sent | {'/': File(page, TYPES['html'])}


def _ahead(name: str) -> bytes:
    """Lets a browser request a script before it has read the one that imports it."""
    return b'    <link rel="modulepreload" href="%b">\n' % name.encode() if name.endswith('.js') else b''
