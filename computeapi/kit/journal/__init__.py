"""What was asked of a cloud, and what it answered: the last requests in memory, and if that is asked all in a file."""

import os
import threading
from collections import Counter, deque
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import orjson

from computeapi.errors import Invalid, NotFound
from computeapi.kit.journal import har
from computeapi.kit.journal.coverage import Coverage, Use
from computeapi.kit.journal.entry import Entry
from computeapi.kit.journal.findings import RequestFinding, find
from computeapi.kit.operations import SERVICES, operation_meant

MOST_ENTRIES = 10_000
MOST_BYTES = 64 * 2**20
SHOWN = 20
"""How many entries stand in the text of a journal."""
TESTS = ('operation', 'service', 'method', 'path', 'status', 'user', 'project', 'since')


class Count(int):
    """How many requests there were; what was asked is told where a test fails with it."""

    told: str


class Journal:
    """The requests of all services of a cloud, the oldest first; secrets in them are masked.

    It holds so many entries and bytes; what fell out is counted. Methods that choose entries take:

    operation: as `computeapi routes` has it, e.g. 'POST /servers' or 'POST /servers/{server_id}/action os-stop'.
    Its parameters may have any name; without an action, all of them are meant, and an action may stand alone.
    service: compute, identity, image, network, volume or share.  method: of HTTP.  path: what the path has in it.
    status: of the answer.  user, project: the id or the name of the caller's.
    since: only entries with a higher number.
    """

    def __init__(self, most_entries: int = MOST_ENTRIES, most_bytes: int = MOST_BYTES):
        self.on = True
        self.most_entries, self.most_bytes = most_entries, most_bytes
        self._lock = threading.Lock()
        self._file: int | None = None
        self._number = 0
        self._begin()

    def _begin(self) -> None:
        self._entries: deque[Entry] = deque()
        self._uses: Counter[Use] = Counter()
        self._bytes = self.forgotten = 0

    def add(self, make: Callable[[int], Entry]) -> None:
        """Keep the entry that is made with its number."""
        with self._lock:
            self._number += 1
            entry = make(self._number)
            self._entries.append(entry)
            self._uses[Use.of(entry)] += 1
            self._bytes += entry.size
            while len(self._entries) > self.most_entries or self._bytes > self.most_bytes:
                self._bytes -= self._entries.popleft().size
                self.forgotten += 1
            if self._file is not None:
                os.write(self._file, line(entry))

    def clear(self) -> None:
        """Forget everything; the numbers go on."""
        with self._lock:
            self._begin()

    def write_to(self, path: Path | str) -> None:
        """Append each entry to a file from now on, as a line of JSON; OSError."""
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def close(self) -> None:
        """Write to no file any more."""
        with self._lock:
            if self._file is not None:
                os.close(self._file)
                self._file = None

    # ------------------------------------------------------------------ what was asked

    def entries(self, operation: str | None = None, **tests: Any) -> list[Entry]:
        """Those that pass the tests; see the class.

        TypeError for a test that there is not, and Invalid for an operation or a service: of what there is not, a test
        would find none for ever.
        """
        if unknown := set(tests).difference(TESTS):
            raise TypeError(f'There is no test {", ".join(sorted(unknown))}; there are {", ".join(TESTS)}.')
        chosen = {name: value for name, value in tests.items() if value is not None}
        if (service := chosen.get('service')) not in (None, *SERVICES):
            raise Invalid(f'There is no service {service}; there are {", ".join(SERVICES)}.')
        if operation is not None:
            chosen['operation'] = operation_meant(operation, service)
        with self._lock:
            entries = list(self._entries)
        return [entry for entry in entries if all(_passes(entry, name, value) for name, value in chosen.items())]

    def count(self, operation: str | None = None, **tests: Any) -> int:
        """How many pass; with pytest, a comparison of it that fails shows what was asked."""
        found = self.entries(operation, **tests)
        count = Count(len(found))
        count.told = _listed(found) if found else f'None of that kind, but\n{self}'
        return count

    def last(self, operation: str | None = None, **tests: Any) -> Entry:
        """The newest that passes; computeapi.errors.NotFound if none does."""
        found = self.entries(operation, **tests)
        if not found:
            raise NotFound(f'No such request was made, but\n{self}')
        return found[-1]

    def __len__(self) -> int:
        return len(self._entries)

    def __repr__(self) -> str:
        """What was asked last, a line each."""
        return _listed(self.entries())

    # ------------------------------------------------------------------ what follows from it

    def coverage(self, service: str = 'compute') -> Coverage:
        """Which of a service's operations were used since the journal was cleared, also by what fell out of it;
        computeapi.errors.NotFound for a service that there is not."""
        with self._lock:
            return Coverage(service, dict(self._uses))

    def findings(self, repeats: int = 3) -> list[RequestFinding]:
        """Requests that a better client would not make: computeapi.kit.journal.findings.

        repeats: how often the same may be asked without anything having changed.
        """
        return find(self.entries(), repeats)

    def har(self, entries: Iterable[Entry] | None = None) -> dict[str, Any]:
        """These entries, or all, as an HTTP Archive 1.2, which browsers' tools show."""
        return har.archive(self.entries() if entries is None else entries)

    def save(self, path: Path | str) -> None:
        """Write all entries to a file: an HTTP Archive if its name ends in .har, else lines of JSON."""
        is_archive = str(path).endswith('.har')
        data = orjson.dumps(self.har(), option=orjson.OPT_INDENT_2) if is_archive else self.lines()
        Path(path).write_bytes(data)

    def lines(self, entries: Iterable[Entry] | None = None) -> bytes:
        """These entries, or all, as lines of JSON."""
        return b''.join(line(entry) for entry in (self.entries() if entries is None else entries))


def line(entry: Entry) -> bytes:
    return orjson.dumps(entry.document(), option=orjson.OPT_APPEND_NEWLINE)


def _passes(entry: Entry, test: str, value: Any) -> bool:
    if test == 'operation':
        return entry.operation is not None and value(entry.operation)
    if test == 'path':
        return value in entry.path
    if test == 'since':
        return entry.number > int(value)
    if test == 'status':
        return entry.status == int(value)
    if test == 'method':
        return entry.method == str(value).upper()
    if test in ('user', 'project'):
        return value in (getattr(entry, test), getattr(entry, f'{test}_name'))
    return bool(getattr(entry, test) == value)


def _listed(entries: list[Entry]) -> str:
    if not entries:
        return 'Nothing was asked.'
    left_out = [f'... {len(entries) - SHOWN} more'] if len(entries) > SHOWN else []
    return '\n'.join([f'{len(entries)} requests:', *left_out, *map(str, entries[-SHOWN:])])
