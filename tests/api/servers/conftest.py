"""Shared fixtures of the tests of servers: an API with an image, a network, a flavor and a host."""

import pytest

from computeapi.context import Context
from computeapi.db.tables.compute import services
from computeapi.db.tables.servers import tasks

BOB = 'bob:project'
IMAGE, NETWORK = '70a599e0-31e7-49b7-b260-868f441e862b', '3cb9bc59-5699-4588-a4b1-b87f96708bc6'
ROOT_VOLUME = {'source_type': 'image', 'destination_type': 'volume', 'uuid': IMAGE, 'boot_index': 0, 'volume_size': 1}


def message(answer):
    """The status of an answer, and the message of its fault."""
    ((_, fault),) = answer.json.items()
    return answer.status, fault['message']


class World:
    """Creates the resources that servers need, in project `project` unless a context says otherwise."""

    def __init__(self, service):
        self.service, self.store = service, service.store
        self.networks, self.images, self.volumes = service.networks, service.images, service.volumes
        self.bob = Context(user_id='bob', project_id='project', roles=frozenset({'member', 'reader'}))
        self.admin = Context(user_id='admin', project_id='project', roles=frozenset({'admin'}), is_admin=True)

    def image(self, image_id=None, *, size=16, context=None, active=True, **kwargs):
        context = context or self.bob
        image = self.images.create(
            context, 'image', image_id=image_id, disk_format='raw', container_format='bare', **kwargs
        )
        return self.images.upload(context, image.id, iter([b'\0' * size])).id if active else image.id

    def network(self, network_id=None, *, context=None, subnet='10.0.0.0/24', **kwargs):
        create = self.networks.resources.create
        context = context or self.bob
        made = create(context, 'networks', {'name': 'network', 'id': network_id, **kwargs})
        if subnet:
            create(context, 'subnets', {'network_id': made['id'], 'ip_version': 4, 'cidr': subnet})
        return made['id']

    def port(self, **kwargs):
        return self.networks.resources.create(self.bob, 'ports', {'network_id': NETWORK, **kwargs})['id']

    def volume(self, size=1, **kwargs):
        return self.volumes.create(self.bob, size, **kwargs).id

    def down(self, host, down=True):
        """Marks the service of a host as down."""
        with self.store.write() as connection:
            connection.execute(services.update().where(services.c.host == host).values(forced_down=down))

    def up(self, host):
        self.down(host, False)

    def flavor(self, flavorid='1', **kwargs):
        sizes = {'memory_mb': 64, 'vcpus': 1, 'root_gb': 1, 'ephemeral_gb': 0, 'swap': 0, 'rxtx_factor': 1.0}
        kwargs = {'is_public': True, 'description': None} | sizes | kwargs
        return self.service.cloud.flavors.create(self.admin, f'flavor-{flavorid}', flavorid=flavorid, **kwargs)


class Killed(BaseException):
    """The process dies in the middle of an operation."""


@pytest.fixture
def die(monkeypatch, settle, service):
    """die(object, 'method', action): the process dies when *action* calls the method; another process takes over."""

    def kill(target, name, act, after=False):
        method = getattr(target, name)

        def killed(*args, **kwargs):
            if after:
                method(*args, **kwargs)
            raise Killed()

        monkeypatch.setattr(target, name, killed)
        with pytest.raises(Killed):
            act()
        monkeypatch.undo()
        service.platform.tasks.release_all()
        settle()

    return kill


@pytest.fixture
def settle(service):
    """settle(): the workers do what is due.  later: including tasks that are scheduled for later."""

    def work(later=False):
        if later:
            with service.store.write() as connection:
                connection.execute(tasks.update().values(not_before=None))
            service.platform.tasks.release_all()
        while service.worker.step():
            pass

    return work


@pytest.fixture
def world(service):
    """A cloud on which `body()` creates a server."""
    world = World(service)
    service.hosts.register()
    world.volumes.types.create('multiattach', extra_specs={'multiattach': '<is> True'})
    world.image(IMAGE)
    world.network(NETWORK)
    world.flavor()
    return world


def body(hints=None, **kwargs):
    """A request body that is valid at every version, with further or other facts; None leaves one out."""
    server = {'name': 'server', 'imageRef': IMAGE, 'flavorRef': '1', 'networks': [{'uuid': NETWORK}]} | kwargs
    request = {'server': {name: value for name, value in server.items() if value is not None}}
    return request if hints is None else request | {'os:scheduler_hints': hints}


@pytest.fixture
def create(api, world):
    """create('2.52', tags=['a']): the response to bob's request for a server."""

    def post(version='2.1', as_=BOB, hints=None, **kwargs):
        return api.post('/servers', body(hints, **kwargs), version, as_=as_)

    return post


@pytest.fixture
def made(create, world):
    """made(...): like `create`, but returns the new servers, in order."""
    from computeapi.db import server_search
    from computeapi.db.listing import WHOLE

    def post(*args, **kwargs):
        answer = create(*args, **kwargs)
        assert answer.status == 202, answer
        with world.store.read() as connection:
            return server_search.page(connection, WHOLE, server_search.Search(), ['tags', 'volumes']).servers

    return post


@pytest.fixture
def server(create, settle):
    """The ID of a running server of bob's."""
    made = create().json['server']['id']
    settle()
    return made


@pytest.fixture
def cloud(world, settle):
    """A cloud with two hosts."""
    world.service.conf.set_override('hosts', 2, 'simulated')
    world.service.hosts.register()
    return world


@pytest.fixture
def act(api, cloud, settle):
    """act(server, 'pause'): request an action and let the workers carry it out; returns the response."""

    def post(server, name, argument=None, version='2.1', as_=BOB, work=True):
        answer = api.post(f'/servers/{server}/action', {name: argument}, version, as_=as_)
        if work:
            settle()
        return answer

    return post


@pytest.fixture
def shown(api, server):
    """shown(): status, task_state and host of the server."""

    def get():
        found = api.get(f'/servers/{server}').json['server']
        return found['status'], found['OS-EXT-STS:task_state'], found['OS-EXT-SRV-ATTR:host']

    return get


@pytest.fixture
def state(api):
    """state(server): (status, vm_state, power_state, task_state, host)."""

    def get(server):
        shown = api.get(f'/servers/{server}', '2.96').json['server']
        names = ('vm_state', 'power_state', 'task_state')
        return (shown['status'], *(shown[f'OS-EXT-STS:{name}'] for name in names), shown['OS-EXT-SRV-ATTR:host'])

    return get


@pytest.fixture
def history(api):
    """history(server): its actions except its creation, newest first, as (action, message, [(event, result), ...])."""

    def get(server):
        path = f'/servers/{server}/os-instance-actions'
        found = [each for each in api.get(path, '2.51').json['instanceActions'] if each['action'] != 'create']
        shown = [api.get(f'{path}/{each["request_id"]}', '2.51').json['instanceAction'] for each in found]
        return [(each['action'], each['message'], _results(each['events'])) for each in shown]

    return get


def _results(events):
    return [(event['event'], event['result']) for event in events]
