"""Which version a request asks for, and how an answer says which one it got: the Paste filter `microversion`."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any

import microversion_parse

from computeapi.errors import Error, Invalid
from computeapi.versions import COMPUTE, APIVersionRequest, History
from computeapi.web.faults import NotAcceptable
from computeapi.web.request import VERSION, VERSION_TAKEN

SERVICE = 'compute'
LEGACY_HEADER = 'X-OpenStack-Nova-API-Version'
STANDARD_HEADER = 'OpenStack-API-Version'
VERSION_HEADERS = (STANDARD_HEADER, LEGACY_HEADER)
ENVIRON_KEYS = {name: 'HTTP_' + name.upper().replace('-', '_') for name in VERSION_HEADERS}
LONGEST_SHOWN = 100


class Microversion:
    """microversion: reads the version headers into an APIVersionRequest, and says in the answer which version it is of.

    An error that it meets is left in the place of the version, for what is wrong with the path counts first: the app
    takes either when its turn has come, and what it answers before that is of no version.

    legacy_header: the name under which the service's versions went before they had a header in common, if they did.
    """

    def __init__(
        self,
        app: Callable[..., Iterable[bytes]],
        service: str = SERVICE,
        history: History = COMPUTE,
        legacy_header: str | None = LEGACY_HEADER,
    ):
        self.app, self.service, self.history = app, service, history
        self.legacy_headers = (legacy_header,) if legacy_header else ()
        self.keys = {name: ENVIRON_KEYS[name] for name in (STANDARD_HEADER, *self.legacy_headers)}

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        found = environ[VERSION] = self.requested(environ)
        version = getattr(found, 'version', None) if isinstance(found, Error) else found

        def start(status: str, headers: list[tuple[str, str]], exc_info: Any = None) -> Any:
            if version is not None and VERSION_TAKEN in environ:
                headers = [*headers, *_stamp(version, self.service, self.legacy_headers)]
            return start_response(status, headers, exc_info)

        return self.app(environ, start)

    def requested(self, environ: dict[str, Any]) -> APIVersionRequest | Error:
        """The version that the headers ask for, the first one when they do not; Invalid, or NotAcceptable."""
        headers = {name: environ[key] for name, key in self.keys.items() if key in environ}
        if not headers:
            return self.history.min
        text = microversion_parse.get_version(headers, service_type=self.service, legacy_headers=self.legacy_headers)
        try:
            return self.history.min if text is None else _read(text, self.history)
        except Error as error:
            return error


@functools.lru_cache(maxsize=1024)
def _stamp(version: APIVersionRequest, service: str, legacy_headers: tuple[str, ...]) -> list[tuple[str, str]]:
    """The headers of an answer of that version."""
    legacy = [(name, str(version)) for name in legacy_headers]
    vary = [('Vary', name) for name in (STANDARD_HEADER, *legacy_headers)]
    return [(STANDARD_HEADER, f'{service} {version}'), *legacy, *vary]


@functools.lru_cache(maxsize=1024)
def _read(text: str, history: History) -> APIVersionRequest:
    if text == 'latest':
        return history.max
    try:
        version = APIVersionRequest.parse(text)
    except ValueError:
        raise Invalid(
            f'API Version String {text[:LONGEST_SHOWN]} is of invalid format. Must be of format MajorNum.MinorNum.'
        ) from None
    if not version.matches(history.min, history.max):
        raise NotAcceptable(version, history.min, history.max)
    return version
