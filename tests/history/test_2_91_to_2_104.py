"""From Yoga on."""

from tests.api.servers.conftest import BOB, IMAGE, ROOT_VOLUME
from tests.history.conftest import ADMIN

KEY = 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl bob'


def test_2_91_a_server_is_unshelved_to_a_host(shelved, act, host):
    assert act(shelved, 'unshelve', {'host': 'compute2'}, '2.90').status == 400
    assert act(shelved, 'unshelve', {'host': 'compute2'}, '2.91').status == 403
    assert act(shelved, 'unshelve', {'host': 'compute2'}, '2.91', as_=ADMIN).status == 202
    assert host(shelved) == 'compute2'


def test_2_91_a_server_is_unpinned_from_its_zone(boot, act, show):
    server = boot(availability_zone='nova')
    act(server, 'shelve')
    assert show(server, '2.96')['pinned_availability_zone'] == 'nova'
    assert act(server, 'unshelve', {'availability_zone': None}, '2.90').status == 400
    assert act(server, 'unshelve', {'availability_zone': None}, '2.91').status == 202
    assert show(server, '2.96')['pinned_availability_zone'] is None


def test_2_92_key_pairs_are_only_imported(api):
    def create(version, **kwargs):
        return api.post('/os-keypairs', {'keypair': kwargs}, version)

    assert create('2.91', name='made').json['keypair']['private_key']
    assert create('2.92', name='another').status == 400
    assert create('2.91', name='bob@example.org', public_key=KEY).status == 400
    imported = create('2.92', name='bob@example.org', public_key=KEY)
    assert imported.status == 201 and 'private_key' not in imported.json['keypair']


def test_2_93_servers_on_volumes_are_rebuilt(boot, act, cloud, show):
    server, other = boot(imageRef=None, block_device_mapping_v2=[ROOT_VOLUME]), cloud.image()
    assert act(server, 'rebuild', {'imageRef': other}, '2.92').status == 400
    assert act(server, 'rebuild', {'imageRef': other}, '2.93').status == 202
    assert show(server)['status'] == 'ACTIVE'


def test_2_94_a_hostname_is_a_domain_name(create, boot, show):
    assert create('2.93', hostname='web.example.org').status == 400
    assert show(boot('2.94', hostname='web.example.org'), '2.94')['OS-EXT-SRV-ATTR:hostname'] == 'web.example.org'


def test_2_95_evacuated_servers_stay_stopped(cloud, boot, act, show, host):
    for version, status in (('2.94', 'ACTIVE'), ('2.95', 'SHUTOFF')):
        server = boot()
        before = host(server)
        cloud.down(before)
        assert act(server, 'evacuate', {}, version, as_=ADMIN).status == 200
        assert show(server)['status'] == status
        cloud.up(before)


def test_2_96_servers_show_the_zone_that_they_are_pinned_to(boot, show):
    free, pinned = boot(), boot(availability_zone='nova')
    assert 'pinned_availability_zone' not in show(pinned, '2.95')
    assert [show(server, '2.96')['pinned_availability_zone'] for server in (free, pinned)] == [None, 'nova']


def test_2_97_shares_are_attached_to_servers(api, cloud, server, act, settle):
    share = cloud.service.shares.create(cloud.bob, 1, 'NFS', name='home').id
    path, body = f'/servers/{server}/shares', {'share': {'share_id': share, 'tag': 'home'}}
    act(server, 'os-stop')
    assert [api.post(path, body, version, as_=BOB).status for version in ('2.96', '2.97')] == [404, 201]
    settle()
    act(server, 'os-start')
    mounted = {'share_id': share, 'status': 'active', 'tag': 'home'}
    assert api.get(path, '2.97', as_=BOB).json == {'shares': [mounted]}
    assert api.get(path, '2.96', as_=BOB).status == 404


def test_2_98_servers_embed_the_properties_of_their_image(cloud, boot, show):
    image = cloud.image(properties={'hw_machine_type': 'q35'})
    server = boot(imageRef=image)
    assert show(server, '2.97')['image'].keys() == {'id', 'links'}
    assert show(server, '2.98')['image']['properties']['hw_machine_type'] == 'q35'


def test_2_99_consoles_of_spice_itself(api, server, cloud):
    cloud.service.conf.set_override('enabled', True, 'spice')
    cloud.service.conf.set_override('console_tls_port', 6970, 'simulated')
    body = {'remote_console': {'protocol': 'spice', 'type': 'spice-direct'}}
    assert api.post(f'/servers/{server}/remote-consoles', body, '2.98', as_=BOB).status == 400
    opened = api.post(f'/servers/{server}/remote-consoles', body, '2.99', as_=BOB).json['remote_console']
    path = '/os-console-auth-tokens/' + opened['url'].partition('token=')[2]
    old, new = (api.get(path, version).json['console'] for version in ('2.98', '2.99'))
    assert new.keys() - old.keys() == {'tls_port'}


def test_2_100_servers_show_their_hints(boot, show):
    server = boot(hints={'different_host': IMAGE})
    assert 'scheduler_hints' not in show(server, '2.99')
    assert show(server, '2.100')['scheduler_hints'] == {'different_host': [IMAGE]}


def test_2_101_attaching_a_volume_answers_at_once(cloud, server, attach):
    old = attach(server, cloud.volume(), '2.100')
    assert old.status == 200 and old.json['volumeAttachment']['serverId'] == server
    new = attach(server, cloud.volume(), '2.101')
    assert new.status == 202 and new.json is None


def test_2_102_flavors_lose_what_nobody_uses(api, cloud):
    flavor = {'flavor': {'name': 'new', 'ram': 64, 'vcpus': 1, 'disk': 1, 'rxtx_factor': 1.0}}
    assert [api.post('/flavors', flavor, version).status for version in ('2.102', '2.101')] == [400, 200]
    old, new = (api.get('/flavors/1', version).json['flavor'] for version in ('2.101', '2.102'))
    assert old.keys() - new.keys() == {'rxtx_factor', 'OS-FLV-DISABLED:disabled'}
    found = [api.get('/flavors?name=new', version) for version in ('2.101', '2.102')]
    assert found[0].status == 400 and [each['name'] for each in found[1].json['flavors']] == ['new']
    assert [api.get('/flavors/1?unknown=1', version).status for version in ('2.101', '2.102')] == [200, 400]


def test_2_103_servers_on_volumes_have_no_path_of_their_own(api, server):
    assert [api.get('/os-volumes_boot', version, as_=BOB).status for version in ('2.102', '2.103')] == [200, 404]


def test_2_104_a_server_is_pinned_to_its_zone(api, server, show):
    for zone in ('nova', None):
        change = {'server': {'pinned_availability_zone': zone}}
        assert api.put(f'/servers/{server}', change, '2.103', as_=BOB).status == 400
        assert api.put(f'/servers/{server}', change, '2.104', as_=BOB).status == 200
        assert show(server, '2.104')['pinned_availability_zone'] == zone
