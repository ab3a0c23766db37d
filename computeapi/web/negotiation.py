"""Which version a request asks for, and how an answer says which one it got."""

from __future__ import annotations

import functools
from collections.abc import MutableMapping

import microversion_parse
import webob

from computeapi.errors import Invalid
from computeapi.versions import MAX, MIN, APIVersionRequest
from computeapi.web.faults import NotAcceptable

SERVICE = 'compute'
LEGACY_HEADER = 'X-OpenStack-Nova-API-Version'
STANDARD_HEADER = 'OpenStack-API-Version'
LONGEST_SHOWN = 100


def requested(headers: MutableMapping[str, str]) -> APIVersionRequest:
    """The version that the headers ask for, MIN when they do not; Invalid, or NotAcceptable outside MIN to MAX."""
    if STANDARD_HEADER not in headers and LEGACY_HEADER not in headers:
        return MIN
    text = microversion_parse.get_version(headers, service_type=SERVICE, legacy_headers=[LEGACY_HEADER])
    return MIN if text is None else _read(text)


@functools.lru_cache(maxsize=1024)
def _read(text: str) -> APIVersionRequest:
    if text == 'latest':
        return MAX
    try:
        version = APIVersionRequest.parse(text)
    except ValueError:
        raise Invalid(
            f'API Version String {text[:LONGEST_SHOWN]} is of invalid format. Must be of format MajorNum.MinorNum.'
        ) from None
    if not version.matches(MIN, MAX):
        raise NotAcceptable(version, MIN, MAX)
    return version


def stamp(response: webob.Response, version: APIVersionRequest) -> webob.Response:
    """Say in the headers which version answered."""
    response.headerlist += [
        (STANDARD_HEADER, f'{SERVICE} {version}'),
        (LEGACY_HEADER, str(version)),
        ('Vary', STANDARD_HEADER),
        ('Vary', LEGACY_HEADER),
    ]
    return response
