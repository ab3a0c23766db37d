"""Validates responses with Tempest, OpenStack's integration test suite.

Its clients are used unmodified, at every microversion: each picks Tempest's schema for that version, and rejects a
response with another status or another body. A worker creates the servers.
"""

import functools
import itertools

import pytest
import webob
from tempest.lib.common import rest_client
from tempest.lib.services import compute
from tempest.lib.services.compute import base_compute_client

from computeapi.context import Context
from computeapi.db.tables.compute import services
from computeapi.pipeline import load
from computeapi.versions import HISTORY, MAX, APIVersionRequest

ADMIN = Context(user_id='admin', project_id='admin', roles=frozenset({'admin'}), is_admin=True)
CLIENTS = {
    'aggregates': compute.AggregatesClient,
    'audits': compute.InstanceUsagesAuditLogClient,
    'documents': compute.VersionsClient,
    'extensions': compute.ExtensionsClient,
    'external_events': compute.ServerExternalEventsClient,
    'flavors': compute.FlavorsClient,
    'floating_ips': compute.FloatingIPsClient,
    'groups': compute.ServerGroupsClient,
    'hosts': compute.HostsClient,
    'hypervisors': compute.HypervisorClient,
    'images': compute.ImagesClient,
    'interfaces': compute.InterfacesClient,
    'keypairs': compute.KeyPairsClient,
    'limits': compute.LimitsClient,
    'migrations': compute.MigrationsClient,
    'networks': compute.NetworksClient,
    'quota_classes': compute.QuotaClassesClient,
    'quotas': compute.QuotasClient,
    'security_group_rules': compute.SecurityGroupRulesClient,
    'security_groups': compute.SecurityGroupsClient,
    'servers': compute.ServersClient,
    'services': compute.ServicesClient,
    'snapshots': compute.SnapshotsClient,
    'tenant_networks': compute.TenantNetworksClient,
    'usages': compute.TenantUsagesClient,
    'volumes': compute.VolumesClient,
    'zones': compute.AvailabilityZoneClient,
}


class Response(dict):
    """The headers in lower case, and the status, as Tempest's transport returns them."""

    def __init__(self, response):
        super().__init__({name.lower(): value for name, value in response.headers.items()}, status=response.status)
        self.status = response.status_int


class Wire:
    """Tempest's transport, into a WSGI app."""

    def __init__(self, app):
        self.app = app

    def request(self, url, method, headers=None, body=None, **options):
        content = body.encode() if isinstance(body, str) else body or b''
        response = webob.Request.blank(url, method=method, headers=headers, body=content).get_response(self.app)
        return Response(response), response.body


class Credentials:
    """Tempest's auth provider, for auth_strategy none."""

    token = 'admin:admin'

    def base_url(self, filters):
        return 'http://localhost/v2.1'

    def get_token(self):
        return self.token

    def auth_request(self, method, url, headers=None, body=None, filters=None):
        return f'{self.base_url(filters)}/{url.lstrip("/")}', {**headers, 'X-Auth-Token': self.token}, body


class Nova:
    """Tempest's clients, each under its name in CLIENTS, and what they need to boot servers."""

    def __init__(self, service, switch):
        """switch: sets the microversion that the clients request."""
        self.service, self.switch, self.admin = service, switch, ADMIN
        self.numbers = itertools.count()
        wire = Wire(load(service, 'standalone'))
        for name, kind in CLIENTS.items():
            client = kind(Credentials(), 'compute', 'RegionOne')
            client.http_obj = wire
            setattr(self, name, client)
        service.networks.populate(ADMIN)
        service.images.populate(ADMIN.project_id)
        self.network = next(each for each in service.networks.networks(ADMIN) if each.name == 'private')
        self.image = next(iter(service.images.list(ADMIN)))
        self.small, self.large = self.flavor(ram=64), self.flavor(ram=128)

    def versions(self, first='2.1', last=str(MAX)):
        """Speak every version from *first* to *last*, one after the other."""
        low, high = APIVersionRequest.parse(first), APIVersionRequest.parse(last)
        return (self.speak(text) for text in HISTORY if APIVersionRequest.parse(text).matches(low, high))

    def steps(self, client):
        """Speak only the versions at which *client* changes its schema, for slow tests."""
        return (self.speak(each['min'] or '2.1') for each in client.schema_versions_info)

    def speak(self, text):
        # pytest shows printed output if a test fails.
        print('At', text)
        self.version = APIVersionRequest.parse(text)
        self.switch(text)
        return self.version

    def since(self, version):
        return self.version >= APIVersionRequest.parse(version)

    def name(self):
        return f'name-{next(self.numbers)}'

    def flavor(self, **kwargs):
        sizes = {'ram': 64, 'vcpus': 1, 'disk': 1}
        return self.flavors.create_flavor(name=self.name(), **sizes | kwargs)['flavor']['id']

    def fail_host_of(self, server):
        """Mark the host of a server as down, and all others as up."""
        host = self.servers.show_server(server)['server']['OS-EXT-SRV-ATTR:host']
        with self.service.store.write() as connection:
            connection.execute(services.update().values(forced_down=services.c.host == host))

    def settle(self):
        """Let the worker do what is due."""
        while self.service.worker.step():
            pass

    def boot(self, **kwargs):
        """Creates a server; returns its ID when it runs."""
        what = {'imageRef': self.image.id, 'flavorRef': self.small, 'networks': [{'uuid': self.network.id}]}
        made = self.servers.create_server(name=self.name(), **what | kwargs)
        self.settle()
        return made['server']['id']

    def act(self, action, server, *args, **kwargs):
        """Call a method of the servers client and let the worker carry it out; returns the response."""
        answer = getattr(self.servers, action)(server, *args, **kwargs)
        self.settle()
        return answer


@pytest.fixture
def database():
    """These tests do not depend on the database."""
    return 'sqlite'


@pytest.fixture
def nova(service, monkeypatch):
    # Tempest validates its schemas again for every response, which takes longer than the request.
    monkeypatch.setattr(rest_client.JSONSCHEMA_VALIDATOR, 'check_schema', lambda *_, **__: None)
    service.conf.set_override('hosts', 2, 'simulated')
    service.hosts.register()
    return Nova(service, functools.partial(monkeypatch.setattr, base_compute_client, 'COMPUTE_MICROVERSION'))
