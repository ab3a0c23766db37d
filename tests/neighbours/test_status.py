"""What `computeapi status` reports about a cloud's services."""

import pytest

from computeapi.backends.health import Health
from computeapi.backends.health_checks import check_all, check_token_keys
from tests.neighbours import cloud

ALL = {'identity': 'keystone', 'image': 'glance', 'network': 'neutron', 'volume': 'cinder'}


@pytest.fixture
def conf():
    return cloud.running().conf(text='[placement]\nenabled = true\n', **ALL)


def test_all_is_well(conf):
    found = check_all(conf)
    assert {name: each.health for name, each in found.items()} == dict.fromkeys(
        ['Keystone', 'Glance', 'Neutron', 'Cinder', 'Placement', 'Service user'], Health.OK
    )
    assert 'v3.0 to v3.' in found['Cinder'].words and 'as nova of service (admin, ' in found['Cinder'].words
    assert check_token_keys(conf).health is Health.OK
