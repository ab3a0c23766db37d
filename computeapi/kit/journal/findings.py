"""What a better client would not ask: the same again and again, and one by one what a list tells at once."""

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from computeapi.kit.journal.entry import Entry

READS = frozenset({'GET', 'HEAD'})
LOGIN = 'POST /auth/tokens'
MEMBERS = 3
"""How many members of a list one has to ask for one by one."""
SECONDS = 1.0
"""Between two looks at what is under way."""
LOOKS = 3
"""After how many of them in shorter order it is pointed out."""
MOST = 100
"""Findings in one report."""


class RequestFinding(NamedTuple):
    """Requests that one could do without.

    kind: `repeated`, `polling` or `n_plus_1`.  entries: their numbers in the journal.
    """

    kind: str
    message: str
    entries: list[int]


def find(entries: Iterable[Entry], repeats: int) -> list[RequestFinding]:
    """What there is to be said of these requests, in the order of the first of each; at most so many as MOST."""
    listed = list(entries)
    found = [*_repetitions(listed, repeats), *_members(listed)]
    return sorted(found, key=lambda finding: finding.entries[0])[:MOST]


def is_read(entry: Entry) -> bool:
    """Whether it changed nothing. A new token changes nothing, either."""
    return entry.method in READS or entry.operation == LOGIN


def sameness(entry: Entry) -> tuple[Any, ...]:
    """What two requests have in common if one of them would do."""
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
    """Of requests between which nobody wrote."""
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
    """Seconds from one to the next, on the average."""
    return (run[-1].time - run[0].time).total_seconds() / (len(run) - 1)


def _members(entries: list[Entry]) -> Iterator[RequestFinding]:
    """Of lists of which so many members were then asked for one by one."""
    # By the id of a member: the list that told it last, with the operations by which its members were asked for.
    told: dict[tuple[str | None, str], Entry] = {}
    asked: dict[tuple[int, str], dict[str, int]] = {}
    lists: dict[int, Entry] = {}
    for entry in entries:
        if entry.method != 'GET' or entry.status != 200:
            continue
        for part in entry.path.split('/'):
            source = told.get((entry.user, part))
            if source is not None and entry.operation and source.service == entry.service:
                asked.setdefault((source.number, entry.operation), {}).setdefault(part, entry.number)
        ids = members_of(entry.response.body)
        if len(ids) >= MEMBERS:
            lists[entry.number] = entry
            told.update({(entry.user, each): entry for each in ids})
    for (number, operation), ids_asked in asked.items():
        if len(ids_asked) >= MEMBERS:
            text = (
                f'{lists[number].method} {lists[number].target} was followed by {operation}'
                f' for each of {len(ids_asked)} members.'
            )
            yield RequestFinding('n_plus_1', text, [number, *ids_asked.values()])


def members_of(body: Any) -> list[str]:
    """The ids of those that a list tells; none if it is no list."""
    found = next((value for value in body.values() if isinstance(value, list)), []) if isinstance(body, dict) else []
    return [each['id'] for each in found if isinstance(each, dict) and isinstance(each.get('id'), str)]
