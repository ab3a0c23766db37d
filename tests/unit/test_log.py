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


def test_a_line_has_the_time_the_process_and_the_request():
    origin = {'process': 7, 'levelname': 'INFO', 'name': 'computeapi.request', 'request_id': 'req-1'}
    record = logging.makeLogRecord({'msg': 'Done', 'created': 1785686399.0456, 'msecs': 45.0, **origin})
    assert log.Lines().format(record) == '2026-08-02T15:59:59.045+00:00 7 INFO computeapi.request [req-1] Done'


def test_an_exception_follows_its_message():
    try:
        raise ValueError('reason')
    except ValueError as error:
        record = logging.makeLogRecord({'msg': 'Failed', 'exc_info': (ValueError, error, error.__traceback__)})
    first, *more = log.Lines().format(record).split('\n')
    assert first.endswith('[-] Failed')
    assert (more[0], more[-1]) == ('Traceback (most recent call last):', 'ValueError: reason')
