"""Bulk inserts."""

import pytest

from computeapi.clock import utcnow
from computeapi.context import Context
from computeapi.db import actions, bulk


def test_numbers_that_rows_bring_with_them_are_not_given_again(store):
    facts = {'server_id': 's', 'action': 'reboot', 'start_time': utcnow()}
    with store.write() as connection:
        bulk.insert(connection, {'server_actions': [{'id': 70_000, 'request_id': 'req-1', **facts}]})
        bulk.advance_sequences(connection)
        assert actions.start(connection, Context(request_id='req-2'), 's', 'reboot', utcnow()) > 70_000


@pytest.mark.parametrize('text', ["it's '' so", '"%s" :name ? zwölf\n', '', 'x' * 5000])
def test_what_rows_have_in_common_is_written_as_it_is(store, text):
    common = {
        **{'description': text, 'extra_specs': {'text': text}, 'created_at': utcnow(), 'updated_at': None},
        **{'memory_mb': 2**40, 'vcpus': 1, 'root_gb': 0, 'ephemeral_gb': 0, 'swap': 0, 'rxtx_factor': 1.5},
        **{'disabled': True, 'is_public': False},
    }
    rows = [{'id': n, 'flavorid': str(n), 'name': f'flavor-{n}', **common} for n in range(1000, 1300)]
    with store.write() as connection:
        bulk.insert(connection, {'flavors': rows})
        assert list(bulk.rows_of(connection, 'flavors', list(rows[0])))[-300:] == rows
