"""The document for the API view agrees with the table of operations at every version."""

import pytest

from computeapi import api
from computeapi.ui.reference import BY_NAME, ONE, SEVERAL, reference
from computeapi.versions import ABSENT, COMPUTE, APIVersionRequest
from computeapi.web.history import shape

OPERATIONS = api.operations()


@pytest.fixture(scope='module')
def document():
    return reference(api.CONTROLLERS, COMPUTE)


@pytest.fixture(scope='module')
def by_name(document):
    def name(facts):
        return f'{facts["method"]} {facts["path"]}' + (f' {{{facts["action"]}}}' if facts['action'] else '')

    return {name(facts): facts for facts in document['operations']}


def step_at(facts, number):
    """The description of an operation at a version."""
    return [step for step in facts['steps'] if step['from'] <= number][-1]


def schema_of(document, number):
    """A schema with nested schemas written out."""
    if number is None:
        return ABSENT
    node = dict(document['nodes'][number])
    for keyword in set(node) & set(BY_NAME):
        node[keyword] = {name: schema_of(document, each) for name, each in node[keyword].items()}
    for keyword in set(node) & set(SEVERAL):
        node[keyword] = [schema_of(document, each) for each in node[keyword]]
    for keyword in set(node) & set(ONE):
        if isinstance(node[keyword], dict):
            node[keyword] = schema_of(document, node[keyword]['node'])
    return node


def test_each_operation_is_there_at_its_versions_and_no_others(by_name):
    expected = {
        (str(operation), number)
        for operation in OPERATIONS
        for number, version in enumerate(COMPUTE.versions)
        if version.matches(operation.min, operation.max)
    }
    told = {
        (name, number)
        for name, facts in by_name.items()
        for number in range(len(COMPUTE.versions))
        if number >= facts['steps'][0]['from'] and 'statuses' in step_at(facts, number)
    }
    assert told == expected


@pytest.mark.parametrize('edge', ['first', 'last'])
def test_what_an_operation_takes_and_answers_is_what_the_table_says(document, by_name, edge):
    """At the first version of each of its forms, and at the last version before the next."""
    for operation in OPERATIONS:
        starts = [*sorted(operation.changes), operation.max.next]
        for start, following in zip(starts, starts[1:], strict=False):
            version = start if edge == 'first' else following.previous
            step, seen = step_at(by_name[str(operation)], COMPUTE.versions.index(version)), shape(operation, version)
            assert step['summary'] == operation.summary
            assert step['statuses'][0] == seen.status and set(step['errors']) == operation.error_statuses
            assert schema_of(document, step.get('body')) == seen.body
            assert schema_of(document, step.get('response')) == seen.response
            asked = schema_of(document, step.get('query'))
            assert ({} if asked is ABSENT else asked) == seen.query


def test_rules_are_named_with_their_defaults(document, by_name):
    for operation in OPERATIONS:
        step = step_at(by_name[str(operation)], COMPUTE.versions.index(operation.min))
        numbers = [number for number in (step.get('policy'), *step.get('also', ())) if number is not None]
        told = [document['policies'][number] for number in numbers]
        assert told == [[rule.name, rule.default, rule.description] for rule in operation.policies]


def test_an_operation_that_went_is_not_there_from_then_on(by_name):
    gone = by_name['POST /os-volumes_boot']['steps'][-1]
    assert gone == {'from': COMPUTE.versions.index(APIVersionRequest(2, 103))}


def test_no_version_is_told_of_that_is_not_offered():
    document = reference(api.CONTROLLERS, COMPUTE.until('2.60'))
    assert [name for name, _ in document['versions']][-1] == '2.60' and len(document['versions']) == 60
    assert max(step['from'] for facts in document['operations'] for step in facts['steps']) == 59
