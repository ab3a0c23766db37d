"""The snippets that the page copies for shells and programs, run in a cloud by those tools."""

import os
import re
import shutil
import subprocess
import sys

import pytest
from playwright.sync_api import expect

from computeapi.testing import Cloud
from tests.tools.test_examples import DEBIAN

GROUP = '{"server_group": {"name": "it\'s `mine`", "policy": "affinity"}}'
CASES = {
    'a list with a query': ('GET /servers/detail', '2.96', {}, {'limit': '1', 'name': 'w.*b'}, None, '200'),
    'one with a body': ('POST /os-server-groups', '2.100', {}, {}, GROUP, '200'),
    'one server': ('GET /servers/{server_id}', '2.19', {'server_id': 'server'}, {}, None, '200'),
    'another description': (
        'PUT /servers/{server_id}',
        '2.19',
        {'server_id': 'server'},
        {},
        '{"server": {"description": "$HOME"}}',
        '200',
    ),
    'an action': (
        'POST /servers/{server_id}/action {lock}',
        '2.73',
        {'server_id': 'server'},
        {},
        '{"lock": {"locked_reason": "x"}}',
        '202',
    ),
    'what takes nothing away': ('DELETE /flavors/{id}', '2.1', {'id': 'flavor'}, {}, None, '202'),
}


@pytest.fixture(scope='module')
def cloud():
    with Cloud() as cloud:
        yield cloud


@pytest.fixture
def ids(cloud):
    cloud.reset()
    connection = cloud.connection()
    image = next(connection.image.images()).id
    made = connection.compute.create_server(name='web', flavor_id='1', image_id=image, networks='none')
    server = connection.compute.wait_for_server(made, interval=0.1).id
    flavor = connection.compute.create_flavor(name='extra', ram=1, vcpus=1, disk=1).id
    return {'server': server, 'flavor': flavor}


@pytest.fixture
def copied(page, cloud, ids):
    """copied(case, name): the snippet of this name that the page shows for a case."""

    def copied(case, name):
        operation, version, path, query, body, _ = CASES[case]
        page.goto(f'{cloud.url}/ui/#/api?v={version}&op={operation}')
        page.get_by_role('banner').get_by_role('button', name='Log in').click()
        page.get_by_label('User').fill('admin')
        page.get_by_label('Password').fill(cloud.passwords['admin'])
        page.keyboard.press('Enter')
        for parameter, which in path.items():
            page.locator(f'.trial input[name={parameter}]').fill(ids[which])
        if query:
            page.locator('.trial summary', has_text='query parameters').click()
        for parameter, value in query.items():
            page.locator(f'.trial input[name={parameter}]').fill(value)
        if body:
            page.get_by_role('button', name='JSON', exact=True).click()
            page.get_by_label('Request body, JSON').fill(body)
        page.get_by_text('Copy as').click()
        page.get_by_role('button', name=name, exact=True).click()
        text = page.get_by_label(name, exact=True).text_content()
        page.get_by_role('button', name='Log out').click()
        expect(page.get_by_role('button', name='Log in to try it')).to_be_visible()
        return text

    yield copied


@pytest.fixture
def run(cloud, tmp_path):
    """run(*command): the output of a command in the environment of the cloud."""
    programs = tmp_path / 'bin'
    programs.mkdir()
    (programs / 'openstack').write_text(f'#!/bin/sh\nexec {sys.executable} -W ignore -m openstackclient.shell "$@"\n')
    (programs / 'openstack').chmod(0o755)
    facts = {**cloud.environ, 'OS_CLIENT_CONFIG_FILE': str(cloud.clouds_yaml), 'HOME': str(tmp_path)}
    environment = os.environ | facts | {'PATH': f'{programs}:{os.environ["PATH"]}'}

    def run(*command, **more):
        done = subprocess.run(command, env=environment | more, cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    return run


def done(cloud, case, ids):
    """The expected effect of each case that changes something."""
    compute = cloud.connection().compute
    server = compute.get(f'/servers/{ids["server"]}', microversion='2.73').json()['server']
    return {
        'one with a body': [group.name for group in compute.server_groups()] == ["it's `mine`"],
        'another description': server['description'] == '$HOME',
        'an action': server['locked'] and server['locked_reason'] == 'x',
        'what takes nothing away': compute.find_flavor('extra') is None,
    }.get(case, True)


@pytest.mark.parametrize('case', CASES)
def test_curl(copied, run, cloud, ids, case):
    # The status goes to curl's standard error, and the token comes from `openstack`.
    text = copied(case, 'curl').replace('curl ', 'curl -sS -w %{http_code} -o answer ', 1)
    assert run('bash', '-c', text) == CASES[case][-1]
    assert done(cloud, case, ids)


@pytest.mark.parametrize('case', CASES)
def test_openstacksdk(copied, run, cloud, ids, case):
    assert run(sys.executable, '-W', 'ignore', '-c', copied(case, 'openstacksdk')).startswith(f'{CASES[case][-1]} ')
    assert done(cloud, case, ids)


@pytest.mark.parametrize('case', ['a list with a query', 'one server', 'an action', 'what takes nothing away'])
def test_openstack(copied, run, cloud, ids, case):
    text = copied(case, 'openstack')
    assert text.startswith('openstack --os-cloud computeapi --os-compute-api-version ')
    output = run('bash', '-c', text)
    assert 'web' in output or case not in ('a list with a query', 'one server')
    if case == 'what takes nothing away':
        assert done(cloud, case, ids)


@pytest.mark.parametrize('case', CASES)
def test_gophercloud(copied, run, cloud, ids, tmp_path, case):
    """Debian has version 1 of gophercloud, whose calls take no context."""
    assert shutil.which('go'), 'There is no Go; tests/tools/install installs it.'
    text = copied(case, 'gophercloud')
    assert text.count('/v2"') == 1 and text.count('ctx') == 3
    first = re.sub('gophercloud/v2', 'gophercloud', text).replace('(ctx, ', '(').replace('\t"context"\n', '')
    (tmp_path / 'main.go').write_text(first.replace('\tctx := context.Background()\n', ''))
    formatted = run('gofmt', '-l', 'main.go')
    assert not formatted
    assert run('go', 'run', 'main.go', **DEBIAN, GOCACHE=str(tmp_path.parent / 'go')).startswith(CASES[case][-1])
    assert done(cloud, case, ids)
