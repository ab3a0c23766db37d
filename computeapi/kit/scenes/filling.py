"""The rows of a synthetic cloud's servers, made by whatever process; it needs to import little."""

import gc
import random
import signal
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection
from typing import NamedTuple

import sqlalchemy as sa

from computeapi.db import bulk, quota_usages
from computeapi.db.bulk import Insertion
from computeapi.db.quota_usages import Amounts, Counted
from computeapi.kit.scenes import volumes
from computeapi.kit.scenes.document import Document
from computeapi.kit.scenes.scene import Scene
from computeapi.kit.scenes.servers import LoadedServers
from computeapi.kit.scenes.synthetic import SyntheticCloud

CHUNK, AT_ONCE = 1000, 20
ID_STEP = 97
"""From the beginning of one id to that of the next: those of two million servers grow, then they go round."""
IDS_OF_A_TURN = 16 * CHUNK
"""More than are drawn, so that the next turn knows where to begin."""


class Made(NamedTuple):
    """So many servers, what writes them, and what they, or those before, take of quotas."""

    servers: int
    insertions: list[Insertion]
    used: Amounts


Maker = Iterator[Made]


class SyntheticScene(Scene):
    """One whose ids are drawn: nobody names its things again, and there are many."""

    def __init__(self, connection: sa.Connection, document: Document, inventory: SyntheticCloud):
        super().__init__(connection, document, inventory.now)
        self.random, self.drawn, self.ids = random.Random(f'ids/{inventory.seed}'), 0, list[str]()
        self.before: dict[str, int] = {}

    def divide(self, number: int) -> None:
        """Be one of several scenes that go on from here in turn; none takes what another does."""
        self.random, self.before = random.Random(f'ids/{self.seed}/{number}'), self._numbers.copy()

    def begin(self, turn: int) -> None:
        """Draw greater ids, and count on with greater numbers, than in the turns before, whose ever they were."""
        self.ids, self.drawn = [], IDS_OF_A_TURN * (turn + 1)
        self._numbers = {table: last + CHUNK * turn for table, last in self.before.items()}

    def made_id(self, *parts: str) -> str:
        if not self.ids:
            self.ids = drawn_ids(self.random, self.drawn)[::-1]
            self.drawn += CHUNK
        return self.ids.pop()


def drawn_ids(source: random.Random, first: int) -> list[str]:
    """A thousand UUIDs, for to draw them one by one takes much longer; of version 4, as random ones are.

    first: how many there were before.  Each begins with a greater number than the one before: what is new stands side
    by side in the indexes of a database, which takes half as long as all over them.
    """
    drawn = source.randbytes(5).hex()
    middle = f'{drawn[:4]}-4{drawn[4:7]}-a{drawn[7:]}'
    ends = source.randbytes(6 * CHUNK).hex(' ', 6).split()
    return [f'{number * ID_STEP % 2**32:08x}-{middle}-{end}' for number, end in enumerate(ends, first)]


class Filling:
    """Makes the rows of a synthetic cloud's servers; can be pickled, and asks no database.

    dialect: of the one that they are for.
    """

    def __init__(self, dialect: str, scene: SyntheticScene, servers: LoadedServers, inventory: SyntheticCloud):
        self.dialect, self.scene, self.servers, self.inventory = dialect, scene, servers, inventory
        self.used = Counter[Counted]()

    def insertions(self, number: int) -> Maker:
        """For one of the parts, once: its servers and their volumes; at the end, what they take."""
        self.scene.divide(number)
        for chunk, (servers, theirs) in enumerate(self.inventory.part(number).chunks(CHUNK)):
            self.scene.begin(chunk * self.inventory.parts + number)
            yield Made(len(servers), self._made({'servers': servers, 'volumes': theirs}), {})
        yield Made(0, [], self.used)

    def _made(self, document: Document) -> list[Insertion]:
        """The rows of a chunk, of which nothing is remembered but what others need."""
        scene, servers, gathered = self.scene, self.servers, bulk.Gathered()
        scene.document = document
        volumes.load(scene)
        # The servers still change these.
        new = scene.rows.pop('volumes', [])
        servers.new_volumes = {row['id']: row for row in new}
        for number, (place, entry) in enumerate(scene.entries('servers'), 1):
            servers.add(entry, place)
            if number % AT_ONCE == 0:
                self._gather(gathered)
        scene.rows['volumes'] = new
        self._gather(gathered)
        scene.index('volumes').forget(servers.new_volumes)
        return gathered.insertions(self.dialect)

    def _gather(self, gathered: bulk.Gathered) -> None:
        """Let go of the rows so far: while there are few, a processor has them all at hand."""
        gathered.add(self.scene.rows)
        self.used.update(quota_usages.of_rows(self.scene.rows))
        self.scene.rows.clear()
        self.servers.forget()


@contextmanager
def without_garbage() -> Iterator[None]:
    """Nothing in the rows refers to itself, and to look for what does takes as long as all the rest."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def make(filling: Filling, number: int, sender: Connection, receiver: Connection) -> None:
    """What a process of its own does, until nobody listens any more: it must not seem to do so itself."""
    receiver.close()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with suppress(BrokenPipeError), without_garbage():
        for made in filling.insertions(number):
            sender.send(made)
        sender.send(None)
