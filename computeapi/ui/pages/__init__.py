"""The files of the page, which come with the package and may load nothing from elsewhere."""

from importlib.resources import files as packaged

from computeapi.ui.files import File

TYPES = {
    'html': 'text/html; charset=utf-8',
    'css': 'text/css; charset=utf-8',
    'js': 'text/javascript; charset=utf-8',
    'svg': 'image/svg+xml',
}

SCRIPTS = b'    <!-- scripts -->\n'
"""Where they are named in the page."""


def files() -> dict[str, File]:
    """Each by its path below the page."""
    found = {
        each.name: each.read_bytes() for each in packaged(__name__).iterdir() if each.name.rpartition('.')[2] in TYPES
    }
    page = found.pop('index.html').replace(SCRIPTS, b''.join(_ahead(name) for name in sorted(found)))
    sent = {f'/{name}': File(body, TYPES[name.rpartition('.')[2]]) for name, body in found.items()}
    return sent | {'/': File(page, TYPES['html'])}


def _ahead(name: str) -> bytes:
    """Has a browser ask for a script before it has read the one that needs it."""
    return b'    <link rel="modulepreload" href="%b">\n' % name.encode() if name.endswith('.js') else b''
