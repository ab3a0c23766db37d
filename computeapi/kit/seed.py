"""What a cloud makes up, made up alike each time: its ids, addresses and passwords.

Clients ask at the same time and look as often as they like, so there is no one row of numbers from which all is drawn.
Each request, and each task of a worker, has a row of its own, which follows from the seed, from what is asked, and from
how often the same was asked before. So two things never get one id, as long as the counts are kept with what is there.
"""

import hashlib
import itertools
import re
import threading
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext, suppress
from typing import Any, NamedTuple

import orjson

from computeapi.chance import ChanceSource, System, drawn_from
from computeapi.context import Context
from computeapi.db.tasks import Task
from computeapi.kit.faults.facts import body_of
from computeapi.web.filters import Environ, WSGIApp
from computeapi.web.request import CONTEXT

LOOKING = ('GET', 'HEAD', 'OPTIONS')
BINARY = 'octet-stream'
MOST_COUNTS = 1_000_000
"""Of different requests and tasks that are counted by themselves; all others are counted together."""
UUID4 = re.compile(r'\b[0-9a-f]{8}-?[0-9a-f]{4}-?4[0-9a-f]{3}-?[89ab][0-9a-f]{3}-?[0-9a-f]{12}\b')


class Drawn(NamedTuple):
    """What was drawn so far. counts: how often, by what it was for.  loaded: which ids came from elsewhere."""

    counts: Mapping[bytes, int] = {}
    loaded: bytes = b''


NOTHING = Drawn()


class Seed:
    """A cloud's; without a number everything is made up as the system's chance has it.

    drawn: where to go on.
    """

    def __init__(self, number: int | None = None, drawn: Drawn = NOTHING):
        self.number, self._lock = number, threading.Lock()
        self.drawn = drawn

    @property
    def on(self) -> bool:
        return self.number is not None

    @property
    def drawn(self) -> Drawn:
        """So far; nobody is to draw meanwhile who is not to be counted."""
        with self._lock:
            return Drawn(dict(self._counts), self._loaded)

    @drawn.setter
    def drawn(self, drawn: Drawn) -> None:
        with self._lock:
            self._counts, self._loaded = dict(drawn.counts), drawn.loaded

    def draws(self, *names: str, caller: Callable[[], str] = lambda: '') -> 'Draws':
        return Draws(self, names, caller)

    def begin(self, names: Iterable[str]) -> bytes:
        """What a row of numbers for this follows from, other than that of each time before."""
        label = hashlib.sha256(repr((self.number, self._loaded, *names)).encode()).digest()
        with self._lock:
            counted = label if label in self._counts or len(self._counts) < MOST_COUNTS else b''
            self._counts[counted] = count = self._counts.get(counted, 0) + 1
        return label + count.to_bytes(8)

    def keep_apart(self, document: Any) -> None:
        """The document was loaded, and may have ids that another cloud drew from this seed: they do not come again."""
        if self.on and (ids := UUID4.findall(repr(document))):
            self._loaded = hashlib.sha256(repr((self._loaded, sorted(ids))).encode()).digest()

    # ------------------------------------------------------------------ where it comes in

    def during(self, *names: str) -> AbstractContextManager[None]:
        """What is made up in the block is drawn for that."""
        return drawn_from(self.draws(*names)) if self.on else nullcontext()

    def app(self, app: WSGIApp) -> WSGIApp:
        """An app, of which each request draws by itself."""
        if not self.on:
            return app

        def drawing(environ: Environ, start_response: Any) -> Iterable[bytes]:
            with drawn_from(self.of_request(environ)):
                return app(environ, start_response)

        return drawing

    def of_request(self, environ: Environ) -> ChanceSource:
        method = environ['REQUEST_METHOD']
        if method in LOOKING:
            return Looking(self)
        path = environ.get('SCRIPT_NAME', '') + environ.get('PATH_INFO', '')
        names = (method, path, environ.get('QUERY_STRING', ''), _digest(environ))
        # Who asks is known when the request has come further; its id is made before.
        return self.draws('request', *names, caller=lambda: _caller(environ.get(CONTEXT)))

    def work(self, run: Callable[[Task], None]) -> Callable[[Task], None]:
        """What does a task, drawing for each by itself; those of one kind on one server come one after the other."""
        if not self.on:
            return run

        def drawing(task: Task) -> None:
            with self.during('task', task.kind, task.server_id):
                run(task)

        return drawing


class Draws:
    """A row of numbers, begun when the first is drawn: what makes nothing up is not counted.

    caller: for whom they are; when that changes, so does the row.
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

    def apart(self, *names: str) -> ChanceSource:
        return self.seed.draws('apart', *names)


class Looking(System):
    """For requests that only look: as many as clients like, so that nothing may follow from how many there were."""

    def __init__(self, seed: Seed):
        self.seed = seed

    def apart(self, *names: str) -> ChanceSource:
        return self.seed.draws('apart', *names)


def _digest(environ: Environ) -> str:
    """Of the body, however its JSON is written; of one that is long, and of an image, the same as of none."""
    body = b''
    if BINARY not in environ.get('CONTENT_TYPE', ''):
        # The app finds out, too, that the client has gone away.
        with suppress(OSError):
            body = body_of(environ)
    with suppress(ValueError):
        body = orjson.dumps(orjson.loads(body), option=orjson.OPT_SORT_KEYS)
    return hashlib.sha256(body).hexdigest()


def _caller(context: Context | None) -> str:
    return '' if context is None else f'{context.user_id} {context.project_id}'
