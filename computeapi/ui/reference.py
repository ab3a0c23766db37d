"""The table of operations, with all versions, as one document for browsers.

    {
        'versions': [['2.1', 'The first version: ...'], ...],
        'groups': [['Servers', 'The servers of a project.'], ...],
        'policies': [['os_compute_api:servers:index', 'rule:project_reader_or_admin', ''], ...],
        'operations': [{'group': 0, 'method': 'GET', 'path': '/servers', 'action': None,
                        'command': 'server list', 'steps': [...]}, ...],
        'nodes': [{'type': 'string'}, {'type': 'object', 'properties': {'name': 0}}, ...],
        'phrases': {'200': 'OK', ...},
    }

A step describes an operation from a version on: only {'from': 25} if the operation does not exist there, otherwise
everything that a client sees of it. `from` is an index of `versions`, `group` of `groups`, rules of `policies`, and
schemas of `nodes`, which contains equal schemas once; nested schemas are indexes, too. The `method` of a step
distinguishes handlers of the same operation at different versions.
"""

from collections.abc import Iterable
from http import HTTPStatus
from typing import Any

import orjson

from computeapi.ui.commands import COMMANDS
from computeapi.versions import ABSENT, APIVersionRequest, History
from computeapi.web.contract import Operation, summary_of
from computeapi.web.controller import Controller
from computeapi.web.history import shape
from computeapi.web.openapi import resource_of

Document = dict[str, Any]
BY_NAME = ('properties', 'patternProperties')
SEVERAL = ('oneOf', 'anyOf', 'allOf')
ONE = ('items', 'additionalProperties', 'propertyNames')


def reference(controllers: Iterable[type[Controller]], history: History) -> Document:
    """The document for the versions that *history* offers."""
    return Reference(history).describe(list(controllers))


class Numbers:
    """Numbers distinct things, in the order in which they appear."""

    def __init__(self) -> None:
        self.things: list[Any] = []
        self._known: dict[bytes, int] = {}

    def of(self, thing: Any) -> int:
        key = orjson.dumps(thing, option=orjson.OPT_SORT_KEYS)
        if key not in self._known:
            self._known[key] = len(self.things)
            self.things.append(thing)
        return self._known[key]


class Reference:
    """Builds the document."""

    def __init__(self, history: History):
        self.versions = [each for each in history.versions if each <= history.max]
        self.stories = [[str(each), history.stories[str(each)]] for each in self.versions]
        self.groups, self.policies, self.nodes = Numbers(), Numbers(), Numbers()

    def describe(self, controllers: list[type[Controller]]) -> Document:
        texts: dict[str, str] = {}
        found: dict[tuple[str, str], list[Operation]] = {}
        for controller in controllers:
            resource = resource_of(controller)
            texts.setdefault(resource, summary_of(controller))
            for operation in controller.operations:
                found.setdefault((resource, str(operation)), []).append(operation)
        operations = [
            self.operation(self.groups.of([resource, texts[resource]]), each) for (resource, _), each in found.items()
        ]
        statuses = {each for operation in operations for step in operation['steps'] for each in _statuses(step)}
        return {
            'versions': self.stories,
            'groups': self.groups.things,
            'policies': self.policies.things,
            'operations': operations,
            'nodes': self.nodes.things,
            'phrases': {str(status): HTTPStatus(status).phrase for status in sorted(statuses)},
        }

    def operation(self, group: int, definitions: list[Operation]) -> Document:
        """An operation, which may have different handlers at different versions."""
        first, handlers = definitions[0], [each.handler for each in definitions]
        steps: list[Document] = []
        for number, version in enumerate(self.versions):
            if number and not _may_change(definitions, version):
                continue
            at = next((each for each in definitions if version.matches(each.min, each.max)), None)
            step = {} if at is None else {**self.step(at, version), 'method': handlers.index(at.handler)}
            if not steps or step != {name: value for name, value in steps[-1].items() if name != 'from'}:
                steps.append({'from': number, **step})
        facts = {'group': group, 'method': first.method, 'path': first.path, 'action': first.action}
        return {**facts, 'command': COMMANDS.get(str(first)), 'steps': steps}

    def step(self, operation: Operation, version: APIVersionRequest) -> Document:
        """What a client sees of the operation at a version, without what is absent."""
        seen = shape(operation, version)
        rules = [self.policies.of([rule.name, rule.default, rule.description]) for rule in operation.policies]
        facts: Document = {
            'summary': operation.summary,
            'statuses': [seen.status, *operation.successes],
            'media_type': seen.media_type,
            'errors': sorted(operation.error_statuses),
            'policy': rules[0] if operation.policy else None,
            'also': rules[1:] if operation.policy else rules,
            'unknown': None if operation.query is ABSENT else seen.unknown_parameters,
            'query': None if operation.query is ABSENT else self.node(seen.query),
            'body': None if seen.body is ABSENT else self.node(seen.body),
            'response': None if seen.response is ABSENT else self.node(seen.response),
            'behaviour': vars(operation.behaviours.at(version)),
        }
        return {name: value for name, value in facts.items() if value not in (None, [], {})}

    def node(self, schema: Document) -> int:
        """The number of a schema, in which nested schemas are numbers, too."""
        inside: Document = {}
        for keyword, value in schema.items():
            if keyword in BY_NAME:
                inside[keyword] = {name: self.node(each) for name, each in value.items()}
            elif keyword in SEVERAL:
                inside[keyword] = [self.node(each) for each in value]
            elif keyword in ONE and isinstance(value, dict):
                inside[keyword] = {'node': self.node(value)}
            else:
                inside[keyword] = value
        return self.nodes.of(inside)


def _may_change(definitions: Iterable[Operation], version: APIVersionRequest) -> bool:
    return any(version in each.changes or version == each.max.next for each in definitions)


def _statuses(step: Document) -> list[int]:
    return [*step.get('statuses', ()), *step.get('errors', ())]
