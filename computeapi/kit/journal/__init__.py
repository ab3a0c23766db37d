"""The requests to a cloud and its responses: the last ones in memory and, if requested, all of them in a file."""

import os
import threading
import time
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

MAX_ENTRIES = 10_000
MAX_BYTES = 64 * 2**20
SHOWN = 20
"""How many entries the text of a journal shows."""
TESTS = ('operation', 'service', 'method', 'path', 'status', 'user', 'project', 'since')


class Count(int):
    """A number of requests. If an assertion about it fails, pytest shows the requests."""

    told: str


class Journal:
    """The requests to all services of a cloud, the oldest first; secrets are masked.

    The numbers of entries and bytes are limited; `forgotten` counts dropped entries. Methods that select entries take:

    operation: as `computeapi routes` prints it, e.g. 'POST /servers' or 'POST /servers/{server_id}/action os-stop'. Its
    parameters may have any name; a path without an action means all of its actions, and an action may stand alone.
    service: compute, identity, image, network, volume or share.  method: of HTTP.  path: a part of the path.
    status: of the response.  user, project: the ID or the name of the caller or its project.
    since: only entries with a higher number.
    """

    def __init__(self, most_entries: int = MAX_ENTRIES, most_bytes: int = MAX_BYTES):
        self.on = True
        self.most_entries, self.most_bytes = most_entries, most_bytes
        self._lock = threading.Condition()
        self._file: int | None = None
        self._number = 0
        self._begin()

    def _begin(self) -> None:
        self._entries: deque[Entry] = deque()
        self._uses: Counter[Use] = Counter()
        self._bytes = self.forgotten = 0

    def add(self, make: Callable[[int], Entry]) -> None:
        """Add an entry, which is created with its number."""
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
            self._lock.notify_all()

    def clear(self) -> None:
        """Delete all entries; numbers continue."""
        with self._lock:
            self._begin()

    def write_to(self, path: Path | str) -> None:
        """From now on, append each entry to a file, as a line of JSON; OSError."""
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def close(self) -> None:
        """Close the file, if there is one."""
        with self._lock:
            if self._file is not None:
                os.close(self._file)
                self._file = None

    # ------------------------------------------------------------------ requests

    def entries(self, operation: str | None = None, **tests: Any) -> list[Entry]:
        """The entries that pass the tests; see the class.

        Raises TypeError for an unknown test, and Invalid for an unknown operation or service, which would never match.
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
        """The number of entries that pass. If an assertion about it fails, pytest shows the requests."""
        found = self.entries(operation, **tests)
        count = Count(len(found))
        count.told = _listed(found) if found else f'None of that kind among\n{self}'
        return count

    def last(self, operation: str | None = None, **tests: Any) -> Entry:
        """The newest entry that passes; computeapi.errors.NotFound if none does."""
        found = self.entries(operation, **tests)
        if not found:
            raise NotFound(f'There is no such request among\n{self}')
        return found[-1]

    def wait_for(self, operation: str | None = None, *, count: int = 1, timeout: float = 60, **tests: Any) -> Entry:
        """The newest entry that passes, as soon as there are `count` of them. Raises TimeoutError after `timeout`
        seconds."""
        until = time.monotonic() + timeout
        with self._lock:
            while len(found := self.entries(operation, **tests)) < count:
                left = until - time.monotonic()
                if left <= 0:
                    raise TimeoutError(f'There are {len(found)} such requests among\n{self}')
                self._lock.wait(min(left, threading.TIMEOUT_MAX))
        return found[-1]

    def __len__(self) -> int:
        return len(self._entries)

    def __repr__(self) -> str:
        """The last requests, one a line."""
        return _listed(self.entries())

    # ------------------------------------------------------------------ evaluation

    def coverage(self, service: str = 'compute') -> Coverage:
        """Which operations of a service were used since the journal was cleared, also by requests that were dropped
        from it; computeapi.errors.NotFound for an unknown service."""
        with self._lock:
            return Coverage(service, dict(self._uses))

    def findings(self, repeats: int = 3) -> list[RequestFinding]:
        """Requests that a better client would not make: see computeapi.kit.journal.findings.

        repeats: how often the same request may be made while nothing changes.
        """
        return find(self.entries(), repeats)

    def har(self, entries: Iterable[Entry] | None = None) -> dict[str, Any]:
        """These entries, or all, as an HTTP Archive 1.2, which browser tools can open."""
        return har.archive(self.entries() if entries is None else entries)

    def save(self, path: Path | str) -> None:
        """Write all entries to a file: an HTTP Archive if its name ends in .har, otherwise lines of JSON."""
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
        return '0 requests'
    left_out = [f'... {len(entries) - SHOWN} more'] if len(entries) > SHOWN else []
    return '\n'.join([f'{len(entries)} requests:', *left_out, *map(str, entries[-SHOWN:])])
