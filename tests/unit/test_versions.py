"""Values that are step functions of the API version."""

import pytest

from computeapi.versions import (
    ABSENT,
    BEGINNING,
    HISTORY,
    LEGACY,
    MAX,
    MIN,
    APIVersionRequest,
    added,
    breakpoints,
    changed,
    compiled,
    removed,
    resolve,
)


def version(text):
    return APIVersionRequest.parse(text)


def at(tree, text):
    return resolve(tree, version(text))


def test_versions_are_ordered_as_numbers():
    assert version('2.9') < version('2.10') < version('2.100')
    assert str(version('2.10')) == '2.10'
    assert version('2.10').matches(version('2.2'), version('2.10'))
    assert not version('2.10').matches(version('2.2'), version('2.9'))


@pytest.mark.parametrize(
    'text', ['', '2', '2.', '.1', '02.1', '2.01', ' 2.1', '2.1 ', '2.1\n', '2.1.1', '2.1e1', '-2.1']
)
def test_other_forms_are_no_version(text):
    with pytest.raises(ValueError):
        version(text)


def test_digits_of_other_scripts_are_no_version():
    with pytest.raises(ValueError):
        version('2.\u0661')


def test_history_lists_every_version_from_first_to_last_once():
    listed = [version(text) for text in HISTORY]
    assert listed == [version(f'2.{minor}') for minor in range(1, len(HISTORY) + 1)]
    assert (listed[0], listed[-1]) == (MIN, MAX)
    assert [each.next for each in listed[:-1]] == listed[1:]
    assert all(sentence.endswith('.') for sentence in HISTORY.values())


def test_steps():
    assert [added('2.9', 'x').at(version(text)) for text in ('2.1', '2.8', '2.9', '2.104')] == [
        ABSENT,
        ABSENT,
        'x',
        'x',
    ]
    assert [removed('2.9', 'x').at(version(text)) for text in ('2.1', '2.8', '2.9')] == ['x', 'x', ABSENT]
    assert [changed({'2.9': 'a', '2.10': 'b'}).at(version(text)) for text in ('2.8', '2.9', '2.10')] == [
        ABSENT,
        'a',
        'b',
    ]


def test_steps_may_be_written_in_any_order():
    assert changed({'2.10': 'b', '2.9': 'a'}).at(version('2.9')) == 'a'


def test_a_gap_is_written_as_absent():
    tag = changed({'2.32': 'tag', '2.33': ABSENT, '2.42': 'tag'})
    assert [tag.at(version(text)) for text in ('2.31', '2.32', '2.33', '2.41', '2.42')] == [
        ABSENT, 'tag', ABSENT, ABSENT, 'tag'
    ]  # fmt: skip


def test_v2_is_like_the_first_version_unless_it_has_a_step_of_its_own():
    assert changed({'2.1': 'a'}).at(LEGACY) == 'a'
    assert removed('2.9', 'a').at(LEGACY) == 'a'
    assert added('2.2', 'a').at(LEGACY) is ABSENT
    own = changed({'2.0': 'relaxed', '2.1': 'strict'})
    assert (own.at(LEGACY), own.at(MIN)) == ('relaxed', 'strict')


@pytest.mark.parametrize('text', [str(MAX.next), '3.0', '1.1'])
def test_unknown_versions_are_refused_where_they_are_written(text):
    for mark in (added, removed):
        with pytest.raises(ValueError, match='is not a version of this API'):
            mark(text, 'x')
    with pytest.raises(ValueError):
        changed({'2.1': 'x', text: 'y'})


def test_resolve_takes_steps_and_drops_what_is_absent():
    tree = {
        'always': 1,
        'late': added('2.9', 2),
        'early': removed('2.9', [3]),
        'inside': {'list': ['a', added('2.9', 'b')], 'tuple': ('c',)},
        'nested': added('2.5', {'x': added('2.9', 4)}),
    }
    assert at(tree, '2.1') == {'always': 1, 'early': [3], 'inside': {'list': ['a'], 'tuple': ['c']}}
    assert at(tree, '2.5')['nested'] == {}
    assert at(tree, '2.9') == {
        'always': 1, 'late': 2, 'inside': {'list': ['a', 'b'], 'tuple': ['c']}, 'nested': {'x': 4}
    }  # fmt: skip
    assert at(added('2.9', 1), '2.1') is ABSENT


def test_values_that_are_false_are_still_values():
    assert at({'a': added('2.9', None), 'b': added('2.9', False)}, '2.9') == {'a': None, 'b': False}
    assert not ABSENT


def test_resolving_leaves_the_tree_as_it_is():
    tree = {'a': {'b': added('2.9', 1)}}
    at(tree, '2.9')['a']['b'] = 2
    assert at(tree, '2.9') == {'a': {'b': 1}}


def test_breakpoints_are_found_at_any_depth():
    tree = {'a': [added('2.9', {'b': removed('2.50', 1)})], 'c': (changed({'2.3': 1}),)}
    assert breakpoints(tree) == {BEGINNING, version('2.3'), version('2.9'), version('2.50')}
    assert breakpoints({'a': [1]}) == set()


def test_compiled_works_once_per_distinct_shape():
    seen = []

    def compile(shape):
        seen.append(shape)
        return len(seen)

    tag = {'tag': changed({'2.32': 1, '2.33': ABSENT, '2.42': 1})}
    ready = compiled(tag, compile)
    assert seen == [{}, {'tag': 1}]
    assert [ready.at(version(text)) for text in ('2.1', '2.32', '2.40', '2.104')] == [1, 2, 1, 2]
    assert ready.at(LEGACY) == 1


def test_compiled_keeps_what_is_absent():
    ready = compiled(added('2.9', {}), lambda shape: 'compiled')
    assert [ready.at(version(text)) for text in ('2.8', '2.9')] == [ABSENT, 'compiled']


def test_a_mapped_step_function_has_the_same_steps():
    doubled = changed({'2.3': 1, '2.5': ABSENT, '2.7': 3}).map(lambda value: value * 2)
    assert [doubled.at(version(text)) for text in ('2.2', '2.3', '2.5', '2.7')] == [ABSENT, 2, ABSENT, 6]
