"""A real cloud for test suites: projects and users for their callers, and cleanup.

It is enabled by COMPUTEAPI_TEST_NEIGHBOURS=http://admin:PASSWORD@HOST:PORT/v3, the URL of its Keystone with an
administrator; the service user `nova` of the project `service` must have the same password. `tests/neighbours/start`
prints it. Without it, none of these tests are collected. An example from tests/backends/implementations.py:

    class RealVolumes:
        def __init__(self, store, folder):
            self.cloud = cloud.running()                  # one for each pytest process
            self.cloud.clean('block-storage', 'image')    # what the previous test left
            own = CinderVolumes(self.cloud.conf(volume='cinder'))
            self.volumes = As(Volumes, self.cloud.translated(own))

        def limit(self, project_id, **limits):
            path = f'/os-quota-sets/{self.cloud.project_id(project_id)}'
            self.cloud.service('block-storage').put(path, json={'quota_set': limits})

    VOLUME = [OwnVolumes, *([RealVolumes] if cloud.URL else [])]

The suite still uses ALICE and 'apples'. To act as a caller without the backend:
`self.cloud.service('network', ALICE).post('/v2.0/networks', json=...)`.
"""

import functools
import os
import threading
import uuid
from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import urlsplit

from keystoneauth1.adapter import Adapter
from keystoneauth1.identity import v3
from keystoneauth1.service_token import ServiceTokenAuthWrapper
from keystoneauth1.session import Session

from computeapi import config
from computeapi.context import Context
from tests.neighbours.leftovers import CLEANING
from tests.neighbours.topology import Topology

URL = os.environ.get('COMPUTEAPI_TEST_NEIGHBOURS')

PROJECTS = ('admin', 'apples', 'bananas')
"""The names that suites use for projects."""
DEFAULT_DOMAIN = {'user_domain_id': 'default', 'project_domain_id': 'default'}
KEY = 'MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY='
ROOTS = {'network': '/v2.0', 'image': '/v2'}
"""Path prefixes that are missing in the catalog."""


@functools.cache
def running():
    """The cloud, with projects of this process's own."""
    return Cloud(URL)


def end():
    """Delete what this process created, if it used the cloud."""
    if running.cache_info().currsize:
        running().end()
        running.cache_clear()


class Cloud:
    """What a suite needs of a real cloud."""

    def __init__(self, url):
        parts = urlsplit(url)
        self.url = parts._replace(netloc=f'{parts.hostname}:{parts.port}').geturl()
        self.password = parts.password
        self.suffix = f'{os.environ.get("PYTEST_XDIST_WORKER", "main")}-{uuid.uuid4().hex[:6]}'
        self.session = Session(self.auth(parts.username, project_name='admin'))
        self.lock = threading.RLock()
        self.projects, self.users, self.callers = {}, {}, {}
        # The names that suites use, by the real ID or name.
        self.names = {}
        self.folder = TemporaryDirectory(prefix='computeapi-cloud-')
        for name in PROJECTS:
            self.project_id(name)
        self.topology = Topology(self.service('network'), self.projects)

    @functools.cached_property
    def administrator(self):
        return ServiceTokenAuthWrapper(self.session.auth, self.auth('nova', project_name='service'))

    def auth(self, user, **scope):
        return v3.Password(self.url, username=user, password=self.password, **DEFAULT_DOMAIN, **scope)

    def service(self, kind, context=None):
        """A service of the catalog, called by an administrator or the given caller, with paths such as /ports or
        /volumes. Requests of the administrator carry a service token, so that they may detach a volume from a server
        that never existed."""
        auth = self.password_of(context) if context else self.administrator
        found = Adapter(self.session, auth=auth, service_type=kind, interface='public')
        root = ROOTS.get(kind)
        return Rooted(found, root) if root else found

    # Callers

    def project_id(self, name):
        """The ID of the project with this name in suites; other values are returned unchanged."""
        with self.lock:
            if name in PROJECTS and name not in self.projects:
                real = f'{name}-{self.suffix}'
                body = {'project': {'name': real, 'domain_id': 'default'}}
                self.projects[name] = self.identity('POST', '/projects', body)['project']['id']
                self.names |= {self.projects[name]: name, real: name}
        return self.projects.get(name, name)

    def context(self, context):
        """The same caller with real IDs, and with a token unless it is this service's own work."""
        if context == context.elevated():
            user_id = self.user(replace(context, roles=frozenset()))[0] if context.user_id else None
            return replace(context, user_id=user_id, project_id=self.project_id(context.project_id))
        if context.auth_token or context.user_id is None:
            return context
        with self.lock:
            key = context.user_id, context.project_id, context.roles
            if key not in self.callers:
                self.callers[key] = self.logged_in(context)
        return replace(context, **self.callers[key])

    def logged_in(self, context):
        access = self.password_of(context).get_access(self.session)
        return {
            'user_id': access.user_id,
            'user_name': access.username,
            'project_id': access.project_id,
            'project_name': access.project_name,
            'user_domain_id': access.user_domain_id,
            'project_domain_id': access.project_domain_id,
            'roles': frozenset(access.role_names),
            'auth_token': access.auth_token,
        }

    def password_of(self, context):
        """The auth plugin that logs the caller in."""
        with self.lock:
            _, name = self.user(context)
            scoped = context.roles and context.project_id
            return self.auth(name, **({'project_id': self.project_id(context.project_id)} if scoped else {}))

    def user(self, context):
        """The ID and the name of a user that has exactly these roles in the project."""
        key = context.user_id, context.project_id, context.roles
        with self.lock:
            if key not in self.users:
                name = f'{context.user_id}-{self.suffix}-{len(self.users)}'
                body = {'user': {'name': name, 'domain_id': 'default', 'password': self.password}}
                user_id = self.identity('POST', '/users', body)['user']['id']
                for role in context.roles if context.project_id else ():
                    place = f'/projects/{self.project_id(context.project_id)}/users/{user_id}'
                    self.identity('PUT', f'{place}/roles/{self.roles[role]}')
                self.users[key] = user_id, name
                self.names |= {user_id: context.user_id, name: context.user_id}
            return self.users[key]

    @functools.cached_property
    def roles(self):
        return {role['name']: role['id'] for role in self.identity('GET', '/roles')['roles']}

    def identity(self, method, path, body=None):
        answer = self.session.request(self.url + path, method, json=body)
        return answer.json() if answer.content else None

    # Arguments and results of backends

    def conf(self, *, text='', url=None, **backends):
        """A configuration as in a deployment, with `text` appended; image='glance', volume='cinder' ... select backends
        that are not built in. url: of Keystone, if it is to be reached another way."""
        who = f'auth_type = password\nauth_url = {url or self.url}\nusername = nova\npassword = {self.password}\n'
        who += 'project_name = service\nuser_domain_id = default\nproject_domain_id = default\n'
        lines = [f'[service_user]\n{who}task_token_key = {KEY}\n[keystone_authtoken]\n{who}']
        lines += [f'[{kind}]\nbackend = {name}\n' for kind, name in backends.items()]
        file = Path(self.folder.name, f'{uuid.uuid4()}.conf')
        file.write_text(''.join([*lines, text]))
        return config.load([str(file)], {('api', 'auth_strategy'): 'keystone'})

    def translated(self, backend):
        """The backend, to be called with the names that suites use instead of IDs."""
        return Translated(self, backend)

    def real(self, value):
        """Replaces the callers and projects of a suite by the cloud's, at any depth."""
        if isinstance(value, Context):
            return self.context(value)
        if isinstance(value, str):
            return self.projects.get(value, value)
        return _each(self.real, value)

    def called(self, value):
        """Replaces the cloud's IDs and names by those of the suite, at any depth."""
        if isinstance(value, str):
            return self.names.get(value, value)
        return _each(self.called, value)

    # Cleanup

    def clean(self, *kinds):
        """Delete the projects' resources and quotas in these kinds of services (default: all), except those that
        Topology created."""
        for kind in kinds or CLEANING:
            CLEANING[kind](self.service(kind), list(self.projects.values()), self.topology.kept)

    def end(self):
        self.clean()
        self.topology.end()
        for user_id, _ in self.users.values():
            self.identity('DELETE', f'/users/{user_id}')
        for project_id in self.projects.values():
            self.identity('DELETE', f'/projects/{project_id}')
        self.session.session.close()
        self.folder.cleanup()


class Rooted:
    """A service whose URLs in the catalog lack the version."""

    def __init__(self, adapter, root):
        self.adapter, self.root = adapter, root

    def __getattr__(self, name):
        ask = getattr(self.adapter, name)
        return lambda path, **kwargs: ask(self.root + path, **kwargs)


class Translated:
    """A backend that is called with a suite's names, and translates them to the cloud's."""

    def __init__(self, cloud, backend):
        self._cloud, self._backend = cloud, backend

    def __getattr__(self, name):
        found = getattr(self._backend, name)
        if not callable(found):
            return found

        def call(*args, **kwargs):
            return self._cloud.called(found(*self._cloud.real(args), **self._cloud.real(kwargs)))

        return call


def _each(change, value):
    """The value with its parts changed; iterators and values without parts are returned unchanged."""
    if is_dataclass(value) and not isinstance(value, type):
        return replace(value, **{each.name: change(getattr(value, each.name)) for each in fields(value) if each.init})
    if isinstance(value, Mapping):
        return {change(key): change(item) for key, item in value.items()}
    if type(value) in (list, tuple, set, frozenset):
        return type(value)(map(change, value))
    return value
