"""Whether projects exist, and who is told."""

import pytest

from computeapi.context import Context
from computeapi.errors import Invalid
from computeapi.main import Service

ADMIN = Context(user_id='admin', project_id='admin', is_admin=True)
MEMBER = Context(user_id='bob', project_id='project')


@pytest.fixture
def local(conf, store):
    conf.set_override('auth_strategy', 'local', 'api')
    conf.set_override('bcrypt_cost', 4, 'identity')
    return Service(conf, store)


def test_an_administrator_is_told_that_a_project_is_unknown(local):
    local.identity.populate('a secret')
    projects = local.cloud.projects
    projects.check(ADMIN, local.identity.authenticate_password('admin', 'a secret').project_id)
    with pytest.raises(Invalid, match='^Project ID nothing is not a valid project.$'):
        projects.check(ADMIN, 'nothing')
    projects.check(MEMBER, 'nothing')


def test_no_id_is_longer_than_the_store_keeps(local):
    for context in (ADMIN, MEMBER):
        with pytest.raises(Invalid):
            local.cloud.projects.check(context, 'x' * 256)


def test_without_identity_every_project_is_known(service):
    service.cloud.projects.check(ADMIN, 'nothing')
