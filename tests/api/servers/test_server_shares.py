"""Shares of servers: attached while the server is stopped, mounted while it runs."""

import pytest
import webob

from computeapi import errors
from computeapi.context import Context

BOB, READER, ALICE = 'bob:project', 'rea:project:reader', 'alice:elsewhere'
ABSENT = '00000000-0000-0000-0000-000000000000'


def fault(answer):
    (body,) = answer.json.values()
    return answer.status, body['message']


# ------------------------------------------------------------------ a server without shares


def test_2_97_servers_have_shares(api, servers):
    path = f'/servers/{servers.add()}/shares'
    assert api.get(path, '2.97', as_=BOB).json == {'shares': []}
    assert fault(api.get(f'{path}/{ABSENT}', '2.97', as_=BOB)) == (404, f'Share {ABSENT} could not be found.')
    for method, tail, body in (('GET', '', None), ('POST', '', {}), ('GET', '/x', None), ('DELETE', '/x', None)):
        assert api.request(method, path + tail, '2.96', body).status == 404


def test_shares_come_to_stopped_servers_only(api, servers):
    server_id = servers.add()
    path, body = f'/servers/{server_id}/shares', {'share': {'share_id': ABSENT, 'tag': 'my-share'}}
    active = "Cannot '{}' instance {} while it is in vm_state active"
    assert fault(api.post(path, body, '2.97', as_=BOB)) == (409, active.format('create share', server_id))
    assert fault(api.delete(f'{path}/{ABSENT}', '2.97', as_=BOB)) == (409, active.format('delete share', server_id))
    servers.change(server_id, vm_state='stopped')
    missing = (404, f'Share {ABSENT} could not be found.')
    assert fault(api.post(path, body, '2.97', as_=BOB)) == missing
    assert fault(api.delete(f'{path}/{ABSENT}', '2.97', as_=BOB)) == missing


@pytest.mark.parametrize(
    'share', [{}, {'share_id': 'x'}, {'share_id': ABSENT, 'tag': ''}, {'share_id': ABSENT, 'x': 1}]
)
def test_bad_shares_are_refused(api, servers, share):
    assert api.post(f'/servers/{servers.add()}/shares', {'share': share}, '2.97', as_=BOB).status == 400


def test_shares_of_others_are_forbidden(api, servers):
    path = f'/servers/{servers.add()}/shares'
    refused = "Policy doesn't allow os_compute_api:os-server-shares:index to be performed."
    assert fault(api.get(path, '2.97', as_=ALICE)) == (403, refused)
    assert api.get(f'/servers/{ABSENT}/shares', '2.97', as_=ALICE).status == 404


# ------------------------------------------------------------------ attached, mounted, detached


class Shares:
    """The shares of one server, as bob uses them."""

    def __init__(self, api, settle, server):
        self.api, self.settle, self.path = api, settle, f'/servers/{server}/shares'

    def attach(self, share_id, as_=BOB, work=True, **kwargs):
        answer = self.api.post(self.path, {'share': {'share_id': share_id, **kwargs}}, '2.97', as_=as_)
        if work:
            self.settle()
        return answer

    def detach(self, share_id):
        answer = self.api.delete(f'{self.path}/{share_id}', '2.97', as_=BOB)
        self.settle()
        return answer

    def show(self, share_id, as_=BOB):
        return self.api.get(f'{self.path}/{share_id}', '2.97', as_=as_).json['share']

    def statuses(self):
        return [each['status'] for each in self.api.get(self.path, '2.97', as_=BOB).json['shares']]


@pytest.fixture
def shares(api, act, settle, server):
    """The shares of a stopped server."""
    act(server, 'os-stop')
    return Shares(api, settle, server)


@pytest.fixture
def share(world):
    """share(...): creates a share of bob's; returns its ID."""

    def create(protocol='NFS', **kwargs):
        kwargs = {'name': 'share', 'description': None, 'metadata': {}, 'is_public': False} | kwargs
        return world.service.shares.create(world.bob, 1, protocol, **kwargs).id

    return create


@pytest.fixture
def allowed(world):
    """allowed(share): the number of hosts that may mount it."""
    return lambda share_id: len(world.service.shares.rules(world.bob, share_id))


@pytest.fixture
def vm_state(api, server):
    return lambda: api.get(f'/servers/{server}').json['server']['OS-EXT-STS:vm_state']


@pytest.mark.parametrize(('as_', 'name'), [(BOB, 'server-shares'), ('admin:admin', 'server-shares-admin')])
def test_the_answers_look_like_the_samples(shares, share, sample, as_, name):
    folder, share_id = 'os-server-shares/v2.97', share()
    created = shares.attach(share_id, as_, work=False)
    assert (created.status, set(created.json['share'])) == (
        201,
        set(sample(f'{folder}/{name}-create-resp.json')['share']),
    )
    shares.settle()
    shown = shares.show(share_id, as_)
    assert set(shown) == set(sample(f'{folder}/{name}-show-resp.json')['share'])
    assert (shown['status'], shown['tag']) == ('inactive', share_id)
    assert shown.get('export_location') in (None, f'127.0.0.1:/shares/{share_id}')


def test_a_share_is_active_while_the_server_runs(shares, share, act, server, allowed, history, api):
    share_id = share()
    assert shares.attach(share_id, work=False).json['share'] == {
        'share_id': share_id,
        'status': 'attaching',
        'tag': share_id,
    }
    assert (shares.statuses(), allowed(share_id)) == (['attaching'], 0)
    shares.settle()
    assert (shares.statuses(), allowed(share_id)) == (['inactive'], 1)
    for action, status in (('os-start', 'active'), ('os-stop', 'inactive'), ('reboot', 'active')):
        act(server, action, {'type': 'HARD'} if action == 'reboot' else None)
        assert shares.statuses() == [status]
    assert fault(shares.detach(share_id))[0] == 409
    act(server, 'os-stop')
    assert shares.detach(share_id).status == 200
    assert (shares.statuses(), allowed(share_id)) == ([], 0)
    steps = {name: events for name, _, events in history(server)}
    assert steps['attach_share'] == [('compute_allow_share', 'Success')]
    assert steps['detach_share'] == [('compute_deny_share', 'Success')]


def test_a_guest_reads_the_tags_of_its_shares(shares, share, act, server, app):
    def devices(version):
        path = f'/metadata/{server}/openstack/{version}/meta_data.json'
        return webob.Request.blank(path).get_response(app).json['devices']

    share_id = share()
    shares.attach(share_id, tag='data')
    assert devices('latest') == []
    act(server, 'os-start')
    mounted = {'type': 'share', 'share_id': share_id, 'tag': 'data', 'bus': 'none', 'address': 'none'}
    assert (devices('2020-10-14'), devices('latest')) == ([], [mounted])


def test_a_share_and_a_tag_are_attached_once(shares, share):
    first, second = share(), share()
    shares.attach(first, tag='data')
    taken = "Share '{}' or tag '{}' already associated to this server."
    assert fault(shares.attach(first, tag='more')) == (409, taken.format(first, 'more'))
    assert fault(shares.attach(second, tag='data')) == (409, taken.format(second, 'data'))
    assert shares.attach(second).status == 201


def test_shares_that_no_host_can_mount(shares, share, world):
    assert fault(shares.attach(share('CIFS'))) == (409, 'Share protocol CIFS is not supported.')
    world.service.hypervisor.capabilities = frozenset()
    assert shares.attach(share()).status == 409


def test_shares_of_other_projects(shares, share, world):
    elsewhere = Context(user_id='alice', project_id='elsewhere')
    theirs = world.service.shares.create(elsewhere, 1, 'NFS', name='theirs').id
    assert fault(shares.attach(theirs)) == (404, f'Share {theirs} could not be found.')
    world.service.shares.update(elsewhere.elevated(), theirs, is_public=True)
    assert shares.attach(theirs).status == 201
    assert shares.attach(share(), as_=READER).status == 403


def test_a_lock_does_not_concern_shares(shares, share, act, server):
    act(server, 'lock')
    share_id = share()
    assert (shares.attach(share_id).status, shares.detach(share_id).status) == (201, 200)


BLOCKED = [
    ('os-stop', 'resize', {'flavorRef': '2'}),
    ('os-stop', 'migrate', None),
    ('os-stop', 'shelve', None),
    ('os-stop', 'rebuild', {'imageRef': '70a599e0-31e7-49b7-b260-868f441e862b'}),
    ('os-start', 'suspend', None),
    ('os-start', 'os-migrateLive', {'host': None, 'block_migration': 'auto'}),
    ('down', 'evacuate', {}),
]


@pytest.mark.parametrize(('before', 'action', 'argument'), BLOCKED)
def test_what_a_server_with_shares_cannot_do(
    shares, share, act, server, world, state, monkeypatch, before, action, argument
):
    """Nothing is created for a request that is refused."""
    world.flavor('2', vcpus=2)
    shares.attach(share())
    if before == 'os-start':
        act(server, before)
    if before == 'down':
        world.down(state(server)[-1])
    refused = 'Feature not supported with instances that have shares.'
    was = state(server)
    monkeypatch.setattr(world.images, 'create', None)
    assert fault(act(server, action, argument, '2.97', as_='admin:admin')) == (409, refused)
    assert state(server) == was


# ------------------------------------------------------------------ failures


def test_a_share_that_cannot_be_mounted_keeps_the_server_from_starting(
    shares, share, act, server, conf, vm_state, allowed
):
    share_id = share()
    shares.attach(share_id)
    conf.set_override('fail', ['mount_share'], 'simulated')
    act(server, 'os-start')
    assert (vm_state(), shares.statuses()) == ('error', ['error'])
    conf.clear_override('fail', 'simulated')
    assert shares.detach(share_id).status == 200
    assert (shares.statuses(), allowed(share_id)) == ([], 0)


def test_what_failed_is_tried_again_at_the_next_start(shares, share, act, server, conf, vm_state):
    shares.attach(share())
    conf.set_override('fail', ['mount_share'], 'simulated')
    act(server, 'os-start')
    conf.clear_override('fail', 'simulated')
    act(server, 'reboot', {'type': 'HARD'})
    assert (vm_state(), shares.statuses()) == ('active', ['active'])


def test_a_share_whose_host_is_not_let_in_is_in_error(shares, share, world, monkeypatch, history, server):
    def refuse(*arguments):
        raise errors.Conflict('no')

    monkeypatch.setattr(world.service.shares, 'allow', refuse)
    shares.attach(share())
    assert shares.statuses() == ['error']
    assert history(server)[0] == ('attach_share', 'Error', [('compute_allow_share', 'Error')])


def test_a_server_that_goes_gives_its_shares_back(shares, share, api, server, settle, allowed, world):
    share_id = share()
    shares.attach(share_id)
    with pytest.raises(errors.Forbidden):
        world.service.shares.delete(world.bob, share_id)
    api.delete(f'/servers/{server}', as_=BOB)
    settle()
    assert allowed(share_id) == 0
    world.service.shares.delete(world.bob, share_id)


def test_a_host_that_does_not_unmount_a_share_of_a_deleted_server_is_shut_out(
    shares, share, api, server, settle, allowed, conf
):
    share_id = share()
    shares.attach(share_id)
    conf.set_override('fail', ['unmount_share'], 'simulated')
    api.delete(f'/servers/{server}', as_=BOB)
    settle()
    assert (api.get(f'/servers/{server}').status, allowed(share_id)) == (404, 0)


def test_a_deletion_waits_for_the_share_service(shares, share, api, server, settle, allowed, world, monkeypatch):
    def fail(*arguments):
        raise errors.NeighbourAway(name='Manila')

    share_id = share()
    shares.attach(share_id)
    with monkeypatch.context() as away:
        away.setattr(world.service.shares, 'deny', fail)
        api.delete(f'/servers/{server}', as_=BOB)
        settle()
        assert (api.get(f'/servers/{server}').status, allowed(share_id)) == (200, 1)
    settle(later=True)
    assert (api.get(f'/servers/{server}').status, allowed(share_id)) == (404, 0)


def test_a_host_keeps_what_another_server_on_it_mounts(shares, share, api, settle, create, act, allowed, state, server):
    share_id, everywhere = share(), [shares]
    here = state(server)[-1]
    for host in (here, {'compute1': 'compute2', 'compute2': 'compute1'}[here]):
        other = create(as_='admin:project', availability_zone=f'nova:{host}').json['server']['id']
        settle()
        act(other, 'os-stop')
        everywhere.append(Shares(api, settle, other))
    seen = []
    for each in everywhere:
        each.attach(share_id)
        seen.append(allowed(share_id))
    for each in everywhere:
        each.detach(share_id)
        seen.append(allowed(share_id))
    assert seen == [1, 1, 2, 2, 1, 0]


@pytest.mark.parametrize('step', ['allow', 'deny'])
def test_a_process_dies_between_two_steps(shares, share, die, world, allowed, step):
    share_id = share()
    if step == 'allow':
        die(world.service.shares, 'allow', lambda: shares.attach(share_id), after=True)
        assert (shares.statuses(), allowed(share_id)) == (['inactive'], 1)
    else:
        shares.attach(share_id)
        die(world.service.shares, 'deny', lambda: shares.detach(share_id), after=True)
        assert (shares.statuses(), allowed(share_id)) == ([], 0)
