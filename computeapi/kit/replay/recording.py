"""Recordings: the lines of a journal, or an HTTP Archive from any client."""

import base64
import binascii
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit

import orjson

from computeapi.errors import Invalid
from computeapi.kit.journal.findings import READS
from computeapi.kit.operations import SERVICES, addressed

PORTS = {'identity': (5000, 35357), 'image': (9292,), 'network': (9696,), 'volume': (8776,), 'share': (8786,)}
MOUNTS = {port: SERVICES[name].mounts[0] for name, ports in PORTS.items() for port in ports}
"""By the usual port of a service, its path in our clouds."""


class Recorded(NamedTuple):
    """A request and its response, as far as a replay needs them.

    address: the complete path.  root, path: see computeapi.kit.operations.Addressed.
    length: of the body in bytes, even if it was not kept and is None.  shown: the body of the response.
    polled: whether another cloud may answer differently at first: the client had made the same request before and got
    another state, or it checks that something was deleted.
    """

    number: int
    service: str | None
    operation: str | None
    method: str
    address: str
    root: str
    path: str
    query: str
    headers: Mapping[str, str]
    body: Any
    length: int
    status: int | None
    shown: Any
    shown_headers: Mapping[str, str]
    project: str | None = None
    user: str | None = None
    polled: bool = False

    @property
    def name(self) -> str:
        return self.operation or f'{self.method} {self.address}'


def read(path: Path | str) -> list[Recorded]:
    """All requests in a file, in order; OSError, Invalid for a file of another kind."""
    data = Path(path).read_bytes()
    try:
        document = orjson.loads(data)
        is_archive = isinstance(document, dict) and 'log' in document
    except ValueError:
        is_archive = False
    try:
        if is_archive:
            return [_of_archive(number, each) for number, each in enumerate(document['log']['entries'], 1)]
        return [_of_journal(orjson.loads(line)) for line in data.splitlines() if line.strip()]
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise Invalid(f'{path} is neither a journal, as lines of JSON, nor an HTTP Archive: {error!r}') from None


def _of_journal(line: Mapping[str, Any]) -> Recorded:
    request, response = line['request'], line['response']
    target = addressed(line['method'], line['path'], request['body'])
    return Recorded(
        number=line['number'],
        service=target.service,
        operation=target.operation,
        method=line['method'],
        address=line['path'],
        root=target.root,
        path=target.path,
        query=line['query'],
        headers=request['headers'],
        body=request['body'],
        length=request['length'],
        status=line['status'],
        shown=response['body'],
        shown_headers=response['headers'],
        project=line['project'],
        user=line['user'],
    )


def _of_archive(number: int, entry: Mapping[str, Any]) -> Recorded:
    request, response = entry['request'], entry['response']
    url = urlsplit(request['url'])
    posted = request.get('postData', {})
    body = _document(posted)
    mount = MOUNTS.get(url.port or 0, '')
    target = addressed(request['method'], mount + unquote(url.path), body, anywhere=True)
    return Recorded(
        number=entry.get('_number', number),
        service=target.service,
        operation=target.operation,
        method=request['method'],
        address=url.path,
        root=target.root,
        path=target.path,
        query=url.query,
        headers={each['name']: each['value'] for each in request['headers']},
        body=body,
        length=max(request.get('bodySize', 0), len(posted.get('text', ''))),
        status=response['status'] or None,
        shown=_document(response.get('content', {})),
        shown_headers={each['name']: each['value'] for each in response['headers']},
        project=entry.get('_project'),
        user=entry.get('_user'),
    )


def _document(content: Mapping[str, Any]) -> Any:
    """Parsed JSON; None for everything else."""
    text = content.get('text', '')
    try:
        return orjson.loads(base64.b64decode(text) if content.get('encoding') == 'base64' else text)
    except (ValueError, binascii.Error):
        return None


def without_polls(recording: Iterable[Recorded]) -> list[Recorded]:
    """Reduce each series of polls to its last request, and mark that: another cloud may need more or fewer polls."""
    kept: list[Recorded | None] = []
    deleted: set[tuple[str | None, str]] = set()
    # By request: the positions of its polls, which saw different states.
    looks: dict[tuple[Any, ...], list[int]] = {}

    def end(runs: Iterable[list[int]]) -> None:
        for run in runs:
            seen = [kept[at] for at in run]
            if len({orjson.dumps([each.status, states(each.shown)]) for each in seen if each}) > 1:
                for at in run[:-1]:
                    kept[at] = None
                last = kept[run[-1]]
                kept[run[-1]] = last and last._replace(polled=True)

    for each in recording:
        if each.method in READS and not _is_list(each.shown):
            looks.setdefault((each.service, each.method, each.path, each.query, each.user), []).append(len(kept))
            each = each._replace(polled=(each.service, each.path) in deleted)
        elif each.method not in READS:
            ended = [key for key in looks if f'{each.path}/'.startswith(f'{key[2]}/') and key[0] == each.service]
            end([looks.pop(key) for key in ended])
            if each.method == 'DELETE':
                deleted.add((each.service, each.path))
        kept.append(each)
    end(looks.values())
    return [each for each in kept if each is not None]


def _is_list(shown: Any) -> bool:
    return isinstance(shown, dict) and any(isinstance(value, list) for value in shown.values()) and 'id' not in shown


TASK_STATE = 'OS-EXT-STS:task_state'


def states(document: Any) -> list[str]:
    """The states in a body, sorted; of servers also the task_state."""
    return sorted(_states(document))


def _states(document: Any) -> Iterator[str]:
    if isinstance(document, dict):
        for key, value in document.items():
            if key in ('status', TASK_STATE) and isinstance(value, str):
                yield value
            yield from _states(value)
    elif isinstance(document, list):
        for value in document:
            yield from _states(value)
