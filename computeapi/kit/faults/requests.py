"""Applies fault rules to requests: a filter around the app of all services."""

import time
from collections.abc import Callable, Iterable
from typing import Any

from computeapi.clock import utcnow
from computeapi.kit.faults import Faults
from computeapi.kit.faults.answers import answer_of, drained, shortened
from computeapi.kit.faults.facts import RequestFacts, body_of
from computeapi.kit.faults.rules import AFTER, WITHIN, FaultRule
from computeapi.kit.faults.trickle import trickled
from computeapi.kit.variables import ARRIVED
from computeapi.main import Service
from computeapi.serve.http.exchange import ABRUPT, Later, NoAnswer
from computeapi.web.filters import Environ, WSGIApp

FATE = 'computeapi.kit.fate'
"""The key in the environ for the rule that decides about a request; None: it is processed normally."""
EPOCH = 'computeapi.kit.epoch'
"""The key in the environ for the epoch in which a delayed request arrived: the cloud may be reset meanwhile."""


class FaultyApp:
    """Delays requests and slows responses as the rules say. Everything else that rules do is left to a FatedApp behind
    it.

    service: returns the service in which requests are looked up, if a rule needs that.
    """

    def __init__(self, app: WSGIApp, faults: Faults, service: Callable[[], Service]):
        self.app, self.faults, self.service = app, faults, service

    def __call__(self, environ: Environ, start_response: Callable[..., Any]) -> Iterable[bytes]:
        if environ.get(EPOCH, self.faults.epoch) != self.faults.epoch:
            # The state of the cloud was replaced while the request waited.
            raise NoAnswer()
        if FATE not in environ and self.faults.about_requests:
            rule, seconds = self._hit(environ)
            environ[FATE] = rule
            if seconds:
                environ[EPOCH], environ[ARRIVED] = self.faults.epoch, (utcnow(), time.perf_counter())
                # The server calls the app again after this time.
                raise Later(seconds)
        rule = environ.get(FATE)
        answer = self.app(environ, start_response)
        return answer if rule is None or 'trickle' not in rule.facts else trickled(answer, rule.facts['trickle'])

    def _hit(self, environ: Environ) -> tuple[FaultRule | None, float]:
        """The rule that decides about the request, if there is one, and the delay before: delays of several rules add
        up."""
        request, seconds = RequestFacts(environ, self.service), 0.0
        for rule in self.faults.about_requests:
            if concerns(rule, request) and rule.selection.take():
                seconds += rule.seconds()
                if rule.facts.keys() & {'status', 'cut', 'trickle'}:
                    return rule, seconds
        return None, seconds


class FatedApp:
    """Processes a request or not, as decided in its environ."""

    def __init__(self, app: WSGIApp):
        self.app = app

    def __call__(self, environ: Environ, start_response: Callable[..., Any]) -> Iterable[bytes]:
        rule = environ.pop(FATE, None)
        if rule is None or not rule.facts.keys() & {'status', 'cut'}:
            return self.app(environ, start_response)
        if rule.facts.get('abrupt'):
            environ[ABRUPT] = True
        if rule.facts.get('cut') == AFTER:
            drained(self.app, environ)
            raise NoAnswer()
        if rule.facts.get('cut') == WITHIN:
            return shortened(self.app, environ, start_response)
        # Read the body, so that the journal records it.
        body_of(environ)
        if 'cut' in rule.facts:
            raise NoAnswer()
        return answer_of(rule.facts, environ)(environ, start_response)


def concerns(rule: FaultRule, request: RequestFacts) -> bool:
    """Whether the rule applies to the request; expensive checks come last."""
    facts = rule.facts
    if 'service' in facts and facts['service'] != request.service:
        return False
    if rule.path is not None and not rule.path.fullmatch(request.path):
        return False
    if rule.operation is not None and not rule.operation(request.operation or ''):
        return False
    if rule.versions is not None and not request.is_between(*rule.versions):
        return False
    if 'project' in facts and facts['project'] not in request.project:
        return False
    return not (facts.keys() & {'server', 'host', 'metadata'}) or request.is_about(rule.servers)
