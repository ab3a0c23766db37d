"""Trusts, and the tokens of trustees."""

import pytest

from computeapi import errors
from computeapi.backends.identity.local import trusts
from computeapi.backends.identity.local.tokens import Login
from tests.backends.test_volume import together
from tests.standalone.identity.conftest import UNKNOWN, proof

TRUSTS = '/v3/OS-TRUST/trusts'


@pytest.fixture
def eve(make):
    """A user without any role, to whom demo gives trusts."""
    return make('users', name='eve', password='eve-secret')['id']


@pytest.fixture
def facts(eve, id_of):
    return {
        'trustor_user_id': id_of('users', 'demo'),
        'trustee_user_id': eve,
        'project_id': id_of('projects', 'demo'),
        'roles': [{'name': 'member'}],
        'impersonation': True,
    }


@pytest.fixture
def give(ask, demo, facts):
    """give(impersonation=False) -> the trust that demo gave eve."""

    def give(expect=201, by=demo, **others):
        return ask(f'POST {TRUSTS}', {'trust': facts | others}, by=by, expect=expect).json.get('trust')

    return give


@pytest.fixture
def act(ask):
    """act(trust) -> the response to eve, or to another user, who asks for a token scoped to it."""

    def act(trust, name='eve', expect=201):
        body = proof(name)
        body['auth']['scope'] = {'OS-TRUST:trust': {'id': trust['id']}}
        return ask('POST /v3/auth/tokens', body, expect=expect)

    return act


@pytest.fixture
def token(act):
    return lambda trust: act(trust).headers['X-Subject-Token']


def test_the_life_of_a_trust(ask, admin, demo, log_in, give, facts, id_of):
    trust = give()
    assert {**trust, 'roles': [{'name': role['name']} for role in trust['roles']]}.items() >= facts.items()
    assert (trust['expires_at'], trust['remaining_uses'], trust['deleted_at']) == (None, None, None)
    path, member = f'{TRUSTS}/{trust["id"]}', id_of('roles', 'member')
    assert trust['links']['self'].endswith(path)
    for who in (demo, log_in('eve'), admin):
        assert ask(f'GET {path}', by=who).json['trust'] == trust
    listed = ask(f'GET {path}/roles', by=demo).json
    assert (listed['roles'], listed['links']) == (trust['roles'], trust['roles_links'])
    assert ask(f'GET {path}/roles/{member}', by=demo).json['role'] == trust['roles'][0]
    ask(f'HEAD {path}/roles/{member}', by=demo)
    ask(f'GET {path}/roles/{id_of("roles", "reader")}', by=demo, expect=404)
    ask(f'DELETE {path}', by=log_in('eve'), expect=403)
    ask(f'DELETE {path}', by=demo, expect=204)
    for request in (f'GET {path}', f'DELETE {path}', f'GET {path}/roles'):
        ask(request, by=demo, expect=404)


def test_who_sees_which_trusts(ask, admin, demo, log_in, give, facts, make):
    trust, eve = give(), log_in('eve')
    make('users', name='mallory', password='mallory-secret')
    mallory = log_in('mallory')
    listed = {name: value for name, value in trust.items() if name not in ('roles', 'roles_links')}
    assert ask(f'GET {TRUSTS}', by=admin).json['trusts'] == [listed]
    for who, name in ((demo, 'trustor_user_id'), (eve, 'trustee_user_id')):
        assert ask(f'GET {TRUSTS}?{name}={facts[name]}', by=who).json['trusts'] == [listed]
        ask(f'GET {TRUSTS}?{name}={facts[name]}', by=mallory, expect=403)
        ask(f'GET {TRUSTS}', by=who, expect=403)
    ask(f'GET {TRUSTS}/{trust["id"]}', by=mallory, expect=403)


@pytest.mark.parametrize('impersonation', [True, False])
def test_who_acts_by_a_trust_has_its_roles(ask, give, act, facts, impersonation):
    """eve has no roles of her own; demo's role `member` implies another."""
    trust = give(impersonation=impersonation)
    answer = act(trust)
    shown = answer.json['token']
    user = facts['trustor_user_id'] if impersonation else facts['trustee_user_id']
    assert (shown['user']['id'], shown['project']['id']) == (user, facts['project_id'])
    assert [role['name'] for role in shown['roles']] == ['member', 'reader']
    assert shown['OS-TRUST:trust'] == {
        'id': trust['id'],
        'impersonation': impersonation,
        'trustor_user': {'id': facts['trustor_user_id']},
        'trustee_user': {'id': facts['trustee_user_id']},
    }
    token = answer.headers['X-Subject-Token']
    again = ask('GET /v3/auth/tokens', by=token, X_Subject_Token=token).json['token']
    assert again == shown


def test_a_trust_is_only_for_its_trustee(ask, demo, give, act, make):
    trust = give()
    act(trust, 'demo', expect=403)
    act({'id': UNKNOWN}, expect=401)
    ask(f'DELETE {TRUSTS}/{trust["id"]}', by=demo, expect=204)
    act(trust, expect=401)


def test_a_trust_that_is_taken_back_ends_its_tokens(ask, demo, give, token):
    trust = give()
    acting = token(trust)
    ask('GET /v3/auth/projects', by=acting)
    ask(f'DELETE {TRUSTS}/{trust["id"]}', by=demo, expect=204)
    ask('GET /v3/auth/projects', by=acting, expect=401)


def test_who_acts_by_a_trust_may_end_that_one(ask, give, token):
    trust, other = give(), give()
    acting = token(trust)
    ask(f'DELETE {TRUSTS}/{other["id"]}', by=acting, expect=403)
    ask(f'DELETE {TRUSTS}/{trust["id"]}', by=acting, expect=204)


def test_a_trust_is_worth_nothing_without_one_of_its_roles(ask, admin, give, act, token, facts, id_of):
    granted = f'/v3/projects/{facts["project_id"]}/users/{facts["trustor_user_id"]}/roles/{id_of("roles", "manager")}'
    ask(f'PUT {granted}', by=admin, expect=204)
    trust = give(roles=[{'name': 'member'}, {'name': 'manager'}])
    acting = token(trust)
    ask(f'DELETE {granted}', by=admin, expect=204)
    ask('GET /v3/auth/catalog', by=acting, expect=401)
    act(trust, expect=401)


def test_a_trust_is_worth_what_the_trustor_has(ask, admin, give, act, token, facts, id_of):
    trust = give(impersonation=False)
    acting = token(trust)
    path = f'/v3/projects/{facts["project_id"]}/users/{facts["trustor_user_id"]}/roles'
    ask(f'PUT {path}/{id_of("roles", "reader")}', by=admin, expect=204)
    ask(f'DELETE {path}/{id_of("roles", "member")}', by=admin, expect=204)
    ask('GET /v3/auth/catalog', by=acting, expect=401)
    act(trust, expect=401)


@pytest.mark.parametrize('party', ['trustor_user_id', 'trustee_user_id'])
@pytest.mark.parametrize('impersonation', [True, False])
def test_both_must_be_enabled(ask, admin, give, act, token, facts, party, impersonation):
    trust = give(impersonation=impersonation)
    acting = token(trust)
    ask(f'PATCH /v3/users/{facts[party]}', {'user': {'enabled': False}}, by=admin)
    ask('GET /v3/auth/catalog', by=acting, expect=401)
    act(trust, expect=401)


@pytest.mark.parametrize('party', ['trustor_user_id', 'trustee_user_id'])
@pytest.mark.parametrize('impersonation', [True, False])
def test_a_new_password_ends_what_either_party_began(ask, admin, give, token, facts, party, impersonation):
    trust = give(impersonation=impersonation)
    acting = token(trust)
    ask(f'PATCH /v3/users/{facts[party]}', {'user': {'password': 'another-secret'}}, by=admin)
    ask('GET /v3/auth/catalog', by=acting, expect=401)


@pytest.mark.parametrize('impersonation', [True, False])
def test_a_domain_that_is_enabled_again_lets_nobody_go_on(ask, admin, give, facts, make, impersonation):
    domain = make('domains', name='elsewhere')
    ann = make('users', name='ann', password='ann-secret', domain_id=domain['id'])
    body = proof('ann', domain={'id': domain['id']})
    trust = give(trustee_user_id=ann['id'], impersonation=impersonation)
    body['auth']['scope'] = {'OS-TRUST:trust': {'id': trust['id']}}
    acting = ask('POST /v3/auth/tokens', body, expect=201).headers['X-Subject-Token']
    for enabled in (False, True):
        ask(f'PATCH /v3/domains/{domain["id"]}', {'domain': {'enabled': enabled}}, by=admin)
        ask('GET /v3/auth/catalog', by=acting, expect=401)


def test_a_trust_is_good_for_so_many_tokens(ask, demo, give, act, token):
    trust = give(remaining_uses=2)
    first = token(trust)
    assert ask(f'GET {TRUSTS}/{trust["id"]}', by=demo).json['trust']['remaining_uses'] == 1
    act(trust)
    act(trust, expect=401)
    ask(f'GET {TRUSTS}/{trust["id"]}', by=demo, expect=404)
    ask('GET /v3/auth/catalog', by=first)


def test_the_last_use_of_a_trust_is_had_once(identity, give):
    scope = {'OS-TRUST:trust': {'id': give(remaining_uses=1)['id']}}
    [user] = identity.users.list(name='eve')
    refused = together(*[lambda: identity.tokens.issue(Login(user, ('password',)), scope)] * 6)
    assert refused == [errors.NotAuthenticated] * 5


def test_the_last_trust_that_a_user_may_give_is_given_once(demo, identity, facts, monkeypatch):
    monkeypatch.setattr(trusts, 'MAX_TRUSTS', 2)
    token, given = identity.tokens.get(demo), (facts['trustee_user_id'], facts['project_id'], facts['roles'])
    refused = together(*[lambda: identity.trusts.create(token, *given, impersonation=True)] * 6)
    assert refused == [errors.Forbidden] * 4


def test_who_acts_by_a_trust_does_not_log_the_trustor_out(ask, demo, identity, give, token, monkeypatch):
    monkeypatch.setattr(identity.tokens, 'most', 2)
    trust = give()
    acting = [token(trust) for _ in range(4)]
    ask('GET /v3/auth/catalog', by=demo)
    ask('GET /v3/auth/catalog', by=acting[-1])
    ask('GET /v3/auth/catalog', by=acting[0], expect=401)


def test_a_trust_expires(ask, demo, identity, give, act, facts, monkeypatch):
    trust = give(expires_at='2100-01-01T00:00:00Z')
    assert trust['expires_at'] == '2100-01-01T00:00:00.000000Z'
    soon = identity.tokens.clock().replace(microsecond=0) + identity.tokens.lifetime / 2
    short = give(expires_at=soon.isoformat())
    assert act(short).json['token']['expires_at'] == short['expires_at']
    late = soon + identity.tokens.lifetime
    monkeypatch.setattr(identity.trusts, 'clock', lambda: late)
    assert [
        each['id'] for each in ask(f'GET {TRUSTS}?trustor_user_id={facts["trustor_user_id"]}', by=demo).json['trusts']
    ] == [trust['id']]
    ask(f'GET {TRUSTS}/{short["id"]}', by=demo, expect=404)
    monkeypatch.setattr(identity.tokens, 'clock', lambda: late)
    act(short, expect=401)


def test_who_acts_by_a_trust_sees_no_secrets(ask, demo, give, token, facts):
    ec2 = f'/v3/users/{facts["trustor_user_id"]}/credentials/OS-EC2'
    keys = ask(f'POST {ec2}', {'tenant_id': facts['project_id']}, by=demo, expect=201).json['credential']
    [kept] = ask('GET /v3/credentials', by=demo).json['credentials']
    path = ec2.removesuffix('/credentials/OS-EC2')
    body = {'application_credential': {'name': 'x', 'access_rules': [{'service': 'x', 'method': 'GET', 'path': '/'}]}}
    made = ask(f'POST {path}/application_credentials', body, by=demo, expect=201).json['application_credential']
    programs, rules = f'{path}/application_credentials', f'{path}/access_rules'
    others = (programs, f'{programs}/{made["id"]}', rules, f'{rules}/{made["access_rules"][0]["id"]}')
    acting = token(give())
    for path in (ec2, f'{ec2}/{keys["access"]}', '/v3/credentials', f'/v3/credentials/{kept["id"]}', *others):
        ask(f'GET {path}', by=demo)
        ask(f'GET {path}', by=acting, expect=403)


def test_who_acts_by_a_trust_cannot_hand_it_on(ask, give, token, facts):
    acting = token(give())
    give(by=acting, expect=403)
    path = f'/v3/users/{facts["trustor_user_id"]}'
    ask(f'POST {path}/application_credentials', {'application_credential': {'name': 'x'}}, by=acting, expect=403)
    ask(f'POST {path}/credentials/OS-EC2', {'tenant_id': facts['project_id']}, by=acting, expect=403)
    exchange = {'auth': {'identity': {'methods': ['token'], 'token': {'id': acting}}}}
    ask('POST /v3/auth/tokens', exchange, expect=403)


@pytest.mark.parametrize(
    ('more', 'expect'),
    [({}, 403), ({'unrestricted': True}, 201), ({'unrestricted': True, 'access_rules': 'any'}, 403)],
    ids=['restricted', 'unrestricted', 'bound'],
)
def test_a_trust_by_an_application_credential(ask, demo, give, facts, more, expect):
    if 'access_rules' in more:
        rule = {'service': 'identity', 'method': 'POST', 'path': TRUSTS}
        more = more | {'access_rules': [rule]}
    body = {'application_credential': {'name': 'x', 'secret': 'x', **more}}
    path = f'POST /v3/users/{facts["trustor_user_id"]}/application_credentials'
    made = ask(path, body, by=demo, expect=201).json['application_credential']
    login = {'methods': ['application_credential'], 'application_credential': {'id': made['id'], 'secret': 'x'}}
    token = ask('POST /v3/auth/tokens', {'auth': {'identity': login}}, expect=201).headers['X-Subject-Token']
    give(by=token, expect=expect)


REFUSED = {
    'no roles': ({'roles': []}, 403),
    'a role that is not held': ({'roles': [{'name': 'admin'}]}, 404),
    'no trustee': ({'trustee_user_id': UNKNOWN}, 404),
    'no project': ({'project_id': None}, 404),
    'a project elsewhere': ({'project_id': UNKNOWN}, 404),
    "another's": ({'trustor_user_id': UNKNOWN}, 403),
    'no moment': ({'expires_at': 'bad'}, 400),
    'the past': ({'expires_at': '2020-01-01T00:00:00Z'}, 400),
    'no use': ({'remaining_uses': 0}, 400),
    'to be handed on': ({'allow_redelegation': True}, 400),
}


@pytest.mark.parametrize('case', REFUSED)
def test_a_trust_that_is_refused(give, case):
    others, status = REFUSED[case]
    give(expect=status, **others)


def test_a_user_gives_only_so_many_trusts(give, monkeypatch):
    monkeypatch.setattr(trusts, 'MAX_TRUSTS', 1)
    give()
    give(expect=403)


def test_a_trust_that_is_used_up_counts_as_long_as_somebody_acts_by_it(ask, give, token, monkeypatch):
    monkeypatch.setattr(trusts, 'MAX_TRUSTS', 1)
    spent = token(give(remaining_uses=1))
    give(expect=403)
    ask('DELETE /v3/auth/tokens', X_Subject_Token=spent, by=spent, expect=204)
    give()
