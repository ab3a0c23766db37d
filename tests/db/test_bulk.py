"""Rows that are written many at once."""

from computeapi.clock import utcnow
from computeapi.context import Context
from computeapi.db import actions, bulk


def test_numbers_that_rows_bring_with_them_are_not_given_again(store):
    facts = {'server_id': 's', 'action': 'reboot', 'start_time': utcnow()}
    with store.write() as connection:
        bulk.insert(connection, {'server_actions': [{'id': 70_000, 'request_id': 'req-1', **facts}]})
        bulk.go_on_counting(connection)
        assert actions.start(connection, Context(request_id='req-2'), 's', 'reboot', utcnow()) > 70_000
