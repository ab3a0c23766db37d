"""What Markdown wants."""

import re
from collections.abc import Iterable, Sequence


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ['---'] * len(head), *([cell(text) for text in row] for row in rows)]
    return '\n'.join(f'| {" | ".join(line)} |' for line in lines) + '\n'


def cell(text: str) -> str:
    """On one line, with nothing that ends a cell."""
    return ' '.join(text.split()).replace('|', '\\|')


def plain(text: str) -> str:
    """Text that means nothing but itself; what stands in backquotes is code."""
    parts = re.split(r'(`[^`]*`)', text.replace('``', '`'))
    return ''.join(part if part[:1] == '`' else re.sub(r'([\\*_<>\[\]#{}$~])', r'\\\1', part) for part in parts)


def code(text: str) -> str:
    return f'`{text}`' if text else ''
