"""The differences between two versions, derived from the shapes of operations."""

import re
from pathlib import Path

import pytest

from computeapi.versions import ABSENT, HISTORY, APIVersionRequest, added, changed, removed
from computeapi.web.contract import HTML, JSON, Operation
from computeapi.web.history import changes, compare
from computeapi.web.schemas import closed, query

TEXT = {'type': 'string'}
TESTS, NAMES = Path(__file__).parents[1] / 'history', re.compile(r'^def test_(\d+)_(\d+)_', re.MULTILINE)


def at(version, *operations):
    return dict(changes(operations, APIVersionRequest.parse(version)))


def version(text):
    return APIVersionRequest.parse(text)


@pytest.mark.parametrize(
    ('before', 'after', 'told'),
    [
        (closed({'a': TEXT}), closed({'a': TEXT}), []),
        (closed({'a': TEXT}), closed({'a': TEXT, 'b': TEXT}), ['+/b']),
        (closed({'a': TEXT}), closed({}), ['-/a']),
        (closed({'a': TEXT}), closed({'a': {'type': 'integer'}}), ['~/a']),
        (closed({'a': TEXT}), closed({'a': TEXT}, ['a']), ['~/']),
        (closed({'a': TEXT}), closed({'a': TEXT, 'b': TEXT}, ['b']), ['+/b']),
        (closed({'s': closed({'a': TEXT})}), closed({'s': closed({'a': TEXT, 'b': TEXT})}), ['+/s/b']),
        (closed({}), closed({'s': closed({'a': TEXT})}), ['+/s']),
        (closed({}), closed({'s': {'type': 'array', 'items': closed({'a': TEXT})}}), ['+/s']),
        (
            closed({'s': {'type': 'array', 'items': closed({})}}),
            closed({'s': {'type': 'array', 'items': closed({'a': TEXT})}}),
            ['+/s[]/a'],
        ),
        (ABSENT, closed({'a': TEXT, 'b': TEXT}), ['+/a', '+/b']),
        (closed({'a': TEXT}), ABSENT, ['-/a']),
        (ABSENT, {'type': 'null'}, ['+/']),
        (ABSENT, ABSENT, []),
        ({'anyOf': [TEXT, {'type': 'null'}]}, TEXT, ['~/']),
        ({'patternProperties': {'^a': TEXT}}, {'patternProperties': {'^a': TEXT, '^b': TEXT}}, ['+/^b']),
    ],
)
def test_schemas_are_compared_field_by_field(before, after, told):
    assert compare(before, after) == told


def test_operations_come_and_go():
    old = Operation('GET', '/x', print, min=version('2.5'), max=version('2.8'))
    assert at('2.5', old) == {'GET /x': {'added': []}}
    assert at('2.8', old) == {}
    assert at('2.9', old) == {'GET /x': {'removed': []}}
    assert at('2.1', Operation('GET', '/y', print)) == {'GET /y': {'added': []}}


def test_an_operation_that_another_method_takes_over_only_changes():
    old = Operation('POST', '/x', print, max=version('2.8'), body=closed({'a': TEXT}))
    new = Operation('POST', '/x', print, min=version('2.9'), body=closed({'b': TEXT}), status=202)
    assert at('2.9', old, new) == {'POST /x': {'status': ['200 -> 202'], 'body': ['-/a', '+/b']}}


def test_what_a_step_changes_is_told_by_its_place():
    operation = Operation(
        'GET',
        '/x',
        print,
        query=query({'limit': added('2.3', TEXT)}, strict='2.9'),
        body=closed({'a': removed('2.4', TEXT)}),
        response={'y': closed({'b': added('2.5', TEXT)})},
        status=changed({'2.1': 200, '2.6': 204}),
        media_type=changed({'2.1': HTML, '2.7': JSON}),
    )
    assert [at(f'2.{minor}', operation).get('GET /x') for minor in range(2, 11)] == [
        None,
        {'query': ['+/limit']},
        {'body': ['-/a']},
        {'response': ['+/y/b']},
        {'status': ['200 -> 204']},
        {'media type': [f'{HTML} -> {JSON}']},
        None,
        {'unknown parameters': ['ignored -> refused']},
        None,
    ]


def test_every_version_has_a_test_of_its_own():
    """In tests/history, by name: test_2_57_personality_is_gone."""
    names = (name for path in TESTS.glob('test_*.py') for name in NAMES.findall(path.read_text()))
    tested = {f'{major}.{minor}' for major, minor in names}
    assert tested == set(HISTORY) - {'2.1'}
