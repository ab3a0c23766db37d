"""The implementations of each Protocol, and what a test suite needs besides: callers, and limits.

A suite sees a backend through its Protocol. Anything specific to one implementation is defined here, and tested outside
the suites.
"""

import functools
import inspect
import time

from computeapi.backends.hypervisor import Hypervisor
from computeapi.backends.hypervisor.simulated import SimulatedHypervisor
from computeapi.backends.identity import Identity
from computeapi.backends.identity.keystone import KeystoneIdentity
from computeapi.backends.identity.local import LocalIdentity
from computeapi.backends.image import Images
from computeapi.backends.image.glance import GlanceImages
from computeapi.backends.image.local import LocalImages
from computeapi.backends.network import FloatingIP, Networks, Port
from computeapi.backends.network.local import LocalNetworks
from computeapi.backends.network.neutron import NeutronNetworks
from computeapi.backends.placement import Inventory, Placement
from computeapi.backends.placement.service import PlacementService
from computeapi.backends.share import Shares
from computeapi.backends.share.local import LocalShares
from computeapi.backends.volume import Volume, Volumes
from computeapi.backends.volume.cinder import CinderVolumes
from computeapi.backends.volume.local import LocalVolumes
from computeapi.context import Context
from computeapi.errors import NotFound
from tests import broker
from tests.agents.in_process import told
from tests.neighbours import cloud
from tests.placement import PlacementInMemory

ADMIN = Context(user_id='root', project_id='admin', is_admin=True, roles=frozenset({'admin'}))
ALICE = Context(user_id='alice', project_id='apples', roles=frozenset({'member'}))
READER = Context(user_id='ron', project_id='apples', roles=frozenset({'reader'}))
SERVICE = Context(user_id='nova', project_id='apples', roles=frozenset({'service'}))
BOB = Context(user_id='bob', project_id='bananas', roles=frozenset({'member'}))

DEFAULT = {'id': 'default'}
SHARED = {'multiattach': '<is> True'}


class As:
    """A backend restricted to its Protocol: no other methods, and no other arguments."""

    def __init__(self, protocol, backend):
        self._protocol, self._backend = protocol, backend

    def __getattr__(self, name):
        declared, found = getattr(self._protocol, name), getattr(self._backend, name)
        if not callable(declared):
            return found
        signature = inspect.signature(declared)

        @functools.wraps(declared)
        def call(*args, **kwargs):
            signature.bind(self, *args, **kwargs)
            return found(*args, **kwargs)

        return call


class OwnIdentity:
    """demo is a member of the project demo, admin the administrator of admin; loner has no project."""

    passwords = {'admin': 'admin-secret', 'demo': 'demo-secret', 'loner': 'x'}

    def __init__(self, store):
        self.own = LocalIdentity(store, bcrypt_cost=4, cache_seconds=0)
        self.own.populate(self.passwords['admin'], self.passwords['demo'])
        self.own.users.create('loner', password=self.passwords['loner'])
        self.identity = As(Identity, self.own)

    def token(self, name):
        login = self.own.logins.with_password({'name': name, 'domain': DEFAULT}, self.passwords[name])
        return self.own.tokens.issue(login)

    def user_name(self, name):
        return name

    def user_id(self, name):
        [user] = self.own.users.list(name=name)
        return user.id

    def project_name(self, name):
        return name

    def project_id(self, name):
        [project] = self.own.projects.list(name=name)
        return project.id


class RealIdentity:
    people = {
        'admin': ADMIN,
        'demo': Context(user_id='demo', project_id='apples', roles=frozenset({'member'})),
        'loner': Context(user_id='loner'),
    }

    def __init__(self, store):
        self.cloud = cloud.running()
        self.passwords = dict.fromkeys(self.people, self.cloud.password)
        self.identity = As(Identity, KeystoneIdentity(self.cloud.conf(identity='keystone')))
        for name in ('admin', 'demo'):
            home = {'default_project_id': self.project_id(name)}
            self.cloud.identity('PATCH', f'/users/{self.user_id(name)}', {'user': home})

    def token(self, name):
        return self.cloud.context(self.people[name]).auth_token

    def user_name(self, name):
        return self.cloud.user(self.people[name])[1]

    def user_id(self, name):
        return self.cloud.user(self.people[name])[0]

    def project_name(self, name):
        return self.cloud.context(self.people[name]).project_name

    def project_id(self, name):
        return self.cloud.project_id(self.people[name].project_id)


class OwnImages:
    """An image may have at most 100,000 bytes."""

    def __init__(self, store, folder):
        self.own = LocalImages(store, folder / 'images', max_bytes=100_000)
        self.images = As(Images, self.own)
        self.folder = folder / 'images'

    def check(self):
        """Checks that files exist exactly for the images that have data."""
        found = self.own.list(ADMIN, filters={'hidden': None, 'visibility': 'all', 'status': 'active'})
        assert {path.name for path in self.folder.glob('*')} == {image.id for image in found}


class RealImages:
    def __init__(self, store, folder):
        self.cloud = cloud.running()
        self.cloud.clean('image')
        self.images = As(Images, self.cloud.translated(GlanceImages(self.cloud.conf(image='glance'))))

    def check(self):
        """Glance is responsible for its files."""


class OwnNetworks:
    """An external network `public` and, shared or not, `private` behind it; *bare*: neither of them."""

    def __init__(self, store, *, shared=True, bare=False):
        self.own = LocalNetworks(store)
        if not bare:
            self.own.populate(ADMIN, shared=shared)
        self.networks = As(Networks, self.own)

    def network(self, context, *cidrs, name='net', **kwargs):
        """Creates a network of the caller's with these subnets; returns its ID."""
        network = self.own.resources.create(context, 'networks', {'name': name, **kwargs})
        for cidr in cidrs:
            subnet = cidr if isinstance(cidr, dict) else {'cidr': cidr}
            self.own.resources.create(context, 'subnets', {'network_id': network['id'], **subnet})
        return network['id']

    def port(self, context, network_id, **kwargs):
        """Creates a port that no server has; returns its ID."""
        return self.own.resources.create(context, 'ports', {'network_id': network_id, **kwargs})['id']

    def pause(self):
        """Wait until the next resource will get a later timestamp."""

    def profile(self, port_id):
        """The binding profile of the port."""
        return self.own.resources.get(ADMIN, 'ports', port_id)['binding:profile']

    def bandwidth(self, kbps):
        """Creates a shared policy with this minimum egress bandwidth for ports; returns its ID."""
        policy = self.own.resources.create(ADMIN, 'qos/policies', {'name': 'gold', 'shared': True})['id']
        rule = {'qos_policy_id': policy, 'type': 'minimum_bandwidth', 'direction': 'egress', 'min_kbps': kbps}
        self.own.resources.create(ADMIN, 'qos/rules', rule)
        return policy

    def limit(self, project_id, **limits):
        """Limit the project's quotas of ports, floatingips, etc."""
        self.own.resources.set_quotas(ADMIN, project_id, limits)


class InOrder:
    """A backend whose timestamps have a resolution of seconds: lists are put in the order in which the test saw the
    records.

    kinds: the classes of records to which this applies.  newest_first: whether lists begin with the newest record.
    """

    def __init__(self, backend, *kinds, newest_first=False):
        self._backend, self._kinds, self._newest_first, self._seen = backend, kinds, newest_first, {}

    def __getattr__(self, name):
        found = getattr(self._backend, name)
        if not callable(found):
            return found

        def call(*args, **kwargs):
            result = found(*args, **kwargs)
            if isinstance(result, self._kinds):
                self._place(result)
            if isinstance(result, list) and result and isinstance(result[0], self._kinds):
                result = sorted(result, key=self._order)
                for each in result:
                    self._place(each)
            return result

        return call

    def _order(self, record):
        place = self._seen.get(record.id, len(self._seen))
        return -place if self._newest_first else place

    def _place(self, record):
        self._seen.setdefault(record.id, len(self._seen))


class RealNetworks:
    def __init__(self, store, *, shared=True):
        self.cloud = cloud.running()
        self.cloud.clean('network')
        self.made = 0
        self.cloud.topology.show(shared=shared)
        self.own = NeutronNetworks(self.cloud.conf(network='neutron'))
        self.networks = As(Networks, InOrder(self.cloud.translated(self.own), Port, FloatingIP))

    def network(self, context, *cidrs, name='net', shared=False, **kwargs):
        if self.made:
            self.pause()
        network_id = self._made(context, 'networks', {'name': name, **kwargs})['id']
        self.made += 1
        if shared:
            self.cloud.topology.share(network_id)
        for cidr in cidrs:
            subnet = cidr if isinstance(cidr, dict) else {'cidr': cidr}
            version = 6 if ':' in subnet['cidr'] else 4
            self._made(context, 'subnets', {'network_id': network_id, 'ip_version': version, **subnet})
        return network_id

    def port(self, context, network_id, **kwargs):
        return self._made(context, 'ports', {'network_id': network_id, **kwargs})['id']

    def pause(self):
        """Neutron's timestamps have a resolution of seconds."""
        time.sleep(1.05 - time.time() % 1)

    def profile(self, port_id):
        return self.cloud.service('network').get(f'/ports/{port_id}').json()['port']['binding:profile']

    def limit(self, project_id, **limits):
        path = f'/quotas/{self.cloud.project_id(project_id)}'
        self.cloud.service('network').put(path, json={'quota': limits})

    def _made(self, context, kind, facts):
        owner = {'project_id': self.cloud.project_id(context.project_id)} if context.is_admin else {}
        asked = self.cloud.service('network', None if context.is_admin else context)
        return asked.post(f'/{kind}', json={kind[:-1]: facts | owner}).json()[kind[:-1]]


class OwnVolumes:
    """The types fake and multiattach, the zones nova and far; *images*: the images that volumes are created from."""

    def __init__(self, store, folder):
        self.images = As(Images, LocalImages(store, folder / 'images'))
        self.default_type = '__DEFAULT__'
        self.own = LocalVolumes(store, self.images, types={'fake': {}, 'multiattach': SHARED}, zones=('nova', 'far'))
        self.own.populate()
        self.volumes = As(Volumes, self.own)

    def held(self, volume_id):
        """The number of attachments of the volume in any state."""
        return len(self.own.attachments(ADMIN, volume_id=volume_id))

    def limit(self, project_id, **limits):
        """Limit the project's quotas of volumes, snapshots, gigabytes, etc."""
        self.own.quotas.set_limits(project_id, limits)

    def reset_snapshot(self, snapshot_id, status):
        self.own.snapshots.change(ADMIN, snapshot_id, lambda snapshot: {'status': status})


class RealVolumes:
    """The same types and zones; operations are waited for."""

    default_type = 'fake'

    def __init__(self, store, folder):
        self.cloud = cloud.running()
        self.cloud.clean('block-storage', 'image')
        self.images = As(Images, self.cloud.translated(GlanceImages(self.cloud.conf(image='glance'))))
        own = CinderVolumes(self.cloud.conf(volume='cinder'))
        self.volumes = Settled(As(Volumes, InOrder(self.cloud.translated(own), Volume, newest_first=True)))

    def held(self, volume_id):
        return len(self.volumes.attachments(ADMIN, volume_id=volume_id))

    def limit(self, project_id, **limits):
        path = f'/os-quota-sets/{self.cloud.project_id(project_id)}'
        self.cloud.service('block-storage').put(path, json={'quota_set': limits})

    def reset_snapshot(self, snapshot_id, status):
        action = {'os-reset_status': {'status': status}}
        self.cloud.service('block-storage').post(f'/snapshots/{snapshot_id}/action', json=action)


class Settled:
    """Volumes whose operations are waited for until they complete."""

    looks = {'create': 'get', 'create_snapshot': 'get_snapshot', 'delete': 'get', 'delete_snapshot': 'get_snapshot'}
    passing = frozenset({'creating', 'downloading', 'deleting'})

    def __init__(self, volumes):
        self._volumes = volumes

    def __getattr__(self, name):
        call = getattr(self._volumes, name)
        if name not in self.looks:
            return call

        def settled(context, *args, **kwargs):
            made = call(context, *args, **kwargs)
            return self.settled(self.looks[name], context, args[0] if made is None else made.id)

        return settled

    def reimage(self, context, volume_id, image_id):
        self._volumes.reimage(context, volume_id, image_id)
        self.settled('get', context, volume_id)

    def settled(self, look, context, made_id):
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            try:
                found = getattr(self._volumes, look)(context, made_id)
            except NotFound:
                return None
            if found.status not in self.passing:
                return found
            time.sleep(0.1)
        raise TimeoutError(found)


class OwnShares:
    """Shares, created by the service's own methods and seen through the Protocol."""

    def __init__(self, store):
        self.own = LocalShares(store)
        self.shares = As(Shares, self.own)

    def share(self, context, protocol='NFS', **kwargs):
        """Creates a share of the caller's; returns its ID."""
        made = self.own.create(context, 1, protocol, name='share')
        return self.own.update(ADMIN, made.id, **kwargs).id

    def delete(self, context, share_id):
        self.own.delete(context, share_id)

    def addresses(self, share_id):
        """The addresses of the hosts that may mount the share."""
        return [rule.access_to for rule in self.own.rules(ADMIN, share_id)]


def simulated_hypervisor(store, conf):
    """A driver of two hosts."""
    conf.set_override('hosts', 2, 'simulated')
    return As(Hypervisor, SimulatedHypervisor(store, conf.simulated))


def remote_hypervisor(store, conf):
    """A driver of two simulated hosts, whose agents it calls through a broker."""
    return As(Hypervisor, told(store, conf))


class OwnPlacement:
    """The in-memory Placement of the tests; the suite verifies that it behaves like the real one."""

    def __init__(self):
        self.own = PlacementInMemory()
        self.placement = As(Placement, self.own)

    def host(self, provider):
        self.placement.declare(provider)
        return provider

    def write(self, provider, part, name):
        """Write to a provider as another client of Placement."""
        getattr(self.own.providers[provider.id], part)[name] = Inventory(1, 1.0, 1) if part == 'inventories' else True

    def part(self, host, provider):
        """Declare a provider below a host, as another client of Placement."""
        self.own.part(host.id, provider)
        return provider

    def there(self, provider):
        """By part, the names that are present."""
        found = self.own.providers[provider.id]
        return {part: set(getattr(found, part)) for part in ('inventories', 'traits', 'aggregates')}

    def end(self):
        """Nothing is left to clean up."""


class RealPlacement:
    def __init__(self):
        self.cloud = cloud.running()
        self.service = self.cloud.service('placement')
        self.own = PlacementService(self.cloud.conf(text='[placement]\nenabled = true\n'))
        self.placement, self.made = As(Placement, self.own), []

    def host(self, provider):
        self.placement.declare(provider)
        self.made.append(provider.id)
        return provider

    def write(self, provider, part, name):
        path = f'/resource_providers/{provider.id}/{part}'
        document = self.service.get(path, microversion='1.38').json()
        document[part] = {**document[part], name: {'total': 1}} if part == 'inventories' else [*document[part], name]
        self.service.put(path, json=document, microversion='1.38')

    def part(self, host, provider):
        facts = {'uuid': provider.id, 'name': provider.name, 'parent_provider_uuid': host.id}
        self.service.post('/resource_providers', json=facts, microversion='1.20')
        for name in provider.traits:
            self.service.put(f'/traits/{name}', microversion='1.6')
        self.made.insert(0, provider.id)
        self.placement.declare(provider)
        return provider

    def there(self, provider):
        path = f'/resource_providers/{provider.id}'
        parts = ('inventories', 'traits', 'aggregates')
        return {part: set(self.service.get(f'{path}/{part}', microversion='1.38').json()[part]) for part in parts}

    def end(self):
        for provider_id in self.made:
            for consumer_id in self.placement.consumers_of(provider_id):
                self.service.delete(f'/allocations/{consumer_id}')
            self.placement.withdraw(provider_id)


HYPERVISOR = [simulated_hypervisor, *([remote_hypervisor] if broker.URL else [])]
NETWORK = [OwnNetworks, *([RealNetworks] if cloud.URL else [])]
VOLUME = [OwnVolumes, *([RealVolumes] if cloud.URL else [])]
IDENTITY = [OwnIdentity, *([RealIdentity] if cloud.URL else [])]
IMAGE = [OwnImages, *([RealImages] if cloud.URL else [])]
SHARE = [OwnShares]
PLACEMENT = [OwnPlacement, *([RealPlacement] if cloud.URL else [])]
