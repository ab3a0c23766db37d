"""What is kept of a request and its answer."""

import functools
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import orjson

from computeapi.web.filters import STANDARD_HEADER

OVERHEAD = 1000
"""Bytes that an entry takes beside its texts, roughly."""
ANY_VERSION = re.compile(r'(?:^|[ ,])(\d+\.\d+|latest)\s*$')


@dataclass(frozen=True)
class RecordedMessage:
    """A request or an answer, without its secrets.

    data: the body, which is JSON, or nothing: of a body that is none, or too long, only the length is kept.
    length: of the body in bytes, as far as it was read or sent.
    """

    headers: Mapping[str, str]
    data: bytes = b''
    length: int = 0

    @functools.cached_property
    def body(self) -> Any:
        """What was read from JSON; None where nothing was kept."""
        return orjson.loads(self.data) if self.data else None

    @property
    def size(self) -> int:
        return len(self.data) + sum(len(name) + len(value) for name, value in self.headers.items())

    def header(self, name: str) -> str | None:
        """The value of a header, in whatever case it was sent."""
        return next((value for each, value in self.headers.items() if each.lower() == name.lower()), None)

    def document(self) -> dict[str, Any]:
        """What a reader of JSON gets."""
        return {'headers': dict(self.headers), 'body': self.body, 'length': self.length}


@dataclass(frozen=True)
class Entry:
    """One request and what came of it.

    number: from 1 on, in the order in which answers were given.  time: when it came, in UTC.  duration: in seconds.
    service, operation: as computeapi.kit.operations tells them.  path: all of it, as the client sent it.
    microversion_asked, microversion_used: what the headers of the request and of the answer say.
    user, project: the ids of the caller, if one was found; user_name, project_name: what these are called.
    status: None where no answer was given, and then `error` says what kind of error there was instead.
    """

    number: int
    time: datetime
    duration: float
    service: str | None
    operation: str | None
    method: str
    path: str
    query: str
    microversion_asked: str | None
    microversion_used: str | None
    user: str | None
    project: str | None
    user_name: str | None
    project_name: str | None
    request: RecordedMessage
    status: int | None
    response: RecordedMessage
    error: str | None = None

    @property
    def size(self) -> int:
        """How many bytes it takes, roughly."""
        return OVERHEAD + len(self.path) + len(self.query) + self.request.size + self.response.size

    @property
    def target(self) -> str:
        return f'{self.path}?{self.query}' if self.query else self.path

    def document(self) -> dict[str, Any]:
        """What a reader of JSON gets: a line of a journal's file."""
        facts = {name: getattr(self, name) for name in self.__dataclass_fields__}
        messages = {'request': self.request.document(), 'response': self.response.document()}
        return facts | {'time': f'{self.time.isoformat(timespec="microseconds")}Z'} | messages

    def __str__(self) -> str:
        """`12 POST /v2.1/servers 202 (POST /servers at 2.96)`"""
        named = self.operation or 'no operation'
        version = f' at {self.microversion_used}' if self.microversion_used else ''
        return f'{self.number} {self.method} {self.target} {self.status or self.error} ({named}{version})'


def microversion_of(message: RecordedMessage) -> str | None:
    """The version that the headers of a request or an answer name."""
    legacy = r'X-OpenStack-.*API-Version'
    named = message.header(STANDARD_HEADER) or next(
        (value for name, value in message.headers.items() if re.fullmatch(legacy, name, re.IGNORECASE)), ''
    )
    found = ANY_VERSION.search(named)
    return found[1] if found else None
