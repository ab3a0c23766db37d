"""Seeded random values for requests: unlimited, reproducible, and unique."""

import io
from collections import Counter

import pytest

from computeapi import randomness
from computeapi.kit.seed import NOTHING, Seed


def environ(body=b'{}', method='POST', media_type='application/json', **more):
    length = {'CONTENT_LENGTH': str(len(body))} if body is not None else {}
    stream = Unreadable() if body is None else io.BufferedReader(io.BytesIO(body))
    return {
        'REQUEST_METHOD': method,
        'PATH_INFO': '/v2.1/servers',
        'CONTENT_TYPE': media_type,
        'wsgi.input': stream,
        **length,
        **more,
    }


class Unreadable:
    def read(self, *size):
        raise AssertionError('It was read.')


def drawn(seed, asked):
    return seed.of_request(asked).bits(128)


def test_how_json_is_written_does_not_matter_and_the_app_finds_it():
    asked = [environ(body) for body in (b'{"a": 1, "b": [2]}', b'{"b":[2],\n"a":1}')]
    assert drawn(Seed(1), asked[0]) == drawn(Seed(1), asked[1]) != drawn(Seed(1), environ(b'{"a": 2, "b": [2]}'))
    assert asked[1]['wsgi.input'].read() == b'{"b":[2],\n"a":1}'


@pytest.mark.parametrize(
    'asked',
    [
        environ(None, media_type='application/octet-stream', CONTENT_LENGTH='4'),
        environ(None, CONTENT_LENGTH=str(10**9)),
        environ(None),
        environ(None, method='GET', CONTENT_LENGTH='4'),
    ],
    ids=['an image', 'long', 'of unknown length', 'of a look'],
)
def test_a_body_that_is_an_image_or_long_is_not_read(asked):
    assert drawn(Seed(1), asked) >= 0


def test_a_client_that_goes_away_is_for_the_app_to_notice():
    class Gone:
        def read(self, *size):
            raise ConnectionResetError()

    asked = environ(**{'wsgi.input': Gone()})
    assert drawn(Seed(1), asked) == drawn(Seed(1), environ(b''))
    assert isinstance(asked['wsgi.input'], Gone)


def test_looks_change_nothing():
    seed = Seed(1)
    for _ in range(3):
        drawn(seed, environ(method='GET'))
    assert seed.drawn == NOTHING


def test_requests_at_the_same_time_do_not_mix():
    alone = [Seed(1).draws('a'), Seed(1).draws('b')]
    seed = Seed(1)
    one, other = seed.draws('a'), seed.draws('b')
    mixed = [(other.bits(64), one.bits(64)) for _ in range(3)]
    assert mixed == [(alone[1].bits(64), alone[0].bits(64)) for _ in range(3)]


def test_nothing_comes_twice_even_when_there_is_no_room_to_count(monkeypatch):
    monkeypatch.setattr('computeapi.kit.seed.MAX_COUNTS', 2)
    seed = Seed(1)
    found = [seed.draws(name).bits(128) for _ in range(4) for name in 'abcde']
    assert len(set(found)) == 20
    assert len(seed.drawn.counts) == 3
    kept = seed.drawn
    after = [seed.draws(name).bits(128) for name in 'abcde']
    seed.drawn = kept
    assert [seed.draws(name).bits(128) for name in 'abcde'] == after


@pytest.mark.parametrize('count', [1, 8, 24, 53, 128, 1000])
def test_numbers_have_so_many_bits_and_no_more(count):
    draws = Seed(1).draws('a')
    found = [draws.bits(count) for _ in range(64)]
    assert max(found).bit_length() == count and min(found) < 2 ** (count - 1)


def test_choices_are_spread():
    with randomness.drawn_from(Seed(1).draws('a')):
        counts = Counter(randomness.below(6) for _ in range(6000))
        assert sorted(counts) == [0, 1, 2, 3, 4, 5] and min(counts.values()) > 800
        assert sorted(randomness.shuffled('abcdef')) == list('abcdef')
        assert randomness.is_repeatable()
    assert not randomness.is_repeatable()
