"""Undeclared behaviour of an operation is an error in tests, and elsewhere a warning or nothing."""

import pytest
import webob

from computeapi import errors
from computeapi.context import Context
from computeapi.web.app import App
from computeapi.web.contract import ADMIN, Policy
from computeapi.web.controller import Controller, operation
from computeapi.web.filters import Microversion
from computeapi.web.request import CONTEXT, Reply

ASKED = Policy('context_is_admin', ADMIN)
ADMINISTRATOR = Context(user_id='u', project_id='p', roles=frozenset({'admin'}), is_admin=True)


class Promising(Controller):
    """Operations that violate their declarations, and two that do not."""

    path = '/promises'

    @operation('GET', '/rule', policy=None)
    def rule(self, req):
        req.allows(ASKED)

    @operation('GET', '/error', policy=None)
    def error(self, req):
        raise errors.Conflict()

    @operation('GET', '/success', policy=None)
    def success(self, req):
        return Reply(status=204)

    @operation('GET', '/body', policy=None)
    def body(self, req):
        return {}

    @operation('GET', '/kept', policy=None, also=(ASKED,), successes=(204,))
    def kept(self, req):
        req.check(ASKED)
        return Reply(status=204)

    @operation('GET', '/conflict', policy=None, errors=(409,))
    def conflict(self, req):
        raise errors.Conflict()


@pytest.fixture
def status(service):
    """status(path, response_validation): the status of the app's response."""

    def ask(path, response_validation):
        app = Microversion(App([Promising()], service.policies, response_validation=response_validation))
        environ = {CONTEXT: ADMINISTRATOR}
        return webob.Request.blank(f'/promises/{path}', environ=environ).get_response(app).status_int

    return ask


BROKEN = {
    'rule': (200, 'asks context_is_admin'),
    'error': (409, 'answers 409'),
    'success': (204, 'answers 204'),
    'body': (200, 'has a body'),
}


@pytest.mark.parametrize('path', BROKEN)
def test_a_broken_promise(status, caplog, path):
    answered, text = BROKEN[path]
    assert status(path, 'ignore') == answered
    assert not caplog.text
    assert status(path, 'warn') == answered
    assert f'GET /promises/{path} at 2.1: ' in caplog.text and text in caplog.text
    assert status(path, 'error') == 500


@pytest.mark.parametrize(('path', 'answered'), [('kept', 204), ('conflict', 409)])
def test_a_promise_that_is_kept(status, caplog, path, answered):
    assert status(path, 'error') == answered
    assert not caplog.text
