"""Notifications of flavors, key pairs, aggregates and server groups, in the names and objects of Nova 34."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.api.test_keypairs import KEY
from tests.databases import listened
from tests.notified import OBJECTS, around, data, objects, taken

BOB = 'bob:project'
API = {'versioned': 'nova-api:controller', 'unversioned': 'api.controller'}
FLAVOR = {'name': 'small', 'id': '1', 'ram': 64, 'vcpus': 1, 'disk': 1, 'os-flavor-access:is_public': False}


@pytest.fixture
def conf(conf, request):
    """Notifications in the format of the parameter."""
    conf.set_override('notification_format', getattr(request, 'param', 'both'), 'notifications')
    return conf


@pytest.fixture
def told(store, service):
    """told(format): the notifications in a format since the last call for it."""
    service.hosts.register()
    taken(store)
    kept = []

    def get(form):
        kept.extend(taken(store))
        found = [each for each in kept if each.format == form]
        kept[:] = [each for each in kept if each.format != form]
        return found

    return get


def shown(found, *fields):
    return [(each.event_type, *(data(each)[name] for name in fields)) for each in found]


# ------------------------------------------------------------------ flavors


def test_flavors(api, told):
    specs = '/flavors/1/os-extra_specs'
    assert api.post('/flavors', {'flavor': FLAVOR}, '2.55').status == 200
    assert api.put('/flavors/1', {'flavor': {'description': 'cheap'}}, '2.55').status == 200
    assert api.post(specs, {'extra_specs': {'a': '1', 'b': '2'}}).status == 200
    assert api.put(f'{specs}/a', {'a': '3'}).status == 200
    assert api.delete(f'{specs}/b').status == 200
    assert api.post('/flavors/1/action', {'addTenantAccess': {'tenant': 'project'}}).status == 200
    assert api.post('/flavors/1/action', {'removeTenantAccess': {'tenant': 'project'}}).status == 200
    assert api.delete('/flavors/1').status == 202
    found = told('versioned')
    assert shown(found, 'description', 'extra_specs', 'projects') == [
        ('flavor.create', None, None, []),
        ('flavor.update', 'cheap', {}, []),
        ('flavor.update', 'cheap', {'a': '1', 'b': '2'}, []),
        ('flavor.update', 'cheap', {'a': '3', 'b': '2'}, []),
        ('flavor.update', 'cheap', {'a': '3'}, []),
        ('flavor.update', 'cheap', {'a': '3'}, ['project']),
        ('flavor.update', 'cheap', {'a': '3'}, []),
        ('flavor.delete', 'cheap', None, None),
    ]
    assert objects(found) == {'FlavorPayload': OBJECTS['FlavorPayload']}
    facts = ('flavorid', 'name', 'memory_mb', 'is_public', 'vcpu_weight', 'rxtx_factor')
    assert [data(found[0])[name] for name in facts] == ['1', 'small', 64, False, 0, 1.0]
    assert {each.publisher_id for each in found} == {API['versioned']}
    assert told('unversioned') == []


# ------------------------------------------------------------------ key pairs


def test_key_pairs(api, told):
    assert api.post('/os-keypairs', {'keypair': {'name': 'made', 'user_id': 'bob'}}, '2.10').status == 201
    assert api.post('/os-keypairs', {'keypair': {'name': 'mine', 'public_key': KEY}}, as_=BOB).status == 200
    assert api.delete('/os-keypairs/mine', as_=BOB).status == 202
    found, flat = told('versioned'), told('unversioned')
    events = [f'keypair.{each}' for each in around('create', 'import', 'delete')]
    assert [each.event_type for each in found] == [each.event_type for each in flat] == events
    known = [[data(each)[name] is not None for name in ('public_key', 'fingerprint')] for each in found]
    assert known == [[False, False], [True, True], [True, False], *[[True, True]] * 3]
    assert shown(found, 'user_id', 'name', 'type')[::2] == [
        ('keypair.create.start', 'bob', 'made', 'ssh'),
        ('keypair.import.start', 'bob', 'mine', 'ssh'),
        ('keypair.delete.start', 'bob', 'mine', 'ssh'),
    ]
    assert objects(found) == {'KeypairPayload': OBJECTS['KeypairPayload']}
    assert {(each.format, each.publisher_id) for each in [*found, *flat]} == {*API.items()}
    # The caller, not the owner.
    assert flat[0].payload == {'tenant_id': 'admin', 'user_id': 'admin', 'key_name': 'made'}
    assert flat[-1].payload == {'tenant_id': 'project', 'user_id': 'bob', 'key_name': 'mine'}


def test_the_caller_and_the_request_are_told(api, told):
    answer = api.post('/os-keypairs', {'keypair': {'name': 'mine', 'public_key': KEY}}, as_=BOB)
    request_id = answer.headers['X-Openstack-Request-Id']
    for each in told('versioned'):
        assert [each.context[name] for name in ('user_id', 'project_id', 'request_id')] == [
            'bob',
            'project',
            request_id,
        ]


# ------------------------------------------------------------------ aggregates


@pytest.fixture
def aggregate(api, told):
    made = api.post('/os-aggregates', {'aggregate': {'name': 'fast', 'availability_zone': 'north'}}, '2.41')
    return made.json['aggregate']


@pytest.fixture
def path(aggregate):
    return f'/os-aggregates/{aggregate["id"]}'


def test_a_new_aggregate(aggregate, told):
    found, flat = told('versioned'), told('unversioned')
    number, uuid, zone = aggregate['id'], aggregate['uuid'], {'availability_zone': 'north'}
    assert shown(found, 'id', 'uuid', 'name', 'hosts', 'metadata') == [
        ('aggregate.create.start', None, uuid, 'fast', None, zone),
        ('aggregate.create.end', number, uuid, 'fast', [], zone),
    ]
    assert objects(found) == {'AggregatePayload': OBJECTS['AggregatePayload']}
    assert {each.publisher_id for each in found} == {API['versioned']}
    assert [(each.event_type, each.publisher_id, each.payload) for each in flat] == [
        ('aggregate.create.start', 'aggregate.fast', {'name': 'fast', 'meta_data': zone}),
        (
            'aggregate.create.end',
            f'aggregate.{number}',
            {'name': 'fast', 'meta_data': zone, 'aggregate_id': number},
        ),
    ]


def test_changes_of_an_aggregate(api, aggregate, path, told):
    told('versioned')
    assert api.put(path, {'aggregate': {'name': 'new', 'availability_zone': 'south'}}).status == 200
    for action in (
        {'set_metadata': {'metadata': {'ssd': 'true', 'hdd': None}}},
        {'add_host': {'host': 'compute1'}},
        {'remove_host': {'host': 'compute1'}},
    ):
        assert api.post(f'{path}/action', action).status == 200
    assert api.delete(path).status == 200
    north, south = {'availability_zone': 'north'}, {'availability_zone': 'south'}
    ssd = south | {'ssd': 'true'}
    assert shown(told('versioned'), 'name', 'hosts', 'metadata') == [
        ('aggregate.update_prop.start', 'new', [], north),
        ('aggregate.update_prop.end', 'new', [], north),
        ('aggregate.update_metadata.start', 'new', [], north),
        ('aggregate.update_metadata.end', 'new', [], south),
        ('aggregate.update_metadata.start', 'new', [], south),
        ('aggregate.update_metadata.end', 'new', [], ssd),
        ('aggregate.add_host.start', 'new', [], ssd),
        ('aggregate.add_host.end', 'new', ['compute1'], ssd),
        ('aggregate.remove_host.start', 'new', ['compute1'], ssd),
        ('aggregate.remove_host.end', 'new', [], ssd),
        ('aggregate.delete.start', 'new', [], ssd),
        ('aggregate.delete.end', 'new', [], ssd),
    ]
    flat = told('unversioned')[2:]
    number = {'aggregate_id': aggregate['id']}
    assert {each.publisher_id for each in flat} == {f'aggregate.{aggregate["id"]}'}
    assert [(each.event_type.removeprefix('aggregate.'), each.payload) for each in flat] == [
        *((event, number) for event in around('updateprop')),
        *((event, number | {'meta_data': south}) for event in around('updatemetadata')),
        *((event, number | {'meta_data': {'ssd': 'true', 'hdd': None}}) for event in around('updatemetadata')),
        ('addhost.start', number | {'host_name': 'compute1'}),
        ('addhost.end', number | {'host_name': 'compute1', 'name': 'new'}),
        *((event, number | {'host_name': 'compute1'}) for event in around('removehost')),
        *((event, number) for event in around('delete')),
    ]


# ------------------------------------------------------------------ server groups


@pytest.fixture
def group(api, told):
    facts = {'name': 'apart', 'policy': 'anti-affinity', 'rules': {'max_server_per_host': 3}}
    made = api.post('/os-server-groups', {'server_group': facts}, '2.64', as_=BOB)
    return made.json['server_group']['id']


def test_server_groups(api, group, told):
    assert api.delete(f'/os-server-groups/{group}', as_=BOB).status == 204
    found, flat = told('versioned'), told('unversioned')
    assert shown(found, 'uuid') == [('server_group.create', group), ('server_group.delete', group)]
    assert data(found[0]) == {
        'uuid': group,
        'name': 'apart',
        'project_id': 'project',
        'user_id': 'bob',
        'policy': 'anti-affinity',
        'policies': ['anti-affinity'],
        'rules': {'max_server_per_host': '3'},
        'members': [],
        'hosts': None,
    }
    assert objects(found) == {'ServerGroupPayload': OBJECTS['ServerGroupPayload']}
    assert {each.publisher_id for each in found} == {API['versioned']}
    facts = {'name': 'apart', 'project_id': 'project', 'user_id': 'bob', 'policy': 'anti-affinity'}
    assert [(each.event_type, each.publisher_id, each.payload) for each in flat] == [
        ('servergroup.create', 'servergroup.controller', {'server_group_id': group} | facts),
        ('servergroup.delete', 'servergroup.controller', {'server_group_id': group}),
    ]


# ------------------------------------------------------------------ what is not told


def test_refused_changes_are_not_told(api, aggregate, path, told):
    api.post('/os-keypairs', {'keypair': {'name': 'mine', 'public_key': KEY}}, as_=BOB)
    api.post('/flavors', {'flavor': FLAVOR})
    for form in API:
        told(form)
    assert api.post('/os-keypairs', {'keypair': {'name': 'mine', 'public_key': KEY}}, as_=BOB).status == 409
    assert api.delete('/os-keypairs/other', as_=BOB).status == 404
    assert api.post('/flavors', {'flavor': FLAVOR}).status == 409
    assert api.delete('/flavors/other').status == 404
    assert api.post('/os-aggregates', {'aggregate': {'name': 'fast'}}).status == 409
    assert api.post(f'{path}/action', {'add_host': {'host': 'other'}}).status == 404
    assert [told(form) for form in API] == [[], []]


@pytest.mark.several_writers
def test_a_deletion_is_told_once_whoever_asks_for_it(api, group, path, told):
    api.post('/os-keypairs', {'keypair': {'name': 'mine', 'public_key': KEY}})
    api.post('/flavors', {'flavor': FLAVOR})
    told('versioned')
    for each in ('/os-keypairs/mine', '/flavors/1', path, f'/os-server-groups/{group}'):
        with ThreadPoolExecutor(4) as pool:
            statuses = list(pool.map(lambda _, each=each: api.delete(each).status, range(4)))
        found = [event.event_type for event in told('versioned')]
        assert sorted(statuses)[1:] == [404, 404, 404] and len(found) == len(set(found)) > 0, (each, statuses)


@pytest.mark.parametrize('conf', ['none', 'unversioned'], indirect=True)
def test_nothing_is_read_for_notifications_that_are_off(api, conf, store, told):
    api.post('/flavors', {'flavor': FLAVOR})
    api.post('/os-keypairs', {'keypair': {'name': 'mine', 'public_key': KEY}})
    statements = []
    with listened(store.engine, 'before_cursor_execute', lambda *facts: statements.append(facts[2])):
        api.put('/flavors/1', {'flavor': {'description': 'cheap'}}, '2.55')
        if conf.notifications.notification_format == 'none':
            api.delete('/os-keypairs/mine')
    assert statements
    assert [each for each in statements if 'flavor_projects' in each or each.startswith('SELECT keypairs')] == []
    assert told('versioned') == []
