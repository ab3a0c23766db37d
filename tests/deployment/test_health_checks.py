"""What `computeapi status` reports about other services, which another `computeapi serve` provides here."""

import re
import socket
from pathlib import Path

import pytest
import yaml

from computeapi import config
from computeapi.backends.health import Health
from computeapi.backends.health_checks import check_all, check_token_keys
from computeapi.status import Result, checks

CONF = """
[DEFAULT]
log_file = {folder}/computeapi.log
[database]
connection = sqlite:///{folder}/computeapi.db
[image]
backend = glance
[network]
backend = neutron
[volume]
backend = cinder
[service_user]
auth_type = password
auth_url = {auth[auth_url]}
username = {auth[username]}
password = {auth[password]}
project_name = {auth[project_name]}
user_domain_id = default
project_domain_id = default
"""
ASKED = ['Keystone', 'Glance', 'Neutron', 'Cinder', 'Service user']


@pytest.fixture
def conf(serve, tmp_path):
    """conf(text): a config file for the services of a `computeapi serve`, with *text* appended."""
    cloud = yaml.safe_load(Path(serve('--in-memory', '--quiet').clouds).read_text())['clouds']['computeapi']

    def conf(text='', **changes):
        path = tmp_path / 'neighbours.conf'
        path.write_text(CONF.format(folder=tmp_path, auth=cloud['auth'] | changes) + text)
        return config.load([str(path)])

    return conf


def health_of(found):
    return {name: each.health for name, each in found.items()}


def test_where_they_are_and_as_whom_they_are_asked(conf):
    found = check_all(conf())
    # An administrator without the role `service`.
    assert health_of(found) == dict.fromkeys(ASKED, Health.LACKING)
    who = r'as admin of admin \(admin, manager, member, reader\): it lacks service'
    assert re.fullmatch(rf'v2\.\d+ at http://\S+/image/v2/, {who}', found['Glance'].words)
    assert re.fullmatch(rf'v3\.0 to v3\.\d+ at http://\S+/volume/v3/\S*, {who}', found['Cinder'].words)


def test_one_that_is_away_or_elsewhere(conf):
    nobody = '[{}]\nendpoint_override = http://127.0.0.1:1/\nconnect_retries = 0\n'
    found = check_all(conf('[placement]\nenabled = true\n[cinder]\nregion_name = mars\n' + nobody.format('neutron')))
    assert health_of(found) == dict.fromkeys(ASKED, Health.LACKING) | {
        'Neutron': Health.AWAY,
        'Cinder': Health.WRONG,
        'Placement': Health.WRONG,
    }
    assert (
        'catalog has no block-storage' in found['Cinder'].words
        and 'Unable to establish connection' in found['Neutron'].words
    )


def test_one_that_says_nothing_keeps_nobody_waiting(conf):
    with socket.create_server(('127.0.0.1', 0)) as silent:
        url = f'http://127.0.0.1:{silent.getsockname()[1]}/'
        found = check_all(conf(f'[glance]\nendpoint_override = {url}\n'), seconds=3)
    assert found['Glance'] == (Health.AWAY, 'No response for 3 s.')
    assert found['Neutron'].health is Health.LACKING


def test_whom_nobody_knows_is_a_failure(conf):
    found = check_all(conf(password='mistyped'))
    assert health_of(found) == dict.fromkeys(ASKED, Health.WRONG)
    assert 'Keystone answered 401' in found['Glance'].words and 'mistyped' not in str(found)


def test_keys_for_tokens(conf):
    assert check_token_keys(conf()).health is Health.WRONG
    assert check_token_keys(conf('task_token_key = short\n')).health is Health.WRONG
    assert check_token_keys(conf(f'task_token_key = {"A" * 43}=\n')).health is Health.OK


def test_the_upgrade_check_tells_what_is_only_half(conf):
    results = {each.name: each.result for each in checks(conf('[image]\nbackend = local\n'))}
    assert (results['Backends'], results['Keystone']) == (Result.Warning, Result.Warning)
    assert 'Glance' not in results
