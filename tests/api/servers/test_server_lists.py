"""Lists of servers: filters, sorting, permissions and pages."""

from datetime import datetime, timedelta
from urllib.parse import quote

import pytest

from computeapi.db import server_tags

OWNER, ADMIN, STRANGER = 'bob:project', 'admin:project', 'eve:other'
CREATED = datetime(2026, 1, 31, 12)
IMAGE, OTHER_IMAGE = '70a599e0-31e7-49b7-b260-868f441e862b', 'fc4bcb5d-2d5c-4cf6-b6f0-e62b3a4b0cf1'


@pytest.fixture
def three(servers):
    """a runs and has addresses and tags, b is locked, c is stopped; d is deleted, e belongs to another project."""
    addresses = [
        {'address': '10.92.0.5', 'version': 4, 'floating': []},
        {'address': 'fd00::5', 'version': 6, 'floating': []},
    ]
    network_info = [{'network_name': 'n', 'mac_address': 'm', 'addresses': addresses, 'security_groups': []}]
    ids = {
        'a': servers.add(
            name='web-a', network_info=network_info, access_ip_v4='9.9.9.1', description='first', launch_index=1
        ),
        'b': servers.add(name='web-b', locked_by='owner', config_drive='True', image_id=OTHER_IMAGE, key_name='key'),
        'c': servers.add(
            name='web-c', vm_state='stopped', power_state=4, host='compute2', hostname='sea', user_id='ann'
        ),
        'd': servers.add(name='web-d', vm_state='deleted', deleted_at=CREATED),
        'e': servers.add(name='web-e', project_id='other'),
    }
    for number, server_id in enumerate(ids.values()):
        servers.change(server_id, created_at=CREATED + timedelta(seconds=number))
    with servers.store.write() as connection:
        server_tags.replace(connection, ids['a'], ['red', 'blue'])
        server_tags.replace(connection, ids['b'], ['red'])
    return ids


@pytest.fixture
def names(api, three):
    """names(query): the last letters of the names found, ordered by name; or the status of an error."""

    def search(query, version=None, as_=OWNER, path='/servers'):
        answer = api.get(f'{path}?{query}', version, as_=as_)
        if answer.status != 200:
            return answer.status
        return ''.join(sorted(each['name'][-1] for each in answer.json['servers']))

    return search


EVERYBODY = [
    ('', None, 'abc'),
    ('name=web', None, 'abc'),
    ('name=WEB-A', None, 'a'),
    ('name=^web-[ab]$', None, 'ab'),
    ('name=%5Eweb', None, 'abc'),
    ('name=b$', None, 'b'),
    ('name=^web-b$', None, 'b'),
    ('name=(a|c)$', None, 'ac'),
    ('name=web-a&name=web-b', None, 'b'),
    ('name=100%25', None, ''),
    ('limit=' + '9' * 400, None, 'abc'),
    ('status=ACTIVE', None, 'ab'),
    ('status=active', None, 'ab'),
    ('status=ACTIVE&status=SHUTOFF', None, 'abc'),
    ('status=nothing', '2.37', ''),
    ('status=nothing', '2.38', 400),
    ('status=', '2.38', 400),
    ('status=DELETED', None, 403),
    (f'image={IMAGE}', None, 'ac'),
    ('image=', None, ''),
    ('flavor=big', None, ''),
    ('reservation_id=r-1', None, 'abc'),
    ('reservation_id=r-2', None, ''),
    ('ip=10.92', None, 'a'),
    ('ip=^10', None, 'a'),
    ('ip=11', None, ''),
    ('ip=fd00', None, ''),
    ('ip6=fd00', '2.4', 'abc'),
    ('ip6=fd00', '2.5', 'a'),
    ('ip6=fe80', '2.5', ''),
    ('tags=red', '2.25', 'abc'),
    ('tags=red', '2.26', 'ab'),
    ('tags=red,blue', '2.26', 'a'),
    ('tags=', '2.25', 'abc'),
    ('tags=', '2.26', 400),
    ('not-tags-any=', '2.26', 400),
    ('tags-any=blue,green', '2.26', 'a'),
    ('not-tags=red,blue', '2.26', 'bc'),
    ('not-tags-any=red', '2.26', 'c'),
    ('tags=red&not-tags-any=blue', '2.26', 'b'),
    ('changes-before=2026-01-31T12:00:01Z', '2.65', 'abc'),
    ('changes-before=2026-01-31T12:00:01Z', '2.66', 'ab'),
    ('changes-since=2026-01-31T13:00:01%2B01:00', None, 'bcd'),
    ('changes-since=2026-01-31T12:00:02Z&changes-before=2026-01-31T12:00:02Z', '2.66', 'c'),
    ('changes-since=2026-02-01T00:00:00Z&changes-before=2026-01-01T00:00:00Z', '2.66', 400),
    ('changes-since=yesterday', None, 400),
    ('changes-since=2026', None, 'abcd'),
    ('changes-since=2026-01-31T12:00:02 Z', None, 400),
    ('locked=true', '2.72', 'abc'),
    ('locked=true', '2.73', 'b'),
    ('locked=0', '2.73', 'ac'),
    ('locked=perhaps', '2.73', 400),
    ('availability_zone=nova', '2.83', 'abc'),
    ('availability_zone=other', '2.82', 'abc'),
    ('availability_zone=other', '2.83', ''),
    ('config_drive=true', '2.83', 'b'),
    ('config_drive=False', '2.83', 'ac'),
    ('config_drive=perhaps', '2.83', ''),
    ('key_name=key', '2.83', 'b'),
    ('power_state=4', '2.83', 'c'),
    ('power_state=many', '2.83', ''),
    ('vm_state=stopped', '2.83', 'c'),
    ('vm_state=stopped&status=ACTIVE', '2.83', 'ab'),
    ('task_state=none', '2.83', ''),
    ('user_id=ann', '2.83', 'c'),
    ('created_at=2026-01-31T12:00:01Z', '2.83', 'b'),
    ('created_at=2026-01-31', '2.83', 'abc'),
    ('created_at=once', '2.83', 400),
    ('terminated_at=2020-01-01', '2.83', ''),
    ('hostname=sea', '2.89', 'abc'),
    ('hostname=sea', '2.90', 'c'),
    # Ignored for ordinary users.
    ('host=compute2', None, 'abc'),
    ('deleted=true', None, 'abc'),
    ('tenant_id=other', None, 'abc'),
    ('_secret=1', None, 'abc'),
    ('metadata=x', None, 'abc'),
    ('all_tenants=0', None, 'abc'),
    ('all_tenants=1', None, 403),
    ('all_tenants', None, 403),
    ('all_tenants=perhaps', None, 400),
    ('unknown=1', '2.74', 'abc'),
    ('unknown=1', '2.75', 400),
    ('tags=' + ','.join(map(str, range(51))), '2.26', 400),
    ('status=ACTIVE&' * 3000, None, 'ab'),
    ('name=*', None, 400),
    ('name=(?=a)', None, 400),
    ('name=(a)%5C1', None, 400),
    ('name=' + quote('(' * 200 + ')' * 200), None, 400),
    ('name=a{99999999999}', None, 400),
]
ADMINISTRATORS = [
    ('host=compute2', None, 'c'),
    ('node=compute1', None, 'abc'),
    ('description=first', None, 'a'),
    ('display_description=first', None, 'a'),
    ('display_name=web-b', None, 'b'),
    ('access_ip_v4=9.9.9.1', None, 'a'),
    ('launch_index=1', None, 'a'),
    ('auto_disk_config=auto', None, 'abc'),
    ('locked_by=owner', None, 'b'),
    ('locked=true', '2.72', 'abc'),
    ('deleted=true', None, 'd'),
    ('deleted=perhaps', None, 'abc'),
    ('status=DELETED', None, 'd'),
    ('status=DELETED&status=SHUTOFF', None, 'c'),
    ('tenant_id=other', None, 'abc'),
    ('all_tenants=1', None, 'abce'),
    ('all_tenants', None, 'abce'),
    ('all_tenants=1&tenant_id=other', None, 'e'),
    ('all_tenants=1&project_id=project&name=a$', None, 'a'),
    ('_secret=1', None, 400),
    ('metadata=x', None, 400),
    ('security_groups=x', None, 400),
]


@pytest.mark.parametrize('path', ['/servers', '/servers/detail'])
def test_what_everybody_may_search_by(names, path):
    found = {(query, version): names(query, version, path=path) for query, version, _ in EVERYBODY}
    assert found == {(query, version): expected for query, version, expected in EVERYBODY}


def test_what_administrators_may_search_by(names):
    found = {(query, version): names(query, version, ADMIN) for query, version, _ in ADMINISTRATORS}
    assert found == {(query, version): expected for query, version, expected in ADMINISTRATORS}


def test_uuid_is_for_administrators(names, three):
    assert names(f'uuid={three["a"]}', as_=ADMIN) == 'a'
    assert names(f'uuid={three["a"]}') == 'abc'


def test_servers_of_another_project_stay_hidden(names):
    assert names('', as_=STRANGER) == 'e'
    assert names('name=web-a', as_=STRANGER) == ''


def test_what_v2_does_not_check_is_checked_all_the_same(api, legacy, three):
    for query in ('name=*', 'changes-since=yesterday', 'sort_key=unknown', 'limit=x', 'limit=-1', 'name=' + 'x' * 300):
        assert legacy.get(f'/servers?{query}', as_=OWNER).status == 400, query
    assert [each['name'] for each in legacy.get('/servers?unknown=1&name=a$', as_=ADMIN).json['servers']] == ['web-a']
    message = legacy.get('/servers?changes-since=junk').json['badRequest']['message']
    assert message == 'Invalid filter field: changes-since.'


def test_a_server_that_can_be_restored_is_listed_when_asked_for(api, servers):
    servers.add(vm_state='soft-delete')
    found = {
        query: len(api.get(f'/servers?{query}', as_=ADMIN).json['servers'])
        for query in ('', 'soft_deleted=true', 'status=SOFT_DELETED', 'deleted=true', 'deleted=true&soft_deleted=false')
    }
    assert list(found.values()) == [0, 1, 1, 1, 0]


def test_servers_on_volumes_have_an_empty_image(api, servers, three):
    server = servers.add(image_id=None)
    assert [each['id'] for each in api.get('/servers?image=', as_=OWNER).json['servers']] == [server]


def test_a_status_is_what_the_server_shows(api, servers):
    servers.add(task_state='rebooting')
    assert api.get('/servers?status=ACTIVE', as_=OWNER).json['servers'] == []
    (found,) = api.get('/servers/detail?status=REBOOT', as_=OWNER).json['servers']
    assert found['status'] == 'REBOOT'


# ------------------------------------------------------------------ order and pages


ORDERS = [
    ('', 'cba'),
    ('sort_dir=asc', 'abc'),
    ('sort_key=display_name', 'cba'),
    ('sort_key=display_name&sort_dir=asc', 'abc'),
    ('sort_key=vm_state&sort_dir=asc&sort_key=display_name&sort_dir=desc', 'bac'),
    # Among keys without a direction, the first is ascending, and the others are descending.
    ('sort_key=locked_by&sort_key=display_name', 'bac'),
    ('sort_key=key_name&sort_dir=desc&sort_key=display_name', 'bac'),
    ('sort_key=instance_type_id&sort_key=vm_state&sort_key=display_name', 'bac'),
    ('sort_key=instance_type_id&sort_dir=asc', 'abc'),
    ('sort_key=architecture&sort_dir=asc', 'cba'),
    ('sort_key=vcpus&sort_key=display_name&sort_dir=desc&sort_dir=asc', 'abc'),
    ('sort_key=vcpus&sort_key=display_name&sort_dir=desc', 'abc'),
]
REFUSED_ORDERS = [
    ('sort_key=host', None, 403),
    ('sort_key=node', '2.75', 403),
    ('sort_key=unknown', None, 400),
    ('sort_key=id', '2.74', 200),
    ('sort_key=id', '2.75', 400),
    ('sort_dir=up', None, 400),
    ('sort_key=uuid&sort_dir=asc&sort_dir=desc', None, 400),
    ('sort_key=uuid&sort_dir=ASC', None, 400),
]


def test_order(api, three):
    found = {query: api.get(f'/servers?{query}', as_=OWNER).json['servers'] for query, _ in ORDERS}
    assert {query: ''.join(each['name'][-1] for each in listed) for query, listed in found.items()} == dict(ORDERS)


def test_2_73_locked_servers_are_told_apart_by_the_order(api, three):
    for version, names in (('2.72', 'cba'), ('2.73', 'bca')):
        found = api.get('/servers?sort_key=locked', version, as_=OWNER).json['servers']
        assert ''.join(each['name'][-1] for each in found) == names


def test_refused_orders(api, three):
    found = [
        (query, version, api.get(f'/servers?{query}', version, as_=OWNER).status)
        for query, version, _ in REFUSED_ORDERS
    ]
    assert found == REFUSED_ORDERS


@pytest.mark.parametrize(
    'order', ['', '&sort_key=display_name&sort_dir=asc', '&sort_key=key_name', '&sort_key=vm_state']
)
@pytest.mark.parametrize('path', ['/servers', '/servers/detail'])
def test_pages(api, three, path, order):
    """Following the links yields every server once."""
    url, found = f'{path}?limit=1{order}', []
    for _ in range(4):
        page = api.get(url, '2.75', as_=OWNER).json
        found += [each['id'] for each in page['servers']]
        if 'servers_links' not in page:
            break
        (link,) = page['servers_links']
        assert link['rel'] == 'next'
        url = link['href'].removeprefix('http://localhost/v2.1')
        assert url.startswith(path) and f'&marker={found[-1]}' in url
    assert page['servers'] == [] and sorted(found) == sorted(three[name] for name in 'abc')


def test_a_link_names_the_marker_last_or_where_it_stood(api, three):
    links = []
    for query in ('sort_key=uuid&unknown=1&limit=1&limit=2&name=web', 'name=web&marker={c}&limit=2'):
        page = api.get(f'/servers?{query.format(**three)}', as_=OWNER).json
        links.append(page['servers_links'][0]['href'].partition('?')[2])
    last = max(three[name] for name in 'abc'), sorted(three[name] for name in 'abc')[1]
    assert links == [
        f'limit=2&name=web&sort_key=uuid&marker={last[1]}',
        f'limit=2&marker={three["a"]}&name=web',
    ]


def test_what_changed_in_a_period_by_the_second_that_is_shown(names, servers, three):
    for name in 'abc':
        servers.change(three[name], updated_at=CREATED + timedelta(seconds='abc'.index(name), milliseconds=500))
    second = '2026-01-31T12:00:01'
    assert names(f'changes-before={second}Z', '2.66') == 'ab'
    assert names(f'changes-since={second}Z&changes-before={second}.7Z', '2.66') == 'b'
    assert names(f'changes-since={second}.2Z&deleted=false', '2.66', as_=ADMIN) == 'c'
    assert names('changes-before=9999-12-31T23:59:59Z', '2.66') == 'abcd'


def test_servers_of_a_flavor_that_is_hidden_or_gone_are_not_found(api, names):
    flavor = {'id': 'small', 'name': 'small', 'ram': 1, 'vcpus': 1, 'disk': 1, 'os-flavor-access:is_public': False}
    api.post('/flavors', {'flavor': flavor})
    assert (names('flavor=small'), names('flavor=small', as_=ADMIN)) == ('', 'abc')
    api.post('/flavors/small/action', {'addTenantAccess': {'tenant': 'project'}})
    assert names('flavor=small') == 'abc'
    api.delete('/flavors/small')
    assert (names('flavor=small'), names('flavor=small', as_=ADMIN)) == ('', '')


def test_markers_are_bound_to_the_project(api, three):
    assert api.get(f'/servers?marker={three["e"]}', as_=OWNER).json['badRequest']['message'] == (
        f'marker [{three["e"]}] not found'
    )
    assert api.get(f'/servers?marker={three["e"]}&all_tenants=1', as_=ADMIN).status == 200
    assert len(api.get('/servers?marker=', as_=OWNER).json['servers']) == 3


def test_unknown_parameters_do_not_come_back_in_links(api, three):
    (link,) = api.get('/servers?limit=1&unknown=1', as_=OWNER).json['servers_links']
    assert 'unknown' not in link['href']


# ------------------------------------------------------------------ cost


@pytest.mark.parametrize(('path', 'statements'), [('/servers', 1), ('/servers/detail', 3)])
def test_a_list_is_the_same_number_of_statements_for_any_number_of_servers(
    api, servers, asked, path, statements, service, monkeypatch
):
    # The check for cells that are down, once a second, needs a query.
    monkeypatch.setattr(service.cloud.cells, 'clock', lambda: 0.0)
    api.get(path, '2.100', as_=ADMIN)
    counts = []
    for more in (1, 9, 40):
        for _ in range(more):
            servers.add()
        asked.clear()
        api.get(path, '2.100', as_=ADMIN)
        counts.append(len([each for each in asked if each.startswith('SELECT')]))
    assert counts == [statements] * 3


@pytest.mark.parametrize('pattern', ['Ünïc', 'ünïc', 'ÜNÏC', '^Ü', 'c$', '[Ü]n', '^[Ü-é]?ü'])
def test_names_in_any_letters_are_found(api, servers, pattern):
    servers.add(name='Ünïc')
    found = api.get('/servers?name=' + quote(pattern), as_=OWNER).json['servers']
    assert [each['name'] for each in found] == ['Ünïc']


def test_an_evil_pattern_takes_no_time(api, servers):
    """MariaDB aborts the match; elsewhere, matching takes linear time."""
    servers.add(name='a' * 200 + '!')
    assert api.get('/servers?name=' + quote('^(a+)+(a+)+$'), as_=OWNER).json == {'servers': []}


def test_a_pattern_that_python_warns_of_is_refused_as_others_are(api):
    """Here warnings are errors, as in many a test run that has the service in its process."""
    assert api.get('/servers?name=' + quote('[[a]'), as_=OWNER).status == 400
