"""Names derived from other names."""

MAX_NAME_LENGTH = 255
"""The maximum length of the names of servers, images and snapshots, in characters."""


def shortened(name: str, *, before: str = '', after: str = '') -> str:
    """The name with a prefix or suffix; the name itself is truncated if the result would be too long."""
    return f'{before}{name[: MAX_NAME_LENGTH - len(before) - len(after)]}{after}'


def numbered(name: str, index: int, count: int) -> str:
    """The name of one of several servers: name-1, name-2 ... A single server keeps the name unchanged."""
    return f'{name}-{index + 1}' if count > 1 else name
