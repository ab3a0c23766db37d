"""A cloud is read through its APIs into a file that creates a similar cloud."""

import json
import re
import sys

import pytest
import yaml

from computeapi.cli import main
from computeapi.kit.cloud_files.anonymity import Anonymity
from computeapi.kit.cloud_files.clone_compute import ClonedCompute
from computeapi.kit.cloud_files.cloning import clone
from computeapi.testing import Cloud
from tests.kit.conftest import HTTP
from tests.kit.test_cloud_files import CLOUD_FILE, LISTS, problems, sorted_lists

# The APIs do not show a server's internal number, or an image's data.
INEXACT = {
    *('checksum', 'os_hash_value', 'size', 'updated_at', 'updated', 'progress', 'OS-EXT-SRV-ATTR:user_data'),
    'OS-EXT-SRV-ATTR:instance_name',
}


@pytest.fixture
def loaded(cloud, http):
    cloud.load(CLOUD_FILE)
    http.log_in()
    for path in LISTS:
        http.get(path)
    return cloud


def without(value):
    if isinstance(value, dict):
        return {name: without(each) for name, each in value.items() if name not in INEXACT}
    return [without(each) for each in value] if isinstance(value, list) else value


def answers(http, url):
    return {path: without(sorted_lists(http.get(path).json(), url)) for path in LISTS}


def test_a_clone_answers_as_its_original(loaded, http):
    document, left_out = clone(loaded.connection())
    expected = answers(http, loaded.url)

    assert left_out == ['passwords, user data of servers, data of images']
    with Cloud(load=document) as other:
        there = HTTP(other)
        found = answers(there, other.url)
        there.session.close()
        assert [each for each in problems(other) if 'pictures' not in each] == []
    for path in LISTS:
        assert found[path] == expected[path], path


def test_a_clone_is_whole_however_short_the_pages_of_lists_are(loaded):
    there, _ = clone(loaded.connection())
    with Cloud(hosts=2, load=CLOUD_FILE, options={('api', 'max_limit'): 1}) as short:
        admin = short.connection()
        for name in ('one', 'two'):
            admin.compute.create_keypair(name=name)
            admin.compute.create_server_group(name=name, policy='affinity')
        server = next(admin.compute.servers(all_projects=True, status='ACTIVE'))
        admin.compute.migrate_server(server)
        admin.compute.wait_for_server(server, 'VERIFY_RESIZE')
        document, left_out = clone(admin)
    assert left_out == ['passwords, user data of servers, data of images']
    assert [each['name'] for each in document['keypairs']] == ['one', 'two']
    assert len(document['server_groups']) == len(there['server_groups']) + 2
    for what in ('actions', 'migrations'):
        short, whole = [sum(len(server.get(what, ())) for server in each['servers']) for each in (document, there)]
        assert short == whole + 1 > 1, what


def test_an_older_cloud_is_cloned_too(loaded, monkeypatch):
    monkeypatch.setattr(ClonedCompute, '_version', lambda self, wanted: '2.53')
    document, _ = clone(loaded.connection())
    assert any(server.get('migrations') for server in document['servers'])


def test_what_a_cloud_keeps_back_is_said(loaded, monkeypatch):
    connection = loaded.connection()
    get = connection.identity.get

    def some(url, **kwargs):
        answer = get(url, **kwargs)
        if url.endswith('/v3/users'):
            answer._content = json.dumps(answer.json() | {'truncated': True}).encode()
        elif url.endswith('/v3/domains'):
            answer._content = b'<html>'
        return answer

    monkeypatch.setattr(connection.identity, 'get', some)
    left_out = clone(connection)[1]
    assert any(each.startswith('identity /v3/users: items beyond the limit') for each in left_out)
    assert any(each.startswith('identity /v3/domains: ') for each in left_out)


def test_a_user_clones_what_it_may_see(loaded):
    document, left_out = clone(loaded.connection('alice'))

    assert {server['name'] for server in document['servers']} >= {'web1', 'db1'}
    assert 'hosts' not in document
    assert any('hypervisors' in each for each in left_out) and any('users' in each for each in left_out)
    with Cloud(load=document) as other:
        assert {server.name for server in other.connection().compute.servers(all_projects=True)} >= {'web1', 'db1'}


def test_an_anonymous_clone_tells_nothing_but_shapes(loaded):
    document, _ = clone(loaded.connection())
    first, second = (Anonymity(document, b'key').applied() for _ in range(2))
    text = yaml.safe_dump(first)

    assert first == second and first != Anonymity(document, b'other').applied()
    for secret in ('web1', 'shop', 'alice', 'laptop', '10.1.0.', 'big1', 'production', 'No valid host', 'gold'):
        assert secret not in text, secret
    ids = set(re.findall(r'[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}', yaml.safe_dump(document)))
    assert not [each for each in ids if each in text]
    assert {name: len(each) for name, each in first.items() if isinstance(each, list)} == {
        name: len(each) for name, each in document.items() if isinstance(each, list)
    }
    with Cloud(load=first) as other:
        statuses = sorted(server.status for server in other.connection().compute.servers(all_projects=True))
    assert statuses == ['ACTIVE', 'ERROR', 'PAUSED', 'SHELVED_OFFLOADED', 'SHUTOFF', 'VERIFY_RESIZE']


def test_the_command_prints_a_file(loaded, capsys, monkeypatch):
    monkeypatch.setenv('OS_CLIENT_CONFIG_FILE', str(loaded.clouds_yaml))
    assert main(['clone', '--os-cloud', 'computeapi', '--anonymize']) == 0
    said = capsys.readouterr()
    assert yaml.safe_load(said.out)['servers'] and said.out.startswith('# Left out: ')
    assert main(['clone', '--os-cloud', 'none-such']) == 2


@pytest.mark.parametrize(
    ('changes', 'reason'),
    [
        ({'auth_url': None}, 'auth_url'),
        ({'auth_url': 'http://127.0.0.1:1'}, 'http://127.0.0.1:1'),
        ({'password': 'wrong'}, 'HTTP 401'),
    ],
)
def test_a_cloud_that_lets_nobody_in_is_told_in_one_line(cloud, capsys, monkeypatch, tmp_path, changes, reason):
    clouds = yaml.safe_load(cloud.clouds_yaml.read_text())
    auth = clouds['clouds']['computeapi']['auth'] | changes
    clouds['clouds']['computeapi']['auth'] = {name: value for name, value in auth.items() if value is not None}
    (tmp_path / 'clouds.yaml').write_text(yaml.safe_dump(clouds))
    monkeypatch.setenv('OS_CLIENT_CONFIG_FILE', str(tmp_path / 'clouds.yaml'))
    assert main(['clone', '--os-cloud', 'computeapi']) == 2
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith('computeapi: ') and reason in line


def test_without_openstacksdk_the_command_names_it(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, 'openstack', None)
    assert main(['clone', '--os-cloud', 'mycloud']) == 2
    assert capsys.readouterr().err == 'computeapi: Reading a cloud requires the package openstacksdk.\n'
