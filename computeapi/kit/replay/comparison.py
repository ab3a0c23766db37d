"""Compares what two clouds answer to the same requests."""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from computeapi.kit.replay.player import MAX_UPLOAD_BYTES, ReplayPlayer, is_passing
from computeapi.kit.replay.recording import Recorded, states, without_polls
from computeapi.kit.replay.shapes import differences
from computeapi.kit.replay.target import Answer

UNSTABLE = re.compile('date|server|connection|keep-alive|via|set-cookie|age|(content|transfer)-(length|encoding)')
"""Headers that are about the transport of a response, not its content."""


class PlayedRequest(NamedTuple):
    """The result of one recorded request.

    status: of the response that is compared; None if the request was not played, and then `skipped` is the reason.
    differences: in words, such as 'server.tags: missing'.
    """

    number: int
    name: str
    status: int | None
    differences: list[str]
    skipped: str | None = None

    def __str__(self) -> str:
        if self.skipped:
            return f'{self.number} {self.name} was skipped: {self.skipped}'
        lines = [f'{self.number} {self.name} {self.status or "no response"}', *self.differences]
        return '\n    '.join(lines)


def replay(
    recording: Iterable[Recorded], player: ReplayPlayer, other: ReplayPlayer | None = None, *, headers: bool = False
) -> Iterator[PlayedRequest]:
    """Play a recording to one cloud, and compare its responses with the recorded ones, or with those of another cloud.

    headers: whether to compare the names of headers, too.
    """
    for step in without_polls(recording):
        skipped = reason_to_skip(step)
        if skipped:
            yield PlayedRequest(step.number, step.name, None, [], skipped)
            continue
        expected = Answer(step.status, step.shown_headers, step.shown)
        answer = player.play(step)
        if other is None:
            recorded = expected._replace(body=player.ids.translate(expected.body))
            found = list(compared(recorded, answer, headers=headers))
        else:
            expected, answer = answer, other.play(step)
            found = list(compared(expected, answer, headers=headers))
        yield PlayedRequest(step.number, step.name, answer.status, found)


def reason_to_skip(step: Recorded) -> str | None:
    """Why a request cannot or need not be played."""
    if step.service == 'identity' and step.path == '/auth/tokens':
        return 'the replay logs in itself'
    if step.service is None or not step.root or (step.path == '/' and step.service != 'compute'):
        return 'its path is not below a version of a service'
    if step.status is None:
        return 'it had no response'
    if step.status == 401:
        return 'its token was not valid'
    is_document = 'json' in next((value for name, value in step.headers.items() if name.lower() == 'content-type'), '')
    if step.body is None and step.length and (is_document or step.length > MAX_UPLOAD_BYTES):
        return f'its body of {step.length} bytes was not recorded'
    return None


def compared(expected: Answer, given: Answer, *, headers: bool) -> Iterator[str]:
    """The differences, in words."""
    if given.status is None:
        yield f'no response: {given.body}'
        return
    if expected.status != given.status:
        yield f'status: {given.status} instead of {expected.status or "none"}{_reason(given)}'
        return
    wanted, found = states(expected.body), states(given.body)
    if wanted != found and not is_passing(expected.body):
        yield f'state: {", ".join(found) or "none"} instead of {", ".join(wanted) or "none"}'
    # A body that was too long was not kept.
    if expected.body is not None or given.body is None:
        yield from differences(expected.body, given.body)
    if headers:
        yield from _headers_compared(expected.headers, given.headers)


def _reason(answer: Answer) -> str:
    """The message of a fault."""
    for fault in answer.body.values() if isinstance(answer.body, dict) else ():
        if isinstance(fault, dict) and isinstance(fault.get('message'), str):
            return f' ({fault["message"]})'
    return ''


def _headers_compared(expected: Mapping[str, str], given: Mapping[str, str]) -> Iterator[str]:
    ones, others = (_stable(each) for each in (expected, given))
    yield from (f'header {name}: missing' for name in sorted(ones - others))
    yield from (f'header {name}: not expected' for name in sorted(others - ones))


def _stable(headers: Mapping[str, str]) -> set[str]:
    return {name.lower() for name in headers if not UNSTABLE.fullmatch(name.lower())}
