"""The networks that suites find: `public` to the outside and, shared or not, `private` behind it.

`public` is the cloud's, for a Neutron has one default for the outside, and `private` each process's own. Who sees them
is said by RBAC policies: so tests that run at once have each their own cloud, whose networks are there or not.
"""

SHARED, EXTERNAL = 'access_as_shared', 'access_as_external'
SUBNET = {'cidr': '10.0.0.0/16', 'ip_version': 4, 'name': 'private-subnet'}


class Topology:
    """Networks for these projects (ids by name), the administrators' own among them."""

    def __init__(self, neutron, projects):
        self.neutron, self.projects = neutron, projects
        self.kept, self.seen = set(), {}

    def show(self, *, shared=True, bare=False):
        """From now on there is `public`, and `private`, for everybody (shared) or administrators; or neither (bare)."""
        public, private = self.networks
        self.set(EXTERNAL, public, [] if bare else self.projects.values())
        # Its owner sees it as shared, too: it is there for servers of everybody.
        self.set(SHARED, private, [] if bare or not shared else self.projects.values())

    @property
    def networks(self):
        """The ids of `public` and `private`, which is made when first asked for."""
        if not self.kept:
            [public, *_] = self.neutron.get('/networks?router:external=True&is_default=True').json()['networks']
            owner = {'project_id': self.projects['admin']}
            private = self._made('network', {'name': 'private', **owner})
            subnet = self._made('subnet', {'network_id': private, **SUBNET, **owner})
            gateway = {'external_gateway_info': {'network_id': public['id']}}
            self.router = self._made('router', {'name': 'router1', **gateway, **owner})
            self.neutron.put(f'/routers/{self.router}/add_router_interface', json={'subnet_id': subnet})
            self.subnet, self.pair = subnet, (public['id'], private)
            self.kept |= {private, self.router}
        return self.pair

    def set(self, action, network_id, wanted):
        """Who may use the network so."""
        seen = self.seen.setdefault(network_id, {})
        for project_id in set(wanted) - set(seen):
            facts = {'object_type': 'network', 'object_id': network_id, 'action': action, 'target_tenant': project_id}
            seen[project_id] = self._made('rbac_policy', facts, 'rbac-policies')
        for project_id in set(seen) - set(wanted):
            self.neutron.delete(f'/rbac-policies/{seen.pop(project_id)}')

    def end(self):
        """Delete what was made."""
        if self.kept:
            self.neutron.put(f'/routers/{self.router}/remove_router_interface', json={'subnet_id': self.subnet})
            self.neutron.delete(f'/routers/{self.router}')
            for network_id in self.pair:
                self.set('', network_id, [])
            self.neutron.delete(f'/networks/{self.pair[1]}')

    def _made(self, kind, facts, plural=None):
        return self.neutron.post(f'/{plural or kind + "s"}', json={kind: facts}).json()[kind]['id']
