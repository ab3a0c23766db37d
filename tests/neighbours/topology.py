"""The networks that suites find: `public` to the outside and, shared or not, `private` behind it.

`public` is the cloud's, for a Neutron has one default for the outside, and `private` each process's own. RBAC policies
say who sees it: so tests that run at once do not see each other's.
"""

import functools

SHARED = 'access_as_shared'
SUBNET = {'cidr': '10.0.0.0/16', 'ip_version': 4, 'name': 'private-subnet'}


class Topology:
    """Networks for these projects (ids by name), the administrators' own among them."""

    def __init__(self, neutron, projects):
        self.neutron, self.projects = neutron, projects
        self.kept, self.seen = set(), {}

    def show(self, *, shared=True):
        """From now on there is `private` for everybody, or for administrators."""
        private, wanted = self.private, set(self.projects.values()) if shared else set()
        for project_id in wanted - set(self.seen):
            self.seen[project_id] = self._shared(private, project_id)
        for project_id in set(self.seen) - wanted:
            self.neutron.delete(f'/rbac-policies/{self.seen.pop(project_id)}')

    def share(self, network_id):
        """Let all projects of this process use the network. One that is `shared` is everybody's: tests that run at
        once would see it."""
        for project_id in self.projects.values():
            self._shared(network_id, project_id)

    @functools.cached_property
    def private(self):
        """The id of the network, which is made when first asked for, with a router to `public`."""
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
        """Delete what was made."""
        if self.kept:
            self.neutron.put(f'/routers/{self.router}/remove_router_interface', json={'subnet_id': self.subnet})
            self.neutron.delete(f'/routers/{self.router}')
            self.show(shared=False)
            self.neutron.delete(f'/networks/{self.private}')

    def _shared(self, network_id, project_id):
        facts = {'object_type': 'network', 'object_id': network_id, 'action': SHARED, 'target_tenant': project_id}
        # Each project may have so many policies, and these are for tests that run at once.
        facts['project_id'] = self.projects['admin']
        return self._made('rbac_policy', facts, 'rbac-policies')

    def _made(self, kind, facts, plural=None):
        return self.neutron.post(f'/{plural or kind + "s"}', json={kind: facts}).json()[kind]['id']
