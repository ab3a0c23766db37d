"""A dry run of POST /servers reports what the request would do, and creates nothing."""

import json
import time

import pytest

from computeapi.errors import NotAuthenticated, NotFound
from computeapi.kit import shell
from computeapi.kit.variables import TOKEN_VARIABLE, URL_VARIABLE

ABSENT_ID = '00000000-0000-0000-0000-00000000dead'
GROUPED = {'os:scheduler_hints': {'group': ABSENT_ID}}
REFUSED = {
    'no name': {'server': {'flavorRef': '1'}},
    'unknown field': {'server': {'colour': 'red'}},
    'not an object': {'server': []},
    'no server': {},
    'flavor': {'server': {'flavorRef': '99'}},
    'image': {'server': {'imageRef': ABSENT_ID}},
    'no image': {'server': {'imageRef': ''}},
    'network': {'server': {'networks': [{'uuid': ABSENT_ID}]}},
    'port': {'server': {'networks': [{'port': ABSENT_ID}]}},
    'key pair': {'server': {'key_name': 'nobody'}},
    'zone': {'server': {'availability_zone': 'moon'}},
    'host': {'server': {'host': 'nowhere'}},
    'security group': {'server': {'security_groups': [{'name': 'nobody'}]}},
    'group': {'server': {}, **GROUPED},
    'volume': {'server': {'block_device_mapping_v2': [{'uuid': ABSENT_ID, 'source_type': 'volume', 'boot_index': 0}]}},
    'counts': {'server': {'min_count': 3, 'max_count': 2}},
    'too many': {'server': {'min_count': 200}},
    'metadata': {'server': {'metadata': {str(number): 'x' for number in range(200)}}},
    'hostname of two': {'server': {'hostname': 'one', 'min_count': 2}},
}


@pytest.fixture
def image(http):
    [image] = http.get('/image/v2/images').json()['images']
    return image['id']


def filled(body, image):
    whole = {'name': 'web', 'flavorRef': '1', 'imageRef': image, 'networks': 'none'}
    server = body.get('server')
    return body | {'server': whole | server} if server or server == {} else body


def state(http):
    """Everything that a request for servers could change."""
    usage = http.get('/v2.1/limits').json()
    hosts = http.get('/v2.1/os-hypervisors/detail', headers={'OpenStack-API-Version': 'compute 2.80'}).json()
    return http.names(), usage, [(each['vcpus_used'], each['running_vms']) for each in hosts['hypervisors']]


@pytest.mark.parametrize('name', REFUSED)
def test_what_is_refused_is_refused_alike(http, cloud, image, name):
    body = filled(REFUSED[name], image)
    if name == 'no name':
        del body['server']['name']
    told = cloud.dry_run(body, microversion='2.96')
    answer = http.post('/v2.1/servers', body)
    [fault] = answer.json().values()
    assert answer.status_code in (400, 403)
    assert told == {'possible': False, 'status': answer.status_code, 'message': fault['message'], 'servers': []}


def test_policies_are_asked_of_the_user_who_is_named(http, cloud, image):
    hosts = http.get('/v2.1/os-hypervisors').json()['hypervisors']
    body = filled({'server': {'host': hosts[0]['hypervisor_hostname']}}, image)
    assert cloud.dry_run(body, user='admin')['possible']
    told = cloud.dry_run(body, user='demo')
    http.log_in('demo')
    answer = http.post('/v2.1/servers', body)
    assert told['status'] == answer.status_code == 403
    assert told['message'] == answer.json()['forbidden']['message']


def test_it_is_of_the_version_that_is_named(cloud, image):
    body = filled({'server': {'tags': ['a']}}, image)
    assert cloud.dry_run(body, microversion='2.52')['possible']
    assert cloud.dry_run(body, microversion='2.51')['status'] == 400
    with pytest.raises(ValueError, match='2.999'):
        cloud.dry_run(body, microversion='2.999')


def test_each_server_is_told_its_host_and_nothing_is_made(http, cloud, image):
    before = state(http)
    told = cloud.dry_run(filled({'server': {'min_count': 3}}, image))
    assert (told['possible'], told['status']) == (True, 202)
    assert [each['name'] for each in told['servers']] == ['web-1', 'web-2', 'web-3']
    assert len({each['host'] for each in told['servers']}) == 2
    assert told['servers'][0]['needs'] == {'vcpus': 1, 'memory_mb': 512, 'disk_gb': 1}
    rooms = [max(room['free_memory_mb'] for room in each['candidates']) for each in told['servers']]
    assert rooms[0] > rooms[2]
    assert state(http) == before
    # One after the other, because concurrent requests may choose the same host.
    hosts = [http.booted(http.boot(name))['OS-EXT-SRV-ATTR:host'] for name in ('one', 'two')]
    assert sorted(hosts) == sorted(each['host'] for each in told['servers'][:2])


def test_where_no_host_will_do_each_filter_says_which_it_refused(http, cloud, image):
    [service, other] = [
        each for each in http.get('/v2.1/os-services').json()['services'] if each['binary'] == 'nova-compute'
    ]
    http.request('PUT', f'/v2.1/os-services/{service["id"]}', {'status': 'disabled'})
    body = filled({'server': {'max_count': 1}}, image) | {'os:scheduler_hints': {'same_host': [ABSENT_ID]}}
    told = cloud.dry_run(body)
    assert (told['possible'], told['status']) == (False, 202)
    [server] = told['servers']
    refusing = {step['filter']: (step['refused'], step['reason']) for step in server['filters'] if step['refused']}
    assert refusing == {
        'ComputeFilter': ([service['host']], 'The service of the host is enabled and up.'),
        'SameHostFilter': ([other['host']], 'The hint same_host: the host has one of these servers.'),
    }
    made = http.post('/v2.1/servers', body).json()['server']['id']
    until = time.monotonic() + 10
    while (shown := http.get(f'/v2.1/servers/{made}').json()['server'])['status'] == 'BUILD':
        assert time.monotonic() < until
        time.sleep(0.01)
    assert (shown['status'], shown['fault']['message']) == ('ERROR', server['message'])


def test_a_host_without_room_is_told(http, cloud, image):
    flavor = {'name': 'vast', 'id': 'vast', 'ram': 10**9, 'vcpus': 1, 'disk': 1}
    http.post('/v2.1/flavors', {'flavor': flavor})
    project = cloud.tools.service.identity.acting_as('admin').project_id
    http.request('PUT', f'/v2.1/os-quota-sets/{project}', {'quota_set': {'ram': -1}})
    told = cloud.dry_run(filled({'server': {'flavorRef': 'vast'}}, image))
    [server] = told['servers']
    assert not told['possible']
    assert server['full'] == [each['host'] for each in server['candidates']]
    assert server['message'].endswith('Claim: 0 hosts')


def test_required_resources_are_used_by_one_server_after_the_other(http, cloud, image):
    cloud.load({'version': 1, 'hosts': [{'name': 'fast', 'traits': ['CUSTOM_FAST'], 'resources': {'CUSTOM_FPGA': 2}}]})
    http.post('/v2.1/flavors', {'flavor': {'name': 'fpga', 'id': 'fpga', 'ram': 64, 'vcpus': 1, 'disk': 1}})
    specs = {'resources:CUSTOM_FPGA': '1', 'trait:CUSTOM_FAST': 'required'}
    http.post('/v2.1/flavors/fpga/os-extra_specs', {'extra_specs': specs})
    told = cloud.dry_run(filled({'server': {'flavorRef': 'fpga', 'min_count': 3}}, image))
    assert [each['host'] for each in told['servers']] == ['fast', 'fast', None]
    refusing = [step for step in told['servers'][2]['filters'] if step['refused']]
    assert [(step['filter'], step['reason']) for step in refusing] == [
        (
            'Required resources and traits',
            'The host has the resources and traits that the flavor and the image require.',
        )
    ]
    assert http.booted(http.boot('one', flavorRef='fpga'))['OS-EXT-SRV-ATTR:host'] == 'fast'


def test_nobody_else_asks(cloud, image):
    with pytest.raises(NotFound):
        cloud.dry_run(filled({'server': {}}, image), user='nobody')
    with pytest.raises(NotAuthenticated):
        cloud.dry_run(filled({'server': {}}, image), user='demo', project='admin')


def test_a_command_prints_it(http, cloud, image, monkeypatch, capsys):
    monkeypatch.setenv(URL_VARIABLE, f'{cloud.url}/control')
    monkeypatch.setenv(TOKEN_VARIABLE, cloud.control_token)
    body = filled({'server': {}}, image)
    server = body['server']
    for told in (server, body):
        shell.run(['dry-run', json.dumps(told), '--user', 'demo', '--microversion', '2.96'])
        assert json.loads(capsys.readouterr().out)['possible'] is True
    assert http.control('POST', '/dry-run', {'server': server, 'microversion': '1'}).status_code == 400
    assert http.control('POST', '/dry-run', {'server': server, 'user': 'nobody'}).status_code == 404
    assert http.names() == []
