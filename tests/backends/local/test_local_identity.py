"""How the built-in identity service issues and revokes tokens, and what it stores."""

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import datetime, timedelta

import pytest
import sqlalchemy as sa

from computeapi import errors
from computeapi.backends.identity.local import SYSTEM, LocalIdentity, Target
from computeapi.backends.identity.local.passwords import Passwords
from computeapi.clock import utcnow
from computeapi.db import identity as queries
from computeapi.db.tables import identity as tables
from tests.backends.implementations import DEFAULT


class Clock:
    """The current time, until it is moved."""

    def __init__(self):
        self.moved = timedelta()

    def __call__(self):
        return utcnow() + self.moved

    def forward(self, **duration):
        self.moved += timedelta(**duration)


class Cloud:
    """An identity service with its first users, and shortcuts for frequent operations."""

    def __init__(self, store, cache_seconds, **kwargs):
        self.clock = Clock()
        self.identity = LocalIdentity(store, bcrypt_cost=4, cache_seconds=cache_seconds, clock=self.clock, **kwargs)
        self.identity.populate('admin-secret', 'demo-secret')

    def user(self, name):
        [user] = self.identity.users.list(name=name)
        return user

    def project(self, name):
        [project] = self.identity.projects.list(name=name)
        return project

    def role(self, name):
        [role] = self.identity.roles.list(name=name)
        return role

    def login(self, name='demo', password='demo-secret'):
        return self.identity.logins.with_password({'name': name, 'domain': DEFAULT}, password)

    def token(self, name='demo', password='demo-secret', scope=None):
        return self.identity.tokens.issue(self.login(name, password), scope)

    def grant(self, user, role, target):
        self.identity.grants.add(self.user(user).id, target, self.role(role).id)

    def is_live(self, token):
        try:
            self.identity.authenticate(token)
        except errors.NotAuthenticated:
            return False
        return True


@pytest.fixture
def cloud(store):
    return Cloud(store, cache_seconds=0)


@pytest.fixture
def remembering(store):
    return Cloud(store, cache_seconds=5)


# Initial state of a cloud


def test_populate_makes_what_a_cloud_starts_with(cloud):
    assert [domain.name for domain in cloud.identity.domains.list()] == ['Default']
    assert [project.name for project in cloud.identity.projects.list()] == ['admin', 'demo', 'service']
    assert [role.name for role in cloud.identity.roles.list()] == ['admin', 'manager', 'member', 'reader', 'service']
    ids = [record.id for kind in (cloud.identity.projects, cloud.identity.users) for record in kind.list()]
    assert all(len(each) == 32 and int(each, 16) for each in ids)


def test_populate_again_changes_nothing(cloud):
    cloud.identity.users.update(cloud.user('admin').id, password='changed')
    before = [row.id for row in cloud.identity.users.list()]
    cloud.identity.populate('admin-secret', 'demo-secret')
    assert [row.id for row in cloud.identity.users.list()] == before
    assert cloud.identity.authenticate_password('admin', 'changed').is_admin


def test_a_demo_user_without_a_password_cannot_log_in(store):
    identity = LocalIdentity(store, bcrypt_cost=4)
    identity.populate('admin-secret')
    for password in ('', 'None', 'admin-secret'):
        with pytest.raises(errors.NotAuthenticated):
            identity.authenticate_password('demo', password)


# Passwords


def test_passwords_of_any_length_count_to_the_last_character(cloud):
    cloud.identity.users.create('long', password='x' * 500 + 'a\0b')
    assert cloud.login('long', 'x' * 500 + 'a\0b')
    for wrong in ('x' * 500 + 'a\0c', 'x' * 500, 'x' * 72):
        with pytest.raises(errors.NotAuthenticated):
            cloud.login('long', wrong)


def test_names_of_users_are_told_apart_by_their_case(cloud):
    with pytest.raises(errors.NotAuthenticated):
        cloud.login('DEMO')


def test_an_unknown_user_costs_a_check_of_the_same_strength(cloud):
    passwords = cloud.identity.users.passwords
    assert passwords.nobody[:7] == passwords.hash('x').encode()[:7] == b'$2b$04$'
    assert not passwords.matches('x', None)


def test_a_password_is_hashed_anew_at_a_login(cloud, store):
    other = LocalIdentity(store, bcrypt_cost=5)
    token = cloud.token()
    with pytest.raises(errors.NotAuthenticated):
        other.authenticate_password('demo', 'wrong')
    assert cloud.user('demo').password_hash.startswith('$2b$04$')
    login = other.logins.with_password({'name': 'demo', 'domain': DEFAULT}, 'demo-secret')
    assert cloud.is_live(other.tokens.issue(login))
    assert cloud.user('demo').password_hash.startswith('$2b$05$')
    assert cloud.login() and cloud.is_live(token)


def test_a_password_is_hashed_anew_at_two_logins_at_once(cloud, monkeypatch):
    dearer, others = Passwords(5), []
    monkeypatch.setattr(cloud.identity.users, 'passwords', dearer)

    def later(password):
        monkeypatch.undo()
        monkeypatch.setattr(cloud.identity.users, 'passwords', dearer)
        others.append(cloud.token())
        return dearer.hash(password)

    monkeypatch.setattr(dearer, 'hash', later)
    assert all(map(cloud.is_live, [cloud.token(), *others]))
    assert len(others) == 1


def test_a_change_of_the_password_is_of_the_one_that_was_proved(cloud, monkeypatch):
    users, matches = cloud.identity.users, cloud.identity.users.passwords.matches

    def later(*facts):
        found = matches(*facts)
        users.update(cloud.user('demo').id, password='of the administrator')
        return found

    monkeypatch.setattr(users.passwords, 'matches', later)
    with pytest.raises(errors.NotAuthenticated):
        users.change_password(cloud.user('demo').id, 'demo-secret', 'of a thief')
    monkeypatch.undo()
    assert cloud.login('demo', 'of the administrator')


def test_secrets_are_stored_as_hashes_only(cloud, store):
    token = cloud.token()
    row, secret = cloud.identity.application_credentials.create(cloud.identity.tokens.get(token), 'robot')
    with store.read() as connection:
        for table in (tables.users, tables.tokens, tables.application_credentials):
            text = repr(connection.execute(sa.select(table)).all())
            assert not any(each in text for each in (token, secret, 'demo-secret', 'admin-secret'))


def test_a_user_may_change_its_password_and_must_log_in_again(cloud):
    demo, token = cloud.user('demo'), cloud.token()
    with pytest.raises(errors.NotAuthenticated):
        cloud.identity.users.change_password(demo.id, 'wrong', 'new')
    assert cloud.is_live(token)
    cloud.identity.users.change_password(demo.id, 'demo-secret', 'new')
    assert not cloud.is_live(token)
    assert cloud.token(password='new')
    with pytest.raises(errors.NotAuthenticated):
        cloud.token()


def test_a_locked_password_is_for_administrators_to_change(cloud):
    demo = cloud.user('demo')
    cloud.identity.users.update(demo.id, options={'lock_password': True})
    with pytest.raises(errors.Forbidden):
        cloud.identity.users.change_password(demo.id, 'demo-secret', 'new')
    cloud.identity.users.update(demo.id, password='new')
    assert cloud.login(password='new')


# Scope


def test_scopes(cloud):
    cloud.grant('admin', 'reader', Target('project', cloud.project('demo').id))

    def context(scope):
        return cloud.identity.authenticate(cloud.token('admin', 'admin-secret', scope))

    for project in ({'id': cloud.project('demo').id}, {'name': 'demo', 'domain': {'name': 'Default'}}):
        scoped = context({'project': project})
        assert (scoped.project_name, scoped.roles, scoped.is_admin) == ('demo', {'reader'}, False)
    assert context({'domain': {'name': 'Default'}}).domain_id == 'default'
    assert context({'system': {'all': True}}).system_scope == 'all'
    unscoped = context({'unscoped': {}})
    assert (unscoped.project_id, unscoped.roles, unscoped.is_admin) == (None, frozenset(), False)
    assert context(None).project_name == 'admin'


@pytest.mark.parametrize(
    'scope',
    [
        {'project': {'name': 'admin', 'domain': DEFAULT}},
        {'project': {'name': 'nowhere', 'domain': DEFAULT}},
        {'project': {'name': 'demo', 'domain': {'id': 'elsewhere'}}},
        {'project': {'id': 'nowhere'}},
        {'domain': DEFAULT},
        {'system': {'all': True}},
    ],
)
def test_no_scope_without_a_role_there(cloud, scope):
    with pytest.raises(errors.NotAuthenticated):
        cloud.token(scope=scope)


def test_a_default_project_without_a_role_is_not_entered(cloud):
    cloud.identity.users.update(cloud.user('demo').id, default_project_id=cloud.project('admin').id)
    assert cloud.identity.authenticate(cloud.token()).project_id is None


def test_a_token_can_be_exchanged_but_not_prolonged(cloud):
    first = cloud.token(scope={'unscoped': {}})
    cloud.clock.forward(hours=1)
    login = cloud.identity.logins.with_token(first)
    second = cloud.identity.tokens.issue(login, {'project': {'name': 'demo', 'domain': DEFAULT}})
    old, new = cloud.identity.tokens.get(first), cloud.identity.tokens.get(second)
    assert new.expires_at == old.expires_at
    assert new.methods == ['password', 'token']
    assert new.audit_ids[1:] == old.audit_ids
    assert cloud.identity.authenticate(second).project_name == 'demo'


def test_two_proofs_must_be_of_one_user(cloud):
    login = cloud.login() + cloud.identity.logins.with_token(cloud.token())
    assert login.methods == ('password', 'token')
    with pytest.raises(errors.NotAuthenticated):
        cloud.login() + cloud.login('admin', 'admin-secret')


# Expiry and revocation of tokens


def test_tokens_expire_and_are_purged(cloud, store):
    old = cloud.token()
    cloud.clock.forward(hours=23, minutes=59)
    assert cloud.is_live(old)
    cloud.clock.forward(minutes=2)
    assert not cloud.is_live(old)
    cloud.token()
    with store.read() as connection:
        assert connection.execute(sa.select(sa.func.count()).select_from(tables.tokens)).scalar() == 1


def test_many_log_in_at_once_while_tokens_expire(cloud):
    """Logins purge expired tokens of others; they must not deadlock."""
    tokens = cloud.identity.tokens
    tokens.lifetime = timedelta(microseconds=1)
    login = cloud.login()

    def log_in(_):
        for _ in range(5):
            tokens.issue(login)
            cloud.identity.users.update(login.user.id, enabled=True)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(log_in, range(4)))
    tokens.purge(cloud.clock())
    with tokens.store.read() as connection:
        assert connection.execute(sa.select(tables.tokens)).all() == []


def test_one_token_is_revoked_alone(cloud):
    one, other = cloud.token(), cloud.token()
    cloud.identity.tokens.revoke(one)
    assert (cloud.is_live(one), cloud.is_live(other)) == (False, True)


REVOCATIONS = {
    'user disabled': lambda cloud: cloud.identity.users.update(cloud.user('demo').id, enabled=False),
    'user deleted': lambda cloud: cloud.identity.users.delete(cloud.user('demo').id),
    'password set': lambda cloud: cloud.identity.users.update(cloud.user('demo').id, password='new'),
    'project disabled': lambda cloud: cloud.identity.projects.update(cloud.project('demo').id, enabled=False),
    'project deleted': lambda cloud: cloud.identity.projects.delete(cloud.project('demo').id),
    'grant removed': lambda cloud: cloud.identity.grants.remove(
        cloud.user('demo').id, Target('project', cloud.project('demo').id), cloud.role('member').id
    ),
}


@pytest.mark.parametrize('revocation', REVOCATIONS)
def test_what_takes_a_right_away_revokes_tokens_at_once(remembering, revocation):
    cloud = remembering
    demo, admin = cloud.token(), cloud.token('admin', 'admin-secret')
    assert cloud.is_live(demo)
    REVOCATIONS[revocation](cloud)
    assert (cloud.is_live(demo), cloud.is_live(admin)) == (False, True)


@pytest.mark.parametrize('revocation', REVOCATIONS)
def test_what_takes_a_right_away_stops_the_login_that_saw_it(cloud, revocation):
    login = cloud.login()
    REVOCATIONS[revocation](cloud)
    with pytest.raises(errors.NotAuthenticated):
        cloud.identity.tokens.issue(login, {'project': {'name': 'demo', 'domain': DEFAULT}})


def test_a_removed_grant_leaves_tokens_for_other_targets(cloud):
    target = Target('project', cloud.project('service').id)
    cloud.grant('demo', 'reader', target)
    there, here = cloud.token(scope={'project': {'id': target.id}}), cloud.token()
    cloud.identity.grants.remove(cloud.user('demo').id, target, cloud.role('reader').id)
    assert (cloud.is_live(there), cloud.is_live(here)) == (False, True)


def test_grants_on_the_system_and_domain_revoke_their_tokens_too(cloud):
    for target, scope in ((SYSTEM, {'system': {'all': True}}), (Target('domain', 'default'), {'domain': DEFAULT})):
        cloud.grant('demo', 'reader', target)
        token = cloud.token(scope=scope)
        cloud.identity.grants.remove(cloud.user('demo').id, target, cloud.role('reader').id)
        assert not cloud.is_live(token)


# Cost of authentication


def test_a_token_and_its_roles_are_looked_up_with_two_queries(cloud, asked):
    token = cloud.token()
    asked.clear()
    cloud.identity.authenticate(token)
    assert len(asked) == 2


def test_a_caller_is_remembered_for_some_seconds(remembering, asked):
    token = remembering.token()
    remembering.identity.authenticate(token)
    remembering.identity.authenticate_password('demo', 'demo-secret')
    asked.clear()
    remembering.identity.authenticate(token)
    remembering.identity.authenticate_password('demo', 'demo-secret')
    assert not asked
    remembering.clock.forward(seconds=6)
    remembering.identity.authenticate(token)
    assert len(asked) == 2


def test_what_another_process_revokes_is_forgotten_after_some_seconds(remembering, store):
    token = remembering.token()
    assert remembering.is_live(token)
    LocalIdentity(store, bcrypt_cost=4).tokens.revoke(token)
    remembering.clock.forward(seconds=6)
    assert not remembering.is_live(token)


def test_a_remembered_token_expires_all_the_same(remembering):
    token = remembering.token()
    remembering.clock.forward(hours=23, minutes=59, seconds=58)
    assert remembering.is_live(token)
    remembering.clock.forward(seconds=3)
    assert not remembering.is_live(token)


def test_an_answer_from_before_a_change_is_not_remembered(remembering):
    recent, context = remembering.identity.recent, remembering.identity.authenticate(remembering.token())

    def look_up():
        recent.forget()
        return context, datetime.max

    assert recent.recall('key', look_up) == context
    assert 'key' not in recent.entries


def test_memory_is_bounded(remembering):
    recent = remembering.identity.recent
    context = remembering.identity.authenticate(remembering.token())
    for number in range(recent.SIZE + 1):
        recent.recall(str(number), lambda: (context, datetime.max))
    assert len(recent.entries) <= recent.SIZE


# Roles


def test_built_in_roles_are_immutable(cloud):
    admin = cloud.role('admin')
    for change in (
        lambda: cloud.identity.roles.delete(admin.id),
        lambda: cloud.identity.roles.update(admin.id, name='x'),
    ):
        with pytest.raises(errors.Forbidden):
            change()


def test_no_role_may_look_like_another(cloud):
    operator = cloud.identity.roles.create('operator')
    for change in (
        lambda: cloud.identity.roles.create('Admin'),
        lambda: cloud.identity.roles.update(operator.id, name='ADMIN'),
    ):
        with pytest.raises(errors.Conflict):
            change()
    assert cloud.identity.roles.update(operator.id, name='Operator').name == 'Operator'


def test_a_deleted_role_is_taken_from_its_holders(cloud):
    role = cloud.identity.roles.create('operator')
    cloud.grant('demo', 'operator', Target('project', cloud.project('demo').id))
    token = cloud.token()
    assert 'operator' in cloud.identity.authenticate(token).roles
    cloud.identity.roles.delete(role.id)
    assert cloud.identity.authenticate(token).roles == {'member', 'reader'}


def test_grants_name_what_is_missing(cloud):
    demo, member = cloud.user('demo').id, cloud.role('member').id
    project = Target('project', cloud.project('demo').id)
    for user, target, role, noun in (
        ('nobody', project, member, 'user'),
        (demo, Target('project', 'none'), member, 'project'),
        (demo, Target('domain', 'none'), member, 'domain'),
        (demo, project, 'none', 'role'),
    ):
        with pytest.raises(errors.NotFound, match=f'Could not find {noun}: '):
            cloud.identity.grants.add(user, target, role)
    cloud.identity.grants.add(demo, project, member)
    assert [role.name for role in cloud.identity.grants.roles(demo, project)] == ['member']
    with pytest.raises(errors.NotFound):
        cloud.identity.grants.remove(demo, project, cloud.role('reader').id)


def test_assignments_are_one_list_however_many_there_are(cloud, asked):
    def queries():
        asked.clear()
        cloud.identity.grants.assignments(effective=True)
        return len(asked)

    before = queries()
    for number in range(5):
        user = cloud.identity.users.create(f'user-{number}')
        cloud.identity.grants.add(user.id, Target('project', cloud.project('demo').id), cloud.role('member').id)
    assert queries() == before


# Application credentials


@pytest.fixture
def credential(cloud):
    """make(token=..., **facts): creates a credential of demo; returns it with its secret."""

    def make(token=None, **kwargs):
        return cloud.identity.application_credentials.create(
            cloud.identity.tokens.get(token or cloud.token()), 'robot', **kwargs
        )

    return make


def test_a_credential_logs_in_to_its_project_with_its_roles(cloud, credential):
    row, secret = credential(roles=[{'name': 'reader'}])
    for reference in ({'id': row.id}, {'name': 'robot', 'user': {'id': row.user_id}}):
        login = cloud.identity.logins.with_credential(reference, secret)
        context = cloud.identity.authenticate(cloud.identity.tokens.issue(login))
        assert (context.user_name, context.project_name, context.roles) == ('demo', 'demo', {'reader'})


def test_a_credential_cannot_leave_its_project(cloud, credential):
    row, secret = credential()
    login = cloud.identity.logins.with_credential({'id': row.id}, secret)
    with pytest.raises(errors.NotAuthenticated):
        cloud.identity.tokens.issue(login, {'project': {'id': cloud.project('demo').id}})
    token = cloud.identity.tokens.issue(login)
    with pytest.raises(errors.Forbidden):
        cloud.identity.logins.with_token(token)


@pytest.mark.parametrize('unrestricted', [False, True])
def test_only_an_unrestricted_credential_makes_others(cloud, credential, unrestricted):
    row, secret = credential(unrestricted=unrestricted)
    login = cloud.identity.logins.with_credential({'id': row.id}, secret)
    token = cloud.identity.tokens.get(cloud.identity.tokens.issue(login))
    make = cloud.identity.application_credentials.create
    if unrestricted:
        assert make(token, 'child')[0].user_id == row.user_id
        cloud.identity.application_credentials.delete(token, row.user_id, row.id)
    else:
        with pytest.raises(errors.Forbidden):
            make(token, 'child')
        with pytest.raises(errors.Forbidden):
            cloud.identity.application_credentials.delete(token, row.user_id, row.id)


def test_wrong_expired_and_deleted_credentials_are_nobody(cloud, credential):
    row, secret = credential(expires_at=cloud.clock() + timedelta(hours=1))
    login = cloud.identity.logins.with_credential({'id': row.id}, secret)
    token = cloud.identity.tokens.issue(login)
    assert cloud.identity.tokens.get(token).expires_at == row.expires_at
    for reference, attempt in (
        ({'id': row.id}, 'wrong'),
        ({'id': 'none'}, secret),
        ({'name': 'robot', 'user': {'id': cloud.user('admin').id}}, secret),
    ):
        with pytest.raises(errors.NotAuthenticated):
            cloud.identity.logins.with_credential(reference, attempt)
    cloud.clock.forward(minutes=61)
    with pytest.raises(errors.NotAuthenticated):
        cloud.identity.logins.with_credential({'id': row.id}, secret)


def test_a_credential_gives_no_more_than_its_maker_holds(cloud, credential):
    with pytest.raises(errors.Invalid, match='admin'):
        credential(roles=[{'name': 'admin'}])
    with pytest.raises(errors.Invalid, match='project'):
        credential(cloud.token(scope={'unscoped': {}}))
    with pytest.raises(errors.Invalid, match='expires_at'):
        credential(expires_at=cloud.clock() - timedelta(seconds=1))


def test_credentials_go_with_the_grant_and_their_tokens_with_them(cloud, credential):
    row, secret = credential()
    token = cloud.identity.tokens.issue(cloud.identity.logins.with_credential({'id': row.id}, secret))
    REVOCATIONS['grant removed'](cloud)
    assert not cloud.is_live(token)
    with pytest.raises(errors.NotAuthenticated):
        cloud.identity.logins.with_credential({'id': row.id}, secret)


def test_deleting_a_credential_ends_its_tokens(cloud, credential):
    token = cloud.token()
    row, secret = credential(token)
    robot = cloud.identity.tokens.issue(cloud.identity.logins.with_credential({'id': row.id}, secret))
    with pytest.raises(errors.NotFound):
        cloud.identity.application_credentials.delete(cloud.identity.tokens.get(token), cloud.user('admin').id, row.id)
    cloud.identity.application_credentials.delete(cloud.identity.tokens.get(token), row.user_id, row.id)
    assert (cloud.is_live(robot), cloud.is_live(token)) == (False, True)


# Accounts


def test_names_are_unique_and_exact(cloud):
    for create in (cloud.identity.users.create, cloud.identity.projects.create):
        with pytest.raises(errors.Conflict):
            create('demo')
        assert create('Demo').name == 'Demo'


def test_a_record_refers_only_to_what_is_there(cloud):
    with pytest.raises(errors.Invalid, match='domain_id'):
        cloud.identity.projects.create('new', domain_id='elsewhere')
    with pytest.raises(errors.Invalid, match='default_project_id'):
        cloud.identity.users.create('new', default_project_id='nowhere')


def test_extra_attributes_add_up(cloud):
    user = cloud.identity.users.create('new', extra={'email': 'a@b', 'phone': '1'})
    assert cloud.identity.users.update(user.id, extra={'phone': '2'}).extra == {'email': 'a@b', 'phone': '2'}
    assert cloud.identity.users.update(user.id, extra={'phone': None}).extra == {'email': 'a@b'}


def test_an_option_without_a_value_is_not_there(cloud):
    user = cloud.identity.users.create('new', options={'lock_password': True, 'ignore_password_expiry': None})
    assert user.options == {'lock_password': True}
    assert cloud.identity.users.update(user.id, options={'lock_password': None}).options == {}


def test_a_deleted_project_leaves_its_users(cloud):
    cloud.identity.projects.delete(cloud.project('demo').id)
    assert cloud.user('demo').default_project_id is None
    assert cloud.identity.grants.assignments(user_id=cloud.user('demo').id) == []
    with pytest.raises(errors.NotFound):
        cloud.identity.projects.delete('none')


# Limits for users


def test_a_user_has_so_many_tokens_and_the_oldest_goes(store):
    cloud = Cloud(store, cache_seconds=0, most_tokens=3)
    others = cloud.token('admin', 'admin-secret')
    made = []
    for _ in range(5):
        made.append(cloud.token())
        cloud.clock.forward(seconds=1)
    assert [cloud.is_live(token) for token in made] == [False, False, True, True, True]
    assert cloud.is_live(others)


@pytest.mark.several_writers
def test_no_credential_is_bound_to_a_rule_that_goes_meanwhile(cloud, monkeypatch):
    identity, delete, refused = cloud.identity, queries.ACCESS_RULES.delete, []
    make, token = identity.application_credentials.create, identity.tokens.get(cloud.token())
    make(token, 'first', access_rules=[{'service': 'compute', 'method': 'GET', 'path': '/v2.1/servers'}])
    [rule], [first] = identity.access_rules.list(), identity.application_credentials.list()
    identity.application_credentials.delete(token, token.user_id, first.id)

    def bind():
        try:
            make(token, 'second', access_rules=[{'id': rule.id}])
        except errors.Invalid as error:
            refused.append(error)

    binding = threading.Thread(target=bind)

    def later(*facts, **values):
        binding.start()
        binding.join(0.5)
        return delete(*facts, **values)

    monkeypatch.setattr(queries.ACCESS_RULES, 'delete', later)
    identity.access_rules.delete(token.user_id, rule.id)
    binding.join()
    assert len(refused) == 1
    assert identity.application_credentials.list() == identity.access_rules.list() == []


def test_a_user_has_so_many_application_credentials(store):
    cloud = Cloud(store, cache_seconds=0, most_credentials=2)
    make = cloud.identity.application_credentials.create
    token = cloud.identity.tokens.get(cloud.token())
    for name in 'ab':
        make(token, name)
    with pytest.raises(errors.Forbidden, match='at most 2'):
        make(token, 'c')
    make(cloud.identity.tokens.get(cloud.token('admin', 'admin-secret')), 'c')


@pytest.mark.several_writers
def test_who_logs_in_while_the_project_goes_is_in_nobodys_way(cloud, monkeypatch):
    identity = cloud.identity
    project = identity.projects.create('work')
    user = identity.users.create('worker', password='w', default_project_id=project.id)
    [member] = identity.roles.list(name='member')
    identity.grants.add(user.id, Target('project', project.id), member.id)
    ended, insert = [], queries.insert_token

    def delete():
        identity.projects.delete(project.id)
        ended.append(project.id)

    going = threading.Thread(target=delete)

    def later(*facts, **values):
        if going.ident is None:
            going.start()
            going.join(0.5)
        return insert(*facts, **values)

    monkeypatch.setattr(queries, 'insert_token', later)
    with suppress(errors.NotAuthenticated):
        identity.tokens.issue(identity.logins.with_password({'id': user.id}, 'w'))
    going.join()
    assert ended == [project.id]
