"""Generates the same IDs, addresses and passwords each time for a cloud with a seed.

Clients send requests concurrently and read as often as they like, so not everything can be drawn from one sequence.
Each request, and each task of a worker, has its own sequence, which is derived from the seed, from the request, and
from how often the same request was made before. So no ID is drawn twice, as long as the counts are saved and restored
together with the data.
"""

import hashlib
import itertools
import re
import threading
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext, suppress
from typing import Any, NamedTuple

import orjson

from computeapi.context import Context
from computeapi.db.tasks import Task
from computeapi.kit.faults.facts import body_of
from computeapi.randomness import RandomSource, System, drawn_from
from computeapi.web.filters import Environ, WSGIApp
from computeapi.web.request import CONTEXT

LOOKING = ('GET', 'HEAD', 'OPTIONS')
BINARY = 'octet-stream'
MAX_COUNTS = 1_000_000
"""How many different requests and tasks are counted separately; all others share one count."""
UUID4 = re.compile(r'\b[0-9a-f]{8}-?[0-9a-f]{4}-?4[0-9a-f]{3}-?[89ab][0-9a-f]{3}-?[0-9a-f]{12}\b')


class Drawn(NamedTuple):
    """What was drawn so far. counts: how often, by purpose.  loaded: a digest of the IDs that were loaded."""

    counts: Mapping[bytes, int] = {}
    loaded: bytes = b''


NOTHING = Drawn()


class Seed:
    """The seed of a cloud. Without a number, the random source of the system is used.

    drawn: where to continue.
    """

    def __init__(self, number: int | None = None, drawn: Drawn = NOTHING):
        self.number, self._lock = number, threading.Lock()
        self.drawn = drawn

    @property
    def on(self) -> bool:
        return self.number is not None

    @property
    def drawn(self) -> Drawn:
        """What was drawn so far. Read it only while nothing draws."""
        with self._lock:
            return Drawn(dict(self._counts), self._loaded)

    @drawn.setter
    def drawn(self, drawn: Drawn) -> None:
        with self._lock:
            self._counts, self._loaded = dict(drawn.counts), drawn.loaded

    def draws(self, *names: str, caller: Callable[[], str] = lambda: '') -> 'Draws':
        return Draws(self, names, caller)

    def begin(self, names: Iterable[str]) -> bytes:
        """The bytes from which the next sequence for these names is derived; different each time."""
        label = hashlib.sha256(repr((self.number, self._loaded, *names)).encode()).digest()
        with self._lock:
            counted = label if label in self._counts or len(self._counts) < MAX_COUNTS else b''
            self._counts[counted] = count = self._counts.get(counted, 0) + 1
        return label + count.to_bytes(8)

    def avoid_ids_of(self, document: Any) -> None:
        """Make sure that IDs in a loaded document, which another cloud may have drawn from this seed, are not drawn
        again."""
        if self.on and (ids := UUID4.findall(repr(document))):
            self._loaded = hashlib.sha256(repr((self._loaded, sorted(ids))).encode()).digest()

    # ------------------------------------------------------------------ hooks into the cloud

    def during(self, *names: str) -> AbstractContextManager[None]:
        """In the block, draw from the sequence of these names."""
        return drawn_from(self.draws(*names)) if self.on else nullcontext()

    def app(self, app: WSGIApp) -> WSGIApp:
        """An app whose requests draw from their own sequences."""
        if not self.on:
            return app

        def drawing(environ: Environ, start_response: Any) -> Iterable[bytes]:
            with drawn_from(self.of_request(environ)):
                return app(environ, start_response)

        return drawing

    def of_request(self, environ: Environ) -> RandomSource:
        method = environ['REQUEST_METHOD']
        if method in LOOKING:
            return Looking(self)
        path = environ.get('SCRIPT_NAME', '') + environ.get('PATH_INFO', '')
        names = (method, path, environ.get('QUERY_STRING', ''), _digest(environ))
        # The caller is only known after authentication; the request ID is drawn before.
        return self.draws('request', *names, caller=lambda: _caller(environ.get(CONTEXT)))

    def work(self, run: Callable[[Task], None]) -> Callable[[Task], None]:
        """Let each task draw from its own sequence. Tasks of one kind on one server run one after the other."""
        if not self.on:
            return run

        def drawing(task: Task) -> None:
            with self.during('task', task.kind, task.server_id):
                run(task)

        return drawing


class Draws:
    """A sequence, which begins with the first number drawn: a request that draws nothing is not counted.

    caller: returns who makes the request; if that changes, another sequence is used.
    """

    repeatable = True

    def __init__(self, seed: Seed, names: tuple[str, ...], caller: Callable[[], str]):
        self.seed, self.names, self.caller = seed, names, caller
        self._rows: dict[str, tuple[bytes, itertools.count[int]]] = {}

    def bits(self, count: int) -> int:
        caller = self.caller()
        if caller not in self._rows:
            self._rows[caller] = self.seed.begin((*self.names, caller)), itertools.count()
        row, numbers = self._rows[caller]
        size = -(-count // 8)
        drawn = hashlib.shake_256(row + next(numbers).to_bytes(8)).digest(size)
        return int.from_bytes(drawn) >> (8 * size - count)

    def apart(self, *names: str) -> RandomSource:
        return self.seed.draws('apart', *names)


class Looking(System):
    """The source for reads: clients read as often as they like, so nothing may depend on the number of reads."""

    def __init__(self, seed: Seed):
        self.seed = seed

    def apart(self, *names: str) -> RandomSource:
        return self.seed.draws('apart', *names)


def _digest(environ: Environ) -> str:
    """A digest of the body, independent of how its JSON is formatted. A long body or an image counts as empty."""
    body = b''
    if BINARY not in environ.get('CONTENT_TYPE', ''):
        # The app also notices that the client has disconnected.
        with suppress(OSError):
            body = body_of(environ)
    with suppress(ValueError):
        body = orjson.dumps(orjson.loads(body), option=orjson.OPT_SORT_KEYS)
    return hashlib.sha256(body).hexdigest()


def _caller(context: Context | None) -> str:
    return '' if context is None else f'{context.user_id} {context.project_id}'
