"""The pages of the documentation, and the code blocks in them."""

import re
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
BLOCK = re.compile(
    r'(?ms)^## (?P<section>.*?)$|(?:^<!-- (?P<remark>(?:(?!-->).)*?) -->\n)?^```(?P<language>\w*)\n(?P<text>.*?)^```$'
)


class Block(NamedTuple):
    """A code block on a page: the second-level heading above it, its language, and the comment before it."""

    section: str
    language: str
    text: str
    remark: str = ''


def blocks(page: str) -> list[Block]:
    """The blocks of a page, such as README.md, in order."""
    section, found = '', []
    for match in BLOCK.finditer((ROOT / page).read_text()):
        if match['section']:
            section = match['section']
        else:
            found.append(Block(section, match['language'], match['text'], match['remark'] or ''))
    return found


def texts(page: str, section: str, start: str = '') -> list[str]:
    """The blocks of a section that begin with this text."""
    return [block.text for block in blocks(page) if block.section == section and block.text.startswith(start)]
