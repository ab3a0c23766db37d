"""The API itself, quotas, flavors, key pairs and server groups."""

PUBLIC_KEY = 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJqbkQ1nTVHnF4ROhu+Lrqm6GqFsaAl0ayVk5EpQ0pTP bob'


def test_about_the_api(nova):
    for _ in nova.versions():
        nova.documents.list_versions()
        nova.documents.get_version_by_url('http://localhost/v2.1/')
        nova.documents.get_version_by_url('http://localhost/v2/')
        nova.extensions.list_extensions()
        nova.limits.show_limits()
        nova.zones.list_availability_zones()
        nova.zones.list_availability_zones(detail=True)


def test_quotas(nova):
    for _ in nova.versions():
        nova.quotas.show_quota_set('admin')
        nova.quotas.show_quota_set('admin', user_id='admin')
        nova.quotas.show_quota_set('admin', detail=True)
        nova.quotas.show_default_quota_set('admin')
        nova.quotas.update_quota_set('admin', cores=40)
        nova.quotas.update_quota_set('admin', user_id='admin', cores=30)
        nova.quotas.delete_quota_set('admin')
        nova.quota_classes.show_quota_class_set('default')
        nova.quota_classes.update_quota_class_set('default', ram=4096)


def test_flavors(nova):
    for _ in nova.versions():
        flavor = nova.flavor(**{'os-flavor-access:is_public': False})
        nova.flavors.set_flavor_extra_spec(flavor, **{'hw:cpu_policy': 'shared'})
        nova.flavors.list_flavors()
        nova.flavors.list_flavors(detail=True)
        nova.flavors.show_flavor(flavor)
        if nova.since('2.55'):
            nova.flavors.update_flavor(flavor, description='small')
        nova.flavors.list_flavor_extra_specs(flavor)
        nova.flavors.show_flavor_extra_spec(flavor, 'hw:cpu_policy')
        nova.flavors.update_flavor_extra_spec(flavor, 'hw:cpu_policy', **{'hw:cpu_policy': 'dedicated'})
        nova.flavors.unset_flavor_extra_spec(flavor, 'hw:cpu_policy')
        nova.flavors.add_flavor_access(flavor, 'demo')
        nova.flavors.list_flavor_access(flavor)
        nova.flavors.remove_flavor_access(flavor, 'demo')
        nova.flavors.delete_flavor(flavor)


def test_keypairs(nova):
    for _ in nova.versions():
        nova.keypairs.create_keypair(name='key', public_key=PUBLIC_KEY)
        nova.keypairs.list_keypairs()
        nova.keypairs.show_keypair('key')
        owner = {'user_id': 'admin'} if nova.since('2.10') else {}
        nova.keypairs.delete_keypair('key', **owner)


def test_keypairs_that_are_made(nova):
    for version in ('2.1', '2.2', '2.91'):
        nova.speak(version)
        assert nova.keypairs.create_keypair(name=nova.name())['keypair']['private_key']


def test_server_groups(nova):
    used = nova.groups.create_server_group(name='used', policies=['affinity'])['server_group']['id']
    nova.boot(scheduler_hints={'group': used})
    for _ in nova.versions():
        assert nova.groups.show_server_group(used)['server_group']['members']
        nova.groups.list_server_groups()
        policy = {'policy': 'affinity'} if nova.since('2.64') else {'policies': ['affinity']}
        group = nova.groups.create_server_group(name='group', **policy)['server_group']['id']
        nova.groups.delete_server_group(group)
