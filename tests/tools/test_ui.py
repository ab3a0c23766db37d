"""The web page in Chromium."""

import json
import os
import re
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

from computeapi import api
from computeapi.testing import Cloud
from computeapi.versions import COMPUTE
from computeapi.web.history import changes

SIZES = {'desk': {'width': 1280, 'height': 800}, 'phone': {'width': 360, 'height': 740}}
PLACES = {
    'a version': 'v=2.57',
    'an operation': 'v=2.90&op=POST /servers',
    'an operation that is not there': 'v=2.1&op=GET /servers/{server_id}/tags',
    'two versions': 'v=2.90&with=2.20',
    'an operation at two versions': 'v=2.90&with=2.20&op=GET /flavors/{id}',
    'a search': 'v=2.104&q=tag',
}
DIFFERENCES = """async () => {
  const [{ Reference }, { differences }] = await Promise.all([import('./reference.js'), import('./differences.js')])
  const reference = new Reference(await (await fetch('reference.json')).json())
  const told = {}
  for (const { name, number } of reference.versions.slice(1)) {
    told[name] = differences(reference, number - 1, number)
      .map(({ operation, kind, what }) => [operation.name, kind === 'changed' ? what : { [kind]: [] }])
  }
  return told
}"""

FORMS = """async () => {
  const modules = ['./reference.js', './form.js', './samples.js']
  const [{ Reference }, { BodyForm }, { least }] = await Promise.all(modules.map((each) => import(each)))
  const { nodes, operations } = new Reference(await (await fetch('reference.json')).json())
  const told = { seen: 0, different: [] }
  for (const { name, steps } of operations) {
    for (const { body } of steps.filter((step) => step.body !== undefined)) {
      told.seen += 1
      const form = new BodyForm(nodes, () => told.different.push(name))
      const before = JSON.stringify(least(nodes, body))
      form.show(body, JSON.parse(before))
      if (JSON.stringify(form.value) !== before || !form.element.firstElementChild) told.different.push(name)
    }
  }
  return told
}"""


@pytest.fixture(scope='module')
def cloud():
    with Cloud() as cloud:
        yield cloud


@pytest.fixture(scope='module')
def url(cloud):
    return f'{cloud.url}/ui/'


@pytest.fixture
def go(page, url):
    """go(place): opens a place in the API view; returns the page."""

    def go(place=''):
        page.goto(f'{url}#/api?{place}')
        expect(page.locator('#main')).not_to_have_attribute('aria-busy', 'true')
        return page

    return go


def test_what_differs_between_versions_is_what_the_history_says(go):
    told = go().evaluate(DIFFERENCES)
    table = api.operations()
    for version in COMPUTE.versions[1:]:
        expected = dict(changes(table, version))
        assert dict(told[str(version)]) == expected, version
    assert len(told) == len(COMPUTE.versions) - 1


def test_the_slider(go):
    page = go('v=2.56')
    expect(page.locator('.number')).to_have_text('2.56')
    page.get_by_role('slider').focus()
    page.keyboard.press('ArrowRight')
    expect(page.locator('.number')).to_have_text('2.57')
    expect(page.locator('.story')).to_have_text(COMPUTE.stories['2.57'])
    expect(page.get_by_role('heading', name='What 2.57 changed')).to_be_visible()
    expect(page.locator('.touched').get_by_text('server › personality').first).to_be_visible()
    page.keyboard.press('End')
    expect(page.locator('.number')).to_have_text('2.104')
    expect(page.get_by_role('button', name='Next version')).to_be_disabled()
    page.reload()
    expect(page.locator('.number')).to_have_text('2.104')


def test_an_operation_says_what_it_takes_at_a_version(go):
    page = go('v=2.18')
    page.get_by_role('navigation').get_by_role('link', name='POST /servers', exact=True).click()
    expect(page.get_by_role('heading', name='/servers')).to_be_visible()
    body = page.get_by_role('table', name='').nth(0)
    expect(body.locator('code', has_text='description')).to_have_count(0)
    personality = page.get_by_role('row', name='personality')
    expect(personality.first).to_contain_text('until 2.56')
    page.get_by_role('link', name='2.19', exact=True).click()
    expect(page.locator('.number')).to_have_text('2.19')
    expect(page.get_by_role('row', name='description').first).to_contain_text('since 2.19')


def test_two_versions_side_by_side(go):
    page = go('v=2.61&op=GET /flavors/{id}')
    page.get_by_label('Compare with').select_option('2.1')
    expect(page.get_by_role('columnheader', name='2.1', exact=True)).to_be_visible()
    expect(page.get_by_role('row', name='extra_specs').first).to_have_class('added')
    page.get_by_role('link', name='What differs').click()
    expect(page.get_by_role('heading', name='From 2.1 to 2.61')).to_be_visible()


def test_a_search_finds_operations_fields_and_rules(go):
    page = go('v=2.1')
    page.keyboard.press('/')
    expect(page.get_by_role('searchbox')).to_be_focused()
    page.keyboard.type('hostname')
    fields = page.locator('.group', has=page.get_by_role('heading', name='Fields and parameters'))
    result = fields.get_by_role('link', name='body of POST /servers', exact=False).first
    expect(result).to_contain_text('since 2.90')
    result.click()
    expect(page.get_by_text('It does not exist')).to_have_count(0)
    page.get_by_role('searchbox').fill('os-server-tags:index')
    expect(page.locator('.rule')).to_have_text('os_compute_api:os-server-tags:index')
    page.get_by_role('searchbox').fill('no such thing')
    expect(page.get_by_text('No operation, field or rule of any version')).to_be_visible()


@pytest.fixture
def logged_in(page, cloud):
    """log_in(user): logs in from a place where that is possible; the user is logged out at the end."""

    def log_in(user='admin'):
        page.get_by_role('button', name='Log in', exact=True).click()
        page.get_by_label('User').fill(user)
        page.get_by_label('Password').fill(cloud.passwords[user])
        page.keyboard.press('Enter')
        expect(page.get_by_text(f'{user} in {user}')).to_be_visible()

    yield log_in
    # After logout, the page must not send further requests.
    page.goto('about:blank')
    page.context.clear_cookies()


def test_an_operation_is_tried(go, logged_in, cloud):
    page = go('v=2.100&op=POST /os-server-groups')
    logged_in()
    page.get_by_label('name required').fill('apart')
    page.get_by_label('policy required').select_option('anti-affinity')
    page.get_by_role('button', name='Send').click()
    expect(page.locator('.answer .code')).to_contain_text('200')
    expect(page.get_by_label('Response body')).to_contain_text('"name": "apart"')
    assert 'apart' in [group.name for group in cloud.connection().compute.server_groups()]
    page.get_by_text('Copy as').click()
    expect(page.get_by_label('curl')).to_contain_text('OpenStack-API-Version: compute 2.100')
    page.get_by_role('button', name='openstacksdk').click()
    expect(page.get_by_label('openstacksdk')).to_contain_text('"policy": "anti-affinity"')


def test_a_body_is_a_form_and_json(go, logged_in, page):
    go('v=2.96&op=POST /servers')
    logged_in('demo')
    form = page.locator('.body-form')
    form.get_by_label('name required').fill('web')
    form.get_by_label('flavorRef required').fill('1')
    form.get_by_label('Type of networks').select_option('one of')
    form.get_by_role('combobox', name='networks required', exact=True).select_option('none')
    form.get_by_label('Add a field to server').select_option('block_device_mapping_v2')
    form.get_by_label('Add an item to block_device_mapping_v2').click()
    disk = form.get_by_role('group', name='block_device_mapping_v2 1')
    for name in ('boot_index', 'volume_size', 'delete_on_termination', 'uuid'):
        disk.get_by_label('Add a field to block_device_mapping_v2 1').select_option(name)
    disk.get_by_label('boot_index', exact=True).fill('0')
    disk.get_by_label('volume_size', exact=True).fill('7')
    disk.get_by_role('combobox', name='delete_on_termination', exact=True).select_option('false')
    disk.get_by_role('button', name='Remove uuid').click()
    form.get_by_label('Add a field to server').select_option('metadata')
    form.get_by_label('New name in metadata').fill('role')
    page.keyboard.press('Enter')
    page.keyboard.type('db')
    form.get_by_label('Add a field to server').select_option('description')
    form.get_by_label('Type of description').select_option('null')
    found = Axe().run(page)
    assert not found.violations_count, found.generate_report()
    page.get_by_role('button', name='JSON', exact=True).click()
    body = page.get_by_label('Request body, JSON')
    disk = {'boot_index': 0, 'volume_size': 7, 'delete_on_termination': False}
    server = {'name': 'web', 'flavorRef': '1', 'networks': 'none', 'block_device_mapping_v2': [disk]}
    expected = {'server': {**server, 'metadata': {'role': 'db'}, 'description': None}}
    assert json.loads(body.input_value()) == expected
    body.fill(json.dumps({'server': {**server, 'name': 'other', 'personal': [1]}}))
    page.get_by_role('button', name='Form', exact=True).click()
    expect(form.get_by_label('name required')).to_have_value('other')
    expect(form.locator('.field[data-name=personal]')).to_contain_text('not supported in this version')
    page.get_by_role('button', name='JSON', exact=True).click()
    body.fill('{')
    page.get_by_role('button', name='Form', exact=True).click()
    expect(page.get_by_text('The body is not JSON:')).to_be_visible()
    expect(body).to_have_value('{')


def test_a_field_may_be_called_as_what_every_object_has(go, logged_in, page):
    go('v=2.100&op=POST /servers/{server_id}/metadata')
    logged_in()
    page.get_by_label('New name in metadata').fill('constructor')
    page.get_by_role('button', name='Add a name to metadata').click()
    page.get_by_label('constructor', exact=True).fill('x')
    page.get_by_role('button', name='JSON', exact=True).click()
    assert json.loads(page.get_by_label('Request body, JSON').input_value()) == {'metadata': {'constructor': 'x'}}
    page.get_by_role('button', name='Form', exact=True).click()
    expect(page.get_by_label('constructor', exact=True)).to_have_value('x')


def test_each_body_at_each_version_is_a_form_of_the_same_document(go):
    """Showing a body as a form neither loses nor invents anything."""
    wrong = go().evaluate(FORMS)
    assert wrong['seen'] > 200 and not wrong['different']


def test_what_is_wrong_with_a_body_stands_beside_the_field(browser, cloud, url):
    # Not the shared page, because a browser reports refused requests as errors.
    page = browser.new_page()
    page.goto(f'{url}#/api?v=2.96&op=POST /servers')
    page.get_by_role('banner').get_by_role('button', name='Log in').click()
    page.get_by_label('User').fill('demo')
    page.get_by_label('Password').fill(cloud.passwords['demo'])
    page.keyboard.press('Enter')
    form = page.locator('.body-form')
    form.get_by_label('name required').fill('web')
    form.get_by_label('flavorRef required').fill('1')
    form.get_by_label('Add a field to server').select_option('key_name')
    form.get_by_label('key_name', exact=True).fill('x' * 256)
    page.get_by_role('button', name='Send').click()
    name = form.get_by_label('key_name', exact=True)
    expect(name).to_have_attribute('aria-invalid', 'true')
    expect(name).to_have_accessible_description(re.compile('Invalid input for field/attribute key_name'))
    expect(name).to_be_focused()
    name.fill('short')
    expect(form.locator('.alert')).to_have_count(0)
    page.context.clear_cookies()
    page.close()


def test_a_snippet_for_the_sdk_runs(go, logged_in, cloud, tmp_path):
    page = go('v=2.100&op=POST /os-server-groups')
    logged_in('demo')
    page.get_by_role('button', name='JSON', exact=True).click()
    page.get_by_label('Request body, JSON').fill('{"server_group": {"name": "it\'s \\"mine\\"", "policy": "affinity"}}')
    page.get_by_text('Copy as').click()
    page.get_by_role('button', name='openstacksdk').click()
    text = page.get_by_label('openstacksdk', exact=True).inner_text()
    environment = {**os.environ, 'OS_CLIENT_CONFIG_FILE': str(cloud.clouds_yaml)}
    done = subprocess.run([sys.executable, '-W', 'ignore', '-c', text], env=environment, capture_output=True, text=True)
    assert done.stdout.startswith('200 ') and "it's" in done.stdout, done.stderr


SNIPPETS = """async () => {
  const { snippets } = await import('./snippets.js')
  const asked = { method: 'GET', path: '/os-keypairs/a%3Fb', version: '2.1', command: 'keypair list' }
  const request = { ...asked, statuses: [200], cloud: "it's $HOME" }
  return Object.fromEntries(snippets(request, 'http://cloud').map(({ name, text }) => [name, text]))
}"""


def in_a_shell(text):
    """The arguments with which `openstack` would be called."""
    script = f'openstack() {{ printf "%s\\n" "$@"; }}\n{text}'
    return subprocess.check_output(['bash', '-c', script], text=True).splitlines()


def test_what_is_copied_does_nothing_else_whatever_names_are(go, logged_in):
    page = go('v=2.100&op=DELETE /servers/{server_id}&server_id=web; echo $(id)')
    logged_in()
    page.get_by_text('Copy as').click()
    page.get_by_role('button', name='openstack', exact=True).click()
    text = page.get_by_label('openstack', exact=True).inner_text()
    assert in_a_shell(text)[-3:] == ['server', 'delete', 'web; echo $(id)']
    told = page.evaluate(SNIPPETS)
    assert in_a_shell(told['openstack'])[:2] == ['--os-cloud', "it's $HOME"]
    assert 'connect(cloud="it\'s $HOME")' in told['openstacksdk']
    assert 'ServiceURL("os-keypairs", "a%3Fb")' in told['gophercloud']


TOLD = """async () => {
  const modules = ['./session.js', './cloud.js', './control.js']
  const [{ Session }, { Cloud }, { ControlForm }] = await Promise.all(modules.map((each) => import(each)))
  const session = new Session()
  session.take({ login: true, session: { user: 'one' } })
  const { fetch } = window
  let answer
  window.fetch = () => new Promise((resolve) => { answer = resolve })
  const asked = session.ask('/v2.1')
  session.take({ login: true, session: { user: 'other' } })
  answer(new Response('{"message": "Nobody is logged in."}', { status: 401 }))
  window.fetch = fetch
  const cloud = new Cloud(session, { newest: 0, name: () => '2.1' })
  const told = await asked.then((each) => cloud.taken(each)).catch(({ message }) => message)
  const requestBody = { content: { 'application/json': { schema: { type: 'object' } } } }
  const paths = { '/faults': { post: { requestBody } } }
  const answers = [Promise.reject(new Error('It is away.')), Promise.resolve({ paths })]
  const form = new ControlForm({ getControl: () => answers.shift() }, '/faults', { text: 'Add' })
  await form.show().catch(() => {})
  await form.show()
  return { who: session.who.user, told, shown: form.shown }
}"""


def test_what_goes_wrong_for_a_moment_is_told_and_over(go):
    told = go().evaluate(TOLD)
    assert told == {'who': 'other', 'told': 'Nobody is logged in.', 'shown': True}


def test_who_logs_out_is_nobody(go, logged_in):
    page = go('v=2.100&op=GET /servers')
    logged_in()
    page.get_by_role('button', name='Send').click()
    expect(page.get_by_label('Response body')).to_contain_text('"servers": []')
    page.reload()
    expect(page.get_by_role('button', name='Send')).to_be_visible()
    page.get_by_role('button', name='Log out').click()
    expect(page.get_by_role('button', name='Log in to try it')).to_be_visible()
    assert page.evaluate('document.cookie') == ''


def test_what_an_operation_is_tried_with_is_in_the_way_of_nobody(go, logged_in):
    page = go('v=2.100&op=PUT /servers/{server_id}')
    page.get_by_role('button', name='Log in', exact=True).click()
    assert not Axe().run(page).violations_count
    page.keyboard.press('Escape')
    logged_in()
    page.get_by_text('Copy as').click()
    found = Axe().run(page)
    assert not found.violations_count, found.generate_report()


@pytest.fixture
def server(cloud):
    """An active server, which is deleted afterwards."""
    compute = cloud.connection().compute
    image = next(cloud.connection().image.images()).id
    server = compute.create_server(name='web', flavor_id='1', image_id=image, networks='none')
    yield compute.wait_for_server(server, interval=0.1)
    compute.delete_server(server, ignore_missing=True)
    compute.wait_for_delete(server, interval=0.1)


def seen_to_stop(page, cloud, server):
    """Stop an active server; returns its row, which shows that."""
    row = page.get_by_role('row', name='web')
    expect(row).to_contain_text('ACTIVE')
    cloud.connection().compute.stop_server(server)
    expect(row).to_contain_text('SHUTOFF')
    return row


def test_servers_are_seen_as_they_change(go, logged_in, page, url, cloud, server):
    go()
    logged_in()
    page.get_by_role('link', name='Servers', exact=True).click()
    row = seen_to_stop(page, cloud, server)
    with page.expect_request(lambda request: 'status=ACTIVE' in request.url) as asked:
        page.get_by_label('Status').select_option('ACTIVE')
    assert 'marker=' not in asked.value.url
    expect(row).to_have_count(0)
    cloud.connection().compute.start_server(server)
    expect(row).to_contain_text('ACTIVE')
    found = Axe().run(page)
    assert not found.violations_count, found.generate_report()
    cloud.connection().compute.delete_server(server)
    expect(row).to_have_count(0)


def test_changes_of_servers_come_by_themselves(go, logged_in, page, cloud, server):
    # Periodic functions never run.
    page.add_init_script('window.setInterval = () => 1')
    go()
    logged_in()
    with page.expect_response('**/ui/stream'):
        page.get_by_role('link', name='Servers', exact=True).click()
    with page.expect_response(re.compile('name=we')):
        page.get_by_label('Filter servers by name').fill('we')
    row = seen_to_stop(page, cloud, server)
    row.get_by_role('link', name='web', exact=True).click()
    expect(page.locator('.about .status')).to_have_text('SHUTOFF')
    cloud.connection().compute.start_server(server)
    expect(page.locator('.about .status')).to_have_text('ACTIVE')
    page.get_by_role('link', name='Projects', exact=True).click()


def test_a_log_that_is_opened_early_comes_with_the_server(go, logged_in, page, url, server):
    go()
    logged_in()
    held = []
    page.route(f'**/v2.1/servers/{server.id}', lambda route: route.continue_() if held is None else held.append(route))
    page.goto(f'{url}#/servers/{server.id}')
    page.get_by_text('Console log').click()
    expect(page.get_by_label('Console log')).to_be_visible()
    waiting, held = held, None
    for route in waiting:
        route.continue_()
    expect(page.get_by_label('Console log')).to_contain_text('ready')
    page.get_by_role('link', name='Projects', exact=True).click()


SERVERS = """async () => {
  const { ServersView } = await import('./servers.js')
  const at = (second) => `2026-01-01T00:00:${String(second).padStart(2, '0')}Z`
  const made = { name: '', status: 'ACTIVE', created: at(30), updated: at(30) }
  const there = [...Array(500).keys()].map((number) => ({ id: `${number}`, ...made }))
  const asked = []
  const get = async (path, { status, 'changes-since': since, marker, limit }) => {
    asked.push(since)
    const found = there.filter((each) => (!status || each.status === status) && (!since || each.updated >= since))
    if (since) found.sort((one, other) => (one.updated < other.updated) - (one.updated > other.updated))
    const from = marker ? found.findIndex(({ id }) => id === marker) + 1 : 0
    return { servers: found.slice(from, from + limit).map((each) => ({ ...each })) }
  }
  const view = new ServersView({ get, session: { who: {} }, changes: { subscribe() {}, unsubscribe() {} } })
  const all = async () => { view.begin(); while (!view.ended) { await null; view.fetchMore() } }
  await all()
  await view.read()
  const quiet = asked.splice(0).filter(Boolean).length
  for (const each of there.slice(0, 450)) Object.assign(each, { status: 'SHUTOFF', updated: at(40) })
  await view.read()
  const stopped = [...view.known.values()].filter(({ status }) => status === 'SHUTOFF').length
  const busy = asked.splice(0).length
  view.status.append(new Option('SHUTOFF'))
  view.status.value = 'SHUTOFF'
  await all()
  await view.read()
  there.push({ id: 'old', name: '', status: 'SHUTOFF', created: at(10), updated: at(50) })
  await view.read()
  return { quiet, stopped, busy, last: [...view.known.keys()].at(-1) }
}"""


def test_of_many_servers_that_change_at_once_each_is_seen(go):
    """Including old servers that just got the filtered status."""
    assert go().evaluate(SERVERS) == {'quiet': 1, 'stopped': 450, 'busy': 3, 'last': 'old'}


def test_where_there_is_no_stream_one_looks_now_and_then(go, logged_in, page, cloud, server):
    def without(route):
        told = route.fetch()
        route.fulfill(response=told, body=told.text().replace('"stream":true', '"stream":false'))

    asked = []
    page.route('**/ui/session', without)
    page.on('request', lambda request: asked.append(request.url))
    go()
    logged_in()
    page.get_by_role('link', name='Servers', exact=True).click()
    seen_to_stop(page, cloud, server)
    assert not [url for url in asked if url.endswith('/ui/stream')]


def test_a_server_is_asked_for_what_its_state_allows(go, logged_in, page, url, cloud, server):
    go()
    logged_in()
    page.get_by_role('link', name='Servers', exact=True).click()
    page.get_by_role('link', name='web', exact=True).click()
    possible = page.locator('.possible')
    expect(possible.get_by_role('button', name='start')).to_have_count(0)
    page.get_by_text('unavailable in its current state').click()
    expect(page.locator('.impossible li', has_text='start')).to_contain_text('Only when SHUTOFF.')
    possible.get_by_role('button', name='stop').click()
    expect(page.locator('.about .status')).to_have_text('SHUTOFF')
    expect(possible.get_by_role('button', name='start')).to_be_visible()
    expect(page.locator('.past')).to_contain_text('stop instance')
    page.get_by_text('Console log').click()
    expect(page.get_by_label('Console log')).to_contain_text('ready')
    found = Axe().run(page)
    assert not found.violations_count, found.generate_report()
    possible.get_by_role('link', name='resize').click()
    expect(page.get_by_label('server_id')).to_have_value(server.id)
    page.go_back()
    possible.get_by_role('button', name='delete', exact=True).click()
    page.get_by_role('dialog').get_by_role('button', name='Delete').click()
    expect(page.get_by_role('heading', name='Servers')).to_be_visible()
    expect(page.get_by_role('row', name='web')).to_have_count(0)


def test_a_window_that_the_browser_keeps_back_is_told(go, logged_in, page, url, server):
    page.add_init_script('window.open = () => null')
    go()
    logged_in()
    page.goto(f'{url}#/servers/{server.id}')
    page.locator('.possible').get_by_role('button', name='console', exact=True).click()
    expect(page.get_by_text('Allow pop-ups')).to_be_visible()
    page.goto('about:blank')


def test_hosts_networks_and_projects(go, logged_in, page, cloud, server):
    compute = cloud.connection().compute
    go()
    logged_in()
    for scheme, size in (('light', 'desk'), ('dark', 'phone')):
        page.emulate_media(color_scheme=scheme)
        page.set_viewport_size(SIZES[size])
        page.get_by_role('link', name='Hosts', exact=True).click()
        host = page.locator('.card', has_text='compute1')
        expect(host).to_contain_text('1 server')
        expect(host.get_by_role('meter', name='VCPUs')).to_have_attribute('aria-valuenow', '1')
        assert not Axe().run(page).violations_count
        page.get_by_role('link', name='Networks', exact=True).click()
        expect(page.locator('.router')).to_have_text(['router', 'demo-router'])
        for network, addresses in {'private': '10.0.0.0/16', 'demo': '10.1.0.0/16'}.items():
            expect(page.locator('.network', has_text=network)).to_contain_text(addresses)
        assert not Axe().run(page).violations_count
        page.get_by_role('link', name='Projects', exact=True).click()
        project = page.locator('.card', has=page.get_by_role('heading', name='admin'))
        expect(project.get_by_role('meter', name='Servers')).to_have_attribute('aria-valuetext', '1 of 10')
        found = Axe().run(page)
        assert not found.violations_count, found.generate_report()
    assert len(list(compute.servers())) == 1


def test_more_hosts_than_a_page_has_are_not_said_to_be_all(page):
    with Cloud(hosts=3, options={('api', 'max_limit'): 2}) as cloud:
        page.goto(f'{cloud.url}/ui/#/hosts')
        page.get_by_role('banner').get_by_role('button', name='Log in').click()
        page.get_by_label('User').fill('admin')
        page.get_by_label('Password').fill(cloud.passwords['admin'])
        page.keyboard.press('Enter')
        expect(page.locator('.card')).to_have_count(2)
        expect(page.get_by_text('the first 2 hosts, 2 up')).to_be_visible()
        page.goto('about:blank')


@pytest.fixture
def refusing(browser):
    """A separate page, because a browser reports refused requests as errors; no other errors may occur in it."""
    page, errors = browser.new_page(), []
    page.on('pageerror', lambda error: errors.append(str(error)))
    yield page
    page.context.clear_cookies()
    page.close()
    assert not errors


def test_nobody_is_shown_what_the_one_before_them_saw(refusing, cloud, url, server):
    def log_in(user):
        page.get_by_role('banner').get_by_role('button', name='Log in').click()
        page.get_by_label('User').fill(user)
        page.get_by_label('Password').fill(cloud.passwords[user])
        page.keyboard.press('Enter')

    page = refusing
    page.goto(f'{url}#/servers/{server.id}')
    log_in('admin')
    page.get_by_text('Console log').click()
    expect(page.get_by_label('Console log')).to_contain_text('ready')
    expect(page.locator('.past')).to_contain_text('create')
    page.goto(f'{url}#/api?v=2.100&op=GET /os-hypervisors')
    page.get_by_role('button', name='Send').click()
    expect(page.locator('.answer')).to_contain_text('compute1')
    page.goto(f'{url}#/api?v=2.100&op=POST /os-keypairs')
    page.get_by_label('name required').fill('of-the-admin')
    page.goto(f'{url}#/api?v=2.100&op=GET /os-hypervisors')
    page.get_by_role('button', name='Log out').click()
    log_in('demo')
    expect(page.get_by_role('button', name='Send')).to_be_visible()
    expect(page.locator('.answer')).to_be_empty()
    page.goto(f'{url}#/api?v=2.100&op=POST /os-keypairs')
    expect(page.get_by_label('name required')).to_have_value('')
    page.goto(f'{url}#/servers/{server.id}')
    expect(page.get_by_role('heading', name='This server does not exist')).to_be_visible()
    for part in ('.past', '.log pre', '.server .facts'):
        expect(page.locator(part)).to_be_empty()


def test_what_a_port_is_of_leads_nowhere_else(refusing, cloud, url):
    network, page, asked = cloud.connection('demo').network, refusing, []
    port = network.create_port(
        network_id=network.find_network('demo').id, device_id='../../../session', device_owner='compute:nova'
    )
    page.goto(f'{url}#/networks')
    page.get_by_role('banner').get_by_role('button', name='Log in').click()
    page.get_by_label('User').fill('admin')
    page.get_by_label('Password').fill(cloud.passwords['admin'])
    page.on('request', lambda request: asked.append((request.method, request.url)))
    page.keyboard.press('Enter')
    expect(page.locator('.drawing')).to_contain_text('../../../session')
    network.delete_port(port)
    assert ('GET', f'{url}session') not in asked


def test_servers_of_all_zones_are_drawn(page):
    with Cloud() as cloud:
        cloud.load({'version': 1, 'hosts': [{'name': 'far', 'zone': 'east'}]})
        demo = cloud.connection('demo')
        network, image = demo.network.find_network('demo').id, next(demo.image.images()).id
        facts = {'image_id': image, 'flavor_id': '1', 'networks': [{'uuid': network}]}
        for zone in ('nova', 'east'):
            made = demo.compute.create_server(name=f'in-{zone}', availability_zone=zone, **facts)
            demo.compute.wait_for_server(made, interval=0.1)
        page.goto(f'{cloud.url}/ui/#/networks')
        page.get_by_role('banner').get_by_role('button', name='Log in').click()
        page.get_by_label('User').fill('demo')
        page.get_by_label('Password').fill(cloud.passwords['demo'])
        page.keyboard.press('Enter')
        for zone in ('nova', 'east'):
            expect(page.locator('.drawing')).to_contain_text(f'in-{zone}')
        page.goto('about:blank')


@pytest.mark.parametrize('place', ['constructor', 'tests/constructor', 'servers/%'])
def test_an_address_that_is_none_breaks_nothing(refusing, cloud, url, place):
    page = refusing
    page.goto(f'{url}#/tests')
    page.get_by_role('banner').get_by_role('button', name='Log in').click()
    page.get_by_label('User').fill('admin')
    page.get_by_label('Password').fill(cloud.passwords['admin'])
    page.keyboard.press('Enter')
    expect(page.get_by_role('navigation', name='Test tools')).to_be_visible()
    page.goto(f'{url}#/{place}')
    found = re.compile('What 2.104 changed|Any response|This server does not exist')
    expect(page.locator('#main')).to_contain_text(found)


def test_who_is_no_administrator_sees_their_own(go, logged_in, page, server):
    go()
    logged_in('demo')
    expect(page.get_by_role('link', name='Hosts', exact=True)).to_have_count(0)
    page.get_by_role('link', name='Servers', exact=True).click()
    expect(page.get_by_text('0 servers')).to_be_visible()
    page.get_by_role('link', name='Projects', exact=True).click()
    expect(page.locator('.card')).to_have_count(1)
    expect(page.get_by_role('meter', name='Servers', exact=True)).to_have_attribute('aria-valuetext', '0 of 10')


def test_what_the_rules_refuse_is_no_button(page, tmp_path):
    rules = [
        '"os_compute_api:servers:stop": "role:admin"',
        '"os_compute_api:os-hypervisors:list-detail": "role:member"',
    ]
    (tmp_path / 'policy.yaml').write_text('\n'.join(rules))
    with Cloud(options={('oslo_policy', 'policy_file'): str(tmp_path / 'policy.yaml')}) as cloud:
        compute = cloud.connection('demo').compute
        image = next(cloud.connection('demo').image.images()).id
        made = compute.create_server(name='web', flavor_id='1', image_id=image, networks='none')
        server = compute.wait_for_server(made, interval=0.1)
        page.goto(f'{cloud.url}/ui/#/servers/{server.id}')
        page.get_by_role('banner').get_by_role('button', name='Log in').click()
        page.get_by_label('User').fill('demo')
        page.get_by_label('Password').fill(cloud.passwords['demo'])
        page.keyboard.press('Enter')
        expect(page.locator('.possible').get_by_role('button', name='pause')).to_be_visible()
        expect(page.locator('.possible').get_by_role('button', name='stop')).to_have_count(0)
        page.get_by_text('in its current state or to you').click()
        stop = page.locator('.impossible li').filter(has=page.get_by_text('stop', exact=True))
        expect(stop).to_contain_text('The rule os_compute_api:servers:stop does not allow it.')
        found = Axe().run(page)
        assert not found.violations_count, found.generate_report()
        expect(page.get_by_role('link', name='Hosts', exact=True)).to_be_visible()
        page.goto('about:blank')


def test_what_tests_did_and_can_do(go, logged_in, page, cloud, url):
    cloud.reset()
    compute = cloud.connection('demo').compute
    go()
    expect(page.get_by_role('link', name='Tests', exact=True)).to_have_count(0)
    logged_in()
    page.get_by_role('link', name='Tests', exact=True).click()
    list(compute.server_groups())
    row = page.get_by_role('row', name='/v2.1/os-server-groups')
    expect(row).to_contain_text('200')
    page.get_by_label('Filter requests by operation or path').fill('no such thing')
    expect(row).to_have_count(0)
    page.get_by_label('Filter requests by operation or path').fill('os-server-groups')
    row.get_by_role('button').click()
    expect(page.get_by_label('Response, body')).to_contain_text('"server_groups": []')
    assert not Axe().run(page).violations_count
    page.get_by_role('button', name='Close').click()
    assert not Axe().run(page).violations_count

    page.get_by_role('link', name='Coverage').click()
    page.get_by_label('only used operations').check()
    expect(page.locator('.map li')).to_have_count(2)
    expect(page.locator('.map')).to_contain_text('GET /os-server-groups')
    assert not Axe().run(page).violations_count

    page.get_by_role('link', name='Faults').click()
    page.get_by_label('operation', exact=True).fill('GET /os-server-groups')
    page.get_by_label('status', exact=True).fill('503')
    page.get_by_role('button', name='Add a rule').click()
    rule = page.locator('.rules .card')
    expect(rule).to_contain_text('0 hits')
    assert compute.get('/os-server-groups').status_code == 503
    expect(rule).to_contain_text('1 hit')
    assert not Axe().run(page).violations_count
    rule.get_by_role('button', name='Remove').click()
    expect(page.get_by_text('There are no rules.')).to_be_visible()


@pytest.fixture
def part(go, logged_in, page, cloud):
    """part(name): opens a part of the tests view in a cloud that was reset; it must pass an accessibility check."""
    cloud.reset()
    go()
    logged_in()
    page.get_by_role('link', name='Tests', exact=True).click()

    def part(name):
        page.get_by_role('navigation', name='Test tools').get_by_role('link', name=name, exact=True).click()
        return page

    yield part
    found = Axe().run(page)
    assert not found.violations_count, found.generate_report()
    page.goto('about:blank')
    cloud.reset()


def test_events_as_they_happen(part, cloud):
    page = part('Events')
    cloud.load({'version': 1, 'servers': [{'name': 'db', 'flavor': 'm1.tiny'}]})
    cloud.connection().compute.stop_server(next(cloud.connection().compute.servers(all_projects=True)))
    row = page.get_by_role('row').filter(has_text='server.changed').filter(has_text='SHUTOFF')
    expect(row.first).to_contain_text('db')
    page.get_by_label('Filter events by').fill('no such thing')
    expect(page.get_by_text('0 events')).to_be_visible()


def test_plans_for_states(part, cloud, server):
    page = part('States')
    page.get_by_label('state', exact=False).first.select_option('HARD_REBOOT')
    page.get_by_role('button', name='Remove reads').click()
    page.get_by_label('Add a field to the body').select_option('until_told')
    page.get_by_role('button', name='Add a plan').click()
    plan = page.locator('.rules .card')
    expect(plan).to_contain_text('HARD_REBOOT')
    compute = cloud.connection().compute
    image = next(cloud.connection().image.images()).id
    made = compute.create_server(name='held', flavor_id='1', image_id=image, networks='none')
    held = compute.wait_for_server(made, interval=0.1)
    compute.reboot_server(held, 'HARD')
    compute.wait_for_server(held, status='HARD_REBOOT', interval=0.1)
    page.get_by_label('The server to release').fill('held')
    page.get_by_role('button', name='Release').click()
    compute.wait_for_server(held, interval=0.1)
    page.get_by_role('button', name='Remove plan').click()
    expect(plan).to_have_count(0)
    assert not cloud.plans.list()


def test_outages(part, cloud):
    page = part('Outages')
    page.get_by_role('button', name='Take compute1 down').click()
    expect(page.get_by_role('button', name='Bring compute1 up')).to_be_focused()
    [host] = cloud.connection().compute.services(binary='nova-compute')
    assert host.state == 'down'
    page.get_by_role('button', name='Bring compute1 up').click()
    page.get_by_role('button', name='Take volume down').click()
    expect(page.get_by_role('button', name='Bring volume up')).to_be_visible()
    assert cloud.connection('demo').block_storage.get('/volumes').status_code == 503
    page.get_by_role('button', name='Bring volume up').click()
    expect(page.get_by_role('button', name='Take volume down')).to_be_visible()


def test_webhooks_and_hints(part, cloud):
    page = part('Webhooks')
    page.get_by_role('button', name='Add a webhook').click()
    expect(page.get_by_label('Secret')).to_contain_text('whsec_')
    expect(page.locator('.rules .card')).to_contain_text('0 delivered')
    page.get_by_role('button', name='Remove webhook').click()
    expect(page.get_by_text('There are no webhooks.')).to_be_visible()
    part('Hints')
    page.get_by_role('button', name='Hints on').click()
    expect(page.get_by_role('button', name='Hints on', pressed=True)).to_be_visible()
    cloud.connection('demo').compute.get('/servers/x/tags', microversion='2.1')
    expect(page.locator('.rules .card')).to_contain_text('is supported from 2.26 on')
    page.get_by_role('button', name='Hints off').click()
    expect(page.get_by_role('button', name='Hints off', pressed=True)).to_be_visible()
    assert not cloud.hints.on


def test_contents_of_a_cloud(part, cloud):
    page = part('Contents')
    page.get_by_role('button', name='Add', exact=True).click()
    expect(page.get_by_text('Added to the cloud.')).to_be_visible()
    with page.expect_download() as saved:
        page.get_by_role('button', name='Save as cloud.yaml').click()
    file = Path(saved.value.path())
    assert 'name: web' in file.read_text() and saved.value.suggested_filename == 'cloud.yaml'
    cloud.reset()
    cloud.load(file)
    assert [server.name for server in cloud.connection().compute.servers(all_projects=True)] == ['web']


def test_a_dry_run(part, cloud):
    page = part('Dry run')
    image = next(cloud.connection().image.images()).id
    server = {'name': 'web', 'flavorRef': '1', 'imageRef': image, 'networks': 'none'}
    page.get_by_label('server required').fill(json.dumps(server))
    page.get_by_role('button', name='Dry run').click()
    expect(page.get_by_text('Host: compute1')).to_be_visible()
    expect(page.get_by_role('status').get_by_text('ComputeFilter', exact=True)).to_be_visible()
    assert not list(cloud.connection().compute.servers(all_projects=True))
    page.get_by_label('server required').fill(json.dumps(server | {'flavorRef': 'none'}))
    page.get_by_role('button', name='Dry run').click()
    expect(page.get_by_text('not possible')).to_be_visible()


def test_the_journal_is_saved(part, cloud):
    page = part('Journal')
    list(cloud.connection('demo').compute.server_groups())
    with page.expect_download() as saved:
        page.get_by_role('button', name='Save as .har').click()
    assert '/os-server-groups' in Path(saved.value.path()).read_text()


def test_a_reset_is_to_the_beginning(part, cloud):
    page = part('Clock and snapshots')
    cloud.load({'version': 1, 'servers': [{'name': 'db', 'flavor': 'm1.tiny'}]})
    page.get_by_role('button', name='Reset the cloud').click()
    expect(page.get_by_role('button', name='Log out')).to_have_count(0)
    assert not list(cloud.connection().compute.servers(all_projects=True))


def test_the_clock_and_snapshots(go, logged_in, page, cloud):
    cloud.reset()
    go()
    logged_in()
    page.get_by_role('link', name='Tests', exact=True).click()
    page.get_by_role('link', name='Clock and snapshots').click()
    page.get_by_role('button', name='stopped').click()
    expect(page.get_by_role('button', name='stopped')).to_have_attribute('aria-pressed', 'true')
    before = cloud.clock()
    page.get_by_role('button', name='1 day later').click()
    expect(page.locator('.now')).to_contain_text(str(before.date() + timedelta(days=1)))
    page.get_by_role('button', name='Real time').click()
    page.get_by_label('Name of a new snapshot').fill('empty')
    page.get_by_role('button', name='Take snapshot').click()
    expect(page.get_by_role('button', name='Restore empty')).to_be_visible()
    assert not Axe().run(page).violations_count
    page.get_by_role('button', name='Restore empty').click()
    expect(page.get_by_role('button', name='Log out')).to_have_count(0)
    cloud.reset()


def test_on_a_phone_the_list_is_asked_for(go, page):
    page.set_viewport_size(SIZES['phone'])
    go('v=2.57')
    operations = page.get_by_role('navigation', name='Operations')
    expect(operations).to_be_hidden()
    page.get_by_role('button', name='All operations').click()
    operations.get_by_role('link', name='GET /limits').click()
    expect(page.get_by_role('heading', name='/limits')).to_be_visible()
    expect(operations).to_be_hidden()
    assert page.evaluate('document.documentElement.scrollWidth') <= SIZES['phone']['width']


@pytest.mark.parametrize(('size', 'scheme'), [('desk', 'light'), ('phone', 'dark')])
@pytest.mark.parametrize('place', PLACES)
def test_nothing_is_in_the_way_of_assistive_technology(go, page, place, size, scheme):
    page.set_viewport_size(SIZES[size])
    page.emulate_media(color_scheme=scheme)
    go(PLACES[place])
    found = Axe().run(page)
    assert not found.violations_count, found.generate_report()
