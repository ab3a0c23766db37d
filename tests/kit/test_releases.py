"""Clouds of earlier releases offer exactly the microversions of those releases."""

import pytest
from oslo_config import cfg

from computeapi import cli, config
from computeapi.errors import Invalid
from computeapi.kit.releases import RELEASES, Release, release_of
from computeapi.testing import Cloud
from computeapi.versions import HISTORY, APIVersionRequest
from tests.kit.conftest import HTTP


def test_releases_follow_each_other():
    newest = [list(HISTORY).index(release.compute) for release in RELEASES.values()]
    assert newest == sorted(newest) and list(RELEASES) == sorted(RELEASES)
    assert release_of('2026.2').compute == max(HISTORY, key=list(HISTORY).index)


@pytest.mark.parametrize('service', ['volume', 'share'])
def test_so_do_those_of_other_services(service):
    newest = [APIVersionRequest.parse(getattr(release, service)) for release in RELEASES.values()]
    assert newest == sorted(newest)


@pytest.mark.parametrize('name', ['2023.1', 2023.1, 'antelope', 'Antelope'])
def test_a_release_has_a_number_and_a_name(name):
    assert release_of(name) == Release('2.95', '3.70', '2.78')


def test_a_release_that_is_none_is_told():
    with pytest.raises(Invalid, match=r'no release 2023\.3.*2023\.1 \(Antelope\)'):
        release_of('2023.3')
    with pytest.raises(SystemExit):
        cli.main(['run', '--release', '2023.3', '--', 'true'])


@pytest.fixture(scope='module')
def antelope():
    with Cloud(release='2023.1', options={('api', 'max_limit'): 5}) as cloud:
        http = HTTP(cloud)
        http.session.headers['OpenStack-API-Version'] = 'compute 2.1'
        yield http
        http.session.close()


def asked(http, version, path='/v2.1/flavors'):
    return http.get(path, headers={'OpenStack-API-Version': f'compute {version}'})


def test_what_is_newer_is_refused(antelope):
    assert asked(antelope, '2.95').status_code == 200
    refused = asked(antelope, '2.96')
    assert refused.status_code == 406
    assert refused.json()['computeFault']['message'].endswith('Minimum is 2.1 and maximum is 2.95.')


def test_the_latest_is_that_of_the_release(antelope):
    assert asked(antelope, 'latest').headers['OpenStack-API-Version'] == 'compute 2.95'
    assert antelope.get('/openapi/latest.json').json()['info']['version'] == '2.95'
    assert antelope.get('/openapi/2.96.json').status_code == 404


@pytest.mark.parametrize('path', ['/', '/v2.1/', '/v2.1/versions/v2.1', '/anything'])
def test_all_documents_say_so(antelope, path):
    text = antelope.get(path).text
    assert '2.104' not in text
    assert '"2.95"' in text or path == '/anything'


def test_pages_have_few_items(antelope):
    body = antelope.get('/v2.1/flavors?limit=100').json()
    assert len(body['flavors']) == 5


def test_an_end_that_is_no_version_is_told():
    with pytest.raises(cfg.Error, match='max_microversion'):
        Cloud(options={('api', 'max_microversion'): '2.105'}).start()
    assert config.load().api.max_microversion is None


def test_volumes_and_shares_are_of_the_release():
    with Cloud(release='queens') as cloud:
        http = HTTP(cloud)
        for path, things, service, newest, newer in (
            ('/volume/v3', 'volumes', 'volume', '3.50', '3.51'),
            ('/share/v2', 'shares', 'shared-file-system', '2.42', '2.43'),
        ):
            [version] = http.get(f'{path}/').json()['versions']
            assert version['version'] == newest
            for asked, status in ((newest, 200), (newer, 406)):
                header = {'OpenStack-API-Version': f'{service} {asked}'}
                assert http.get(f'{path}/{things}', headers=header).status_code == status


@pytest.mark.parametrize('group', ['volume', 'share'])
def test_an_end_that_is_no_version_of_theirs_is_told(group):
    with pytest.raises((cfg.Error, ValueError), match='1.0'):
        Cloud(options={(group, 'max_microversion'): '1.0'}).start()
