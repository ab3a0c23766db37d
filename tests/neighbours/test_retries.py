"""A new server that fails to boot on one host has its port and volumes on another, according to Neutron and Cinder."""

import time
import uuid

import pytest

from tests.backends.implementations import ADMIN, ALICE
from tests.neighbours import cloud
from tests.neighbours.compute import Compute

OPTIONS = """
[DEFAULT]
vif_plugging_timeout = 0
task_sweep_interval = 0.5
[simulated]
hosts = 2
host_name = {name}-
fail = {fail}
"""


@pytest.fixture
def running():
    running = cloud.running()
    running.clean('network', 'block-storage')
    running.topology.show()
    yield running
    running.clean('network', 'block-storage')


@pytest.fixture
def compute_failing(running, store):
    """compute_failing('1'): compute with two hosts, where booting fails on those with these numbers; and their
    names."""
    made = []

    def start(*numbers):
        name = f'host-{uuid.uuid4().hex[:6]}'
        text = OPTIONS.format(name=name, fail=', '.join(f'spawn@{name}-{number}' for number in numbers))
        made.append(Compute(running, store, text, network='neutron', volume='cinder'))
        return made[-1], [f'{name}-1', f'{name}-2']

    yield start
    for each in made:
        each.service.stop()


def boot(compute):
    """Creates a server with a preexisting port and volume, and a new volume to boot from; returns it with the port and
    volume."""
    running = compute.running
    neutron, cinder = (running.service(kind, ALICE) for kind in ('network', 'block-storage'))
    facts = {'network_id': running.topology.private}
    port = neutron.post('/ports', json={'port': facts}).json()['port']['id']
    data = cinder.post('/volumes', json={'volume': {'size': 1}}).json()['volume']['id']
    wait_for(lambda: cinder.get(f'/volumes/{data}').json()['volume']['status'] == 'available')
    new = {'source_type': 'blank', 'destination_type': 'volume', 'volume_size': 1, 'boot_index': 0}
    disks = [
        new | {'delete_on_termination': True},
        {'source_type': 'volume', 'uuid': data, 'destination_type': 'volume', 'boot_index': 1},
    ]
    networks = [{'port': port}, {'uuid': running.topology.private}]
    answer = compute.create(networks=networks, block_device_mapping_v2=disks)
    assert answer.status_code == 202, answer.text
    return compute.settled(answer.json['server']['id']), port, data


def wait_for(is_so):
    deadline = time.monotonic() + 60
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.5)


def test_another_host_has_its_port_and_its_volumes(compute_failing):
    compute, (failing, other) = compute_failing('1')
    server, port, data = boot(compute)
    assert server['status'] == 'ACTIVE', server
    neutron, cinder = (compute.running.service(kind) for kind in ('network', 'block-storage'))
    ports = neutron.get(f'/ports?device_id={server["id"]}').json()['ports']
    assert len(ports) == 2 and port in [each['id'] for each in ports]
    assert {each['binding:host_id'] for each in ports} == {other}
    listed = cinder.get(f'/attachments/detail?all_tenants=1&instance_id={server["id"]}', microversion='3.44').json()
    assert len(listed['attachments']) == 2 and data in [each['volume_id'] for each in listed['attachments']]
    for each in listed['attachments']:
        volume = cinder.get(f'/volumes/{each["volume_id"]}?all_tenants=1').json()['volume']
        assert volume['status'] == 'in-use'
        assert [held['host_name'] for held in volume['attachments']] == [other]
    path = f'GET /servers/{server["id"]}/os-instance-actions'
    [action] = compute.ask(ADMIN, path).json['instanceActions']
    events = compute.ask(ADMIN, f'{path}/{action["request_id"]}').json['instanceAction']['events']
    assert {each['host']: each['result'] for each in events} == {failing: 'Error', other: 'Success'}


def test_nothing_is_left_when_no_host_boots_it(compute_failing):
    compute, _ = compute_failing('1', '2')
    server, port, data = boot(compute)
    assert server['status'] == 'ERROR'
    assert server['fault']['message'].startswith('Exceeded maximum number of retries. Exhausted all hosts available')
    neutron, cinder = (compute.running.service(kind, ALICE) for kind in ('network', 'block-storage'))
    assert neutron.get(f'/ports?device_id={server["id"]}').json()['ports'] == []
    assert neutron.get(f'/ports/{port}').json()['port']['device_id'] == ''
    wait_for(lambda: [each['id'] for each in cinder.get('/volumes').json()['volumes']] == [data])
    assert cinder.get(f'/volumes/{data}').json()['volume']['status'] == 'available'
