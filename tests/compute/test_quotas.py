"""Quotas: limits from four sources, usage counted from existing servers, and no overcommitment by concurrent
requests."""

import uuid
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime

import pytest

from computeapi.compute.quotas import Quotas, check_injected_files, check_metadata
from computeapi.context import Context
from computeapi.db import keypairs, server_groups
from computeapi.db import servers as records
from computeapi.db.tables.servers import servers
from computeapi.errors import Error, Invalid, OverQuota

PROJECT, USER = 'project', 'bob'
NOW = datetime(2026, 1, 1)


@pytest.fixture
def quotas(store, conf):
    return Quotas(store, conf)


def server(**kwargs):
    """The minimal row of a server."""
    row = {column.name: None for column in servers.columns if column.name != 'id'}
    numbers = dict.fromkeys(('power_state', 'progress', 'root_gb', 'ephemeral_gb', 'launch_index', 'claims'), 0)
    texts = dict.fromkeys(('name', 'hostname', 'config_drive', 'disk_config', 'reservation_id'), '')
    documents = {
        'scheduler_hints': {},
        'flavor': {'flavorid': '1'},
        'image_properties': {},
        'metadata': {},
        'network_info': [],
    }
    own = {'uuid': str(uuid.uuid4()), 'project_id': PROJECT, 'user_id': USER, 'created_at': NOW}
    return row | numbers | texts | documents | own | {'vm_state': 'active', 'vcpus': 1, 'memory_mb': 512} | kwargs


def add(store, *rows):
    with store.write() as connection:
        for row in rows:
            records.insert_all(connection, [row])


def reserve(store, quotas, **wanted):
    with store.write() as connection:
        quotas.reserve(connection, PROJECT, USER, **wanted)


def test_a_limit_comes_from_the_nearest_place_that_says_one(quotas):
    assert quotas.limits(PROJECT, USER)['instances'] == 10
    quotas.set_class_limits('default', {'instances': 9})
    assert quotas.limits(PROJECT, USER)['instances'] == 9
    quotas.set_limits(PROJECT, {'instances': 8})
    assert quotas.limits(PROJECT, USER)['instances'] == 8
    quotas.set_limits(PROJECT, {'instances': 7}, user_id=USER)
    assert quotas.limits(PROJECT, USER)['instances'] == 7
    assert (quotas.limits(PROJECT)['instances'], quotas.limits('other')['instances']) == (8, 9)
    quotas.reset(PROJECT, USER)
    assert quotas.limits(PROJECT, USER)['instances'] == 8
    quotas.reset(PROJECT)
    assert quotas.limits(PROJECT)['instances'] == 9


def test_a_class_starts_with_the_configured_limits(quotas):
    quotas.set_class_limits('default', {'cores': 1})
    assert quotas.class_limits('gold')['cores'] == 20
    assert quotas.set_class_limits('gold', {'cores': 99})['cores'] == 99
    assert quotas.set_class_limits('gold', {'cores': 98})['cores'] == 98
    assert quotas.class_limits('gold')['fixed_ips'] == -1


def test_use_is_what_the_servers_take(store, quotas):
    add(
        store,
        server(vcpus=2, memory_mb=2**31),
        server(user_id='alice', vcpus=3, memory_mb=2**31),
        server(deleted_at=NOW),
        server(vm_state='soft-delete'),
        server(project_id='other'),
    )
    used = quotas.usage(PROJECT).used
    assert (used['instances'], used['cores'], used['ram'], used['server_groups']) == (2, 5, 2**32, 0)
    used = quotas.usage(PROJECT, 'alice').used
    assert (used['instances'], used['cores'], used['ram'], used['key_pairs']) == (1, 3, 2**31, 0)


def test_clients_see_the_use(store, api):
    add(store, server(vcpus=2), server(user_id='alice'))
    absolute = api.get('/limits', as_=f'{USER}:{PROJECT}').json['limits']['absolute']
    assert (absolute['totalInstancesUsed'], absolute['totalCoresUsed'], absolute['totalRAMUsed']) == (2, 3, 1024)
    detail = f'/os-quota-sets/{PROJECT}/detail'
    assert api.get(detail).json['quota_set']['cores'] == {'limit': 20, 'in_use': 3, 'reserved': 0}
    assert api.get(f'{detail}?user_id={USER}').json['quota_set']['cores']['in_use'] == 2
    below = api.put(f'/os-quota-sets/{PROJECT}', {'quota_set': {'instances': 0}})
    assert below.json['badRequest']['message'] == (
        'Quota limit 0 for instances must be greater than or equal to already used and reserved 2.'
    )


def test_what_is_short_is_said_in_order(store, quotas):
    quotas.set_limits(PROJECT, {'instances': 1, 'cores': 1})
    add(store, server())
    with pytest.raises(OverQuota) as caught:
        reserve(store, quotas, instances=2, cores=3, ram=1024)
    assert str(caught.value) == (
        'Quota exceeded for cores, instances: Requested 3, 2, but already used 1, 1 of 1, 1 cores, instances'
    )
    reserve(store, quotas, instances=0, cores=-1, ram=1024)


def test_a_user_has_no_more_than_its_own_limit(store, quotas):
    quotas.set_limits(PROJECT, {'instances': 1}, user_id=USER)
    add(store, server(user_id='alice'), server())
    with pytest.raises(OverQuota) as caught:
        reserve(store, quotas, instances=1)
    assert str(caught.value) == 'Quota exceeded for instances: Requested 1, but already used 1 of 1 instances'
    with store.write() as connection:
        quotas.reserve(connection, PROJECT, 'alice', instances=8)


@pytest.mark.parametrize(('min_count', 'max_count', 'count'), [(1, 2, 2), (1, 2**31, 5), (5, 9, 5), (6, 9, None)])
def test_as_many_servers_as_fit(store, quotas, min_count, max_count, count):
    quotas.set_limits(PROJECT, {'instances': -1, 'cores': 20, 'ram': 5 * 512})
    with store.write() as connection:
        try:
            sizes = {'cores': 1, 'ram': 512}
            assert quotas.reserve_servers(connection, PROJECT, USER, sizes, min_count, max_count) == count
        except OverQuota as error:
            assert count is None
            assert str(error) == 'Quota exceeded for ram: Requested 4608, but already used 0 of 2560 ram'


def test_the_last_place_is_given_once(store, quotas):
    """Twenty concurrent requests, some of which are rolled back: exactly the quota is used, also for a new project."""

    def boot(number):
        try:
            with store.write() as connection:
                quotas.reserve(connection, PROJECT, USER, instances=1, cores=2, ram=512)
                records.insert_all(connection, [server(vcpus=2)])
                if number % 10 == 0:
                    raise Invalid()
        except Error as error:
            return type(error)

    with ThreadPoolExecutor(20) as pool:
        outcomes = list(pool.map(boot, range(20)))
    used = quotas.usage(PROJECT).used
    assert (used['instances'], used['cores']) == (10, 20)
    assert outcomes.count(None) == 10
    assert set(outcomes) - {Invalid} == {None, OverQuota}


@pytest.mark.several_writers
def test_projects_do_not_wait_for_each_other(store, quotas):
    with store.write() as one, store.write() as other:
        quotas.reserve(one, PROJECT, USER, instances=1)
        quotas.reserve(other, 'other', USER, instances=1)


def test_key_pairs_are_counted_by_user(store, quotas):
    context = Context(user_id=USER, project_id=PROJECT)
    quotas.set_limits(PROJECT, {'key_pairs': 1})
    pair = {'user_id': USER, 'name': 'a', 'type': 'ssh', 'fingerprint': '', 'public_key': '', 'created_at': NOW}
    with store.write() as connection:
        quotas.reserve_key_pair(connection, context, USER)
        keypairs.insert(connection, pair)
        quotas.reserve_key_pair(connection, context, 'alice')
        with pytest.raises(OverQuota, match='^Quota exceeded, too many key pairs.$'):
            quotas.reserve_key_pair(connection, context, USER)


def test_server_groups_and_their_members(store, quotas):
    quotas.set_limits(PROJECT, {'server_groups': 1, 'server_group_members': 2})
    facts = {'project_id': PROJECT, 'user_id': USER, 'name': '', 'policy': 'affinity', 'rules': {}, 'created_at': NOW}
    add(store, server(server_group_id='g'), server(server_group_id='g', deleted_at=NOW))
    with store.write() as connection:
        quotas.reserve_server_group(connection, PROJECT, USER)
        server_groups.insert(connection, facts | {'uuid': 'g'})
        with pytest.raises(OverQuota, match='^Quota exceeded, too many server groups.$'):
            quotas.reserve_server_group(connection, PROJECT, USER)
        quotas.reserve_group_members(connection, PROJECT, USER, 'g')
        with pytest.raises(OverQuota, match='^Quota exceeded, too many servers in group$'):
            quotas.reserve_group_members(connection, PROJECT, USER, 'g', 2)
    assert quotas.usage(PROJECT).used['server_groups'] == 1


def test_a_limit_is_not_set_below_what_is_used(store, quotas):
    add(store, server(), server(user_id='alice'))
    with pytest.raises(Invalid) as caught:
        quotas.set_limits(PROJECT, {'instances': 1})
    assert str(caught.value) == (
        'Quota limit 1 for instances must be greater than or equal to already used and reserved 2.'
    )
    assert quotas.set_limits(PROJECT, {'instances': 1}, force=True)['instances'] == 1
    assert quotas.set_limits(PROJECT, {'instances': -1})['instances'] == -1
    with pytest.raises(Invalid, match='reserved 1'):
        quotas.set_limits(PROJECT, {'instances': 0}, user_id=USER)


def test_users_share_what_the_project_has(quotas):
    quotas.set_limits(PROJECT, {'instances': 6}, user_id=USER)
    with pytest.raises(Invalid, match='Quota limit 5 for instances must be less than or equal to 4'):
        quotas.set_limits(PROJECT, {'instances': 5}, user_id='alice')
    assert quotas.set_limits(PROJECT, {'instances': 10}, user_id=USER)['instances'] == 10
    with pytest.raises(Invalid, match='reserved 10'):
        quotas.set_limits(PROJECT, {'instances': 9})
    with pytest.raises(Invalid, match='Quota limit -1'):
        quotas.set_limits(PROJECT, {'instances': -1}, user_id=USER)


def test_metadata_and_files_of_one_server():
    limits = {'metadata_items': 1}
    check_metadata(limits, 1)
    with pytest.raises(OverQuota, match='^Maximum number of metadata items exceeds 1$'):
        check_metadata(limits, 2)
    limits = {'injected_files': 1, 'injected_file_path_bytes': 2, 'injected_file_content_bytes': 3}
    check_injected_files(limits, [{'path': '/a', 'contents': 'abc'}])
    for files, text in [
        ({'/a': '', '/b': ''}, 'Personality file limit exceeded'),
        ({'/ab': ''}, 'Personality file path exceeds maximum 2'),
        ({'/a': 'abcd'}, 'Personality file content exceeds maximum 3'),
    ]:
        with pytest.raises(OverQuota, match=f'^{text}$'):
            check_injected_files(limits, [{'path': path, 'contents': contents} for path, contents in files.items()])
    check_metadata({'metadata_items': -1}, 10**6)
