"""What `computeapi status` reports about a cloud's services."""

import pytest

from computeapi.backends.inquiry import impressions, token_keys
from computeapi.backends.standing import Standing
from tests.neighbours import cloud

ALL = {'identity': 'keystone', 'image': 'glance', 'network': 'neutron', 'volume': 'cinder'}


@pytest.fixture
def conf():
    return cloud.running().conf(text='[placement]\nenabled = true\n', **ALL)


def test_all_is_well(conf):
    found = impressions(conf)
    assert {name: each.standing for name, each in found.items()} == dict.fromkeys(
        ['Keystone', 'Glance', 'Neutron', 'Cinder', 'Placement', 'Service user'], Standing.OK
    )
    assert 'v3.0 to v3.' in found['Cinder'].words and 'as nova of service (admin, ' in found['Cinder'].words
    assert token_keys(conf).standing is Standing.OK
