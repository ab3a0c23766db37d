"""Names that are made from other names."""

LONGEST = 255
"""How many characters of a name servers, images and snapshots have room for."""


def shortened(name: str, *, before: str = '', after: str = '') -> str:
    """The name with something before or after it, which it is cut off for if need be."""
    return f'{before}{name[: LONGEST - len(before) - len(after)]}{after}'


def numbered(name: str, index: int, count: int) -> str:
    """The name of one of several servers: name-1, name-2 ... A server that is alone has the name as it is."""
    return f'{name}-{index + 1}' if count > 1 else name
