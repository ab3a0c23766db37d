"""curl with version headers, as shown in the greeting of the service."""

import json
import subprocess

import pytest


@pytest.fixture(scope='module')
def curl(cloud):
    token = cloud.session().headers['X-Auth-Token']

    def run(path, *headers):
        words = [word for header in (f'X-Auth-Token: {token}', *headers) for word in ('-H', header)]
        command = ['curl', '-sSi', '--noproxy', '*', *words, cloud.url + path]
        answer = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout
        head, _, body = answer.replace('\r\n', '\n').partition('\n\n')
        return head.lower(), json.loads(body)

    return run


def test_both_version_headers(curl):
    head, body = curl('/v2.1/flavors/1', 'OpenStack-API-Version: compute 2.61')
    assert 'openstack-api-version: compute 2.61' in head and 'extra_specs' in body['flavor']
    head, body = curl('/v2.1/flavors/1', 'X-OpenStack-Nova-API-Version: 2.1')
    assert 'x-openstack-nova-api-version: 2.1' in head and 'extra_specs' not in body['flavor']


def test_a_version_that_does_not_exist(curl):
    head, body = curl('/v2.1/flavors', 'OpenStack-API-Version: compute 2.999')
    assert head.startswith('http/1.1 406') and body['computeFault']['code'] == 406


def test_without_versions(curl):
    head, body = curl('/v2/flavors/1', 'OpenStack-API-Version: compute 9.9')
    assert head.startswith('http/1.1 200') and 'openstack-api-version' not in head
    assert body['flavor']['name'] == 'm1.tiny'
