"""Errors as clients see them: the one table from domain class to status, and the format of faults."""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import orjson
import webob

from computeapi import errors
from computeapi.versions import APIVersionRequest
from computeapi.web.contract import JSON

T = TypeVar('T')

SUPPORT = 'Please contact the administrator'

RETRY_SECONDS = 5
"""Seconds until a retry while the database cannot be used."""
UNDER_WAY_SECONDS = 1
"""Seconds until a retry while another request with the same Idempotency-Key is in progress."""

Statuses = tuple[tuple[type[Exception], int], ...]

STATUSES: Statuses = (
    (errors.NotFound, 404),
    (errors.Conflict, 409),
    (errors.Forbidden, 403),
    (errors.Invalid, 400),
    (errors.TooManyAttempts, 429),
    (errors.NotAuthenticated, 401),
    (errors.NotSupported, 501),
    (errors.Gone, 410),
    (errors.TooLarge, 413),
    (errors.IdempotencyKeyReused, 422),
    (errors.Unavailable, 503),
    (errors.DatabaseError, 503),
)

FAULT_NAMES = {
    400: 'badRequest',
    401: 'unauthorized',
    403: 'forbidden',
    404: 'itemNotFound',
    405: 'badMethod',
    409: 'conflictingRequest',
    413: 'overLimit',
    415: 'badMediaType',
    429: 'overLimit',
    501: 'notImplemented',
    503: 'serviceUnavailable',
}


class NotAcceptable(errors.Error):
    """A well-formed version that this service does not know; `version` is echoed in the headers."""

    def __init__(self, version: APIVersionRequest, low: APIVersionRequest, high: APIVersionRequest):
        super().__init__(f'Version {version} is not supported by the API. Minimum is {low} and maximum is {high}.')
        self.version = version


class UnsupportedMediaType(errors.Error):
    text = 'Unsupported Content-Type'


def status_of(error: Exception, own: Statuses = ()) -> int:
    """The HTTP status of an error; *own*: entries of a service that override this table."""
    if isinstance(error, NotAcceptable):
        return 406
    if isinstance(error, UnsupportedMediaType):
        return 415
    return next((status for kind, status in (*own, *STATUSES) if isinstance(error, kind)), 500)


def document(status: int, message: str, names: Mapping[int, str] = FAULT_NAMES) -> dict[str, dict[str, Any]]:
    """{"itemNotFound": {"code": 404, "message": ...}}"""
    return {names.get(status, 'computeFault'): {'code': status, 'message': message}}


def fault(status: int, message: str) -> webob.Response:
    response = webob.Response(body=orjson.dumps(document(status, message)), status=status, content_type=JSON)
    # WebOb adds no charset to JSON when it creates a response, but clients of this API are used to one.
    response.charset = 'UTF-8'
    return response


def of(error: Exception) -> webob.Response:
    """The fault for a domain error; for a bug in a handler, it shows only the class of the exception."""
    if is_expected(error):
        return timed(fault(status_of(error), str(error)), error)
    return fault(500, f'Unexpected API Error. {SUPPORT}\n{type(error)}')


def is_expected(error: Exception) -> bool:
    """Whether clients may read its message: it is not a bug."""
    return isinstance(error, errors.Error | errors.DatabaseError)


def timed(response: webob.Response, error: Exception) -> webob.Response:
    """The answer to this error, with a Retry-After header where the time is known."""
    if isinstance(error, errors.DatabaseError):
        response.retry_after = RETRY_SECONDS
    if isinstance(error, errors.RequestUnderWay):
        response.retry_after = UNDER_WAY_SECONDS
    if isinstance(error, errors.TooManyAttempts):
        response.retry_after = error.seconds
    return response


def repeated(look: Callable[[], T]) -> T:
    """Call *look* and return its result; call it again if the connection to the database was cut."""
    try:
        return look()
    except errors.ConnectionLost:
        return look()
