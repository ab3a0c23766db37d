"""Requests that a better client would not make: repetitions, polling, and one request for each member of a list."""

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from computeapi.kit.journal.entry import Entry

READS = frozenset({'GET', 'HEAD'})
LOGIN = 'POST /auth/tokens'
MEMBERS = 3
"""A list is reported if at least this many of its members were requested one by one."""
SECONDS = 1.0
"""Polls are reported if the average interval is shorter than this."""
LOOKS = 3
"""How many requests are not reported as polling, however short the interval."""
MAX_FINDINGS = 100
"""The limit of findings in one report."""


class RequestFinding(NamedTuple):
    """Requests that are unnecessary.

    kind: `repeated`, `polling` or `n_plus_1`.  entries: their numbers in the journal.
    """

    kind: str
    message: str
    entries: list[int]


def find(entries: Iterable[Entry], repeats: int) -> list[RequestFinding]:
    """The findings about these requests, ordered by the first request of each; at most MAX_FINDINGS."""
    listed = list(entries)
    found = [*_repetitions(listed, repeats), *_members(listed)]
    return sorted(found, key=lambda finding: finding.entries[0])[:MAX_FINDINGS]


def is_read(entry: Entry) -> bool:
    """Whether the request changed nothing. A new token does not count as a change."""
    return entry.method in READS or entry.operation == LOGIN


def sameness(entry: Entry) -> tuple[Any, ...]:
    """Requests that are equal in this are repetitions."""
    return (
        entry.method,
        entry.path,
        entry.query,
        entry.request.data,
        entry.microversion_asked,
        entry.user,
        entry.project,
    )


def _repetitions(entries: list[Entry], repeats: int) -> Iterator[RequestFinding]:
    """Repeated requests without a write in between."""
    runs: dict[tuple[Any, ...], list[Entry]] = {}
    for entry in entries:
        if is_read(entry):
            runs.setdefault(sameness(entry), []).append(entry)
        else:
            yield from _judged(runs.values(), repeats)
            runs = {}
    yield from _judged(runs.values(), repeats)


def _judged(runs: Iterable[list[Entry]], repeats: int) -> Iterator[RequestFinding]:
    for run in runs:
        what, numbers = f'{run[0].method} {run[0].target}', [entry.number for entry in run]
        if len({(entry.status, entry.response.data) for entry in run}) == 1 or run[0].operation == LOGIN:
            if len(run) > repeats:
                text = f'{what} was requested {len(run)} times, without a write in between.'
                yield RequestFinding('repeated', text, numbers)
        elif len(run) > LOOKS and (seconds := _pause(run)) < SECONDS:
            text = f'{what} was requested {len(run)} times until it changed, every {seconds:.2f} seconds.'
            yield RequestFinding('polling', text, numbers)


def _pause(run: list[Entry]) -> float:
    """The average interval in seconds."""
    return (run[-1].time - run[0].time).total_seconds() / (len(run) - 1)


def _members(entries: list[Entry]) -> Iterator[RequestFinding]:
    """Lists of which several members were then requested one by one."""
    # By user and member ID: the list that contained it last. By list and operation: the members that were requested.
    returned_by: dict[tuple[str | None, str], Entry] = {}
    asked: dict[tuple[int, str], dict[str, int]] = {}
    lists: dict[int, Entry] = {}
    for entry in entries:
        if entry.method != 'GET' or entry.status != 200:
            continue
        for part in entry.path.split('/'):
            source = returned_by.get((entry.user, part))
            if source is not None and entry.operation and source.service == entry.service:
                asked.setdefault((source.number, entry.operation), {}).setdefault(part, entry.number)
        ids = members_of(entry.response.body)
        if len(ids) >= MEMBERS:
            lists[entry.number] = entry
            returned_by.update({(entry.user, each): entry for each in ids})
    for (number, operation), ids_asked in asked.items():
        if len(ids_asked) >= MEMBERS:
            text = (
                f'{lists[number].method} {lists[number].target} was followed by {operation}'
                f' for each of {len(ids_asked)} members.'
            )
            yield RequestFinding('n_plus_1', text, [number, *ids_asked.values()])


def members_of(body: Any) -> list[str]:
    """The IDs of the members of a list; empty if the body is not a list."""
    found = next((value for value in body.values() if isinstance(value, list)), []) if isinstance(body, dict) else []
    return [each['id'] for each in found if isinstance(each, dict) and isinstance(each.get('id'), str)]
