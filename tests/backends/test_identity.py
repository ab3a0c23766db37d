"""The behaviour of every identity backend."""

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
    user, project = (
        (known.user_id('demo'), known.user_name('demo')),
        (known.project_id('demo'), known.project_name('demo')),
    )
    assert (context.user_id, context.user_name, context.user_domain_id) == (*user, 'default')
    assert (context.project_id, context.project_name, context.project_domain_id) == (*project, 'default')
    assert context.roles == {'member', 'reader'}
    assert not context.is_admin
    assert context.auth_token == token
    assert token not in repr(context)


def test_an_administrator_is_one_by_role(known, identity):
    context = identity.authenticate(known.token('admin'))
    assert context.is_admin
    assert context.roles == {'admin', 'manager', 'member', 'reader'}


@pytest.mark.parametrize('token', ['', 'unknown', 'x' * 100_000, 'Ünïcode', "' OR 1=1 --", 'a\nb'])
def test_an_unknown_token_is_nobody(identity, token):
    with pytest.raises(errors.NotAuthenticated):
        identity.authenticate(token)


def test_a_password_logs_in_to_the_default_project(known, identity):
    context = identity.authenticate_password(known.user_name('demo'), known.passwords['demo'])
    names = known.user_name('demo'), known.project_name('demo')
    assert (context.user_name, context.project_name, context.roles) == (*names, {'member', 'reader'})
    assert identity.authenticate_password(known.user_name('admin'), known.passwords['admin']).is_admin


def test_a_wrong_password_is_nobody(known, identity):
    demo = known.user_name('demo')
    for name, password in ((demo, 'wrong'), (demo, ''), ('nobody', known.passwords['demo']), ('', '')):
        with pytest.raises(errors.NotAuthenticated):
            identity.authenticate_password(name, password)


def test_a_user_without_a_project_has_no_roles(known, identity):
    context = identity.authenticate_password(known.user_name('loner'), known.passwords['loner'])
    assert (context.project_id, context.roles) == (None, frozenset())


def test_projects_exist_or_not(known, identity):
    admin = identity.authenticate(known.token('admin'))
    assert identity.project_exists(admin, known.project_id('demo'))
    for missing in ('demo', '', '..', 'a/b', '?x', 'Ünïcode'):
        assert not identity.project_exists(admin, missing)
