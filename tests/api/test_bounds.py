"""Numbers, times and names beyond what a database can store: refused, or treated as nonexistent."""

import pytest

from computeapi.web.app import App

BEYOND = 10**30


def flavor(name, **kwargs):
    return {'flavor': {'id': name, 'name': name, 'ram': 64, 'vcpus': 1, 'disk': 1} | kwargs}


@pytest.mark.parametrize(('bound', 'found'), [(BEYOND, []), (-BEYOND, ['a']), (2**31, [])])
@pytest.mark.parametrize('name', ['minDisk', 'minRam'])
def test_a_size_that_no_flavor_can_have(api, name, bound, found):
    api.post('/flavors', flavor('a'))
    assert [each['id'] for each in api.get(f'/flavors?{name}={bound}').json['flavors']] == found


@pytest.mark.parametrize('direction', ['asc', 'desc'])
@pytest.mark.parametrize('key', ['is_public', 'disabled'])
def test_pages_that_are_sorted_by_what_is_true_or_false(api, key, direction):
    for name, public in (('a', True), ('b', False), ('c', True)):
        api.post('/flavors', flavor(name, **{'os-flavor-access:is_public': public}))
    path = f'/flavors?is_public=none&limit=1&sort_key={key}&sort_dir={direction}'
    whole = [each['id'] for each in api.get(path.replace('limit=1&', '')).json['flavors']]
    seen, marker = [], ''
    while page := api.get(path + marker).json['flavors']:
        seen.append(page[0]['id'])
        marker = f'&marker={seen[-1]}'
    assert seen == whole and sorted(seen) == ['a', 'b', 'c']


@pytest.mark.parametrize('moment', ['9999-12-31T23:59:59-14:00', '0001-01-01T00:00:00%2B14:00'])
@pytest.mark.parametrize(
    'path',
    [
        '/servers?changes-before={}',
        '/servers?changes-since={}',
        '/servers?created_at={}',
        '/os-migrations?changes-before={}',
        '/images?changes-since={}',
        '/os-simple-tenant-usage?start={}',
        '/os-simple-tenant-usage?end={}',
    ],
)
def test_a_moment_that_is_none_in_utc(api, path, moment):
    version = '2.35' if path.startswith('/images') else '2.66'
    assert api.get(path.format(moment), version).status == 400


@pytest.mark.parametrize('path', ['/servers/detail', '/servers', '/flavors/detail', '/os-keypairs'])
def test_a_page_has_a_bound_in_bytes_and_the_rest_is_on_the_next(api, servers, app, monkeypatch, path):
    monkeypatch.setattr(App, 'longest_list', 4000)
    for number in range(12):
        servers.add(name=f's{number}', metadata={'key': 'x' * 200 * number})
        api.post('/flavors', flavor(f'f{number}'))
        api.post('/os-keypairs', {'keypair': {'name': f'k{number}'}}, '2.1')
    path, seen = f'{path}?all_tenants=1' if 'servers' in path else path, []
    while path:
        answer = api.get(path, '2.40')
        [name] = [name for name in answer.json if not name.endswith('_links')]
        seen += [each.get('keypair', each)['name'] for each in answer.json[name]]
        assert len(answer.text) <= 4000 + 300 or len(answer.json[name]) == 1
        links = answer.json.get(f'{name}_links')
        path = links[0]['href'].removeprefix('http://localhost/v2.1') if links else None
    assert len(seen) == len(set(seen)) == 12
