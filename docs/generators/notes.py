"""What changed from release to release, of the notes that reno finds in the history of the project."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from computeapi import __version__

ROOT = Path(__file__).parents[2]
NOTES = 'releasenotes/notes/*.yaml'
HEAD = """# Release notes

Changes that users and operators notice. The versions are those of the package; the
[history](../reference/history.md) lists what each version of the API changed.
"""
UNTAGGED = '0.0.0'
"""What reno calls what is older than the first tag."""


def page() -> str:
    return '\n'.join([HEAD, *_releases()])


def _releases() -> Iterator[str]:
    from reno import config, loader

    conf = config.Config(str(ROOT))
    if not _history_is_here():
        yield f'## Up to {__version__}\n'
        yield 'The project history, which assigns notes to releases, was not available for this build.\n'
        yield from _sections(conf, [yaml.safe_load(path.read_text()) for path in sorted(ROOT.glob(NOTES))])
        return
    with loader.Loader(conf) as notes:
        for version in notes.versions:
            parsed = [notes.parse_note_file(name, sha) for name, sha in notes[version]]
            yield f'## {title(version)}\n'
            yield from _sections(conf, parsed)


def _history_is_here() -> bool:
    """Not in a copy without git, nor in a clone that ends somewhere."""
    from dulwich import errors, repo

    try:
        with repo.Repo(str(ROOT)) as project:
            return not project.get_shallow()
    except errors.NotGitRepository:
        return False


def title(version: str) -> str:
    """0.2.0-13 is thirteen commits after the tag."""
    tag, _, after = version.partition('-')
    return f'{__version__} (unreleased)' if tag == UNTAGGED or after.isdigit() or '*' in version else version


def _sections(conf: Any, parsed: list[dict[str, Any]]) -> Iterator[str]:
    said = {name for note in parsed for name, items in note.items() if items}
    for section in conf.sections:
        inner = [each.name for each in conf.sections if each.name.startswith(f'{section.name}_')]
        if said & {section.name, *inner}:
            yield f'{"##" + "#" * section.section_level} {section.title}\n'
            yield from (_item(item) for note in parsed for item in note.get(section.name) or [])


def _item(text: str) -> str:
    return f'* {text.strip()}\n'.replace('\n', '\n  ').rstrip() + '\n'
