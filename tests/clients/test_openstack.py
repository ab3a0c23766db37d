"""The `openstack` command, after sourcing the printed openrc."""

import json
import subprocess

import pytest


@pytest.fixture(scope='module')
def openstack(cloud):
    """Run `openstack ...`; returns its JSON (or its text, if the command has none)."""

    def run(*words, form='json'):
        command = [cloud.commands / 'openstack', *words] + (['-f', form] if form else [])
        done = subprocess.run(command, env=cloud.environ, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout) if form == 'json' else done.stdout

    return run


def test_a_server_from_creation_to_deletion(openstack):
    image = openstack('image', 'list')[0]['Name']
    words = ['--image', image, '--flavor', 'm1.tiny', '--network', 'private', '--wait']
    made = openstack('server', 'create', *words, 'first')
    assert made['status'] == 'ACTIVE' and made['addresses']['private']
    (listed,) = openstack('server', 'list', '--name', 'first')
    assert (listed['Name'], listed['Status'], listed['Image']) == ('first', 'ACTIVE', image)
    assert openstack('server', 'show', 'first')['flavor']['name'] == 'm1.tiny'
    openstack('server', 'stop', 'first', form=None)
    openstack('server', 'delete', '--wait', 'first', form=None)
    assert openstack('server', 'list') == []


def test_flavors_and_key_pairs(openstack, tmp_path):
    names = [flavor['Name'] for flavor in openstack('flavor', 'list')]
    assert names == ['m1.tiny', 'm1.small', 'm1.medium', 'm1.large', 'm1.xlarge']
    key = openstack('keypair', 'create', '--private-key', str(tmp_path / 'key'), 'mine')
    assert key['name'] == 'mine' and 'PRIVATE KEY' in (tmp_path / 'key').read_text()
    openstack('keypair', 'delete', 'mine', form=None)


def test_versions_limits_and_quotas(openstack):
    compute = [each for each in openstack('versions', 'show') if each['Service Type'] == 'compute']
    assert ('2.104', 'CURRENT') in [(each['Max Microversion'], each['Status']) for each in compute]
    limits = {each['Name']: each['Value'] for each in openstack('limits', 'show', '--absolute')}
    assert limits['instances'] == 10, limits
    assert openstack('quota', 'show', '--compute')


def test_images_networks_and_volumes(openstack, tmp_path):
    (tmp_path / 'disk').write_bytes(b'some disk' * 1000)
    openstack('image', 'create', '--file', str(tmp_path / 'disk'), '--disk-format', 'raw', 'mine')
    openstack('image', 'save', '--file', str(tmp_path / 'copy'), 'mine', form=None)
    assert (tmp_path / 'copy').read_bytes() == (tmp_path / 'disk').read_bytes()
    openstack('network', 'create', 'office')
    subnet = openstack('subnet', 'create', '--network', 'office', '--subnet-range', '10.20.0.0/24', 'desk')
    assert subnet['gateway_ip'] == '10.20.0.1'
    volume = openstack('volume', 'create', '--size', '1', 'data')
    assert openstack('volume', 'show', volume['id'])['status'] == 'available'
