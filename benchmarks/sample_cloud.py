"""A cloud with one resource of every kind and a page of servers, created by requests in this process."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import webob

from computeapi import config, serve
from computeapi.backends.image import blank
from computeapi.db import schema
from computeapi.main import Service
from computeapi.pipeline import load
from computeapi.serve import bootstrap
from computeapi.serve.directory import opened

NEWEST = '2.104'
PROXIES = '2.35'
"""The newest version that has the proxies to images, networks and volumes."""
KEY = 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJqfU8dDvMnPbZWwLbO5ZAS+PWN5Fs3MjkBnLuFPsAZq benchmark'
OPTIONS = {
    ('api', 'auth_strategy'): 'local',
    ('simulated', 'hosts'): 2,
    ('DEFAULT', 'service_down_time'): 1_000_000,
    ('identity', 'bcrypt_cost'): 4,
    **{('quota', name): -1 for name in ('instances', 'cores', 'ram')},
}


class SampleCloud:
    """paths: the path and the microversion of each GET, by name."""

    def __init__(self, folder: Path, database: str, page: int = 50):
        """page: the number of servers."""
        self.options = {**OPTIONS, ('database', 'connection'): database, ('standalone', 'data_dir'): str(folder)}
        conf = config.load(overrides=self.options)
        with opened(str(folder)) as directory:
            serve.configure(conf, directory)
            self.service = Service(conf)
            schema.upgrade(self.service.store)
            self.service.hosts.register()
            passwords = bootstrap.prepare(self.service, directory, None)
        self.app = load(self.service, 'standalone')
        self.token = self._log_in(passwords['admin'])
        self.paths = self._create(page)

    @property
    def environment(self) -> dict[str, str]:
        """The environment variables with which another process uses the same cloud."""
        return {f'OS_{group}__{name}'.upper(): str(value) for (group, name), value in self.options.items()}

    def request(self, method: str, path: str, body: Any = None, version: str = NEWEST) -> webob.Response:
        """The response of the compute API; SystemExit if it is an error."""
        headers = {'X-Auth-Token': self.token, 'OpenStack-API-Version': f'compute {version}'}
        more = {} if body is None else {'json': body}
        response = webob.Request.blank(f'/v2.1{path}', method=method, headers=headers, **more).get_response(self.app)
        if response.status_code >= 400:
            raise SystemExit(f'{method} {path}: {response.status} {response.text}')
        return response

    def _log_in(self, password: str) -> str:
        user = {'name': 'admin', 'domain': {'id': 'default'}, 'password': password}
        scope = {'project': {'name': 'admin', 'domain': {'id': 'default'}}}
        body = {'auth': {'identity': {'methods': ['password'], 'password': {'user': user}}, 'scope': scope}}
        response = webob.Request.blank('/identity/v3/auth/tokens', method='POST', json=body).get_response(self.app)
        return response.headers['X-Subject-Token']

    def _work(self) -> None:
        while self.service.worker.step():
            continue

    def _create(self, page: int) -> dict[str, tuple[str, str]]:
        self.request('POST', '/flavors/1/os-extra_specs', {'extra_specs': {'hw:cpu_policy': 'shared'}})
        self.request('POST', '/os-keypairs', {'keypair': {'name': 'benchmark', 'type': 'ssh', 'public_key': KEY}})
        aggregate = {'name': 'benchmark', 'availability_zone': None}
        aggregate = self.request('POST', '/os-aggregates', {'aggregate': aggregate}).json['aggregate']['id']
        group = {'name': 'benchmark', 'policy': 'anti-affinity'}
        group = self.request('POST', '/os-server-groups', {'server_group': group}).json['server_group']['id']
        volume = self.request('POST', '/os-volumes', {'volume': {'size': 1}}, PROXIES).json['volume']['id']
        network = self.request('GET', '/os-networks', version=PROXIES).json['networks'][0]['id']
        server = self._boot(page, group)
        port = self.request('GET', f'/servers/{server}/os-interface').json['interfaceAttachments'][0]['port_id']
        self.request('POST', f'/servers/{server}/os-volume_attachments', {'volumeAttachment': {'volumeId': volume}})
        self.request('PUT', f'/servers/{server}/tags', {'tags': ['benchmark']})
        self._work()
        self.request('POST', f'/servers/{server}/action', {'migrate': None})
        self._work()
        [migration] = self.request('GET', '/os-migrations').json['migrations']
        action = migration and self.request('GET', f'/servers/{server}/os-instance-actions').json['instanceActions'][0]
        hypervisor = self.request('GET', '/os-hypervisors').json['hypervisors'][0]['id']
        project = self.request('GET', f'/servers/{server}').json['server']['tenant_id']
        one = f'/servers/{server}'
        newest = {
            'version': '/',
            'flavor': '/flavors/1',
            'extra specs': '/flavors/1/os-extra_specs',
            'flavors': '/flavors',
            'limits': '/limits',
            'extension': '/extensions/os-keypairs',
            'zones': '/os-availability-zone',
            'key pair': '/os-keypairs/benchmark',
            'key pairs': '/os-keypairs',
            'server': one,
            'metadata': f'{one}/metadata',
            'tags': f'{one}/tags',
            'addresses': f'{one}/ips',
            'interface': f'{one}/os-interface/{port}',
            'attachment': f'{one}/os-volume_attachments/{volume}',
            'diagnostics': f'{one}/diagnostics',
            'topology': f'{one}/topology',
            'password': f'{one}/os-server-password',
            'shares': f'{one}/shares',
            'security groups': f'{one}/os-security-groups',
            'actions': f'{one}/os-instance-actions',
            'action': f'{one}/os-instance-actions/{action["request_id"]}',
            'migrations': '/os-migrations',
            'migrations of one': f'{one}/migrations',
            'aggregate': f'/os-aggregates/{aggregate}',
            'server group': f'/os-server-groups/{group}',
            'services': '/os-services',
            'hypervisor': f'/os-hypervisors/{hypervisor}',
            'quota set': f'/os-quota-sets/{project}',
            'quota detail': f'/os-quota-sets/{project}/detail',
            'quota class': '/os-quota-class-sets/default',
            'usage': f'/os-simple-tenant-usage/{project}',
            'servers': f'/servers?limit={page}',
            'details': f'/servers/detail?limit={page}',
        }
        proxies = {
            'image proxy': f'/images/{blank.IMAGE_ID}',
            'network proxy': f'/os-networks/{network}',
            'volume proxy': f'/os-volumes/{volume}',
        }
        found = {name: (path, NEWEST) for name, path in newest.items()}
        return found | {name: (path, PROXIES) for name, path in proxies.items()}

    def _boot(self, page: int, group: str) -> str:
        """Create that many servers on a network, one of them in the group; return the ID of that one."""
        server = {'name': 'benchmark', 'flavorRef': '1', 'imageRef': blank.IMAGE_ID, 'networks': 'auto'}
        server |= {'key_name': 'benchmark', 'metadata': {'purpose': 'benchmark'}}
        made = self.request('POST', '/servers', {'server': server, 'os:scheduler_hints': {'group': group}})
        if page > 1:
            self.request('POST', '/servers', {'server': server | {'min_count': page - 1, 'max_count': page - 1}})
        self._work()
        return str(made.json['server']['id'])

    def close(self) -> None:
        self.service.close()
