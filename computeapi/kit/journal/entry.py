"""What the journal keeps of a request and its response."""

import functools
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import orjson

from computeapi.web.filters import STANDARD_HEADER

OVERHEAD = 1000
"""The approximate size of an entry besides its texts, in bytes."""
ANY_VERSION = re.compile(r'(?:^|[ ,])(\d+\.\d+|latest)\s*$')


@dataclass(frozen=True)
class RecordedMessage:
    """A request or a response, without its secrets.

    data: the body, which is JSON, or empty: of other or too long bodies, only the length is kept.
    length: of the body in bytes, as far as it was read or sent.
    """

    headers: Mapping[str, str]
    data: bytes = b''
    length: int = 0

    @functools.cached_property
    def body(self) -> Any:
        """The parsed JSON; None if the body was not kept."""
        return orjson.loads(self.data) if self.data else None

    @property
    def size(self) -> int:
        return len(self.data) + sum(len(name) + len(value) for name, value in self.headers.items())

    def header(self, name: str) -> str | None:
        """The value of a header; its case does not matter."""
        return next((value for each, value in self.headers.items() if each.lower() == name.lower()), None)

    def document(self) -> dict[str, Any]:
        """The message as JSON."""
        return {'headers': dict(self.headers), 'body': self.body, 'length': self.length}


@dataclass(frozen=True)
class Entry:
    """A request and its response.

    number: from 1 on, in the order of the responses.  time: when the request arrived, in UTC.  duration: in seconds.
    service, operation: see computeapi.kit.operations.  path: complete, as the client sent it.
    microversion_asked, microversion_used: from the headers of the request and of the response.
    user, project: the IDs of the caller, if it was authenticated; user_name, project_name: their names.
    status: None if there was no response; then `error` is the kind of error.
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
        """The approximate size in bytes."""
        return OVERHEAD + len(self.path) + len(self.query) + self.request.size + self.response.size

    @property
    def target(self) -> str:
        return f'{self.path}?{self.query}' if self.query else self.path

    def document(self) -> dict[str, Any]:
        """The entry as JSON, as in a journal file."""
        facts = {name: getattr(self, name) for name in self.__dataclass_fields__}
        messages = {'request': self.request.document(), 'response': self.response.document()}
        return facts | {'time': f'{self.time.isoformat(timespec="microseconds")}Z'} | messages

    def __str__(self) -> str:
        """`12 POST /v2.1/servers 202 (POST /servers at 2.96)`"""
        named = self.operation or 'no operation'
        version = f' at {self.microversion_used}' if self.microversion_used else ''
        return f'{self.number} {self.method} {self.target} {self.status or self.error} ({named}{version})'


def microversion_of(message: RecordedMessage) -> str | None:
    """The version that the headers of a request or a response name."""
    legacy = r'X-OpenStack-.*API-Version'
    named = message.header(STANDARD_HEADER) or next(
        (value for name, value in message.headers.items() if re.fullmatch(legacy, name, re.IGNORECASE)), ''
    )
    found = ANY_VERSION.search(named)
    return found[1] if found else None
