"""The configuration of each service: few processes, no security beyond the loopback, and nothing persistent."""

from base64 import urlsafe_b64encode
from pathlib import Path

HOST = '127.0.0.1'
PASSWORD = 'neighbours'
REGION = 'RegionOne'
APIS = {
    'keystone': 'identity',
    'glance': 'image',
    'neutron': 'network',
    'cinder': 'block-storage',
    'placement': 'placement',
    'barbican': 'key-manager',
}
"""The services with HTTP APIs, and their types in the catalog."""
PORTS = (*APIS, 'nova', 'memcached')
"""Everything that has a port; nothing listens at nova's unless a test runs a compute service there."""


class Configuration:
    """Writes the files below *folder*; *ports* by name, *databases*: the URL of the server with the prefix of names."""

    def __init__(self, folder, ports, databases, queue):
        self.folder, self.ports, self.databases, self.queue = folder, ports, databases, queue
        self.identity = self.url('keystone', '/v3')
        # The files that the packages installed.
        self.packaged = folder / 'env' / 'etc'

    def url(self, name, path=''):
        return f'http://{HOST}:{self.ports[name]}{path}'

    def data(self, *parts):
        """A directory below data/."""
        path = self.folder.joinpath('data', *parts)
        path.mkdir(parents=True, exist_ok=True)
        return path

    def write(self):
        self.plugins()
        for name in APIS:
            file = self.folder / 'etc' / name / f'{"glance-api" if name == "glance" else name}.conf'
            file.parent.mkdir(parents=True, exist_ok=True)
            sections = getattr(self, name)()
            lines = []
            for section, options in sections.items():
                lines += [f'[{section}]', *(f'{option} = {value}' for option, value in options.items()), '']
            file.write_text('\n'.join(lines))

    def plugins(self):
        """Install the drivers of tests/neighbours/services/plugins under the names that services look for."""
        (self.folder / 'plugins').mkdir(exist_ok=True)
        packaged = self.folder / 'plugins' / 'neighbours-1.dist-info'
        packaged.mkdir(exist_ok=True)
        (packaged / 'METADATA').write_text('Metadata-Version: 2.1\nName: neighbours\nVersion: 1\n')
        point = '[neutron.ml2.mechanism_drivers]\nanything = neighbours_ml2:BindsAnything\n'
        (packaged / 'entry_points.txt').write_text(point)
        for file in Path(__file__).parent.joinpath('plugins').glob('*.py'):
            (self.folder / 'plugins' / file.name).write_text(file.read_text())

    # Common parts

    def database(self, name):
        return {'connection': f'{self.databases}{name}', 'max_pool_size': 4, 'max_overflow': 8}

    def user(self, name):
        return {
            'auth_type': 'password',
            'auth_url': self.identity,
            'username': name,
            'password': PASSWORD,
            'project_name': 'service',
            'user_domain_id': 'default',
            'project_domain_id': 'default',
            'region_name': REGION,
        }

    def tokens(self, name):
        """The options for checking the tokens of callers."""
        return {
            **self.user(name),
            'www_authenticate_uri': self.identity,
            'memcached_servers': f'{HOST}:{self.ports["memcached"]}',
            'service_token_roles': 'service',
            'service_token_roles_required': 'true',
            'service_type': APIS[name],
        }

    def common(self, name):
        return {
            'oslo_concurrency': {'lock_path': self.data(name, 'locks')},
            'oslo_messaging_notifications': {'driver': 'noop'},
            'oslo_messaging_rabbit': {'heartbeat_in_pthread': 'true', 'rabbit_quorum_queue': 'false'},
            'database': self.database(name),
        }

    # Each service

    def keystone(self):
        for keys in ('fernet', 'credential'):
            for number in '01':
                file = self.data('keystone', keys) / number
                file.write_bytes(urlsafe_b64encode((number * 32).encode()))
                file.chmod(0o600)
            self.data('keystone', keys).chmod(0o700)
        memcached = f'{HOST}:{self.ports["memcached"]}'
        return {
            'DEFAULT': {'public_endpoint': self.url('keystone', '/')},
            'token': {'expiration': 28800},
            'fernet_tokens': {'key_repository': self.data('keystone', 'fernet')},
            'fernet_receipts': {'key_repository': self.data('keystone', 'fernet')},
            'credential': {'key_repository': self.data('keystone', 'credential')},
            'identity': {'password_hash_rounds': 4},
            'cache': {'enabled': 'true', 'backend': 'dogpile.cache.pymemcache', 'memcache_servers': memcached},
            **self.common('keystone'),
        }

    def glance(self):
        return {
            'DEFAULT': {
                'enabled_backends': 'file:file',
                'public_endpoint': self.url('glance'),
                'worker_self_reference_url': self.url('glance'),
            },
            'glance_store': {'default_backend': 'file'},
            'file': {'filesystem_store_datadir': self.data('glance', 'images')},
            'os_glance_staging_store': {'filesystem_store_datadir': self.data('glance', 'staging')},
            'os_glance_tasks_store': {'filesystem_store_datadir': self.data('glance', 'tasks')},
            'paste_deploy': {'flavor': 'keystone', 'config_file': self.packaged / 'glance/glance-api-paste.ini'},
            'wsgi': {'python_interpreter': self.folder / 'env/bin/python'},
            # Glance itself also verifies signatures when data are uploaded.
            'barbican': {'auth_endpoint': self.identity},
            'keystone_authtoken': self.tokens('glance'),
            **self.common('glance'),
        }

    def neutron(self):
        return {
            'DEFAULT': {
                'core_plugin': 'ml2',
                'service_plugins': 'router,auto_allocate,network_ip_availability,qos',
                'transport_url': self.queue,
                'state_path': self.data('neutron'),
                'api_paste_config': self.packaged / 'neutron/api-paste.ini',
                'dhcp_agent_notification': 'false',
                'send_events_interval': 1,
                'dns_domain': 'cloud.example.org.',
                'rpc_workers': 0,
                'rpc_state_report_workers': 0,
            },
            'quotas': dict.fromkeys((f'quota_{each}' for each in QUOTAS), 1000),
            'ml2': {
                'type_drivers': 'local,flat,vlan,vxlan',
                'project_network_types': 'vxlan',
                'mechanism_drivers': 'anything',
                'extension_drivers': 'port_security,dns_domain_ports,qos',
            },
            'ml2_type_flat': {'flat_networks': '*'},
            'ml2_type_vlan': {'network_vlan_ranges': 'physnet1:100:200'},
            'ml2_type_vxlan': {'vni_ranges': '1:10000'},
            'nova': {**self.user('neutron'), 'endpoint_type': 'public'},
            'placement': self.user('neutron'),
            'keystone_authtoken': self.tokens('neutron'),
            **self.common('neutron'),
        }

    def cinder(self):
        driver = {'volume_driver': 'neighbours_cinder.HoldsNothing'}
        return {
            'DEFAULT': {
                'transport_url': self.queue,
                'auth_strategy': 'keystone',
                'api_paste_config': self.packaged / 'cinder/api-paste.ini',
                'resource_query_filters_file': self.packaged / 'cinder/resource_filters.json',
                'rootwrap_config': self.packaged / 'cinder/rootwrap.conf',
                'state_path': self.data('cinder'),
                'image_conversion_dir': self.data('cinder', 'images'),
                'my_ip': HOST,
                'host': 'neighbours',
                'enabled_backends': 'near,far',
                'default_volume_type': 'fake',
                'glance_api_servers': self.url('glance'),
                'quota_volumes': 1000,
                'quota_snapshots': 1000,
                'quota_gigabytes': 100_000,
                'periodic_interval': 5,
            },
            'near': {**driver, 'volume_backend_name': 'near'},
            'far': {**driver, 'volume_backend_name': 'far', 'backend_availability_zone': 'far'},
            'coordination': {'backend_url': f'file://{self.data("cinder", "coordination")}'},
            'nova': {**self.user('cinder'), 'interface': 'public'},
            'service_user': {**self.user('cinder'), 'send_service_user_token': 'true'},
            'keystone_authtoken': self.tokens('cinder'),
            **self.common('cinder'),
        }

    def placement(self):
        return {
            'api': {'auth_strategy': 'keystone'},
            'placement_database': self.database('placement'),
            'keystone_authtoken': self.tokens('placement'),
        }

    def barbican(self):
        return {
            'DEFAULT': {'host_href': self.url('barbican')},
            'simple_crypto_plugin': {'kek': urlsafe_b64encode(b'barbican' * 4).decode()},
            'keystone_authtoken': self.tokens('barbican'),
            **self.common('barbican'),
        }


QUOTAS = ('network', 'subnet', 'port', 'router', 'floatingip', 'security_group', 'security_group_rule')
