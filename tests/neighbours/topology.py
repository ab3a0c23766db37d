"""The networks that suites use: `public`, which is external, and `private` behind it, shared or not.

`public` belongs to the cloud, because Neutron has a single default external network; each process has its own
`private`. RBAC policies determine who sees it, so that concurrent tests do not see each other's.
"""

import functools

SHARED = 'access_as_shared'
SUBNET = {'cidr': '10.0.0.0/16', 'ip_version': 4, 'name': 'private-subnet'}


class Topology:
    """Networks for these projects (IDs by name), which include the administrators'."""

    def __init__(self, neutron, projects):
        self.neutron, self.projects = neutron, projects
        self.kept, self.seen = set(), {}

    def show(self, *, shared=True):
        """Share `private` with everybody, or with administrators only."""
        private, wanted = self.private, set(self.projects.values()) if shared else set()
        for project_id in wanted - set(self.seen):
            self.seen[project_id] = self._shared(private, project_id)
        for project_id in set(self.seen) - wanted:
            self.neutron.delete(f'/rbac-policies/{self.seen.pop(project_id)}')

    def share(self, network_id):
        """Share the network with all projects of this process. A `shared` network would be visible to concurrent
        tests."""
        for project_id in self.projects.values():
            self._shared(network_id, project_id)

    @functools.cached_property
    def private(self):
        """The ID of the network, created on first use with a router to `public`."""
        [public, *_] = self.neutron.get('/networks?router:external=True&is_default=True').json()['networks']
        owner = {'project_id': self.projects['admin']}
        private = self._made('network', {'name': 'private', **owner})
        self.subnet = self._made('subnet', {'network_id': private, **SUBNET, **owner})
        gateway = {'external_gateway_info': {'network_id': public['id']}}
        self.router = self._made('router', {'name': 'router1', **gateway, **owner})
        self.neutron.put(f'/routers/{self.router}/add_router_interface', json={'subnet_id': self.subnet})
        self.kept |= {private, self.router}
        return private

    def end(self):
        """Delete the created resources."""
        if self.kept:
            self.neutron.put(f'/routers/{self.router}/remove_router_interface', json={'subnet_id': self.subnet})
            self.neutron.delete(f'/routers/{self.router}')
            self.show(shared=False)
            self.neutron.delete(f'/networks/{self.private}')

    def _shared(self, network_id, project_id):
        facts = {'object_type': 'network', 'object_id': network_id, 'action': SHARED, 'target_tenant': project_id}
        # The policies belong to admin, because each project has a limit on their number.
        facts['project_id'] = self.projects['admin']
        return self._made('rbac_policy', facts, 'rbac-policies')

    def _made(self, kind, facts, plural=None):
        return self.neutron.post(f'/{plural or kind + "s"}', json={kind: facts}).json()[kind]['id']
