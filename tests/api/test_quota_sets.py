"""Quota sets, quota classes and limits, at the versions where the API changes."""

import pytest

ADMIN, BOB, ALICE = 'admin:admin', 'bob:project', 'alice:elsewhere'
QUOTAS = '/os-quota-sets/project'
CLASS = '/os-quota-class-sets/gold'
NETWORK = {'fixed_ips': -1, 'floating_ips': -1, 'security_groups': -1, 'security_group_rules': -1}
FILES = {'injected_files': 5, 'injected_file_content_bytes': 10240, 'injected_file_path_bytes': 255}
OTHERS = {
    'instances': 10,
    'cores': 20,
    'ram': 51200,
    'metadata_items': 128,
    'key_pairs': 100,
    'server_groups': 10,
    'server_group_members': 10,
}


def fault(answer):
    (body,) = answer.json.values()
    return body['message']


def quota(**kwargs):
    return {'quota_set': kwargs}


@pytest.mark.parametrize(
    ('version', 'known'),
    [
        ('2.1', OTHERS | FILES | NETWORK),
        ('2.35', OTHERS | FILES | NETWORK),
        ('2.36', OTHERS | FILES),
        ('2.56', OTHERS | FILES),
        ('2.57', OTHERS),
        ('2.104', OTHERS),
    ],
)
def test_what_is_known_of(api, version, known):
    assert api.get(QUOTAS, version, as_=BOB).json == quota(id='project', **known)
    assert api.get(f'{QUOTAS}/defaults', version, as_=ALICE).json == quota(id='project', **known)
    detail = api.get(f'{QUOTAS}/detail', version, as_=BOB).json['quota_set']
    assert detail.pop('id') == 'project'
    assert detail == {name: {'limit': limit, 'in_use': 0, 'reserved': 0} for name, limit in known.items()}
    assert api.put(QUOTAS, quota(), version).json == quota(**known)


@pytest.mark.parametrize('version', ['2.1', '2.36', '2.57'])
def test_quota_sets_are_like_the_samples(api, sample, shape, version):
    folder = 'os-quota-sets' + ('' if version == '2.1' else f'/v{version}')
    for answer, name in [
        (api.get(QUOTAS, version), 'quotas-show-get-resp'),
        (api.get(f'{QUOTAS}?user_id=bob', version), 'user-quotas-show-get-resp'),
        (api.get(f'{QUOTAS}/defaults', version), 'quotas-show-defaults-get-resp'),
        (api.get(f'{QUOTAS}/detail', version), 'quotas-show-detail-get-resp'),
        (api.put(QUOTAS, quota(cores=45), version), 'quotas-update-post-resp'),
        (api.put(QUOTAS, quota(cores=45, force='True'), version), 'quotas-update-force-post-resp'),
        (api.put(f'{QUOTAS}?user_id=bob', quota(cores=4), version), 'user-quotas-update-post-resp'),
    ]:
        assert answer.status == 200
        assert shape(answer.json) == shape(sample(f'{folder}/{name}.json'))


def test_change_and_reset(api):
    changed = api.put(QUOTAS, quota(instances=11, cores='12', fixed_ips=3)).json['quota_set']
    assert (changed['instances'], changed['cores'], changed['fixed_ips']) == (11, 12, 3)
    mine = api.put(f'{QUOTAS}?user_id=bob', quota(instances=5)).json['quota_set']
    assert (mine['instances'], mine['cores']) == (5, 12)
    assert api.get(f'{QUOTAS}?user_id=bob').json['quota_set']['instances'] == 5
    assert api.get(QUOTAS).json['quota_set']['instances'] == 11
    assert api.get(f'{QUOTAS}?user_id=&user_id=bob&user_id=alice').json['quota_set']['instances'] == 5
    gone = api.delete(f'{QUOTAS}?user_id=bob')
    assert (gone.status, gone.text) == (202, '')
    assert api.get(f'{QUOTAS}?user_id=bob').json['quota_set']['instances'] == 11
    api.delete(QUOTAS)
    assert api.get(QUOTAS).json['quota_set']['instances'] == 10


def test_a_user_gets_no_more_than_the_project_has(api):
    over = api.put(f'{QUOTAS}?user_id=bob', quota(instances=500))
    assert (over.status, fault(over)) == (400, 'Quota limit 500 for instances must be less than or equal to 10.')
    endless = api.put(f'{QUOTAS}?user_id=bob', quota(instances=-1))
    assert fault(endless) == 'Quota limit -1 for instances must be less than or equal to 10.'
    api.put(f'{QUOTAS}?user_id=bob', quota(instances=6))
    below = api.put(QUOTAS, quota(instances=5))
    assert fault(below) == ('Quota limit 5 for instances must be greater than or equal to already used and reserved 6.')
    assert api.put(QUOTAS, quota(instances=5, force=True)).json['quota_set']['instances'] == 5


@pytest.mark.parametrize(
    ('facts', 'version', 'field'),
    [
        ({'instances': -2}, '2.1', 'instances'),
        ({'instances': 2**31}, '2.1', 'instances'),
        ({'instances': '9' * 400}, '2.1', 'instances'),
        ({'instances': 1.5}, '2.1', 'instances'),
        ({'instances': ''}, '2.1', 'instances'),
        ({'instances': None}, '2.1', 'instances'),
        ({'force': 'maybe'}, '2.1', 'force'),
        ({'tenant_id': 'project'}, '2.1', 'tenant_id'),
        ({'networks': 3}, '2.1', 'networks'),
        ({'fixed_ips': 3}, '2.36', 'fixed_ips'),
        ({'injected_files': 3}, '2.57', 'injected_files'),
    ],
)
def test_a_bad_field_is_named(api, facts, version, field):
    answer = api.put(QUOTAS, quota(**facts), version)
    assert answer.status == 400
    assert field in fault(answer)


def test_v2_ignores_what_it_does_not_know(legacy):
    assert legacy.put(QUOTAS, quota(instances=7, cf=1)).json['quota_set']['instances'] == 7
    assert legacy.put(QUOTAS, quota(networks=3)).status == 200
    assert legacy.put(CLASS, {'quota_class_set': {'instances': 7, 'cf': 1}}).json['quota_class_set']['instances'] == 7
    assert legacy.put(CLASS, {'quota_class_set': ['cf']}).status == 400


@pytest.mark.parametrize(
    ('method', 'path', 'rule'),
    [
        ('GET', QUOTAS, 'os-quota-sets:show'),
        ('GET', f'{QUOTAS}/detail', 'os-quota-sets:detail'),
        ('PUT', QUOTAS, 'os-quota-sets:update'),
        ('DELETE', QUOTAS, 'os-quota-sets:delete'),
        ('GET', CLASS, 'os-quota-class-sets:show'),
        ('PUT', CLASS, 'os-quota-class-sets:update'),
        ('GET', '/limits?tenant_id=project', 'limits:other_project'),
        ('GET', '/limits?tenant_id=', 'limits:other_project'),
    ],
)
def test_another_project_s_are_not_seen(api, method, path, rule):
    kind = 'quota_class_set' if 'class' in path else 'quota_set'
    answer = api.request(method, path, body={kind: {}} if method == 'PUT' else None, as_=ALICE)
    assert answer.status == 403
    assert fault(answer) == f"Policy doesn't allow os_compute_api:{rule} to be performed."


def test_no_project_has_a_name_so_long(api):
    name = 'x' * 256
    for answer in (api.get(f'/os-quota-sets/{name}'), api.put(f'/os-quota-sets/{name}', quota(cores=1))):
        assert (answer.status, fault(answer)) == (400, f'Project ID {name} is not a valid project.')
    assert api.put(f'{QUOTAS}?user_id={name}', quota(cores=1)).status == 400


def test_unknown_parameters_are_refused_from_2_75(api):
    for path in (QUOTAS, f'{QUOTAS}/detail', '/limits'):
        assert api.get(f'{path}?x=1', '2.74').status == 200
        assert api.get(f'{path}?x=1', '2.75').status == 400
    assert api.get(f'{QUOTAS}/defaults?x=1', '2.104').status == 200
    assert api.get(f'{CLASS}?x=1', '2.101').status == 200
    assert api.get(f'{CLASS}?x=1', '2.102').status == 400


@pytest.mark.parametrize('version', ['2.1', '2.50', '2.57'])
def test_classes(api, sample, shape, version):
    folder = 'os-quota-class-sets' + ('' if version == '2.1' else f'/v{version}')
    shown = api.get(CLASS, version)
    assert shown.json['quota_class_set']['id'] == 'gold'
    assert shape(shown.json) == shape(sample(f'{folder}/quota-classes-show-get-resp.json'))
    changed = api.put(CLASS, {'quota_class_set': {'cores': 50}}, version)
    assert shape(changed.json) == shape(sample(f'{folder}/quota-classes-update-post-resp.json'))
    assert api.get(CLASS, version).json['quota_class_set']['cores'] == 50


def test_the_default_class_is_every_project_s(api):
    api.put('/os-quota-class-sets/default', {'quota_class_set': {'cores': 50}})
    assert api.get(QUOTAS).json['quota_set']['cores'] == 50
    assert api.get(f'{QUOTAS}/defaults').json['quota_set']['cores'] == 50


def test_a_class_has_a_name_of_bounded_length(api):
    answer = api.put(f'/os-quota-class-sets/{"x" * 256}', {'quota_class_set': {'cores': 50}})
    assert (answer.status, fault(answer)) == (400, 'quota_class_name has 256 characters, more than 255.')


@pytest.mark.parametrize('version', ['2.1', '2.36', '2.39', '2.57'])
def test_limits(api, sample, shape, version):
    folder = 'limits' + ('' if version == '2.1' else f'/v{version}')
    recorded = sample(f'{folder}/limit-get-resp.json')
    shown = api.get('/limits', version, as_=BOB)
    assert shape(shown.json) == shape(recorded)
    # The sample was recorded in an empty project with the default limits.
    assert shown.json == recorded


def test_limits_of_another_project(api):
    api.put(QUOTAS, quota(cores=45))
    assert api.get('/limits').json['limits']['absolute']['maxTotalCores'] == 20
    assert api.get('/limits', as_=BOB).json['limits']['absolute']['maxTotalCores'] == 45
    assert api.get('/limits?tenant_id=project').json['limits']['absolute']['maxTotalCores'] == 45
