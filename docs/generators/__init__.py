"""The pages of the reference that nobody writes: Sphinx makes them of the declarations in the code, as it begins."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from generators import commands, notes, operations, options, rules

FOLDER = 'generated'


def setup(app: Any) -> dict[str, bool]:
    """An extension of Sphinx."""
    app.connect('builder-inited', lambda app: write(Path(app.srcdir) / FOLDER))
    return {'parallel_read_safe': True}


def write(folder: Path) -> None:
    """Write what is new, and remove what is no more."""
    written = {folder / name: text for name, text in [*pages(), ('release-notes.md', notes.page())]}
    for path in set(folder.rglob('*.md')) - written.keys():
        path.unlink()
    for path, text in written.items():
        if not path.exists() or path.read_text() != text:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)


def pages() -> Iterator[tuple[str, str]]:
    """Names of files, and what is in them: the reference."""
    yield 'options.md', options.page()
    yield 'rules.md', rules.page()
    yield 'commands.md', commands.page()
    yield from operations.pages()
