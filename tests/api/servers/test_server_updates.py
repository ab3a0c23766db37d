"""Changes to a server that need no worker: PUT, metadata and tags; also its addresses."""

import pytest

from computeapi.context import Context
from computeapi.errors import Conflict

OWNER, ADMIN, STRANGER, READER = 'bob:project', 'admin:project', 'eve:other', 'ron:project:reader'
NOTHING = '00000000-0000-0000-0000-000000000000'


@pytest.fixture
def url(servers):
    return f'/servers/{servers.add(metadata={"k": "v"})}'


def put(api, url, version=None, as_=OWNER, **changes):
    return api.put(url, {'server': changes}, version, as_=as_)


def message(answer):
    ((fault,),) = [answer.json.values()]
    return fault['message']


# ------------------------------------------------------------------ PUT


def test_every_change_is_kept(api, url):
    changes = {'name': 'new', 'accessIPv4': '1.2.3.4', 'accessIPv6': 'fe80::1', 'OS-DCF:diskConfig': 'MANUAL'}
    changes |= {'description': 'for tests', 'hostname': 'new-host'}
    updated = put(api, url, '2.90', **changes).json['server']
    shown = api.get(url, '2.90', as_=OWNER).json['server']
    assert updated == shown
    changes['OS-EXT-SRV-ATTR:hostname'] = changes.pop('hostname')
    assert changes.items() <= {name: value for name, value in shown.items() if name in changes}.items()


def test_an_ipv6_address_is_shown_in_its_canonical_form(api, url):
    assert put(api, url, accessIPv6='FE80:0::1').json['server']['accessIPv6'] == 'fe80::1'


def test_nothing_is_a_change_too(api, url):
    assert put(api, url).json['server']['name'] == 'server'


BAD_CHANGES = [
    ({'name': ''}, None, 'name'),
    ({'name': 5}, None, 'name'),
    ({'name': 'x' * 256}, None, 'name'),
    ({'name': ' x'}, None, 'name'),
    ({'accessIPv4': 'fe80::1'}, None, 'accessIPv4'),
    ({'accessIPv6': ''}, None, 'accessIPv6'),
    ({'OS-DCF:diskConfig': 'auto'}, None, 'OS-DCF:diskConfig'),
    ({'description': 'x'}, '2.18', 'description'),
    ({'description': 'x' * 256}, '2.19', 'description'),
    ({'hostname': 'x-y'}, '2.89', 'hostname'),
    ({'hostname': 'a.b'}, '2.90', 'hostname'),
    ({'hostname': 'ab\n'}, '2.90', 'hostname'),
    ({'hostname': 'a b'}, '2.94', 'hostname'),
    ({'pinned_availability_zone': None}, '2.103', 'pinned_availability_zone'),
    ({'key_name': 'x'}, '2.104', 'key_name'),
]


def test_a_bad_field_is_named(api, url):
    for changes, version, field in BAD_CHANGES:
        answer = put(api, url, version, **changes)
        assert answer.status == 400 and field in message(answer), changes


def test_fully_qualified_hostnames_from_2_94(api, url):
    assert put(api, url, '2.94', hostname='a.example.org').json['server']['OS-EXT-SRV-ATTR:hostname'] == 'a.example.org'


def test_v2_strips_names_and_ignores_what_it_does_not_know(api, legacy, url):
    assert put(legacy, url, name=' new ', unknown=1).json['server']['name'] == 'new'
    assert put(legacy, url, description='x' * 300).status == 200
    assert api.get(url, '2.19', as_=OWNER).json['server']['description'] is None


ZONE = 'pinned_availability_zone'


def test_pinning_to_the_availability_zone(api, url):
    elsewhere = put(api, url, '2.104', **{ZONE: 'other'})
    assert elsewhere.status == 409 and message(elsewhere).endswith('to availability zone other: it is in nova.')
    assert put(api, url, '2.104', **{ZONE: 'nova'}).json['server'][ZONE] == 'nova'
    assert put(api, url, '2.104', **{ZONE: None}).json['server'][ZONE] is None


@pytest.mark.parametrize('current', [None, 'other'])
def test_a_server_that_is_not_in_its_zone_stays_pinned_to_it(api, servers, current):
    """An offloaded server is in none; others were moved by force."""
    url = f'/servers/{servers.add(pinned_availability_zone="nova", availability_zone=current)}'
    assert put(api, url, '2.104', **{ZONE: 'nova'}).json['server'][ZONE] == 'nova'
    elsewhere = put(api, url, '2.104', **{ZONE: 'other'})
    assert elsewhere.status == 409 and message(elsewhere).endswith('other: unpin it from nova first.')
    assert api.get(url, '2.104', as_=OWNER).json['server'][ZONE] == 'nova'


def test_a_server_is_not_pinned_to_a_zone_that_it_has_just_left(service, servers):
    server = servers.get(servers.add())
    servers.change(server.uuid, availability_zone='other')
    with pytest.raises(Conflict):
        service.cloud.server_attributes.update(Context(), server, **{ZONE: 'nova'})
    assert servers.get(server.uuid).pinned_availability_zone is None


def test_an_image_does_not_keep_its_owner_from_changing_the_disk_config(api, servers):
    """As in Nova, only requests that create a disk, or change its size, heed the image."""
    url = f'/servers/{servers.add(image_properties={"auto_disk_config": "disabled"})}'
    assert put(api, url, **{'OS-DCF:diskConfig': 'AUTO'}).json['server']['OS-DCF:diskConfig'] == 'AUTO'


def test_who_may_update(api, url):
    assert put(api, url, name='x', as_=STRANGER).status == 404
    assert put(api, url, name='x', as_=READER).status == 403
    assert put(api, url, name='x', as_=ADMIN).status == 200
    assert put(api, f'/servers/{NOTHING}', name='x').status == 404


def test_a_deleted_server_is_gone(api, servers, url):
    servers.change(url.rpartition('/')[2], deleted_at=servers.now())
    for as_ in (OWNER, ADMIN):
        assert api.get(url, as_=as_).status == 404
        assert put(api, url, name='x', as_=as_).status == 404


# ------------------------------------------------------------------ metadata


def test_metadata(api, url):
    items = f'{url}/metadata'
    assert api.post(items, {'metadata': {'a': '1'}}, as_=OWNER).json == {'metadata': {'k': 'v', 'a': '1'}}
    assert api.put(items, {'metadata': {'b': '2'}}, as_=OWNER).json == {'metadata': {'b': '2'}}
    assert api.put(f'{items}/b', {'meta': {'b': '3'}}, as_=OWNER).json == {'meta': {'b': '3'}}
    assert api.get(f'{items}/b', as_=READER).json == {'meta': {'b': '3'}}
    assert api.delete(f'{items}/b', as_=OWNER).status == 204
    assert api.get(items, as_=OWNER).json == {'metadata': {}}
    for answer in (api.get(f'{items}/b', as_=OWNER), api.delete(f'{items}/b', as_=OWNER)):
        assert (answer.status, message(answer)) == (404, 'Metadata item was not found')


def test_bad_metadata(api, url):
    for bad in (None, ['a'], {'k': 1}, {'k': None}, {'': 'v'}, {'a/b': 'v'}, {'k' * 256: 'v'}, {'k': 'v' * 256}):
        assert api.post(f'{url}/metadata', {'metadata': bad}, as_=OWNER).status == 400, bad


def test_one_item_must_be_that_of_the_url(api, url):
    for meta in ({}, {'b': 'v'}, {'a': 'v', 'b': 'v'}):
        assert api.put(f'{url}/metadata/a', {'meta': meta}, as_=OWNER).status == 400, meta


def test_v2_takes_keys_that_newer_versions_refuse(legacy, url):
    assert legacy.post(f'{url}/metadata', {'metadata': {'a/b': 'v'}}, as_=OWNER).json['metadata']['a/b'] == 'v'
    size = 'Invalid metadata size: Metadata property {} greater than 255 characters'
    for bad, text in (
        ({'': 'v'}, 'Invalid metadata:  has 0 characters, less than 1.'),
        ({'/' * 256: 'v'}, size.format('key')),
        ({'/': 'v' * 256}, size.format('value')),
        ({'/': {}}, 'Invalid metadata: {} is not a string or unicode'),
    ):
        answer = legacy.post(f'{url}/metadata', {'metadata': bad}, as_=OWNER)
        assert (answer.status, message(answer)) == (400, text)


def test_there_is_a_quota_of_metadata(api, url):
    many = {f'key{number}': 'v' for number in range(128)}
    assert api.put(f'{url}/metadata', {'metadata': many}, as_=OWNER).status == 200
    over = api.post(f'{url}/metadata', {'metadata': {'one': 'more'}}, as_=OWNER)
    assert (over.status, message(over)) == (403, 'Maximum number of metadata items exceeds 128')


def test_the_quota_of_metadata_is_that_of_the_user(api, url):
    assert api.put('/os-quota-sets/project?user_id=bob', {'quota_set': {'metadata_items': 1}}).status == 200
    two = {'metadata': {'one': 'v', 'two': 'v'}}
    assert [api.post(f'{url}/metadata', two, as_=who).status for who in ('bob:project', 'carol:project')] == [403, 200]


@pytest.mark.parametrize('facts', [{'vm_state': 'building'}, {'vm_state': 'error'}])
def test_metadata_changes_in_some_states_only(api, servers, facts):
    url = f'/servers/{servers.add(metadata={"k": "v"}, **facts)}'
    changed = api.post(f'{url}/metadata', {'metadata': {'a': '1'}}, as_=OWNER)
    assert changed.status == 409 and message(changed).startswith("Cannot 'update metadata' instance")
    assert api.delete(f'{url}/metadata/k', as_=OWNER).status == 409
    assert api.delete(f'{url}/metadata/absent', as_=OWNER).status == 404


def test_metadata_changes_whatever_the_server_is_doing(api, servers):
    url = f'/servers/{servers.add(metadata={"k": "v"}, task_state="rebooting")}'
    assert api.post(f'{url}/metadata', {'metadata': {'a': '1'}}, as_=OWNER).status == 200
    assert api.delete(f'{url}/metadata/k', as_=OWNER).status == 204


def test_a_locked_server_keeps_its_metadata(api, servers):
    url = f'/servers/{servers.add(locked_by="owner", metadata={"k": "v"})}'
    refused = api.post(f'{url}/metadata', {'metadata': {'a': '1'}}, as_=OWNER)
    assert refused.status == 409 and message(refused).endswith('is locked')
    assert api.delete(f'{url}/metadata/k', as_=OWNER).status == 409
    assert api.post(f'{url}/metadata', {'metadata': {'a': '1'}}, as_=ADMIN).status == 200
    assert put(api, url, name='renamed').status == 200


@pytest.mark.parametrize(('as_', 'status'), [(STRANGER, 404), (READER, 403), (ADMIN, 200)])
def test_who_may_change_metadata(api, url, as_, status):
    items = {'metadata': {'a': '1'}}
    assert api.post(f'{url}/metadata', items, as_=as_).status == status
    assert api.put(f'{url}/metadata', items, as_=as_).status == status
    assert api.put(f'{url}/metadata/a', {'meta': {'a': '1'}}, as_=as_).status == status
    assert api.delete(f'{url}/metadata/a', as_=as_).status == (204 if status == 200 else status)


# ------------------------------------------------------------------ tags


def test_tags(api, url):
    tags = f'{url}/tags'
    assert api.put(tags, {'tags': ['b', 'a', 'b']}, '2.26', as_=OWNER).json == {'tags': ['a', 'b']}
    added = api.put(f'{tags}/new tag', None, '2.26', as_=OWNER)
    assert (added.status, added.headers['Location']) == (201, f'http://localhost/v2.1{url}/tags/new%20tag')
    assert api.put(f'{tags}/a', None, '2.26', as_=OWNER).status == 204
    assert api.get(f'{tags}/a', '2.26', as_=READER).status == 204
    assert api.delete(f'{tags}/a', '2.26', as_=OWNER).status == 204
    assert api.get(tags, '2.26', as_=OWNER).json == {'tags': ['b', 'new tag']}
    server_id = url.removeprefix('/servers/')
    assert message(api.get(f'{tags}/a', '2.26', as_=OWNER)) == f"Server {server_id} has no tag 'a'"
    assert message(api.delete(f'{tags}/a', '2.26', as_=OWNER)) == f"Instance {server_id} has no tag 'a'"
    assert api.delete(tags, '2.26', as_=OWNER).status == 204
    assert api.get(tags, '2.26', as_=OWNER).json == {'tags': []}


def test_tags_that_differ_in_a_space_at_their_end(api, url, store):
    """MariaDB treats them as equal."""
    one, two = (409, ['a']) if store.dialect == 'mysql' else (200, ['a', 'a '])
    assert api.put(f'{url}/tags', {'tags': ['a']}, '2.26', as_=OWNER).status == 200
    assert api.put(f'{url}/tags', {'tags': ['a', 'a ']}, '2.26', as_=OWNER).status == one
    assert api.get(f'{url}/tags', '2.26', as_=OWNER).json == {'tags': two}
    assert api.put(f'{url}/tags/a%20', None, '2.26', as_=OWNER).status in (204, 409)


def test_there_are_no_tags_before_2_26(api, url):
    assert api.get(f'{url}/tags', '2.25', as_=OWNER).status == 404
    assert 'tags' not in api.get(url, '2.25', as_=OWNER).json['server']


def test_bad_tags(api, url):
    for bad in (None, 'a', [1], [''], ['a/b'], ['a,b'], ['x' * 61], [f't{n}' for n in range(51)]):
        assert api.put(f'{url}/tags', {'tags': bad}, '2.26', as_=OWNER).status == 400, bad


def test_a_bad_tag_is_named(api, url):
    for tag in ('a,b', 'x' * 61):
        answer = api.put(f'{url}/tags/{tag}', None, '2.26', as_=OWNER)
        assert answer.status == 400 and message(answer).startswith(f"Tag '{tag}' is invalid.")


def test_the_state_of_a_server_takes_precedence_over_a_bad_tag(api, servers):
    offloaded = f'/servers/{servers.add(vm_state="shelved_offloaded")}'
    assert api.put(f'{offloaded}/tags/a,b', None, '2.26', as_=OWNER).status == 409


def test_adding_a_tag_takes_no_body(api, url):
    assert api.put(f'{url}/tags/a', {'x': 1}, '2.26', as_=OWNER).status == 400


def test_a_server_has_fifty_tags_at_most(api, url):
    fifty = [f'tag{number}' for number in range(50)]
    assert api.put(f'{url}/tags', {'tags': fifty}, '2.26', as_=OWNER).status == 200
    assert api.put(f'{url}/tags/more', None, '2.26', as_=OWNER).status == 400
    assert api.put(f'{url}/tags/tag1', None, '2.26', as_=OWNER).status == 204


def test_tags_change_in_some_states_only(api, servers):
    url = f'/servers/{servers.add(vm_state="shelved")}/tags'
    refused = api.put(url, {'tags': ['a']}, '2.26', as_=OWNER)
    assert refused.status == 409 and "'update tags'" in message(refused)
    assert "'update tag'" in message(api.put(f'{url}/a', None, '2.26', as_=OWNER))
    assert "'delete tags'" in message(api.delete(url, '2.26', as_=OWNER))
    assert "'delete tag'" in message(api.delete(f'{url}/a', '2.26', as_=OWNER))


@pytest.mark.parametrize(('as_', 'status'), [(STRANGER, 403), (READER, 403), (ADMIN, 200)])
def test_who_may_change_tags(api, url, as_, status):
    assert api.put(f'{url}/tags', {'tags': ['a']}, '2.26', as_=as_).status == status
    assert api.delete(f'{url}/tags', '2.26', as_=as_).status == (204 if status == 200 else status)
    assert api.get(f'{url}/tags', '2.26', as_=as_).status == (403 if as_ == STRANGER else 200)


# ------------------------------------------------------------------ addresses


def test_addresses(api, servers):
    fixed = [
        {'address': '10.0.0.5', 'version': 4, 'floating': ['172.24.4.9']},
        {'address': 'fd00::5', 'version': 6, 'floating': []},
    ]
    interface = {'network_name': 'blue', 'mac_address': 'fa:16:3e:00:00:01', 'addresses': fixed}
    url = f'/servers/{servers.add(network_info=[interface | {"security_groups": ["default", "web"]}])}'
    plain = [
        {'version': 4, 'addr': '10.0.0.5'},
        {'version': 4, 'addr': '172.24.4.9'},
        {'version': 6, 'addr': 'fd00::5'},
    ]
    assert api.get(f'{url}/ips', as_=OWNER).json == {'addresses': {'blue': plain}}
    assert api.get(f'{url}/ips/blue', as_=READER).json == {'blue': plain}
    missing = api.get(f'{url}/ips/red', as_=OWNER)
    assert (missing.status, message(missing)) == (404, 'Instance is not a member of specified network')
    shown = api.get(url, as_=OWNER).json['server']
    kinds = [address['OS-EXT-IPS:type'] for address in shown['addresses']['blue']]
    assert kinds == ['fixed', 'floating', 'fixed']
    assert shown['security_groups'] == [{'name': 'default'}, {'name': 'web'}]


def test_an_interface_that_is_being_made_has_no_addresses_yet(api, servers):
    planned = {'port_id': 'p', 'network_id': None, 'mac_address': None, 'addresses': [], 'security_groups': []}
    server = api.get(f'/servers/{servers.add(network_info=[planned])}', as_=OWNER).json['server']
    assert server['addresses'] == {} and 'security_groups' not in server
