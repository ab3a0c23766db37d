"""The sessions of the page: a random name in a cookie, and the token, which never reaches the browser."""

import hashlib
import secrets
import threading
import time
from collections import Counter
from dataclasses import dataclass, field

MAX_SESSIONS = 100
"""The maximum number of sessions. Beyond it, the oldest session of the user with most sessions ends."""
MAX_SECONDS = 8 * 3600.0
"""The maximum duration of a session, in seconds."""


@dataclass(frozen=True)
class LoggedIn:
    """token: of the user for the API.  until: when the session ends, by the monotonic clock."""

    user: str
    project: str
    roles: tuple[str, ...]
    token: str = field(repr=False)
    until: float

    @property
    def owner(self) -> str:
        return f'{self.user} in {self.project}'

    def seconds_left(self) -> float:
        return self.until - time.monotonic()


class PageSessions:
    """The sessions of this process, in memory."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        # By the hash of the name, so that the time of a look-up reveals nothing about names.
        self._open: dict[bytes, LoggedIn] = {}

    def open(self, user: str, project: str, roles: tuple[str, ...], token: str, seconds: float) -> str:
        """Open a session with a random name and this maximum duration; returns the name."""
        name = secrets.token_urlsafe(32)
        with self._lock:
            self._remove_expired()
            while len(self._open) >= MAX_SESSIONS:
                self._end_one()
            self._open[_key(name)] = LoggedIn(user, project, roles, token, time.monotonic() + min(seconds, MAX_SECONDS))
        return name

    def get(self, name: str) -> LoggedIn | None:
        with self._lock:
            self._remove_expired()
            return self._open.get(_key(name))

    def close(self, name: str) -> LoggedIn | None:
        """Close and return the session with this name."""
        with self._lock:
            return self._open.pop(_key(name), None)

    def _end_one(self) -> None:
        [(greedy, _)] = Counter(session.user for session in self._open.values()).most_common(1)
        del self._open[next(key for key, session in self._open.items() if session.user == greedy)]

    def _remove_expired(self) -> None:
        now = time.monotonic()
        for key in [key for key, session in self._open.items() if session.until <= now]:
            del self._open[key]


def _key(name: str) -> bytes:
    return hashlib.sha256(name.encode('utf-8', 'surrogatepass')).digest()
