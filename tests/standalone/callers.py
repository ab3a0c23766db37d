"""Callers whose tokens are their names, and their requests to a service."""

import webob

from computeapi import errors
from computeapi.context import Context

CALLERS = {
    'admin': Context(user_id='root', project_id='admin', is_admin=True, roles=frozenset({'admin'})),
    'alice': Context(user_id='alice', project_id='apples', roles=frozenset({'member'})),
    'bob': Context(user_id='bob', project_id='bananas', roles=frozenset({'member'})),
    'reader': Context(user_id='ron', project_id='apples', roles=frozenset({'reader'})),
    'system admin': Context(user_id='root', system_scope='all', is_admin=True, roles=frozenset({'admin'})),
}


def authenticating(**others):
    """A function that finds these callers, and those above, by their tokens."""
    known = CALLERS | others

    def authenticate(token):
        try:
            return known[token]
        except KeyError:
            raise errors.NotAuthenticated from None

    return authenticate


def answer_of(app, request, json, by, expect, **others):
    """The response to 'POST /path' by this caller, which must have the status `expect` if it is given."""
    method, path = request.split(' ', 1)
    if json is not None:
        others['json'] = json
    req = webob.Request.blank(path, method=method, **others)
    if by:
        req.headers['X-Auth-Token'] = by
    response = req.get_response(app)
    assert expect is None or response.status_code == expect, response.text
    return response
