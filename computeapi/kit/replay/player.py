"""Sends recorded requests to a cloud, with its own IDs, as fast as possible."""

import re
import time
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from computeapi.kit.journal.masking import MASK
from computeapi.kit.replay.id_mapping import IDMapping
from computeapi.kit.replay.recording import TASK_STATE, Recorded, states
from computeapi.kit.replay.target import Answer, ReplayTarget
from computeapi.web.filters import LEGACY_HEADER, STANDARD_HEADER

SENT = re.compile('accept|content-type|openstack-api-version|x-openstack-.*|if-.*', re.IGNORECASE)
"""Headers that are about what is requested, not about the caller."""
PASSING = re.compile(
    'build|(hard_)?reboot|(revert_)?resize|migrating|password|rebuild|queued|saving|importing|preparing|running|accepted'
    '|(creat|attach|detach|delet|download|upload|extend|retyp|manag|shrink)ing|backing-up|restoring(-backup)?|reserved'
    '|(pre|post)-migrating|awaiting-transfer|replication_change',
    re.IGNORECASE,
)
"""Transitional states of resources of any service."""
MIN_PAUSE_SECONDS, MAX_PAUSE_SECONDS = 0.05, 1.0
MAX_UPLOAD_BYTES = 64 * 2**20
MASKED = {'user_data': 'bWFza2Vk', 'contents': 'bWFza2Vk'}
"""Replacements for masked values that must be Base64, by key."""
MASKED_TEXT = 'Masked-1'


class ReplayPlayer:
    """Sends requests to one cloud and learns its IDs.

    patience: how many seconds to wait for a state that the recorded client saw.
    microversion: the one to request from compute, instead of the recorded one.
    """

    def __init__(self, target: ReplayTarget, patience: float, microversion: str | None = None):
        self.target, self.patience, self.microversion = target, patience, microversion
        self.ids = IDMapping()

    def play(self, step: Recorded) -> Answer:
        """The response to a request, after the cloud has reached the recorded state, if it does in time."""
        if step.project and self.target.project:
            self.ids.learn({'id': step.project}, {'id': self.target.project})
        if step.user and self.target.user:
            self.ids.learn({'id': step.user}, {'id': self.target.user})
        answer, pause = self._send(step), MIN_PAUSE_SECONDS
        end = time.monotonic() + self.patience
        while is_awaited(step, answer) and time.monotonic() < end:
            time.sleep(pause)
            answer, pause = self._send(step), min(2 * pause, MAX_PAUSE_SECONDS)
        collection = step.path.split('/')[1] if '/' in step.path else ''
        self.ids.learn(step.shown, answer.body, collection)
        return answer

    def _send(self, step: Recorded) -> Answer:
        path = quote(self.ids.translate_path(step.path))
        query = self.ids.translate(step.query)
        return self.target.send(step, path, query, self._headers(step), **self._body(step))

    def _headers(self, step: Recorded) -> Mapping[str, str]:
        headers = {name: value for name, value in step.headers.items() if SENT.fullmatch(name) and value != MASK}
        if self.microversion and step.service == 'compute':
            versions = {STANDARD_HEADER.lower(), LEGACY_HEADER.lower()}
            headers = {name: value for name, value in headers.items() if name.lower() not in versions}
            headers |= {STANDARD_HEADER: f'compute {self.microversion}'}
        return headers

    def _body(self, step: Recorded) -> dict[str, Any]:
        if step.body is not None:
            return {'json': plausible(self.ids.translate(step.body))}
        # Of an image, only the length was recorded.
        return {'data': bytes(step.length)} if step.length else {}


def is_awaited(step: Recorded, answer: Answer) -> bool:
    """Whether the cloud may still reach the recorded state."""
    if step.method != 'GET' or answer.status != 200:
        return False
    if step.status == 404:
        return step.polled
    return is_passing(answer.body) and not is_passing(step.shown) and states(step.shown) != states(answer.body)


def is_passing(document: Any) -> bool:
    """Whether a resource in the document is in transition to another state."""
    return any(PASSING.fullmatch(state) for state in states(document)) or _is_busy(document)


def _is_busy(document: Any) -> bool:
    """Whether a server in the document has a task_state."""
    if isinstance(document, dict):
        return document.get(TASK_STATE) is not None or any(map(_is_busy, document.values()))
    return isinstance(document, list) and any(map(_is_busy, document))


def plausible(value: Any, key: str = '') -> Any:
    """A body in which plausible values replace masked ones."""
    if isinstance(value, dict):
        return {name: plausible(part, name) for name, part in value.items()}
    if isinstance(value, list):
        return [plausible(part, key) for part in value]
    return MASKED.get(key, MASKED_TEXT) if value == MASK else value
