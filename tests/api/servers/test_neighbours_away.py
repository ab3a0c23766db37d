"""What becomes of a server when another service becomes unavailable between any two requests to it."""

import contextlib
import zlib

import pytest

from computeapi.errors import NeighbourAway
from tests.api.servers.test_interruptions import (
    BOOTS,
    CHANGES,
    MAX_STEPS,
    THOROUGH,
    Beginning,
    Cloud,
    Refused,
    clean_up,
)
from tests.invariants import problems

# Coverage is left to other tests: these execute the same lines thousands of times, and take half the time without it.
pytestmark = pytest.mark.no_cover

# The task states that may last as long as necessary: the server has the requested state.
PATIENT = {None, 'shelving_offloading'}
NEIGHBOURS = {'images': 'Glance', 'networks': 'Neutron', 'volumes': 'Cinder'}
WAIT = 3600


class Line:
    """The connection to another service: `left` requests are answered before it is cut; None: it is not.

    loses: whether the first unanswered request still arrives.
    """

    def __init__(self, name):
        self.name, self.left, self.loses = name, None, False

    def ask(self, question):
        if self.left is not None:
            self.left -= 1
            if self.left < 0:
                if self.loses and self.left == -1:
                    question()
                raise NeighbourAway(name=self.name)
        return question()

    @property
    def is_cut(self):
        return self.left is not None and self.left < 0


class Distant:
    """A backend behind such a connection."""

    def __init__(self, backend, line):
        self._backend, self._line = backend, line

    def __getattr__(self, name):
        found = getattr(self._backend, name)
        if not callable(found):
            return found

        def call(*args, **kwargs):
            return self._line.ask(lambda: found(*args, **kwargs))

        return call


@pytest.fixture
def lines(service):
    """The connections to all other services."""
    found = {}
    for kind, name in NEIGHBOURS.items():
        found[kind] = Line(name)
        vars(service)[kind] = Distant(getattr(service, kind), found[kind])
    return found


@pytest.fixture
def cloud(lines, world, api):
    return Cloud(world, api)


def steps(name, kind, database):
    stride = 1 if THOROUGH else 12 if database == 'sqlite' else 36
    return range(zlib.crc32(f'{name} {kind} {database}'.encode()) % stride, MAX_STEPS, stride)


def states(cloud):
    """The task states of all servers."""
    shown = [cloud.api.get(f'/servers/{server}').json['server'] for server in cloud.servers()]
    return [each['OS-EXT-STS:task_state'] for each in shown]


def away(cloud, line, step, act, *, loses=False):
    """Cut the connection after this many requests of *act*; returns whether it came to that."""
    line.left, line.loses = step, loses
    with contextlib.suppress(Refused):
        act()
        cloud.take_over()
        cloud.take_over()
    return line.is_cut


def back(cloud, line):
    line.left = None
    cloud.take_over()


@pytest.mark.parametrize('loses', [False, True])
@pytest.mark.parametrize('kind', NEIGHBOURS)
@pytest.mark.parametrize('change', CHANGES)
def test_work_waits_for_who_comes_back_in_time(cloud, lines, database, change, kind, loses):
    before, ask = CHANGES[change]
    begin = Beginning(cloud, before)
    for step in steps(change, kind, database):
        server = begin()
        was_cut = away(cloud, lines[kind], step, lambda: ask(cloud, server), loses=loses)  # noqa: B023
        back(cloud, lines[kind])
        assert problems(cloud.store) == [], step
        assert 'ERROR' not in statuses(cloud), step
        clean_up(cloud)
        if not was_cut:
            return
    raise AssertionError('it never ends')


@pytest.mark.parametrize('kind', NEIGHBOURS)
@pytest.mark.parametrize('change', CHANGES)
def test_work_fails_without_who_stays_away_and_leaves_nothing(cloud, lines, database, change, kind):
    before, ask = CHANGES[change]
    begin = Beginning(cloud, before)
    for step in steps(change, kind, database):
        server = begin()
        cloud.service.conf.set_override('neighbour_timeout', 0)
        was_cut = away(cloud, lines[kind], step, lambda: ask(cloud, server))  # noqa: B023
        assert set(states(cloud)) <= PATIENT, step
        check_faults(cloud, NEIGHBOURS[kind])
        back(cloud, lines[kind])
        cloud.service.conf.set_override('neighbour_timeout', WAIT)
        assert problems(cloud.store) == [], step
        clean_up(cloud)
        if not was_cut:
            return
    raise AssertionError('it never ends')


@pytest.mark.parametrize('late', [False, True])
@pytest.mark.parametrize('kind', NEIGHBOURS)
@pytest.mark.parametrize('boot', BOOTS)
def test_boots_settle(cloud, lines, database, boot, kind, late):
    for step in steps(boot, kind, database):
        cloud.service.conf.set_override('neighbour_timeout', 0 if late else WAIT)
        was_cut = away(cloud, lines[kind], step, lambda: BOOTS[boot](cloud))
        if late:
            assert set(states(cloud)) <= PATIENT, step
            check_faults(cloud, NEIGHBOURS[kind])
        back(cloud, lines[kind])
        assert problems(cloud.store) == [], step
        assert late or 'ERROR' not in statuses(cloud), step
        cloud.service.conf.set_override('neighbour_timeout', WAIT)
        clean_up(cloud)
        if not was_cut:
            return
    raise AssertionError('it never ends')


def statuses(cloud):
    return {cloud.api.get(f'/servers/{server}').json['server']['status'] for server in cloud.servers()}


def check_faults(cloud, name):
    """Servers in ERROR name the service that was unavailable."""
    for server in cloud.servers():
        shown = cloud.api.get(f'/servers/{server}').json['server']
        if shown['status'] == 'ERROR':
            assert name in shown['fault']['message']
