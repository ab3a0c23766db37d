"""Hints: which versions know the parts of a request that its own version refused or ignored."""

import logging
import threading
from collections import Counter
from collections.abc import Iterable
from typing import Any, NamedTuple

import orjson

from computeapi.errors import Invalid
from computeapi.kit.hints.advice import Advice, Question, advise
from computeapi.kit.operations import SERVICES
from computeapi.versions import MIN, APIVersionRequest
from computeapi.web.filters import LEGACY_HEADER, SERVICE, STANDARD_HEADER, Environ, Headers, WSGIApp, environ_key
from computeapi.web.request import LEGACY_V2, VERSION, Request, caller_of

LOG = logging.getLogger(__name__)
HINT_HEADER = 'Computeapi-Hint'
REFUSALS = frozenset({400, 404})
MAX_KEPT = 1000
SEEKABLE = 'webob.is_body_seekable'
"""The environ key that says that the body can be read again after the app has read it."""
ROOTS = frozenset(mount + root for mount in SERVICES['compute'].mounts for root in SERVICES['compute'].roots)
STANDARD, LEGACY = environ_key(STANDARD_HEADER), environ_key(LEGACY_HEADER)


class GivenHint(NamedTuple):
    """A hint, the operation that it is about, and how often it was given."""

    operation: str
    text: str
    times: int


class Hints:
    """Adds hints about other versions as headers, and logs each one once. Responses are otherwise unchanged.

    on: whether hints are given.  usually: the value of `on` after a reset.
    """

    def __init__(self, usually: bool = True) -> None:
        self.on = self.usually = usually
        self._lock = threading.Lock()
        self._given: Counter[tuple[str, str]] = Counter()

    @property
    def given(self) -> list[GivenHint]:
        """The hints since the start or the last reset, in the order in which they were first given."""
        with self._lock:
            return [GivenHint(*hint, times) for hint, times in self._given.items()]

    def clear(self) -> None:
        """Forget all hints, and restore the usual setting."""
        self.on = self.usually
        with self._lock:
            self._given.clear()

    def wrap(self, app: WSGIApp) -> WSGIApp:
        """Wrap the app with hints."""

        def answer(environ: Environ, start_response: Any) -> Iterable[bytes]:
            def start(status: str, headers: Headers, *error: Any) -> Any:
                advice = self._advice(environ, int(status[:3])) if self.on else None
                if advice is not None:
                    headers = [*headers, *((HINT_HEADER, hint) for hint in advice.hints)]
                    self._note(advice, environ)
                return start_response(status, headers, *error)

            return app(environ, start)

        return answer

    def _advice(self, environ: Environ, status: int) -> Advice | None:
        """The hints for a response. An error here must not affect the response."""
        try:
            question = _question(environ, status)
            return question and advise(question)
        except Exception:
            LOG.exception('No hint could be given')
            return None

    def _note(self, advice: Advice, environ: Environ) -> None:
        for hint in advice.hints:
            key = advice.operation, hint
            with self._lock:
                if self._given[key] or len(self._given) <= MAX_KEPT:
                    self._given[key] += 1
                is_first = self._given[key] == 1
            if is_first:
                LOG.warning('%s: %s', advice.operation, hint, extra=caller_of(environ))


def _question(environ: Environ, status: int) -> Question | None:
    """The request, after the app has handled it; None if there can be no hint."""
    version, legacy = environ.get(VERSION, MIN), bool(environ.get(LEGACY_V2))
    refused = status in REFUSALS
    unheard = 200 <= status < 300 and (environ.get('QUERY_STRING') or environ.get(SEEKABLE))
    if environ.get('SCRIPT_NAME') not in ROOTS or not isinstance(version, APIVersionRequest):
        return None
    if not (refused or unheard):
        return None
    return Question(
        method=environ['REQUEST_METHOD'],
        path=environ.get('PATH_INFO', ''),
        version=version,
        named=SERVICE in environ.get(STANDARD, '') or LEGACY in environ,
        legacy=legacy,
        query=_query(environ),
        body=_body(environ),
        refused=refused,
    )


def _query(environ: Environ) -> dict[str, list[str]]:
    try:
        return Request(environ).raw_query()
    except Invalid:
        return {}


def _body(environ: Environ) -> Any:
    if not environ.get(SEEKABLE):
        return None
    source = environ['wsgi.input']
    source.seek(0)
    try:
        return orjson.loads(source.read())
    except ValueError:
        return None
    finally:
        source.seek(0)
