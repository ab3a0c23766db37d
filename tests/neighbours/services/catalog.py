"""The initial content of the cloud: services and their users, an external network, volume types."""

from keystoneauth1.identity import v3
from keystoneauth1.session import Session

from .configuration import APIS, PASSWORD, REGION

PATHS = {'keystone': '/v3', 'cinder': '/v3', 'nova': '/v2.1'}
INTERFACES = ('public', 'internal', 'admin')
PUBLIC_SUBNET = {'cidr': '203.0.113.0/24', 'ip_version': 4, 'enable_dhcp': False, 'name': 'public-subnet'}
POOL = {'name': 'shared', 'prefixes': ['10.64.0.0/12'], 'default_prefixlen': 26, 'shared': True, 'is_default': True}
VOLUME_TYPES = {'fake': {}, 'multiattach': {'multiattach': '<is> True'}}


class Catalog:
    """Sends requests as the administrator."""

    def __init__(self, configuration):
        self.configuration = configuration
        domains = {'user_domain_id': 'default', 'project_domain_id': 'default'}
        self.session = Session(
            v3.Password(configuration.identity, username='admin', password=PASSWORD, project_name='admin', **domains)
        )

    def post(self, name, path, body, **more):
        """Create a resource; returns it."""
        [kind] = body
        return self.session.post(self.configuration.url(name, path), json=body, **more).json()[kind]

    def identity(self):
        """Create users with the roles admin and service in the project `service`, and the service catalog."""
        keystone = self.configuration.identity
        listed = self.session.get(f'{keystone}/roles').json()['roles']
        roles = [role['id'] for role in listed if role['name'] in ('admin', 'service')]
        project = self.post('keystone', '/v3/projects', {'project': {'name': 'service', 'domain_id': 'default'}})
        for name, kind in {**APIS, 'nova': 'compute'}.items():
            user = {'name': name, 'password': PASSWORD, 'domain_id': 'default'}
            if name == 'keystone':
                continue
            user_id = self.post('keystone', '/v3/users', {'user': user})['id']
            for role in roles:
                self.session.put(f'{keystone}/projects/{project["id"]}/users/{user_id}/roles/{role}')
            service = self.post('keystone', '/v3/services', {'service': {'type': kind, 'name': name}})['id']
            for interface in INTERFACES:
                url = self.configuration.url(name, PATHS.get(name, ''))
                facts = {'service_id': service, 'interface': interface, 'url': url, 'region_id': REGION}
                self.post('keystone', '/v3/endpoints', {'endpoint': facts})

    def networks(self):
        """Create the external network `public`, and the subnet pool for auto-allocated networks."""
        facts = {'name': 'public', 'router:external': True, 'is_default': True, 'provider:network_type': 'flat'}
        facts['provider:physical_network'] = 'public'
        network = self.post('neutron', '/v2.0/networks', {'network': facts})['id']
        self.post('neutron', '/v2.0/subnets', {'subnet': {'network_id': network, **PUBLIC_SUBNET}})
        self.post('neutron', '/v2.0/subnetpools', {'subnetpool': POOL})

    def volume_types(self):
        for name, specs in VOLUME_TYPES.items():
            self.post('cinder', '/v3/types', {'volume_type': {'name': name, 'extra_specs': specs}})
