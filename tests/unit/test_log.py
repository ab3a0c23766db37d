"""The lines of the log."""

import logging

import pytest

from computeapi import log


@pytest.mark.parametrize(
    ('text', 'shown'),
    [
        ('a\n2026-01-01 forged', 'a\\n2026-01-01 forged'),
        ('G\x1b[2JT', 'G\\x1b[2JT'),
        ('a\rb\x85c\u2028d', 'a\\rb\\x85c\\u2028d'),
        ('Grüße \\n', 'Grüße \\n'),
    ],
)
def test_a_message_is_one_line_that_no_terminal_obeys(text, shown):
    record = logging.makeLogRecord({'msg': '%s', 'args': (text,)})
    assert log.Lines().format(record).endswith(f'] {shown}')
