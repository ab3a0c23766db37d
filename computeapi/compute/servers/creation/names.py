"""How servers are called."""

from __future__ import annotations

import re
import secrets
import string

LONGEST_HOSTNAME = 63


def numbered(name: str, place: int, count: int) -> str:
    """The name of one of several servers: name-1, name-2 ... A server that is alone has the name as it is."""
    return f'{name}-{place + 1}' if count > 1 else name


def hostname(name: str, server_id: str) -> str:
    """The name as hosts may be called (RFC 1123); what has no letter for it falls back to the id."""
    dashed = re.sub(r'[\s_.]', '-', name)
    allowed = re.sub(r'[^A-Za-z0-9-]', '', dashed).lower().strip('-')
    return allowed[:LONGEST_HOSTNAME].rstrip('-') or f'Server-{server_id}'


def reservation_id() -> str:
    """The id that all servers of one request share."""
    return 'r-' + ''.join(secrets.choice(string.ascii_lowercase + string.digits) for _ in range(8))
