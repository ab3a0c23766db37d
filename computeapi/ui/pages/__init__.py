"""The files of the page, which come with the package and may load nothing from elsewhere."""

from importlib.resources import files as packaged

from computeapi.ui.files import File

TYPES = {
    'html': 'text/html; charset=utf-8',
    'css': 'text/css; charset=utf-8',
    'js': 'text/javascript; charset=utf-8',
    'svg': 'image/svg+xml',
}


def files() -> dict[str, File]:
    """Each by its path below the page."""
    found = {
        f'/{each.name}': File(each.read_bytes(), TYPES[ending])
        for each in packaged(__name__).iterdir()
        if (ending := each.name.rpartition('.')[2]) in TYPES
    }
    return found | {'/': found.pop('/index.html')}
