"""A cloud is loaded from a file, and exported into one that creates a similar cloud."""

import base64
import sys
from pathlib import Path

import pytest
import yaml

from computeapi.cli import main
from computeapi.errors import Conflict, Invalid
from computeapi.kit.cloud_files import table
from computeapi.testing import Cloud
from tests import invariants
from tests.kit.conftest import HTTP

LISTS = (
    '/v2.1/servers/detail?all_tenants=1',
    '/v2.1/flavors/detail?is_public=None',
    '/v2.1/os-aggregates',
    '/image/v2/images',
    '/networking/v2.0/networks',
    '/networking/v2.0/subnets',
    '/networking/v2.0/ports',
    '/networking/v2.0/routers',
    '/networking/v2.0/security-groups',
    '/networking/v2.0/floatingips',
    '/identity/v3/projects',
)
"""Requests that two similar clouds answer the same."""
CLOUD_FILE = Path(__file__).with_name('cloud_file.yaml')
UNDER_WAY = """
version: 1
servers:
  - {name: slow1, flavor: m1.tiny, status: BUILD}
  - {name: boot1, flavor: m1.tiny, status: REBOOT}
"""
IMAGES = {'there': '3d1c54c6-6d7f-4c0e-8c4f-0b5e9a1f2a01', 'new': '3d1c54c6-6d7f-4c0e-8c4f-0b5e9a1f2a02'}


@pytest.fixture
def loaded(cloud, http):
    cloud.load(CLOUD_FILE)
    http.log_in()
    return cloud


def servers(http):
    found = http.get('/v2.1/servers/detail?all_tenants=1').json()['servers']
    return {server['name']: server for server in found}


def problems(cloud):
    return [*invariants.problems(cloud.tools.service.store), *map(str, cloud.tools.service.audit.findings())]


def until(http, server_id, wanted, tries=200):
    import time

    for _ in range(tries):
        answer = http.get(f'/v2.1/servers/{server_id}')
        server = answer.json().get('server', {})
        if wanted == answer.status_code or (server.get('status') == wanted and not server['OS-EXT-STS:task_state']):
            return server
        time.sleep(0.02)
    raise AssertionError(f'{server_id} is {server.get("status")}, not {wanted}')


def test_servers_are_as_they_are_described(loaded, http):
    found = servers(http)

    statuses = {name: server['status'] for name, server in found.items()}
    assert statuses == {
        'web1': 'ACTIVE',
        'db1': 'SHUTOFF',
        'bad1': 'ERROR',
        'shelf1': 'SHELVED_OFFLOADED',
        'pause1': 'PAUSED',
        'moved1': 'VERIFY_RESIZE',
    }
    web = found['web1']
    assert (web['created'], web['tags'], web['locked']) == ('2026-01-01T10:00:00Z', ['production'], True)
    assert (web['OS-EXT-SRV-ATTR:host'], web['OS-EXT-AZ:availability_zone']) == ('big1', 'east')
    addresses = [address['addr'] for address in web['addresses']['front']]
    assert '10.1.0.100' in addresses and any(address.startswith('203.0.113.') for address in addresses)
    assert found['bad1']['fault']['message'] == 'No valid host was found.'
    assert found['pause1']['flavor']['original_name'] == 'odd'
    actions = http.get(f'/v2.1/servers/{web["id"]}/os-instance-actions').json()['instanceActions']
    assert [(each['action'], each['message']) for each in actions] == [('reboot', 'Error'), ('create', None)]


def test_what_is_loaded_is_sound(loaded):
    assert problems(loaded) == []


def test_what_is_loaded_can_be_used(loaded, http):
    found = {name: server['id'] for name, server in servers(http).items()}

    def act(name, body, wanted):
        answer = http.post(f'/v2.1/servers/{found[name]}/action', body)
        assert answer.status_code == 202, answer.text
        return until(http, found[name], wanted)

    act('db1', {'os-start': None}, 'ACTIVE')
    act('db1', {'os-stop': None}, 'SHUTOFF')
    act('pause1', {'unpause': None}, 'ACTIVE')
    act('shelf1', {'unshelve': None}, 'ACTIVE')
    assert act('moved1', {'revertResize': None}, 'ACTIVE')['flavor']['original_name'] == 'm1.tiny'
    act('web1', {'resize': {'flavorRef': '2'}}, 'VERIFY_RESIZE')
    assert http.post(f'/v2.1/servers/{found["web1"]}/action', {'confirmResize': None}).status_code == 204
    until(http, found['web1'], 'ACTIVE')
    assert problems(loaded) == []
    for server_id in found.values():
        http.delete(f'/v2.1/servers/{server_id}')
    for server_id in found.values():
        until(http, server_id, 404)
    assert problems(loaded) == []
    usages = http.get('/v2.1/os-hypervisors/detail').json()['hypervisors']
    assert {usage.get('status') for usage in usages} == {'enabled', 'disabled'}


def test_hosts_differ_in_size_and_state(loaded, http):
    found = http.get('/v2.1/os-hypervisors/detail').json()['hypervisors']
    hosts = {each['hypervisor_hostname']: each for each in found}
    states = {name: (each['state'], each['status']) for name, each in hosts.items()}

    assert states == {
        'compute1': ('up', 'enabled'),
        'compute2': ('up', 'enabled'),
        'big1': ('up', 'enabled'),
        'old1': ('up', 'disabled'),
        'gone1': ('down', 'enabled'),
    }
    image = servers(http)['web1']['image']['id']
    wanted = {'name': 'big', 'flavorRef': 'c4', 'imageRef': image, 'networks': 'none', 'availability_zone': 'east'}
    server = http.post('/v2.1/servers', {'server': wanted}).json()['server']['id']
    assert until(http, server, 'ACTIVE')['OS-EXT-SRV-ATTR:host'] == 'big1'


def test_hosts_join_the_zones_that_there_are(cloud, http):
    for name in ('far1', 'far2'):
        cloud.load({'version': 1, 'hosts': [{'name': name, 'zone': 'east'}]})
    [aggregate] = http.get('/v2.1/os-aggregates').json()['aggregates']
    assert (aggregate['availability_zone'], aggregate['hosts']) == ('east', ['far1', 'far2'])


def test_hosts_have_what_flavors_require(cloud, http):
    specs = {'trait:CUSTOM_FAST': 'required', 'resources:VGPU': 1, 'resources:VCPU': 0}
    document = {
        'version': 1,
        'hosts': [{'name': 'fast', 'traits': ['CUSTOM_FAST'], 'resources': {'VGPU': 2}}],
        'flavors': [{'name': 'fpga', 'id': 'fpga', 'ram': 64, 'vcpus': 4, 'extra_specs': specs}],
        'servers': [{'name': 'one', 'flavor': 'fpga', 'host': 'fast'}],
    }
    cloud.load(document)
    [exported] = [each for each in cloud.export()['hosts'] if 'traits' in each]
    assert {name: exported[name] for name in ('name', 'traits', 'resources')} == document['hosts'][0]
    # The server of the file holds one of the two.
    assert http.booted(http.boot('two', flavorRef='fpga'))['OS-EXT-SRV-ATTR:host'] == 'fast'
    third = http.boot('three', flavorRef='fpga')
    assert 'Required resources and traits: 0 hosts' in until(http, third, 'ERROR')['fault']['message']
    http.delete(f'/v2.1/servers/{servers(http)["one"]["id"]}')
    until(http, servers(http)['one']['id'], 404)
    assert http.booted(http.boot('four', flavorRef='fpga'))['OS-EXT-SRV-ATTR:host'] == 'fast'
    assert problems(cloud) == []


def test_users_of_the_file_can_log_in(loaded):
    alice = loaded.connection('alice')

    assert {server.name for server in alice.compute.servers()} >= {'web1', 'db1'}
    assert loaded.passwords['alice'] == 'open sesame'
    assert loaded.connection('bob').current_project.name == 'shop'
    assert (
        yaml.safe_load(loaded.clouds_yaml.read_text())['clouds']['computeapi-alice']['auth']['project_name'] == 'shop'
    )


def test_users_of_several_domains_may_have_one_name(cloud):
    demo = {'name': 'demo', 'domain': 'east', 'password': 'sunrise', 'roles': [{'role': 'member', 'project': 'dawn'}]}
    projects = [{'name': 'dawn', 'domain': 'east'}]
    cloud.load({'version': 1, 'domains': [{'name': 'east'}], 'projects': projects, 'users': [demo]})
    with Cloud(load=cloud.export()) as other:
        for each in (cloud, other):
            assert each.connection('demo').current_project.name == 'demo'
            assert each.connection('demo@east').current_project.name == 'dawn'


def test_users_are_known_as_long_as_they_are_there(cloud):
    def users():
        return {user for user in cloud.passwords if not user.startswith(('admin', 'demo'))}

    def add(name):
        cloud.load({'version': 1, 'users': [{'name': name, 'roles': [{'role': 'member', 'project': 'demo'}]}]})

    add('alice')
    cloud.snapshot('alice')
    add('bob')
    cloud.tools.snapshot('taken by the control API')
    assert users() == {'alice', 'bob'}
    cloud.restore('taken by the control API')
    assert users() == {'alice', 'bob'}
    cloud.restore('alice')
    assert users() == {'alice'}
    assert 'computeapi-bob' not in yaml.safe_load(cloud.clouds_yaml.read_text())['clouds']
    add('carol')
    with cloud.branch('alice') as other:
        assert 'carol' not in other.passwords
        assert other.connection('alice').current_project.name == 'demo'
    cloud.reset()
    assert users() == set()


def test_what_is_under_way_stays_so_until_it_is_asked_for_something_else(cloud, http):
    cloud.load(yaml.safe_load(UNDER_WAY))
    http.log_in()
    found = servers(http)

    assert {name: server['status'] for name, server in found.items()} == {'slow1': 'BUILD', 'boot1': 'REBOOT'}
    assert list(cloud.tools.service.audit.findings()) == []
    for server in found.values():
        http.delete(f'/v2.1/servers/{server["id"]}')
        until(http, server['id'], 404)
    # Nobody was carrying out the work that never ended.
    assert [each for each in problems(cloud) if 'never ended' not in each] == []


def test_an_export_makes_another_cloud_that_answers_the_same(loaded, http):
    # Listing the groups of a project creates its default group.
    http.get('/networking/v2.0/security-groups')
    document = loaded.export()
    with Cloud(load=document) as other:
        assert other.export() == document
        there = HTTP(other)
        for path in (*LISTS, '/identity/v3/users'):
            here = http.get(path).text.replace(loaded.url, '')
            assert sorted_lists(yaml.safe_load(here)) == sorted_lists(there.get(path).json(), other.url), path
        there.session.close()
        other.load({'version': 1, 'projects': [{'name': 'more'}]})
        other.reset()
        assert other.export() == document


def test_what_has_no_name_is_exported_and_loaded(cloud, http):
    http.post('/image/v2/images', {'disk_format': 'raw', 'container_format': 'bare'})
    http.post('/volume/v3/volumes', {'volume': {'size': 1}})
    for _ in range(2):
        for path, kind in (('networks', 'network'), ('routers', 'router'), ('security-groups', 'security_group')):
            http.post(f'/networking/v2.0/{path}', {kind: {}})
    [network, *_] = http.get('/networking/v2.0/networks?name=').json()['networks']
    http.post('/networking/v2.0/ports', {'port': {'network_id': network['id']}})
    document = cloud.export()
    with Cloud(load=document) as other:
        assert other.export() == document


def sorted_lists(value, url=''):
    """The value without the URL of the cloud, and with lists in a defined order."""
    if isinstance(value, dict):
        return {name: sorted_lists(each, url) for name, each in value.items()}
    if isinstance(value, list):
        return sorted((sorted_lists(each, url) for each in value), key=repr)
    return value.replace(url, '') if url and isinstance(value, str) else value


def test_ids_are_made_of_names_and_the_seed(loaded, http):
    first = {name: server['id'] for name, server in servers(http).items()}
    loaded.reset()
    loaded.load(CLOUD_FILE)
    http.log_in()
    assert {name: server['id'] for name, server in servers(http).items()} == first
    loaded.reset()
    loaded.load({**yaml.safe_load(CLOUD_FILE.read_text()), 'seed': 1})
    http.log_in()
    assert not set(first.values()) & {server['id'] for server in servers(http).values()}


@pytest.mark.parametrize(
    ('change', 'message'),
    [
        ('servers: [{name: web, flavor: none-such}]', 'line 3: servers[0].flavor: there is nothing called none-such'),
        ('servers: [{flavor: m1.tiny}]', "line 3: servers[0]: 'name' is a required property"),
        ('servers: [{name: web, flavor: m1.tiny, colour: red}]', 'servers[0]: Additional properties'),
        ('projects: [{name: admin}]', 'line 3: projects[0].name: admin already exists'),
        ('servers: [{name: web, flavor: m1.tiny, created_at: yesterday}]', 'servers[0].created_at: '),
        ('networks: [{name: net, subnets: [{cidr: 10.0.0.0/99}]}]', 'networks[0].subnets[0].cidr: '),
        ('servers: [{name: web', 'line 3'),
        ('projects: [{name: one}]\nprojects: [{name: two}]', 'projects occurs twice'),
        ('images: [{name: one, size: 1, size: 2}]', 'size occurs twice'),
        ('images: [{name: one, id: ../one, data: b25l}]', 'line 3: images[0].id: '),
        ('servers: [{name: web, flavor: m1.tiny, id: ../web}]', 'line 3: servers[0].id: '),
        ('servers: [{name: web, flavor: {name: own, ram: much}}]', 'line 3: servers[0].flavor.ram: '),
        ('servers: [{name: web, flavor: {name: own, ram: 100000000000000000000}}]', 'line 3: servers[0].flavor.ram: '),
        ('ports: [{network: public, fixed_ips: [{ip_address: here}]}]', 'ports[0].fixed_ips[0].ip_address: '),
        ('floating_ips: [{network: public, address: 10.0.0}]', 'floating_ips[0].address: '),
        (
            'security_groups: [{name: web, rules: [{direction: ingress, remote_ip_prefix: any}]}]',
            'security_groups[0].rules[0].remote_ip_prefix: ',
        ),
        ('ports: [{network: public, fixed_ips: [{}]}]', 'line 3: ports[0].fixed_ips[0]: neither a subnet nor an'),
        (
            'networks: [{subnets: [{cidr: 10.9.0.0/24, allocation_pools: [{start: 10.9.0.2}]}]}]',
            "networks[0].subnets[0].allocation_pools[0]: 'end' is a required property",
        ),
        ('volume_snapshots: [{volume: null}]', 'line 3: volume_snapshots[0].volume: None is not'),
        ('keypairs: [{name: mine, public_key: null}]', 'line 3: keypairs[0].public_key: None is not'),
        ('images: [{data: ü}]', 'line 3: images[0].data: '),
        ('hosts: [{name: fast, traits: [custom-fast]}]', 'line 3: hosts[0].traits[0]: '),
        ('hosts: [{name: fast, resources: {VCPU: 4}}]', 'hosts[0].resources: '),
        ('hosts: [{name: fast, resources: {VGPU: 0}}]', 'hosts[0].resources.VGPU: '),
    ],
)
def test_what_cannot_be_is_refused_with_its_place(cloud, tmp_path, change, message):
    path = tmp_path / 'cloud.yaml'
    path.write_text(f'# A cloud.\nversion: 1\n{change}\n')
    before = cloud.export()
    with pytest.raises(Invalid) as refused:
        cloud.load(path)
    assert message in str(refused.value) and str(path) in str(refused.value)
    assert cloud.export() == before


NO_SERVER = {'servers': [{'name': 'web', 'flavor': 'none-such'}]}


@pytest.mark.parametrize('wrong', [{'images': ['there']}, {'images': ['new'], **NO_SERVER}])
def test_what_cannot_be_leaves_the_data_of_images_as_they_were(cloud, wrong):
    def image(name, data):
        return {'name': name, 'id': IMAGES[name], 'data': base64.b64encode(data).decode()}

    def files():
        return {path.name: path.read_bytes() for path in cloud.tools.snapshots.images.iterdir()}

    cloud.load({'version': 1, 'images': [image('there', b'first')]})
    before = files()
    assert before[IMAGES['there']] == b'first'
    wrong = wrong | {'images': [image(name, b'second') for name in wrong['images']]}
    with pytest.raises((Conflict, Invalid)):
        cloud.load({'version': 1, **wrong})
    assert files() == before


def test_a_file_that_is_no_text_is_refused(cloud, tmp_path):
    (path := tmp_path / 'cloud.yaml').write_bytes(b'version: 1 # \xff')
    with pytest.raises(Invalid, match='not text'):
        cloud.load(path)


def test_a_server_that_is_there_already_is_told_by_its_name(cloud):
    document = {'version': 1, 'servers': [{'name': 'web', 'flavor': 'm1.tiny'}]}
    cloud.load(document)
    with pytest.raises(Invalid, match='the server web already exists'):
        cloud.load(document)


def test_what_is_there_already_is_a_conflict(loaded):
    with pytest.raises((Conflict, Invalid), match='already'):
        loaded.load(CLOUD_FILE)


def test_the_control_api_loads_and_exports(cloud, http):
    answer = http.control('POST', '/load', {'document': CLOUD_FILE.read_text()})
    assert answer.status_code == 200, answer.text
    told = {each['user']: each['password'] for each in answer.json()['accounts']}
    assert told.keys() == {'alice', 'bob'} and told.items() <= cloud.passwords.items()
    assert 'computeapi-alice' in cloud.clouds_yaml.read_text()
    exported = http.control('GET', '/export')
    assert exported.headers['Content-Type'].startswith('application/yaml')
    assert yaml.safe_load(exported.text)['replace'] is True
    assert 'open sesame' not in exported.text and 'password' not in exported.text
    assert 'password_hash' in http.control('GET', '/export?hashes=true').text
    refused = http.control('POST', '/load', {'document': {'version': 2}})
    assert refused.status_code == 400 and 'version' in refused.text
    assert http.control('POST', '/reset').status_code == 204
    assert cloud.passwords.keys() == {'admin', 'demo'}
    assert 'alice' not in cloud.clouds_yaml.read_text()


def test_a_command_runs_with_a_cloud_that_was_loaded(tmp_path, capfd):
    script = 'import openstack; print(sorted(each.name for each in openstack.connect().identity.projects()))'
    status = main(['run', '--load', str(CLOUD_FILE), '--', sys.executable, '-c', script])
    said = capfd.readouterr()
    assert status == 0 and "'shop'" in said.out
    assert 'The password of bob in the project shop is' in said.err and 'alice' not in said.err


def test_the_page_has_what_the_schema_says():
    """Generated by `python -m computeapi.kit.cloud_files.table > docs/reference/cloud-file.md`."""
    page = Path(__file__).parents[2] / 'docs/reference/cloud-file.md'
    assert page.read_text() == '\n'.join(table.markdown()) + '\n'


def test_the_commands_load_and_export(cloud, monkeypatch, capsys, tmp_path):
    for name, value in cloud.environ.items():
        monkeypatch.setenv(name, value)
    assert main(['control', 'load', f'@{CLOUD_FILE}']) == 0
    assert 'open sesame' in capsys.readouterr().out
    assert main(['control', 'export', '--hashes', 'true']) == 0
    said = capsys.readouterr().out
    assert 'password_hash' in said
    # A YAML loader that parses times works, too.
    cloud.load(yaml.safe_load(said))
    cloud.export(tmp_path / 'copy.yaml', hashes=True)
    assert (tmp_path / 'copy.yaml').read_text() == said
