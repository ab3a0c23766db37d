"""Fault rules: which requests, or which work of the hypervisor, and what happens to them."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

import orjson
import re2

from computeapi.backends.hypervisor.behaviour import FAIL, HANG, OPERATIONS, SLOW, DriverRule, ServerCondition
from computeapi.errors import Invalid
from computeapi.kit.faults.call_selection import CallSelection
from computeapi.kit.operations import APIS, operation_meant
from computeapi.kit.removable import Removable
from computeapi.versions import COMPUTE
from computeapi.web.schemas import closed, one_of
from computeapi.web.validation import BodyValidator

MAX_TEXT_LENGTH = 255
MAX_BODY_BYTES = 64 * 1024
MAX_DELAY_SECONDS = 3600
BEFORE, AFTER, WITHIN = 'before', 'after', 'within'
TEXT = {'type': 'string', 'minLength': 1, 'maxLength': MAX_TEXT_LENGTH}
SECONDS = {'type': 'number', 'minimum': 0, 'maximum': MAX_DELAY_SECONDS}
NUMBER = {'type': 'integer', 'minimum': 1, 'maximum': 10**9}
PATTERNS = re2.Options()
PATTERNS.max_mem, PATTERNS.log_errors = 256 * 1024, False


def described(schema: Mapping[str, Any], description: str) -> dict[str, Any]:
    return {**schema, 'description': description}


WHICH = {
    'operation': described(TEXT, "as printed by `computeapi routes`: 'POST /servers', or only an action: os-stop"),
    'service': described(one_of(*(each.name for each in APIS)), 'the service whose requests are affected (all)'),
    'path': described(TEXT, 'the path of the URL, with * as a wildcard; from ^ on, a regular expression (RE2)'),
    'min_version': described(TEXT, 'the first microversion of compute that is affected'),
    'max_version': described(TEXT, 'the last microversion of compute that is affected'),
    'hypervisor': described(
        one_of('*', *sorted(OPERATIONS)), 'the hypervisor operation that is affected, not a request'
    ),
    'project': described(TEXT, 'the ID or the name of the project'),
    'server': described(TEXT, "the start of the server's name"),
    'host': described(TEXT, 'the host of the server'),
    'metadata': described(
        {
            'type': 'object',
            'maxProperties': 128,
            'additionalProperties': {'type': 'string', 'maxLength': MAX_TEXT_LENGTH},
        },
        'metadata items that the server has',
    ),
}
WHEN = {
    'probability': described(
        {'type': 'number', 'exclusiveMinimum': 0, 'maximum': 1}, 'the probability of each to be hit'
    ),
    'seed': described({'type': 'integer'}, 'the seed of the random numbers, which are the same each time (0)'),
    'nth': described(NUMBER, 'the number of the first one that is hit; it is the only one unless count is given'),
    'count': described(NUMBER, 'the number of those that are hit'),
    'after': described(SECONDS, 'when the rule takes effect, in seconds from now'),
    'lasting': described(SECONDS, 'how many seconds the rule is in effect'),
}
WHAT = {
    'status': described({'type': 'integer', 'minimum': 200, 'maximum': 599}, 'the status of the response'),
    'message': described(TEXT, 'the message of the error'),
    'body': described(
        {'type': ['string', 'object', 'array']},
        "the body of the response, text or JSON, instead of an error in the service's format",
    ),
    'retry_after': described(
        {'type': 'integer', 'minimum': 0, 'maximum': 10**6}, 'the value of Retry-After, in seconds'
    ),
    'delay': described(SECONDS, 'the delay before anything else happens, in seconds'),
    'jitter': described(SECONDS, 'the maximum of a random additional delay, in seconds'),
    'trickle': described(
        {**SECONDS, 'exclusiveMinimum': 0}, 'how many seconds the response takes, in small pieces, once it has begun'
    ),
    'cut': described(
        one_of(BEFORE, AFTER, WITHIN), 'when the connection is closed: before the work, after it, in the response'
    ),
    'abrupt': described(
        {'type': 'boolean'}, 'whether a connection that is cut is reset (RST) instead of closed (false)'
    ),
    'effect': described(
        one_of(FAIL, HANG, SLOW), 'the effect on the hypervisor operation; slow is set by delay and jitter'
    ),
}
FACTS = closed({**WHICH, **WHEN, **WHAT})
CHECKED = BodyValidator(FACTS)
ONLY_OF_REQUESTS = {*WHICH, *WHAT} - {
    'hypervisor',
    'project',
    'server',
    'host',
    'metadata',
    'message',
    'delay',
    'jitter',
}


class FaultRule(Removable):
    """A rule: which calls, and what happens to them. Raises Invalid for invalid facts.

    facts: according to FACTS.  clock: for `after` and `lasting`.
    remove: removes the rule.
    """

    _ids = itertools.count(1)

    def __init__(self, facts: Mapping[str, Any], clock: Callable[[], datetime], remove: Callable[[FaultRule], None]):
        self.facts = dict(facts)
        CHECKED.check(self.facts, COMPUTE.max, False)
        _check_effect(self.facts)
        self.id, self._remove = next(self._ids), remove
        self.selection = CallSelection(clock, **{name: self.facts[name] for name in WHEN if name in self.facts})
        self.servers = ServerCondition(
            facts.get('server', ''), facts.get('project'), facts.get('metadata', {}), facts.get('host')
        )
        self.operation = operation_meant(facts['operation'], facts.get('service')) if 'operation' in facts else None
        self.path = _pattern(facts['path']) if 'path' in facts else None
        low, high = (COMPUTE.version(facts[name]) if name in facts else None for name in _known_versions(facts))
        self.versions = None if low is high is None else (low or COMPUTE.min, high or COMPUTE.max)
        if self.versions and self.versions[0] > self.versions[1]:
            raise Invalid(f'There is no microversion from {low} to {high}.')

    @property
    def hits(self) -> int:
        """How many calls the rule was applied to."""
        return self.selection.hits

    @property
    def about_requests(self) -> bool:
        """Whether the rule is about requests; otherwise it is about the work of the hypervisor."""
        return 'hypervisor' not in self.facts

    def seconds(self) -> float:
        """The delay of a call, random within the limits."""
        jitter = self.facts.get('jitter', 0)
        return float(self.facts.get('delay', 0) + (self.selection.random.uniform(0, jitter) if jitter else 0))

    def concerns_work(self, operation: str) -> bool:
        return self.facts.get('hypervisor') in (operation, '*')

    def driver_rule(self, operation: str) -> DriverRule:
        """The effect on this operation of the hypervisor."""
        effect = self.facts['effect']
        message = self.facts.get('message', f'The hypervisor was told to {effect}: {operation}')
        return DriverRule(effect, operation, message, self.servers, self.seconds())

    def document(self) -> dict[str, Any]:
        """The rule as JSON."""
        return {'id': self.id, 'hits': self.hits, **self.facts}


def _check_effect(facts: Mapping[str, Any]) -> None:
    """Raise Invalid for facts that have no effect, or that do not go together."""
    if 'hypervisor' in facts or 'effect' in facts:
        wrong = sorted(ONLY_OF_REQUESTS & facts.keys() - {'effect'})
        if wrong or 'effect' not in facts or 'hypervisor' not in facts:
            raise Invalid(
                'A rule for the hypervisor has `hypervisor`, `effect`, and no properties of requests'
                + (f', such as {wrong[0]}.' if wrong else '.')
            )
        if (facts['effect'] == SLOW) != bool(facts.get('delay') or facts.get('jitter')):
            raise Invalid('`slow` requires `delay` or `jitter`, and other effects have neither.')
        return
    if 'cut' in facts and facts.keys() & {'status', 'trickle'}:
        raise Invalid('A rule with `cut` cannot have a `status` or `trickle`.')
    if 'abrupt' in facts and 'cut' not in facts:
        raise Invalid('`abrupt` requires `cut`.')
    if not facts.keys() & {'status', 'cut', 'delay', 'jitter', 'trickle'}:
        raise Invalid(
            'A rule needs an effect: `status`, `cut`, `delay`, `jitter` or `trickle`, or `effect` on a hypervisor.'
        )
    if 'status' not in facts and facts.keys() & {'message', 'body', 'retry_after'}:
        raise Invalid('`message`, `body` and `retry_after` require a `status`.')
    if 'body' in facts and len(orjson.dumps(facts['body'])) > MAX_BODY_BYTES:
        raise Invalid(f'`body` can have {MAX_BODY_BYTES} bytes at most.')


def _known_versions(facts: Mapping[str, Any]) -> tuple[str, str]:
    """The names of the two bounds; Invalid for a version that does not exist."""
    for name in (bounds := ('min_version', 'max_version')):
        try:
            COMPUTE.version(facts.get(name, str(COMPUTE.max)))
        except ValueError:
            raise Invalid(f'{name}: there is no microversion {facts[name]}.') from None
    return bounds


def _pattern(text: str) -> Any:
    """A pattern for the complete path, which matches in linear time; Invalid."""
    if not text.startswith('^'):
        if not text.startswith(('/', '*')):
            raise Invalid(f'path: {text} matches no request; did you mean /{text} or */{text}?')
        text = '.*'.join(map(re.escape, text.split('*')))
    try:
        return re2.compile(text, PATTERNS)
    except re2.error as error:
        raise Invalid(f'path: {_message(error)}') from None


def _message(error: re2.error) -> str:
    """The message of RE2, which may be bytes."""
    [message, *_] = error.args or ('',)
    return message.decode(errors='replace') if isinstance(message, bytes) else str(message)
