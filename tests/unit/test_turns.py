"""The threads of a process take turns for look-ups, and none can block the others for long."""

import threading
import time

import pytest
import webob

from computeapi.web.turns import InTurn, Turns

LONG = 30


class SlowApp:
    """An app that holds requests for /held until it is opened, and records how many are inside at the same time."""

    def __init__(self):
        self.opened, self.held, self.inside, self.most = threading.Event(), threading.Semaphore(0), 0, 0
        self.lock = threading.Lock()

    def __call__(self, environ, start_response):
        if environ['PATH_INFO'] == '/held':
            self.held.release()
            assert self.opened.wait(LONG)
        with self.lock:
            self.inside += 1
            self.most = max(self.most, self.inside)
        time.sleep(0.001)
        with self.lock:
            self.inside -= 1
        if environ['PATH_INFO'] == '/wrong':
            raise ValueError
        return webob.Response(text='answered')(environ, start_response)


@pytest.fixture
def slow_app():
    slow_app = SlowApp()
    yield slow_app
    slow_app.opened.set()


def ask(app, path='/', method='GET'):
    return webob.Request.blank(path, method=method).get_response(app).text


def together(function, count):
    threads = [threading.Thread(target=function) for _ in range(count)]
    for each in threads:
        each.start()
    return threads


@pytest.mark.parametrize(('method', 'one_by_one'), [('GET', True), ('POST', False)])
def test_one_is_answered_after_the_other(slow_app, method, one_by_one):
    app = InTurn(slow_app, Turns(timeout=LONG))
    for each in together(lambda: ask(app, method=method), 8):
        each.join(LONG)
    assert (slow_app.most == 1) is one_by_one


def test_who_is_held_up_keeps_others_waiting_once(slow_app):
    turns = Turns()
    app = InTurn(slow_app, turns)
    held = together(lambda: ask(app, '/held'), 3)
    assert all(slow_app.held.acquire(timeout=LONG) for _ in held)
    assert ask(app) == 'answered'
    # Nobody holds the turn now: requests that waited for the held ones would wait forever.
    turns.timeout = -1
    assert [ask(app) for _ in range(20)] == ['answered'] * 20
    assert all(each.is_alive() for each in held)
    slow_app.opened.set()
    for each in held:
        each.join(LONG)
        assert not each.is_alive()
    assert ask(app) == 'answered'


def test_an_error_ends_a_turn(slow_app):
    app = InTurn(slow_app, Turns(timeout=-1))
    with pytest.raises(ValueError):
        ask(app, '/wrong')
    assert ask(app) == 'answered'
