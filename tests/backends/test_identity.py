"""What any identity backend answers."""

import pytest

from computeapi import errors
from tests.backends.implementations import IDENTITY


@pytest.fixture(params=IDENTITY)
def known(request, store):
    """The implementation with its users."""
    return request.param(store)


@pytest.fixture
def identity(known):
    return known.identity


def test_a_token_tells_who_its_holder_is(known, identity):
    token = known.token('demo')
    context = identity.authenticate(token)
    assert (context.user_id, context.user_name, context.user_domain_id) == (known.user_id('demo'), 'demo', 'default')
    project_id = known.project_id('demo')
    assert (context.project_id, context.project_name, context.project_domain_id) == (project_id, 'demo', 'default')
    assert context.roles == {'member', 'reader'}
    assert not context.is_admin
    assert context.auth_token == token
    assert token not in repr(context)


def test_an_administrator_is_one_by_role(known, identity):
    context = identity.authenticate(known.token('admin'))
    assert context.is_admin
    assert context.roles == {'admin', 'manager', 'member', 'reader'}


@pytest.mark.parametrize('token', ['', 'unknown', 'x' * 100_000, 'Ünïcode', "' OR 1=1 --"])
def test_an_unknown_token_is_nobody(identity, token):
    with pytest.raises(errors.NotAuthenticated):
        identity.authenticate(token)


def test_a_password_logs_in_to_the_default_project(known, identity):
    context = identity.authenticate_password('demo', known.passwords['demo'])
    assert (context.user_name, context.project_name, context.roles) == ('demo', 'demo', {'member', 'reader'})
    assert identity.authenticate_password('admin', known.passwords['admin']).is_admin


@pytest.mark.parametrize(
    ('name', 'password'),
    [('demo', 'wrong'), ('demo', ''), ('nobody', 'demo-secret'), ('', ''), ('DEMO', 'demo-secret')],
)
def test_a_wrong_password_is_nobody(identity, name, password):
    with pytest.raises(errors.NotAuthenticated):
        identity.authenticate_password(name, password)


def test_a_user_without_a_project_has_no_roles(known, identity):
    context = identity.authenticate_password('loner', known.passwords['loner'])
    assert (context.project_id, context.roles) == (None, frozenset())


def test_projects_exist_or_not(known, identity):
    assert identity.project_exists(known.project_id('demo'))
    assert not identity.project_exists('demo')
