"""openstacksdk, with a password and with an application credential."""

import openstack
import pytest

pytestmark = pytest.mark.filterwarnings('ignore')


@pytest.fixture(scope='module')
def connection(cloud):
    connection = openstack.connection.Connection(
        auth={
            'auth_url': f'{cloud.url}/identity/v3',
            'username': 'admin',
            'password': cloud.password,
            'project_name': 'admin',
            'user_domain_id': 'default',
            'project_domain_id': 'default',
        },
        region_name='RegionOne',
    )
    yield connection
    connection.close()


def test_create_wait_list_delete(connection):
    server = connection.create_server(
        'sdk', image=next(connection.image.images()), flavor='m1.small', network='private', wait=True, timeout=60
    )
    assert server.status == 'ACTIVE'
    assert [each.name for each in connection.compute.servers(name='sdk')] == ['sdk']
    assert connection.compute.get_server(server.id).flavor.original_name == 'm1.small'
    assert connection.delete_server(server.id, wait=True, timeout=60)
    assert connection.compute.find_server('sdk') is None


def test_boot_from_a_new_volume(connection):
    image = next(connection.image.images())
    server = connection.create_server(
        'on-volume',
        image=image,
        flavor='m1.small',
        network='private',
        boot_from_volume=True,
        volume_size=1,
        terminate_volume=True,
        wait=True,
        timeout=60,
    )
    (attached,) = connection.compute.get_server(server.id).attached_volumes
    assert connection.block_storage.get_volume(attached['id']).status == 'in-use'
    assert connection.delete_server(server.id, wait=True, timeout=60)
    assert connection.block_storage.find_volume(attached['id']) is None


def wait(connection, server, status='ACTIVE'):
    return connection.compute.wait_for_server(server, status=status, interval=0.1, wait=60)


@pytest.fixture
def server(connection):
    """A server that other tests do not use."""
    facts = {'imageRef': next(connection.image.images()).id, 'flavorRef': '1'}
    network = connection.network.find_network('private')
    made = connection.compute.create_server(name='server', networks=[{'uuid': network.id}], **facts)
    yield wait(connection, made)
    connection.compute.delete_server(made)
    connection.compute.wait_for_delete(made, interval=0.1, wait=60)


def test_floating_ip(connection):
    image = next(connection.image.images())
    made = connection.create_server(
        'reachable', image=image, flavor='m1.tiny', network='private', auto_ip=True, wait=True, timeout=60
    )
    server = connection.get_server(made.id)
    (floating,) = connection.network.ips()
    assert server.public_v4 == floating.floating_ip_address
    assert server.private_v4 == floating.fixed_ip_address
    assert connection.delete_server(server.id, wait=True, timeout=60, delete_ips=True)
    assert not list(connection.network.ips())


def test_group_and_keypair(connection):
    group = connection.create_server_group('apart', policy='anti-affinity')
    key = connection.create_keypair('key')
    assert key.private_key.startswith('-----BEGIN')
    server = connection.create_server(
        'member',
        image=next(connection.image.images()),
        flavor='m1.tiny',
        network='private',
        key_name='key',
        group='apart',
        wait=True,
        timeout=60,
    )
    assert server.key_name == 'key'
    assert connection.get_server_group(group.id).member_ids == [server.id]
    assert connection.delete_server(server.id, wait=True, timeout=60)
    assert connection.delete_keypair('key') and connection.delete_server_group('apart')


def test_security_groups(connection, server):
    group = connection.create_security_group('web', 'for web servers')
    assert connection.add_server_security_groups(server, ['web'])
    assert {each['name'] for each in connection.list_server_security_groups(server)} == {'default', 'web'}
    assert connection.remove_server_security_groups(server, ['web'])
    assert connection.delete_security_group(group.id)


def test_volumes(connection, server):
    volume = connection.create_volume(1, name='data', wait=True, timeout=60)
    attachment = connection.attach_volume(server, volume, wait=True, timeout=60)
    assert attachment.device == '/dev/vdb'
    assert connection.get_volume(volume.id).attachments[0]['server_id'] == server.id
    connection.detach_volume(server, connection.get_volume(volume.id), wait=True, timeout=60)
    # The volume is available a moment before the server's attachment is gone, as with Nova.
    for _ in openstack.utils.iterate_timeout(60, 'The server keeps its volume.', wait=0.1):
        if not list(connection.compute.volume_attachments(server)):
            break
    assert connection.delete_volume(volume.id, wait=True, timeout=60)


def test_shares(connection, server):
    files = connection.shared_file_system
    share = files.create_share(share_protocol='NFS', size=1, name='home')
    connection.compute.stop_server(server)
    wait(connection, server, 'SHUTOFF')
    attached = connection.compute.create_share_attachment(server, share.id, tag='home')
    assert [attached.export_location] == [location.path for location in files.export_locations(share)]
    connection.compute.start_server(server)
    wait(connection, server)
    assert connection.compute.get_share_attachment(server, share.id).status == 'active'
    assert [rule.access_level for rule in files.access_rules(share)] == ['rw']
    with pytest.raises(openstack.exceptions.ForbiddenException):
        files.delete_share(share)
    connection.compute.stop_server(server)
    wait(connection, server, 'SHUTOFF')
    connection.compute.delete_share_attachment(server, share.id)
    connection.compute.start_server(server)
    wait(connection, server)
    files.delete_share(share)
    assert (list(connection.compute.share_attachments(server)), list(files.shares())) == ([], [])


def test_interfaces(connection, server):
    port = connection.network.create_port(network_id=connection.network.find_network('private').id, name='second')
    interface = connection.compute.create_server_interface(server, port_id=port.id)
    assert port.id in [each.port_id for each in connection.compute.server_interfaces(server)]
    connection.compute.delete_server_interface(port.id, server=server)
    connection.compute.wait_for_delete(interface, interval=0.1, wait=60)
    assert len(list(connection.compute.server_interfaces(server))) == 1
    connection.network.delete_port(port)


def test_resize(connection, server):
    connection.compute.resize_server(server, '2')
    wait(connection, server, 'VERIFY_RESIZE')
    connection.compute.confirm_server_resize(server)
    assert wait(connection, server).flavor.original_name == 'm1.small'
    connection.compute.resize_server(server, '1')
    wait(connection, server, 'VERIFY_RESIZE')
    connection.compute.revert_server_resize(server)
    assert wait(connection, server).flavor.original_name == 'm1.small'


def test_rebuild(connection, server):
    image = next(connection.image.images())
    rebuilt = connection.compute.rebuild_server(server, image=image, name='rebuilt', metadata={'a': '1'})
    assert rebuilt.name == 'rebuilt'
    assert wait(connection, server).metadata == {'a': '1'}


def test_shelving(connection, server):
    connection.compute.shelve_server(server)
    wait(connection, server, 'SHELVED_OFFLOADED')
    connection.compute.unshelve_server(server)
    assert wait(connection, server).compute_host


def test_power(connection, server):
    for there, status, back in (
        ('stop', 'SHUTOFF', 'start'),
        ('pause', 'PAUSED', 'unpause'),
        ('suspend', 'SUSPENDED', 'resume'),
        ('rescue', 'RESCUE', 'unrescue'),
    ):
        getattr(connection.compute, f'{there}_server')(server)
        wait(connection, server, status)
        getattr(connection.compute, f'{back}_server')(server)
        wait(connection, server)


def test_snapshot(connection, server):
    image = connection.create_image_snapshot('snapshot', server, wait=True, timeout=60)
    assert (image.status, image.properties['image_type']) == ('active', 'snapshot')
    assert connection.delete_image(image.id, wait=True, timeout=60)


def test_metadata_and_tags(connection, server):
    connection.compute.set_server_metadata(server, a='1', b='2')
    connection.compute.delete_server_metadata(server, ['a'])
    assert connection.compute.get_server_metadata(server).metadata == {'b': '2'}
    connection.compute.add_tag_to_server(server, 'red')
    assert connection.compute.get_server(server.id).tags == ['red']
    assert [each.id for each in connection.compute.servers(tags='red')] == [server.id]
    connection.compute.remove_tags_from_server(server)


def test_what_is_known_of_a_server(connection, server):
    console = connection.compute.create_console(server, console_type='novnc')
    assert console['url'].startswith('http')
    assert 'booting' in connection.get_server_console(server)
    (action,) = connection.compute.server_actions(server)
    assert connection.compute.get_server_action(action, server).events[0]['result'] == 'Success'
    assert connection.compute.get_server_diagnostics(server).num_cpus == 1


def test_what_there_is(connection):
    assert connection.list_availability_zone_names() == ['nova']
    assert connection.get_compute_limits().max_total_instances == 10
    assert connection.get_compute_quotas('admin').instances == 10
    assert connection.set_compute_quotas('admin', instances=20) is None
    assert connection.get_compute_quotas('admin').instances == 20
    connection.delete_compute_quotas('admin')
    assert connection.compute.get_flavor('1').name == 'm1.tiny'


def test_application_credential(cloud, connection):
    made = connection.identity.create_application_credential(connection.current_user_id, 'robot')
    other = openstack.connection.Connection(
        auth_type='v3applicationcredential',
        auth={
            'auth_url': f'{cloud.url}/identity/v3',
            'application_credential_id': made.id,
            'application_credential_secret': made.secret,
        },
        region_name='RegionOne',
    )
    assert [flavor.name for flavor in other.compute.flavors()][0] == 'm1.tiny'
    other.close()
    connection.identity.delete_application_credential(connection.current_user_id, made.id)
