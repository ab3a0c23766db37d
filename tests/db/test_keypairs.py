"""Paging through key pairs."""

from datetime import datetime

from computeapi.db import bulk, keypairs
from computeapi.db.listing import Page
from tests.db.test_server_search import READS_ALL, SORTS, plans

MANY = 50
FACTS = {'type': 'ssh', 'fingerprint': '', 'public_key': '', 'created_at': datetime(2030, 1, 1)}


def test_a_page_begins_at_its_marker(store):
    """Not at the user's first key pair, skipping everything before the marker."""
    names = [f'key-{number:02}' for number in range(MANY)]
    rows = [FACTS | {'user_id': user_id, 'name': name} for user_id in ('ann', 'bob') for name in names]
    with store.write() as connection:
        bulk.insert(connection, {'keypairs': rows})
        with plans(connection) as told:
            found = keypairs.page(connection, 'ann', Page(3, names[40]))
    assert [each.name for each in found] == names[41:44]
    plan = told[-1]
    assert not [word for word in (*SORTS, *READS_ALL) if word in plan], plan
    assert {'sqlite': 'NAME>?', 'postgresql': '> ', 'mysql': '| RANGE |'}[store.dialect] in plan, plan
