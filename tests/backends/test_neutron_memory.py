"""What is remembered about a Neutron instead of asking again."""

import pytest

from computeapi.backends.network.neutron import client, extensions
from computeapi.context import Context
from computeapi.errors import NeighbourAway


@pytest.fixture
def clock(monkeypatch):
    """A fake clock in seconds, which is advanced by tests."""
    now = [1000.0]
    for module in (client, extensions):
        monkeypatch.setattr(module, 'elapsed', lambda: now[0])
    return now


def test_extensions_are_asked_for_once_in_a_while(clock):
    asked, answer = [], [frozenset({'router'})]

    def ask():
        asked.append(clock[0])
        if isinstance(answer[0], Exception):
            raise answer[0]
        return answer[0]

    known = extensions.NeutronExtensions(ask, 600)
    assert ('router' in known, 'qos' in known, len(asked)) == (True, False, 1)
    clock[0] += 600
    answer[0] = frozenset({'qos'})
    assert ('qos' in known, 'router' in known, len(asked)) == (True, False, 2)
    clock[0] += 600
    answer[0] = NeighbourAway(name='Neutron')
    assert ('qos' in known, 'qos' in known, len(asked)) == (True, True, 3)


def test_who_was_never_asked_must_be_there():
    def ask():
        raise NeighbourAway(name='Neutron')

    with pytest.raises(NeighbourAway):
        assert 'router' in extensions.NeutronExtensions(ask, 600)


def test_networks_are_remembered_for_a_minute(clock):
    asked = []

    def ask(context, ids):
        asked.append(sorted(ids))
        return {each: {'id': each} for each in ids if each != 'gone'}

    remembered = client.ExpiringCache(ask)
    assert remembered.of(Context(), {'a', 'gone'}) == {'a': {'id': 'a'}}
    assert remembered.of(Context(), {'a', 'b'}).keys() == {'a', 'b'}
    assert asked == [['a', 'gone'], ['b']]
    clock[0] += 61
    assert remembered.of(Context(), {'b'}).keys() == {'b'}
    assert (asked[2:], remembered.known.keys()) == ([['b']], {'b'})
