"""`computeapi populate`: writes a synthetic cloud to a store."""

import copy
import itertools
import multiprocessing
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from multiprocessing.connection import Connection

import sqlalchemy as sa

from computeapi.db import allocations, bulk, quota_usages
from computeapi.errors import Error
from computeapi.kit.cloud_files import hosts, loading, networks
from computeapi.kit.cloud_files.filling import Filling, Maker, SyntheticContent, make, without_garbage
from computeapi.kit.cloud_files.servers import LoadedServers
from computeapi.kit.cloud_files.synthetic import SyntheticCloud
from computeapi.main import Service

MANY = 10_000
"""From this number of servers on, it is faster to create rows in other processes, which take a second to start."""


def populate(
    service: Service, inventory: SyntheticCloud, progress: Callable[[int], None] = lambda done: None, many: int = MANY
) -> None:
    """Add the whole cloud to the store, or nothing.

    progress: is called now and then with the number of servers so far.  many: from this number of servers on, other
    processes create the rows.
    """
    with service.store.write() as connection:
        _fill(connection, _begin(service, connection, inventory), inventory, progress, many)
        # These queries need the indexes, which are complete now.
        allocations.count(connection)
        bulk.advance_sequences(connection)


def _fill(
    connection: sa.Connection, filling: Filling, inventory: SyntheticCloud, progress: Callable[[int], None], many: int
) -> None:
    """Write the servers and their volumes."""
    with ExitStack() as stack:
        if inventory.servers >= many:
            stack.enter_context(bulk.many(connection))
            makers = [stack.enter_context(_apart(filling, number)) for number in range(inventory.parts)]
        else:
            makers = [copy.deepcopy(filling).insertions(number) for number in range(inventory.parts)]
        done = 0
        with without_garbage():
            for servers, insertions, used in _in_turn(makers):
                bulk.write(connection, insertions)
                quota_usages.count(connection, used)
                progress(done := done + servers)


def _begin(service: Service, connection: sa.Connection, inventory: SyntheticCloud) -> Filling:
    """Write everything but the servers and their volumes."""
    content = SyntheticContent(connection, inventory.frame(), inventory)
    loading.fill(service, content)
    book, zones = networks.AddressBook(content), hosts.zones_of(content)
    servers = LoadedServers(content, book, zones, service.conf.default_availability_zone, loading.KINDS, named=False)
    content.write()
    content.leave(('server_actions',))
    return Filling(service.store.dialect, content, servers, inventory)


def _in_turn(makers: Sequence[Maker]) -> Maker:
    """Alternate between the makers, so that each is at most one chunk ahead."""
    return (made for some in itertools.zip_longest(*makers) for made in some if made is not None)


@contextmanager
def _apart(filling: Filling, number: int) -> Iterator[Maker]:
    """Rows that another process creates while earlier ones are written."""
    # A fork starts at once, but other threads of this process might hold locks.
    alone = threading.active_count() == 1
    process = multiprocessing.get_context('fork').Process if alone else multiprocessing.get_context('spawn').Process
    receiver, sender = multiprocessing.Pipe(duplex=False)
    maker = process(target=make, args=(filling, number, sender, receiver), daemon=True)
    maker.start()
    sender.close()
    try:
        with receiver:
            yield _received(receiver)
    finally:
        maker.terminate()
        maker.join()


def _received(receiver: Connection) -> Maker:
    try:
        while (made := receiver.recv()) is not None:
            yield made
    except (EOFError, OSError):
        raise Error('A process that generates servers has died.') from None
