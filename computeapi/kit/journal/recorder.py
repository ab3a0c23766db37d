"""Writes the journal: a filter in front of the cloud that copies requests and responses."""

import time
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from typing import Any

from computeapi.clock import utcnow
from computeapi.context import Context
from computeapi.kit.journal import Journal
from computeapi.kit.journal.entry import Entry, RecordedMessage, microversion_of
from computeapi.kit.journal.masking import Masking
from computeapi.kit.operations import addressed
from computeapi.kit.variables import ARRIVED
from computeapi.web.filters import Environ, Headers, WSGIApp, close
from computeapi.web.request import CONTEXT

MAX_BODY_BYTES = 256 * 1024
"""The longest body that is kept, in bytes."""
BINARY = 'octet-stream'


class BodyCopy:
    """A copy of a body while it passes. Of an image, or if it is too long, only the length is kept."""

    def __init__(self, media_type: str):
        self.is_image = BINARY in media_type
        self.data: bytearray | None = None if self.is_image else bytearray()
        self.length = 0

    def add(self, data: bytes) -> None:
        self.length += len(data)
        if self.data is not None and self.length <= MAX_BODY_BYTES:
            self.data += data
        else:
            self.data = None


class ReadAlong:
    """The WSGI input of a request, which is copied while the app reads it."""

    def __init__(self, source: Any, copy: BodyCopy):
        self.source, self.copy = source, copy

    def _seen(self, data: bytes) -> bytes:
        self.copy.add(data)
        return data

    def read(self, *size: int) -> bytes:
        return self._seen(self.source.read(*size))

    def readline(self, *size: int) -> bytes:
        return self._seen(self.source.readline(*size))

    def readlines(self, *hint: int) -> list[bytes]:
        return [self._seen(line) for line in self.source.readlines(*hint)]

    def __iter__(self) -> Iterator[bytes]:
        return map(self._seen, self.source)


class Recorder:
    """An app that records the requests to another one, and its responses."""

    def __init__(self, app: WSGIApp, journal: Journal):
        self.app, self.journal = app, journal

    def __call__(self, environ: Environ, start_response: Any) -> Iterable[bytes]:
        if not self.journal.on:
            return self.app(environ, start_response)
        recording = Recording(environ, start_response, self.journal)
        try:
            answer = self.app(environ, recording.start)
        except BaseException as error:
            recording.end(error)
            raise
        if isinstance(answer, list | tuple):
            for piece in answer:
                recording.answer.add(piece)
            recording.end()
            return answer
        return Passing(answer, recording)


class Recording:
    """A request that is in progress."""

    def __init__(self, environ: Environ, start_response: Callable[..., Any], journal: Journal):
        self.environ, self.start_response, self.journal = environ, start_response, journal
        arrived: tuple[datetime, float] = environ.get(ARRIVED) or (utcnow(), time.perf_counter())
        self.time, self.begun = arrived
        # The app changes the environ, so copy these before.
        self.method = str(environ['REQUEST_METHOD'])
        self.path = _text(environ.get('SCRIPT_NAME', '') + environ.get('PATH_INFO', ''))
        self.query = _text(environ.get('QUERY_STRING', ''))
        self.headers = list(_headers(environ))
        self.request = BodyCopy(environ.get('CONTENT_TYPE', ''))
        environ['wsgi.input'] = ReadAlong(environ['wsgi.input'], self.request)
        self.status: int | None = None
        self.answer_headers: Headers = []
        self.answer = BodyCopy('')
        self.ended = False

    def start(self, status: str, headers: Headers, exc_info: Any = None) -> Any:
        self.status, self.answer_headers = int(status[:3]), headers
        media_type = next((value for name, value in headers if name.lower() == 'content-type'), '')
        self.answer = BodyCopy(media_type)
        return self.start_response(status, headers, *([exc_info] if exc_info else []))

    def end(self, error: BaseException | None = None) -> None:
        """Add the entry: the response is complete, or failed."""
        if not self.ended:
            self.ended = True
            self.journal.add(lambda number: self.entry(number, error))

    def entry(self, number: int, error: BaseException | None) -> Entry:
        masking = Masking()
        request = _message(masking, self.headers, self.request)
        path, query = masking.path(self.path), masking.query(self.query)
        if self.request.length and not request.data and not self.request.is_image and (self.status or 500) >= 400:
            # The error may repeat parts of the body, and it is not known which of them are secrets.
            self.answer.data = None
        response = _message(masking, self.answer_headers, self.answer)
        target = addressed(self.method, self.path, request.body)
        caller: Context = self.environ.get(CONTEXT) or Context()
        return Entry(
            number=number,
            time=self.time,
            duration=round(time.perf_counter() - self.begun, 6),
            service=target.service,
            operation=target.operation,
            method=self.method,
            path=path,
            query=query,
            microversion_asked=microversion_of(request),
            microversion_used=microversion_of(response),
            user=caller.user_id,
            project=caller.project_id,
            user_name=caller.user_name,
            project_name=caller.project_name,
            request=request,
            status=None if error else self.status,
            response=response,
            error=type(error).__name__ if error else None,
        )


class Passing:
    """A response that is sent in pieces."""

    def __init__(self, answer: Iterable[bytes], recording: Recording):
        self.answer, self.recording = answer, recording

    def __iter__(self) -> Iterator[bytes]:
        try:
            for piece in self.answer:
                self.recording.answer.add(piece)
                yield piece
        except Exception as error:
            self.recording.end(error)
            raise

    def close(self) -> None:
        try:
            close(self.answer)
        finally:
            self.recording.end()


def _message(masking: Masking, headers: Iterable[tuple[str, str]], copy: BodyCopy) -> RecordedMessage:
    # The headers come first: the body may repeat a token that is in them.
    kept = masking.headers(headers)
    return RecordedMessage(kept, masking.document(bytes(copy.data)) if copy.data else b'', copy.length)


def _headers(environ: Environ) -> Iterator[tuple[str, str]]:
    """The headers of the request, by their HTTP names."""
    for key, value in environ.items():
        if key.startswith('HTTP_'):
            yield key[5:].replace('_', '-').title(), _text(value)
        elif key in ('CONTENT_TYPE', 'CONTENT_LENGTH') and value:
            yield key.replace('_', '-').title(), value


def _text(value: str) -> str:
    """Decode text that WSGI passes as Latin-1."""
    return value.encode('latin-1', errors='replace').decode(errors='replace')
