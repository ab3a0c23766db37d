"""Tokens of a real Keystone: scopes, roles, access rules, expired tokens with a service token, and a cache."""

import time
from datetime import timedelta

import pytest
import webob
from keystoneauth1.identity import v3

from computeapi.clock import utcnow
from computeapi.main import Service
from computeapi.pipeline import load
from tests.api.test_keystone import memcached  # noqa: F401
from tests.backends.implementations import ADMIN, ALICE, BOB, READER
from tests.neighbours import cloud

FLAVORS = 'GET /v2.1/flavors'
NEW_FLAVOR = {'flavor': {'id': 'x', 'name': 'x', 'ram': 64, 'vcpus': 1, 'disk': 1}}
OPTIONS = '[keystone_authtoken]\nservice_token_roles_required = true\n'


@pytest.fixture
def running():
    return cloud.running()


@pytest.fixture
def compute(running, store):
    """compute(request, token, json, header=value): sends a request to the compute API."""
    return api(running, store)


def api(running, store, options=OPTIONS):
    conf = running.conf(text=options, identity='keystone')
    app = load(Service(conf, store), 'compute')

    def ask(request, token, json=None, **headers):
        method, path = request.split()
        headers = {name.replace('_', '-'): value for name, value in headers.items()} | {'X-Auth-Token': token}
        body = {} if json is None else {'json': json}
        return webob.Request.blank(path, method=method, headers=headers, **body).get_response(app)

    return ask


def token(running, context):
    return running.context(context).auth_token


def own_token(running):
    """A token of this service."""
    return running.auth('nova', project_name='service').get_token(running.session)


def scoped(running, context, **scope):
    """A token of the caller's with another scope than its project."""
    name = running.user(context)[1]
    return v3.Password(
        running.url, username=name, password=running.password, user_domain_id='default', **scope
    ).get_token(running.session)


@pytest.fixture
def credential(running):
    """credential(...): creates an application credential of ALICE's and logs in with it; returns the token."""
    made = []
    user_id = running.user(ALICE)[0]
    alice = running.password_of(ALICE)

    def make(**kwargs):
        body = {'application_credential': {'name': f'one {len(made)}', **kwargs}}
        url = f'{running.url}/users/{user_id}/application_credentials'
        found = running.session.post(url, json=body, auth=alice).json()['application_credential']
        made.append(f'{url}/{found["id"]}')
        login = v3.ApplicationCredential(
            running.url, application_credential_id=found['id'], application_credential_secret=found['secret']
        )
        return login.get_token(running.session)

    yield make
    for url in made:
        running.session.delete(url, auth=alice)


def test_roles_decide(running, compute):
    assert compute(FLAVORS, token(running, READER)).status_code == 200
    group = {'server_group': {'name': 'g', 'policies': ['affinity']}}
    assert compute('POST /v2.1/os-server-groups', token(running, READER), group).status_code == 403
    assert compute('POST /v2.1/os-server-groups', token(running, ALICE), group).status_code == 200
    assert compute('POST /v2.1/flavors', token(running, ALICE), NEW_FLAVOR).status_code == 403
    assert compute('POST /v2.1/flavors', token(running, ADMIN), NEW_FLAVOR).status_code == 200


def test_a_token_for_no_project_has_nothing(running, compute):
    unscoped = scoped(running, ALICE, unscoped=True)
    assert compute('GET /v2.1/servers', unscoped).status_code == 403


def test_a_token_for_the_system_or_a_domain_is_none_for_a_project(running, compute):
    roles, user_id = running.roles, running.user(ALICE)[0]
    for place, scope in (('system', {'system_scope': 'all'}), ('domains/default', {'domain_id': 'default'})):
        path = f'/{place}/users/{user_id}/roles/{roles["member"]}'
        running.identity('PUT', path)
        try:
            other = scoped(running, ALICE, **scope)
            assert compute('GET /v2.1/servers', other).status_code == 403
            # Nor with a service token in addition.
            assert compute('GET /v2.1/servers', other, X_Service_Token=own_token(running)).status_code == 403
        finally:
            running.identity('DELETE', path)


def test_a_revoked_token_is_nobodys(running, compute):
    revoked = running.password_of(ALICE).get_token(running.session)
    running.session.delete(f'{running.url}/auth/tokens', headers={'X-Subject-Token': revoked})
    answer = compute(FLAVORS, revoked)
    assert answer.status_code == 401 and answer.json['error']['code'] == 401


def test_a_token_that_ended_is_good_with_that_of_a_service(running, compute, credential):
    # A login with bcrypt must fit in, even on a busy machine.
    end = utcnow() + timedelta(seconds=12)
    ended = credential(expires_at=f'{end.isoformat()}Z')
    assert compute(FLAVORS, ended).status_code == 200
    time.sleep(max(0, (end - utcnow()).total_seconds()) + 1)
    assert compute(FLAVORS, ended).status_code == 401
    assert compute(FLAVORS, ended, X_Service_Token=token(running, BOB)).status_code == 401
    assert compute(FLAVORS, ended, X_Service_Token='junk').status_code == 401
    assert compute(FLAVORS, ended, X_Service_Token=own_token(running)).status_code == 200


def test_whose_token_it_is_besides_does_not_matter_to_rights(running, compute):
    beside = {'X_Service_Token': own_token(running)}
    assert compute(FLAVORS, token(running, ALICE), **beside).status_code == 200
    assert compute('POST /v2.1/flavors', token(running, ALICE), NEW_FLAVOR, **beside).status_code == 403


@pytest.mark.usefixtures('compute_in_catalog')
def test_an_application_credential_for_some_requests_is_for_no_others(running, compute, credential):
    rule = {'service': 'compute', 'method': 'GET', 'path': '/v2.1/flavors'}
    limited = credential(access_rules=[rule])
    assert compute(FLAVORS, limited).status_code == 200
    assert compute('GET /v2.1/servers', limited).status_code == 401


def test_projects_are_looked_up(running, compute):
    admin, apples = token(running, ADMIN), running.project_id('apples')
    assert compute(f'GET /v2.1/os-quota-sets/{apples}', admin).status_code == 200
    assert compute('GET /v2.1/os-quota-sets/apples', admin).status_code == 400
    assert compute(f'GET /v2.1/os-quota-sets/{apples}', token(running, ALICE)).status_code == 200


def test_tokens_are_cached_for_all_processes(running, store, memcached, credential):
    cached = OPTIONS + f'memcached_servers = {memcached}\n'
    alice = running.password_of(ALICE).get_token(running.session)
    assert api(running, store, cached)(FLAVORS, alice).status_code == 200
    running.session.delete(f'{running.url}/auth/tokens', headers={'X-Subject-Token': alice})
    assert api(running, store, cached)(FLAVORS, alice).status_code == 200
    assert api(running, store)(FLAVORS, alice).status_code == 401
