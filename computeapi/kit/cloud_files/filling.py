"""Creates the rows of the servers of a synthetic cloud, possibly in another process, so it imports little."""

import gc
import random
import signal
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection
from typing import NamedTuple

import sqlalchemy as sa

from computeapi.db import bulk, quota_usages
from computeapi.db.bulk import Insertion
from computeapi.db.quota_usages import Counted
from computeapi.kit.cloud_files import volumes
from computeapi.kit.cloud_files.content import CloudContent
from computeapi.kit.cloud_files.document import Document
from computeapi.kit.cloud_files.servers import LoadedServers
from computeapi.kit.cloud_files.synthetic import SyntheticCloud

CHUNK, AT_ONCE = 1000, 20
ID_STEP = 97
"""The distance between consecutive IDs. They increase for two million servers, and then wrap around."""
IDS_OF_A_TURN = 16 * CHUNK
"""IDs reserved for a turn: more than it uses, so that the start of the next turn is known."""


class Made(NamedTuple):
    """A number of servers, the insertions for them, and the quota that they, or those before them, use."""

    servers: int
    insertions: list[Insertion]
    used: Mapping[Counted, int]


Maker = Iterator[Made]


class SyntheticContent(CloudContent):
    """Content with random IDs: nothing refers to its things later, and there are many of them."""

    def __init__(self, connection: sa.Connection, document: Document, inventory: SyntheticCloud):
        super().__init__(connection, document, inventory.now)
        self.random, self.drawn, self.ids = random.Random(f'ids/{inventory.seed}'), 0, list[str]()
        self.before: dict[str, int] = {}

    def divide(self, number: int) -> None:
        """Become one of several contents that continue from here in turns, without using the same IDs or numbers."""
        self.random, self.before = random.Random(f'ids/{self.seed}/{number}'), self._numbers.copy()

    def begin(self, turn: int) -> None:
        """Begin a turn, whose IDs and numbers are greater than those of all turns before, of any content."""
        self.ids, self.drawn = [], IDS_OF_A_TURN * (turn + 1)
        self._numbers = {table: last + CHUNK * turn for table, last in self.before.items()}

    def made_id(self, *parts: str) -> str:
        if not self.ids:
            self.ids = drawn_ids(self.random, self.drawn)[::-1]
            self.drawn += CHUNK
        return self.ids.pop()


def drawn_ids(source: random.Random, first: int) -> list[str]:
    """A thousand UUIDs of version 4; drawing them one by one takes much longer.

    first: how many there were before.  Each begins with a greater number than the one before: new rows are then
    adjacent in the indexes of a database, which takes half as long as inserting everywhere.
    """
    drawn = source.randbytes(5).hex()
    middle = f'{drawn[:4]}-4{drawn[4:7]}-a{drawn[7:]}'
    ends = source.randbytes(6 * CHUNK).hex(' ', 6).split()
    return [f'{number * ID_STEP % 2**32:08x}-{middle}-{end}' for number, end in enumerate(ends, first)]


class Filling:
    """Creates the rows of the servers of a synthetic cloud. It can be pickled, and does not use the database.

    dialect: of the database for which the rows are.
    """

    def __init__(self, dialect: str, content: SyntheticContent, servers: LoadedServers, inventory: SyntheticCloud):
        self.dialect, self.content, self.servers, self.inventory = dialect, content, servers, inventory
        self.used = Counter[Counted]()

    def insertions(self, number: int) -> Maker:
        """The servers and volumes of one part, to be called once; at the end, the quota that they use."""
        self.content.divide(number)
        for chunk, (servers, theirs) in enumerate(self.inventory.part(number).chunks(CHUNK)):
            self.content.begin(chunk * self.inventory.parts + number)
            yield Made(len(servers), self._made({'servers': servers, 'volumes': theirs}), {})
        yield Made(0, [], self.used)

    def _made(self, document: Document) -> list[Insertion]:
        """The rows of a chunk, of which only what later rows need is kept."""
        content, servers, gathered = self.content, self.servers, bulk.Gathered()
        content.document = document
        volumes.load(content)
        # Adding servers still changes these rows.
        new = content.rows.pop('volumes', [])
        servers.new_volumes = {row['id']: row for row in new}
        for number, (place, entry) in enumerate(content.entries('servers'), 1):
            servers.add(entry, place)
            if number % AT_ONCE == 0:
                self._gather(gathered)
        content.rows['volumes'] = new
        self._gather(gathered)
        content.index('volumes').forget(servers.new_volumes)
        return gathered.insertions(self.dialect)

    def _gather(self, gathered: bulk.Gathered) -> None:
        """Collect and drop the rows so far. Small batches stay in the CPU cache."""
        gathered.add(self.content.rows)
        self.used.update(quota_usages.of_rows(self.content.rows))
        self.content.rows.clear()
        self.servers.forget()


@contextmanager
def without_garbage() -> Iterator[None]:
    """The rows have no reference cycles, and looking for cycles takes as long as everything else."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def make(filling: Filling, number: int, sender: Connection, receiver: Connection) -> None:
    """The main function of a process that creates rows, until nothing reads from the pipe. It closes its copy of the
    receiving end, which would otherwise count as a reader."""
    receiver.close()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with suppress(BrokenPipeError), without_garbage():
        for made in filling.insertions(number):
            sender.send(made)
        sender.send(None)
