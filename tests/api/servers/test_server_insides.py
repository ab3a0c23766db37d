"""A server's diagnostics, topology, boot history and password."""

import base64
import uuid

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from computeapi.clock import utcnow
from computeapi.db import block_devices

BOB, ALICE = 'bob:project', 'alice:elsewhere'
ABSENT = '00000000-0000-0000-0000-000000000000'


def fault(answer):
    (body,) = answer.json.values()
    return answer.status, body['message']


# ------------------------------------------------------------------ diagnostics


@pytest.fixture
def running(service, servers, store):
    """A server with a running machine, an interface and a disk; its ID."""
    server_id = servers.add(network_info=[{'mac_address': 'fa:16:3e:00:00:01', 'addresses': []}])
    device = {
        'uuid': str(uuid.uuid4()),
        'server_id': server_id,
        'source_type': 'image',
        'destination_type': 'local',
        'device_name': '/dev/vda',
        'delete_on_termination': True,
        'created_at': utcnow(),
    }
    with store.write() as connection:
        block_devices.insert(connection, device)
    service.hypervisor.spawn(servers.get(server_id), [])
    return server_id


@pytest.mark.parametrize('version', ['2.1', '2.48'])
def test_diagnostics_look_like_the_samples(api, running, sample, shape, version):
    folder = 'os-server-diagnostics' + ('' if version == '2.1' else f'/v{version}')
    answer = api.get(f'/servers/{running}/diagnostics', version)
    assert answer.status == 200
    assert shape(answer.json) == shape(sample(f'{folder}/server-diagnostics-get-resp.json'))


def test_diagnostics_tell_of_this_server(api, running):
    found = api.get(f'/servers/{running}/diagnostics', '2.104').json
    assert (found['state'], found['driver'], found['config_drive']) == ('running', 'libvirt', False)
    assert (found['num_cpus'], found['num_disks'], found['num_nics']) == (1, 1, 1)
    assert found['cpu_details'][0]['id'] == 0
    assert found['nic_details'][0]['mac_address'] == 'fa:16:3e:00:00:01'
    assert found['memory_details'] == {'maximum': 64, 'used': 0}


def test_diagnostics_of_what_does_not_run(api, servers, running):
    path = f'/servers/{running}/diagnostics'
    servers.change(running, vm_state='stopped', power_state=4)
    state = f"Cannot 'get_diagnostics' instance {running} while it is in power state shutdown"
    assert fault(api.get(path)) == (409, state)
    servers.change(running, host=None)
    assert fault(api.get(path)) == (409, f'Instance {running} is not ready')
    nowhere = servers.add()
    assert fault(api.get(f'/servers/{nowhere}/diagnostics')) == (409, f'Instance {nowhere} is not ready')


def test_diagnostics_are_for_administrators(api, running):
    assert api.get(f'/servers/{running}/diagnostics', as_=BOB).status == 403
    assert api.get(f'/servers/{running}/diagnostics', as_=ALICE).status == 404


# ------------------------------------------------------------------ password


def test_a_password_is_read_and_forgotten(api, servers, sample, shape):
    server_id = servers.add(password='c2VjcmV0')
    path = f'/servers/{server_id}/os-server-password'
    shown = api.get(path, as_=BOB)
    assert shown.json == {'password': 'c2VjcmV0'}
    assert shape(shown.json) == shape(sample('os-server-password/get-password-resp.json'))
    assert api.delete(path, as_=ALICE).status == 404
    assert api.delete(path, as_=BOB).status == 204
    assert api.get(path, as_=BOB).json == {'password': ''}
    assert api.delete(path, as_=BOB).status == 204


def test_a_password_that_was_changed_is_for_the_owner_of_the_key(api, running, servers):
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    line = key.public_key().public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH)
    servers.change(running, public_key=f'{line.decode()} bob@home')
    change = {'changePassword': {'adminPass': 'secret'}}
    assert api.post(f'/servers/{running}/action', change, as_=BOB).status == 202
    shown = api.get(f'/servers/{running}/os-server-password', as_=BOB).json['password']
    assert key.decrypt(base64.b64decode(shown), padding.PKCS1v15()) == b'secret'


@pytest.mark.parametrize('public_key', [None, 'ssh-ed25519 AAAA', 'no key'])
def test_a_password_is_kept_for_nobody_else(api, running, servers, public_key):
    servers.change(running, public_key=public_key)
    change = {'changePassword': {'adminPass': 'secret'}}
    assert api.post(f'/servers/{running}/action', change, as_=BOB).status == 202
    assert api.get(f'/servers/{running}/os-server-password', as_=BOB).json == {'password': ''}


# ------------------------------------------------------------------ topology


def topology(api, servers, as_=BOB, image=None, **specs):
    specs = {f'hw:{name}': value for name, value in specs.items()}
    flavor = servers.get(servers.add()).flavor | {'extra_specs': specs}
    server_id = servers.add(vcpus=4, memory_mb=3072, flavor=flavor, image_properties=image or {})
    return api.get(f'/servers/{server_id}/topology', '2.78', as_=as_).json


@pytest.mark.parametrize(
    ('as_', 'name'), [(BOB, 'servers-topology-resp-user'), ('admin:admin', 'servers-topology-resp')]
)
def test_the_topology_looks_like_the_sample(api, servers, sample, as_, name):
    wanted = {
        'numa_nodes': '2',
        'numa_mem.0': '1024',
        'numa_mem.1': '2048',
        'cpu_threads': '2',
        'mem_page_size': 'small',
    }
    found, expected = topology(api, servers, as_, **wanted), sample(f'os-server-topology/v2.78/{name}.json')
    for node in expected['nodes']:
        # The hosts here have a single NUMA node, and do not pin CPUs.
        node.update({key: value for key, value in (('host_node', 0), ('cpu_pinning', {})) if key in node})
    assert found == expected


@pytest.mark.parametrize(
    ('specs', 'nodes', 'page_size'),
    [
        ({}, [], None),
        ({'numa_nodes': '2', 'numa_cpus.0': '0-2,^1', 'numa_cpus.1': '1,3'}, [[0, 2], [1, 3]], None),
        ({'numa_nodes': '3'}, [[0], [1], [2, 3]], None),
        ({'cpu_policy': 'dedicated'}, [[0, 1, 2, 3]], None),
        ({'mem_page_size': '1GB'}, [[0, 1, 2, 3]], 2**20),
        ({'mem_page_size': '2048'}, [[0, 1, 2, 3]], 2048),
        ({'mem_page_size': 'large'}, [[0, 1, 2, 3]], 2048),
        ({'numa_nodes': 'many', 'numa_cpus.0': 'all'}, [], None),
        ({'numa_nodes': '99999999999'}, [[0], [1], [2], [3]], None),
        ({'numa_nodes': '1', 'numa_cpus.0': '0-99999999999'}, [[0, 1, 2, 3]], None),
    ],
)
def test_what_a_topology_follows_from(api, servers, specs, nodes, page_size):
    found = topology(api, servers, **specs)
    assert ([node['vcpu_set'] for node in found['nodes']], found['pagesize_kb']) == (nodes, page_size)


def test_an_image_can_ask_for_nodes(api, servers):
    assert len(topology(api, servers, image={'hw_numa_nodes': 2})['nodes']) == 2
    assert len(topology(api, servers, image={'hw_numa_nodes': 2}, numa_nodes='4')['nodes']) == 4


def test_a_server_that_is_nowhere_has_no_topology(api, servers):
    server_id = servers.add(host=None)
    path = f'/servers/{server_id}/topology'
    assert api.get(path, '2.104', as_=BOB).json == {'nodes': [], 'pagesize_kb': None}
    assert api.get(path, '2.77').status == 404
    assert api.get(path, '2.78', as_=ALICE).status == 404


# ------------------------------------------------------------------ boot history


def test_a_boot_tells_where_it_ended(api, create, service):
    server_id = create().json['server']['id']
    while service.worker.step():
        pass
    path = f'/servers/{server_id}/os-instance-actions'
    (booted,) = api.get(path).json['instanceActions']
    (event,) = api.get(f'{path}/{booted["request_id"]}', '2.104').json['instanceAction']['events']
    assert (event['event'], event['result']) == ('compute__do_build_and_run_instance', 'Success')
    assert event['host'] == api.get(f'/servers/{server_id}').json['server']['OS-EXT-SRV-ATTR:host'] is not None
