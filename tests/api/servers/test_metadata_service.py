"""The metadata service as guests see it, and as administrators do."""

import base64
import hashlib
import hmac
import json

import pytest
import webob
from oslo_config import cfg

from computeapi.db import servers as rows
from computeapi.pipeline import load

ROOT = {
    'boot_index': 0,
    'source_type': 'image',
    'destination_type': 'local',
    'uuid': '70a599e0-31e7-49b7-b260-868f441e862b',
}
NETWORK = '3cb9bc59-5699-4588-a4b1-b87f96708bc6'
BOB = 'bob:project'
SECRET = 'between-the-proxy-and-us'
MISSING = '00000000-0000-4000-8000-00000000dead'


@pytest.fixture
def conf(conf):
    conf.set_override('metadata_proxy_shared_secret', SECRET, 'neutron')
    return conf


class Guest:
    """Sends requests as a metadata proxy does for the server; headers that are None are left out."""

    def __init__(self, app, server_id, project_id='project', secret=SECRET):
        signature = hmac.new(secret.encode(), server_id.encode(), hashlib.sha256).hexdigest()
        self.app = app
        self.headers = {'X-Instance-ID': server_id, 'X-Tenant-ID': project_id, 'X-Instance-ID-Signature': signature}

    def ask(self, path, method='GET', body=b'', **headers):
        sent = {name: value for name, value in (self.headers | headers).items() if value is not None}
        return webob.Request.blank(path, method=method, headers=sent, body=body).get_response(self.app)

    def read(self, path):
        answer = self.ask(path)
        assert answer.status_int == 200, answer
        return answer.json if answer.content_type == 'application/json' else answer.text

    def devices(self, version='latest'):
        return self.read(f'/openstack/{version}/meta_data.json')['devices']


@pytest.fixture
def metadata(service):
    return load(service, 'metadata')


@pytest.fixture
def guest(metadata):
    return lambda server_id, *more: Guest(metadata, server_id, *more)


@pytest.fixture
def boot(made, settle):
    """boot('2.42', ...): the ID of a running server."""

    def boot(version='2.42', **kwargs):
        (server,) = made(version, **kwargs)
        settle()
        return server.uuid

    return boot


# ------------------------------------------------------------------ device tags


@pytest.mark.parametrize('version', ['2.32', '2.42'])
def test_2_32_and_2_42_a_guest_reads_the_tags_of_its_interfaces(boot, guest, version):
    reader = guest(boot(version, networks=[{'uuid': NETWORK}, {'uuid': NETWORK, 'tag': 'nic1'}]))
    (device,) = reader.devices()
    assert (device['type'], device['bus'], device['tags']) == ('nic', 'pci', ['nic1'])
    assert (device['address'], device['vf_trusted']) == ('0000:02:00.0', False)
    assert reader.devices('2017-02-22') == [{name: device[name] for name in device if name != 'vf_trusted'}]
    assert device['mac'] == reader.read('/openstack/latest/network_data.json')['links'][1]['ethernet_mac_address']


@pytest.mark.parametrize('version', ['2.32', '2.42'])
def test_2_32_and_2_42_a_guest_reads_the_tags_of_its_disks(boot, guest, world, version):
    volume = world.volume()
    data = {'source_type': 'volume', 'destination_type': 'volume', 'uuid': volume, 'tag': 'data'}
    disks = [
        {**ROOT, 'tag': 'root'},
        data,
        {'source_type': 'blank', 'destination_type': 'local', 'disk_bus': 'scsi', 'tag': 'scratch', 'volume_size': 1},
    ]
    world.flavor('2', ephemeral_gb=1)
    first, second, third = guest(boot(version, flavorRef='2', block_device_mapping_v2=disks)).devices()
    assert first == {'type': 'disk', 'bus': 'pci', 'address': '0000:80:00.0', 'tags': ['root'], 'path': '/dev/vda'}
    assert (second['tags'], second['serial'], second['path']) == (['data'], volume, '/dev/vdb')
    assert (third['tags'], third['bus'], third['address']) == (['scratch'], 'scsi', '0:0:0:2')


def test_2_49_what_is_attached_with_a_tag_shows_until_it_is_detached(api, boot, guest, world, settle):
    server_id, volume = boot(), world.volume()
    nic = api.post(
        f'/servers/{server_id}/os-interface', {'interfaceAttachment': {'net_id': NETWORK, 'tag': 'late'}}, '2.49'
    )
    api.post(
        f'/servers/{server_id}/os-volume_attachments',
        {'volumeAttachment': {'volumeId': volume, 'tag': 'later'}},
        '2.49',
    )
    settle()
    reader = guest(server_id)
    assert [(each['type'], each['tags']) for each in reader.devices()] == [('nic', ['late']), ('disk', ['later'])]
    api.delete(f'/servers/{server_id}/os-interface/{nic.json["interfaceAttachment"]["port_id"]}')
    api.delete(f'/servers/{server_id}/os-volume_attachments/{volume}')
    settle()
    assert reader.devices() == []


# ------------------------------------------------------------------ the documents

SINCE = {
    '2012-08-10': {
        'uuid',
        'name',
        'hostname',
        'launch_index',
        'availability_zone',
        'meta',
        'public_keys',
        'keys',
        'files',
    },
    '2013-04-04': {'random_seed'},
    '2013-10-17': set(),
    '2015-10-15': {'project_id'},
    '2016-06-30': {'devices'},
    '2016-10-06': set(),
    '2017-02-22': set(),
    '2018-08-27': set(),
    '2020-10-14': {'dedicated_cpus'},
    '2025-04-04': set(),
}
BESIDE = {
    '2012-08-10': {'meta_data.json', 'user_data'},
    '2013-04-04': {'password'},
    '2013-10-17': {'vendor_data.json'},
    '2015-10-15': {'network_data.json'},
    '2016-10-06': {'vendor_data2.json'},
}
KEY = 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIHnEZc4zXlSfuNuCYlHK6wYfWaSCdDrv8TtLSsj5AMgB bob'


@pytest.fixture
def rich(api, boot, world):
    """A server with everything that the documents can contain."""
    api.post('/os-keypairs', {'keypair': {'name': 'mine', 'public_key': KEY}}, as_=BOB)
    contents = base64.b64encode(b'hello\n').decode()
    facts = {
        'key_name': 'mine',
        'metadata': {'role': 'web'},
        'personality': [{'path': '/etc/motd', 'contents': contents}],
    }
    return boot('2.42', user_data=base64.b64encode(b'#!/bin/sh\n').decode(), name='web', **facts)


def test_each_version_adds_to_the_documents(rich, guest):
    reader = guest(rich)
    assert reader.read('/openstack').splitlines() == [*SINCE, 'latest']
    keys, names = set(), set()
    for version in SINCE:
        keys |= SINCE[version]
        names |= BESIDE.get(version, set())
        assert set(reader.read(f'/openstack/{version}/meta_data.json')) == keys
        assert set(reader.read(f'/openstack/{version}').splitlines()) == names
    assert set(reader.read('/openstack/latest/meta_data.json')) == keys


def test_the_documents_tell_of_the_server(rich, guest):
    reader = guest(rich)
    found = reader.read('/openstack/latest/meta_data.json')
    assert (found['uuid'], found['name'], found['hostname']) == (rich, 'web', 'web.novalocal')
    assert (found['meta'], found['project_id'], found['availability_zone']) == ({'role': 'web'}, 'project', 'nova')
    assert found['keys'] == [{'name': 'mine', 'type': 'ssh', 'data': KEY}]
    assert found['public_keys'] == {'mine': KEY}
    assert len(base64.b64decode(found['random_seed'])) == 512
    ((path, place),) = (each.values() for each in found['files'])
    assert (path, reader.read(f'/openstack{place}')) == ('/etc/motd', 'hello\n')
    assert reader.read('/openstack/latest/user_data') == '#!/bin/sh\n'


@pytest.mark.parametrize('text', ['é', 'YQ'])
def test_what_is_stored_but_not_base64_is_shown_as_it_is(rich, guest, store, text):
    """Older releases accepted more."""
    with store.write() as connection:
        rows.update(connection, rich, {'user_data': text, 'personality': [{'path': '/etc/motd', 'contents': text}]})
    reader = guest(rich)
    for path in ('/openstack/latest/user_data', '/openstack/content/0000', '/latest/user-data'):
        assert reader.read(path) == text


def test_vendor_data_is_what_the_operator_wrote(conf, store, boot, tmp_path, service):
    written = tmp_path / 'vendor.json'
    written.write_text(json.dumps({'role': 'puppet'}))
    conf.set_override('vendordata_jsonfile_path', str(written), 'api')
    reader = Guest(load(type(service)(conf, store), 'metadata'), boot())
    assert reader.read('/openstack/latest/vendor_data.json') == {'role': 'puppet'}
    assert reader.read('/openstack/latest/vendor_data2.json') == {'static': {'role': 'puppet'}}


@pytest.mark.parametrize('text', ['{', '[]'])
def test_vendor_data_must_be_an_object(conf, store, tmp_path, service, text):
    written = tmp_path / 'vendor.json'
    written.write_text(text)
    conf.set_override('vendordata_jsonfile_path', str(written), 'api')
    with pytest.raises(cfg.ConfigFileValueError):
        load(type(service)(conf, store), 'metadata')


def test_network_data_says_how_addresses_are_got(boot, guest, world):
    create = world.networks.resources.create
    by_hand = world.network(subnet=None)
    facts = {
        'enable_dhcp': False,
        'dns_nameservers': ['9.9.9.9'],
        'host_routes': [{'destination': '10.9.0.0/16', 'nexthop': '10.2.0.9'}],
    }
    create(world.bob, 'subnets', {'network_id': by_hand, 'ip_version': 4, 'cidr': '10.2.0.0/24', **facts})
    slaac = {'ipv6_ra_mode': 'slaac', 'ipv6_address_mode': 'slaac'}
    create(world.bob, 'subnets', {'network_id': by_hand, 'ip_version': 6, 'cidr': 'fd00::/64', **slaac})
    reader = guest(boot(networks=[{'uuid': NETWORK}, {'uuid': by_hand}]))
    found = reader.read('/openstack/latest/network_data.json')
    assert [(link['type'], link['mtu']) for link in found['links']] == [('ovs', 1500), ('ovs', 1500)]
    dhcp, static, automatic = found['networks']
    assert dhcp == {'id': 'network0', 'link': found['links'][0]['id'], 'network_id': NETWORK, 'type': 'ipv4_dhcp'}
    assert (static['type'], static['netmask'], static['link']) == ('ipv4', '255.255.255.0', found['links'][1]['id'])
    assert static['routes'] == [
        {'network': '0.0.0.0', 'netmask': '0.0.0.0', 'gateway': '10.2.0.1'},
        {'network': '10.9.0.0', 'netmask': '255.255.0.0', 'gateway': '10.2.0.9'},
    ]
    assert (automatic['type'], automatic['ip_address'][:6]) == ('ipv6_slaac', 'fd00::')
    assert found['services'] == [{'type': 'dns', 'address': '9.9.9.9'}]


OLDEST = [
    'ami-id', 'ami-launch-index', 'ami-manifest-path', 'hostname', 'instance-id', 'local-ipv4', 'public-keys/',
    'reservation-id', 'security-groups',
]  # fmt: skip


@pytest.mark.parametrize(
    ('path', 'text'),
    [
        ('/latest', 'meta-data/\nuser-data'),
        ('/latest/user-data', '#!/bin/sh\n'),
        ('/ec2/2009-04-04/meta-data/hostname', 'web.novalocal'),
        ('/1.0/meta-data', '\n'.join(OLDEST)),
        ('/latest/meta-data/ami-id', 'ami-70a599e0'),
        ('/latest/meta-data/public-keys/', '0=mine'),
        ('/latest/meta-data/public-keys/0/', 'openssh-key'),
        ('/latest/meta-data/public-keys/0/openssh-key', KEY),
        ('/latest/meta-data/placement/availability-zone', 'nova'),
        ('/latest/meta-data/block-device-mapping', 'ami\nroot'),
        ('/latest/meta-data/block-device-mapping/root', '/dev/vda'),
        ('/latest/meta-data/security-groups', 'default'),
        ('/latest/meta-data/instance-type', 'flavor-1'),
        ('/latest/meta-data/local-ipv4', '10.0.0.2'),
        ('/latest/meta-data/public-ipv4', ''),
    ],
)  # fmt: skip
def test_ec2_has_a_path_for_each_fact(rich, guest, path, text):
    assert guest(rich).read(path) == text


@pytest.mark.parametrize(
    'path',
    ['/openstack/2011-01-01', '/openstack/latest/nothing', '/openstack/2012-08-10/password', '/openstack/content/0009',
     '/openstack/latest/meta_data.json/x', '/2009-04-05', '/latest/meta-data/hostname/x', '/1.0/meta-data/placement',
     '/\0'],
)  # fmt: skip
def test_what_is_not_there(rich, guest, path):
    assert guest(rich).ask(path).status_int == 404


# ------------------------------------------------------------------ the password


def test_a_guest_tells_its_password_once(api, boot, guest):
    server_id = boot()
    reader, path = guest(server_id), '/openstack/latest/password'
    assert reader.read(path) == ''
    assert reader.ask(path, 'POST', b'c2VjcmV0').status_int == 200
    assert api.get(f'/servers/{server_id}/os-server-password', as_=BOB).json == {'password': 'c2VjcmV0'}
    assert reader.read(path) == 'c2VjcmV0'
    assert reader.ask(path, 'POST', b'b3RoZXI').status_int == 409
    api.delete(f'/servers/{server_id}/os-server-password', as_=BOB)
    assert reader.ask(path, 'POST', b'b3RoZXI').status_int == 200


@pytest.mark.parametrize('password', [b'x' * 1021, b'\xff', b'\0'])
def test_a_password_is_short_text(boot, guest, password):
    reader = guest(boot())
    assert reader.ask('/openstack/latest/password', 'POST', password).status_int == 400
    assert reader.read('/openstack/latest/password') == ''


# ------------------------------------------------------------------ authentication


@pytest.mark.parametrize('name', ['X-Instance-ID', 'X-Tenant-ID', 'X-Instance-ID-Signature'])
def test_a_request_says_and_signs_whose_it_is(servers, guest, name):
    answer = guest(servers.add()).ask('/openstack', **{name: None})
    assert (answer.status_int, name in answer.text) == (400, True)


def test_anybody_may_know_the_versions(guest):
    nobody = dict.fromkeys(guest(MISSING).headers)
    assert guest(MISSING).ask('/', **nobody).text.splitlines()[-2:] == ['2009-04-04', 'latest']
    assert guest(MISSING).ask('/openstack', **nobody).status_int == 400


@pytest.mark.parametrize('signature', ['', 'f' * 64, 'é'])
def test_a_wrong_signature(servers, guest, signature):
    assert guest(servers.add()).ask('/openstack', **{'X-Instance-ID-Signature': signature}).status_int == 403


def test_without_a_secret_nobody_can_sign(servers, service, conf):
    conf.set_override('metadata_proxy_shared_secret', '', 'neutron')
    assert Guest(load(service, 'metadata'), servers.add(), secret='').ask('/openstack').status_int == 403


def test_a_guest_sees_its_own_server_only(servers, guest):
    server_id = servers.add()
    assert guest(server_id).ask('/openstack').status_int == 200
    assert guest(server_id, 'elsewhere').ask('/openstack').status_int == 404
    assert guest(MISSING).ask('/openstack').status_int == 404
    servers.change(server_id, deleted_at=servers.now())
    assert guest(server_id).ask('/openstack').status_int == 404


def test_administrators_see_the_documents_of_any_server(app, rich, guest):
    def ask(as_, path):
        return webob.Request.blank(f'/metadata/{path}', headers={'X-Auth-Token': as_}).get_response(app)

    found = ask('admin:admin', f'{rich}/openstack/2018-08-27/meta_data.json').json
    assert found | {'random_seed': ''} == guest(rich).read('/openstack/2018-08-27/meta_data.json') | {'random_seed': ''}
    assert ask('admin:admin', f'{rich}/ec2/latest/meta-data/instance-type').text == 'flavor-1'
    assert ask(BOB, f'{rich}/openstack').status_int == 403
    assert [ask('admin:admin', path).status_int for path in (MISSING, '', '%00')] == [404, 404, 404]
