"""The filter `idempotency` in front of an app whose behaviour tests control."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
import webob

from computeapi.context import Context
from computeapi.db import cells
from computeapi.db.idempotency_keys import KeyClaims
from computeapi.web.filters import FaultWrap, RequestId
from computeapi.web.idempotency import MAX_KEPT, MAX_READ, Idempotency
from computeapi.web.request import CONTEXT


class Told:
    """An app that may write to the database, responds as told, and counts its calls."""

    def __init__(self, store):
        self.store, self.count, self.changes, self.answer = store, 0, True, webob.Response(status=202, body=b'done')
        self.begun, self.may_end = threading.Event(), threading.Event()
        self.may_end.set()

    def __call__(self, environ, start_response):
        self.count += 1
        if self.changes:
            self.store.change(cells.register, [f'cell{self.count}'])
        self.begun.set()
        assert self.may_end.wait(60)
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer(environ, start_response)


@pytest.fixture
def told(store):
    return Told(store)


@pytest.fixture
def ask(told, store):
    """ask(body=b'x'): a POST with a key, from bob in his project."""
    app = RequestId(FaultWrap(Idempotency(told, KeyClaims(store, 3600, 1000))))

    def post(method='POST', body=b'{}', announced=True):
        req = webob.Request.blank('/servers', method=method, headers={'Idempotency-Key': 'key'}, body=body)
        if not announced:
            # As in a chunked request.
            del req.environ['CONTENT_LENGTH']
            req.environ['wsgi.input_terminated'] = True
        req.environ[CONTEXT] = Context(user_id='bob', project_id='project')
        return req.get_response(app)

    return post


def test_it_is_done_once(ask, told):
    assert [ask().body for _ in range(3)] == [b'done'] * 3 and told.count == 1


@pytest.mark.parametrize('method', ['GET', 'PUT', 'DELETE', 'HEAD'])
def test_other_methods_are_as_ever(ask, told, method):
    assert [ask(method).status_int for _ in range(2)] == [202] * 2 and told.count == 2


@pytest.mark.parametrize('status', [400, 401, 403, 404, 409, 413, 429, 500, 503])
def test_an_error_that_changed_nothing_is_not_kept(ask, told, status):
    told.changes, told.answer = False, webob.Response(status=status)
    assert ask().status_int == status
    told.answer = webob.Response(status=202)
    assert ask().status_int == 202 and told.count == 2


@pytest.mark.parametrize('status', [400, 409, 500, 503])
def test_an_error_after_a_change_is_kept(ask, told, status):
    """Repeating the request might create a second server."""
    told.answer = webob.Response(status=status)
    assert ask().status_int == ask().status_int == status and told.count == 1


def test_what_breaks_is_tried_again(ask, told):
    told.changes, told.answer = False, ZeroDivisionError()
    assert ask().status_int == 500
    told.answer = webob.Response(status=202)
    assert ask().status_int == 202


def test_what_breaks_after_a_change_is_not_done_again(ask, told):
    told.answer = ZeroDivisionError()
    assert ask().status_int == 500
    told.answer = webob.Response(status=202)
    assert ask().status_int == 409 and told.count == 1


def test_others_are_told_to_come_again(ask, told):
    told.may_end.clear()
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(ask)
        try:
            assert told.begun.wait(60)
            second = ask()
        finally:
            told.may_end.set()
    assert second.status_int == 409 and second.headers['Retry-After'] == '1'
    assert 'in progress' in second.json['conflictingRequest']['message']
    assert first.result().status_int == 202 and ask().body == b'done' and told.count == 1


def test_a_long_answer_is_kept_only_if_it_matters(ask, told):
    told.answer = webob.Response(body=b'x' * (MAX_KEPT + 1))
    told.changes = False
    assert ask().status_int == ask().status_int == 200 and told.count == 2
    told.changes = True
    assert ask().body == ask().body == told.answer.body and told.count == 3


def test_any_bytes_come_back_as_they_were(ask, told):
    told.answer = webob.Response(body=bytes(range(256)), headers={'X-Name': 'ü'}, content_type='application/x')
    first, second = ask(), ask()
    assert second.body == first.body == bytes(range(256)) and told.count == 1
    assert second.headers['X-Name'] == first.headers['X-Name']


@pytest.mark.parametrize('announced', [True, False])
def test_a_body_has_a_bound(ask, told, announced):
    told.changes = False
    assert ask(body=b'x' * (MAX_READ + 1), announced=announced).status_int == 413 and told.count == 0
    assert ask(body=b'x' * MAX_READ, announced=announced).status_int == 202 and told.count == 1


def test_the_app_reads_the_body_that_was_looked_at(ask, told):
    read = []
    told.answer = lambda environ, start: (
        read.append(environ['wsgi.input'].read(int(environ['CONTENT_LENGTH']))),
        webob.Response(body=b'ok')(environ, start),
    )[1]
    assert ask(body=b'{"server": 1}').body == b'ok' and read == [b'{"server": 1}']
