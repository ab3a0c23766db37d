"""Requests whose bodies are still arriving, so that a reset does not wait for them."""

from collections.abc import Callable, Iterable
from typing import Any

from computeapi.serve.http.body import StreamedBody
from computeapi.web.filters import Environ, WSGIApp


class Uploads:
    """The bodies of the requests that an app is answering."""

    def __init__(self) -> None:
        self._bodies: set[StreamedBody] = set()

    def wrap(self, app: WSGIApp) -> WSGIApp:
        """An app that knows the bodies of its requests."""

        def pass_on(environ: Environ, start_response: Callable[..., Any]) -> Iterable[bytes]:
            body = getattr(environ['wsgi.input'], 'raw', None)
            if not isinstance(body, StreamedBody):
                return app(environ, start_response)
            self._bodies.add(body)
            try:
                return app(environ, start_response)
            finally:
                self._bodies.discard(body)

        return pass_on

    def cut(self) -> None:
        """End the bodies that are not complete, as if their clients had disconnected."""
        for body in [*self._bodies]:
            body.end(broken=True)
