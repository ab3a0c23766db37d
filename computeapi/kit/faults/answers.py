"""Responses that a rule prescribes, or that are cut short."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import orjson
import webob
import webob.util

from computeapi.errors import Error
from computeapi.kit.operations import addressed
from computeapi.serve.http.exchange import NoAnswer
from computeapi.standalone.identity.base import KeystoneApp
from computeapi.standalone.image.service import GlanceApp
from computeapi.standalone.network.service import NeutronApp
from computeapi.standalone.service import ServiceApp
from computeapi.standalone.share.service import ManilaApp
from computeapi.standalone.volume.service import CinderApp
from computeapi.web import faults
from computeapi.web.contract import JSON
from computeapi.web.filters import Environ, Headers, RequestId, WSGIApp, close
from computeapi.web.request import Request

MAX_KEPT = 1024 * 1024
"""How many bytes of a response are buffered, and so can be sent, before it is cut."""
APPS: Mapping[str | None, type[ServiceApp]] = {
    'identity': KeystoneApp,
    'image': GlanceApp,
    'network': NeutronApp,
    'volume': CinderApp,
    'share': ManilaApp,
}


def answer_of(facts: Mapping[str, Any], environ: Environ) -> WSGIApp:
    """The response that a rule prescribes: its own body, or an error in the format of the service."""
    status = facts['status']
    if 'body' in facts or status < 400:
        answer = _own(status, facts.get('body', ''))
    else:
        answer = refusal(environ, status, facts.get('message') or webob.util.status_reasons.get(status, 'Error'))
    if 'retry_after' in facts:
        answer.headers['Retry-After'] = str(facts['retry_after'])
    return RequestId(answer)


def _own(status: int, body: Any) -> webob.Response:
    if isinstance(body, str):
        return webob.Response(body=body.encode(), status=status, content_type='text/plain', charset='UTF-8')
    return webob.Response(body=orjson.dumps(body), status=status, content_type=JSON)


def refusal(environ: Environ, status: int, message: str) -> webob.Response:
    """An error in the format of the service that the request is for."""
    app = APPS.get(addressed(environ['REQUEST_METHOD'], environ['PATH_INFO']).service)
    if app is None or status not in webob.util.status_reasons:
        return faults.fault(status, message)
    error = next((kind for kind, usual in (*app.statuses, *faults.STATUSES) if usual == status), Error)
    return app.refusal(Request(environ), status, message, error(message))


def drained(app: WSGIApp, environ: Environ) -> None:
    """Run the app and discard its response."""
    answer = app(environ, lambda *status: None)
    try:
        for _ in answer:
            pass
    finally:
        close(answer)


def shortened(app: WSGIApp, environ: Environ, start_response: Callable[..., Any]) -> Iterable[bytes]:
    """Send the first half of a response, whose headers promise all of it; NoAnswer if it has no body."""
    heads: list[tuple[str, Headers]] = []
    answer = app(environ, lambda status, headers, exc_info=None: heads.append((status, headers)))
    data, complete = b'', True
    try:
        for piece in answer:
            data += piece
            if len(data) > MAX_KEPT:
                complete = False
                break
    finally:
        close(answer)
    status, headers = heads[-1]
    lengths = [int(value) for name, value in headers if name.lower() == 'content-length']
    length = lengths[0] if lengths else len(data) + (not complete)
    if not data:
        raise NoAnswer()
    kept = [(name, value) for name, value in headers if name.lower() != 'content-length']
    start_response(status, [*kept, ('Content-Length', str(length))])
    return [data[: min(length // 2, len(data))]]
