"""Searching by regular expressions: the same on every database, and always in bounded time."""

import pytest
import sqlalchemy as sa

from computeapi.db import patterns


@pytest.mark.parametrize(
    ('pattern', 'value', 'found'),
    [
        ('', 'anything', True),
        ('web', 'my-web-1', True),
        ('WEB', 'my-web-1', True),
        ('web', None, False),
        ('^my', 'my-web-1', True),
        ('^web', 'my-web-1', False),
        ('1$', 'my-web-1', True),
        ('^my-web-1$', 'my-web-1', True),
        ('^my-web$', 'my-web-1', False),
        ('100%', '100 per cent', False),
        ('a_b', 'axb', False),
        ('a/b', 'xa/b', True),
        (r'10\.0', '10.0.0.1', True),
        (r'10\.0', '1020', False),
        ('10.0', '1020', True),
        ('^web-[0-9]+$', 'WEB-12', True),
        ('^web-[^0-9]+$', 'web-12', False),
        (r'^\w+-\d{1,2}$', 'web-12', True),
        (r'^\w+-\d{1,2}$', 'web-123', False),
        ('(a|b)+c?$', 'xabab', True),
        ('^(web|db)-.*?$', 'db-', True),
        (r'a\\b', 'a\\b', True),
        (r'[\d.]+', 'x1.5', True),
        ('é.', 'caféx', True),
    ],
)
def test_matches(store, pattern, value, found):
    assert patterns.is_bounded(pattern)
    statement = sa.select(patterns.matches(sa.literal(value, sa.String), pattern, store.dialect))
    with store.read() as connection:
        assert bool(connection.execute(statement).scalar()) is found


@pytest.mark.parametrize(
    'pattern',
    [
        '*',
        'a**',
        'a{2}{3}',
        '(a',
        'a)',
        '[a',
        '[z-a]',
        'a{5',
        '(?=a)',
        '(?i)a',
        '(?P<name>a)',
        r'(a)\1',
        r'\bword',
        'a\\',
        '(*ACCEPT)',
        '***=a',
        '((a{100}){100}){100}',
        '((a|b|.){30}){30}' * 10,
        'x' * 256,
    ],
)
def test_what_is_wrong_or_costs_too_much_is_refused(pattern):
    assert not patterns.is_bounded(pattern)


@pytest.mark.parametrize('pattern', ['^(a+)+(a+)+$', '(a|aa)+b', '(.*)(.*)(.*)(.*)(.*)x', '(a{30}){30}'])
def test_no_pattern_takes_long(store, pattern):
    """A backtracking engine would not finish these; MariaDB is given a limit."""
    assert patterns.is_bounded(pattern)
    statement = sa.select(patterns.matches(sa.literal('a' * 250 + '!', sa.String), pattern, store.dialect))
    with store.read() as connection:
        assert not connection.execute(statement).scalar()
