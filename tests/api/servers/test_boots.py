"""What a boot asks of the database does not grow with the hosts, nor a request with its servers."""

import pytest
import sqlalchemy as sa

from tests.soundness import problems


@pytest.fixture
def asked(store):
    """The statements since the list was last emptied."""
    seen = []

    def note(connection, cursor, statement, *rest):
        seen.append(statement)

    sa.event.listen(store.engine, 'before_cursor_execute', note)
    yield seen
    sa.event.remove(store.engine, 'before_cursor_execute', note)


def test_a_boot_asks_the_same_among_any_number_of_hosts(service, create, settle, asked):
    counts = set()
    create('2.37', networks='none')
    settle()
    for hosts in (2, 30):
        service.conf.set_override('hosts', hosts, 'simulated')
        service.hosts.register()
        asked.clear()
        assert create('2.37', networks='none').status == 202
        settle()
        counts.add(len(asked))
    assert len(counts) == 1


def test_servers_of_one_request_are_written_together(create, settle, store, asked):
    create('2.37', networks='none')
    counts = []
    for count in (2, 7):
        asked.clear()
        assert create('2.52', networks='none', tags=['a', 'b'], min_count=count, max_count=count).status == 202
        counts.append(len([statement for statement in asked if 'INTO quota' not in statement]))
    assert counts[0] == counts[1]
    settle()
    assert problems(store) == []
