"""The proxy APIs for other services, until 2.35."""

LAST = '2.35'


def test_images(nova):
    server = nova.boot()
    for _ in nova.versions(last=LAST):
        made = nova.images.create_image(server, name='image').response['location'].rpartition('/')[2]
        nova.settle()
        nova.images.list_images()
        nova.images.list_images(detail=True)
        nova.images.show_image(made)
        nova.images.delete_image(made)


def test_metadata_of_images(nova):
    image = nova.image.id
    for _ in nova.versions(last='2.38'):
        nova.images.set_image_metadata(image, {'a': '1'})
        nova.images.update_image_metadata(image, {'b': '2'})
        nova.images.list_image_metadata(image)
        nova.images.set_image_metadata_item(image, 'c', {'c': '3'})
        nova.images.show_image_metadata_item(image, 'c')
        nova.images.delete_image_metadata_item(image, 'c')


def test_networks(nova):
    for _ in nova.versions(last=LAST):
        nova.networks.list_networks()
        nova.networks.show_network(nova.network.id)
        nova.tenant_networks.list_tenant_networks()
        nova.tenant_networks.show_tenant_network(nova.network.id)


def test_floating_ips(nova):
    server = nova.boot()
    for _ in nova.versions(last=LAST):
        made = nova.floating_ips.create_floating_ip(pool='public')['floating_ip']
        nova.floating_ips.associate_floating_ip_to_server(made['ip'], server)
        nova.floating_ips.list_floating_ips()
        nova.floating_ips.show_floating_ip(made['id'])
        nova.floating_ips.disassociate_floating_ip_from_server(made['ip'], server)
        nova.floating_ips.delete_floating_ip(made['id'])


def test_security_groups(nova):
    for _ in nova.versions(last=LAST):
        group = nova.security_groups.create_security_group(name='web', description='for web servers')
        made = group['security_group']['id']
        rule = {'ip_protocol': 'tcp', 'from_port': 80, 'to_port': 80, 'cidr': '10.0.0.0/8'}
        added = nova.security_group_rules.create_security_group_rule(parent_group_id=made, **rule)
        nova.security_groups.list_security_groups()
        nova.security_groups.show_security_group(made)
        nova.security_group_rules.delete_security_group_rule(added['security_group_rule']['id'])
        nova.security_groups.update_security_group(made, name='web', description='of old')
        nova.security_groups.delete_security_group(made)


def test_volumes(nova):
    for _ in nova.versions(last=LAST):
        volume = nova.volumes.create_volume(size=1, display_name='data', metadata={'a': '1'})['volume']['id']
        nova.volumes.list_volumes()
        nova.volumes.list_volumes(detail=True)
        nova.volumes.show_volume(volume)
        snapshot = nova.snapshots.create_snapshot(volume, display_name='copy')['snapshot']['id']
        nova.snapshots.list_snapshots()
        nova.snapshots.list_snapshots(detail=True)
        nova.snapshots.show_snapshot(snapshot)
        nova.snapshots.delete_snapshot(snapshot)
        nova.volumes.delete_volume(volume)
