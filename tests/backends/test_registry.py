"""Which backends there are, and what happens where the built-in ones are asked for and others are configured."""

import pytest
from oslo_config import cfg

from computeapi import config
from computeapi.backends import registry
from computeapi.backends.identity.local import LocalIdentity


@pytest.mark.parametrize('group', ['identity', 'image', 'network', 'volume', 'hypervisor'])
def test_the_option_offers_what_there_is(group):
    (option,) = (option for option in config.GROUPS[group] if option.dest == 'backend')
    table = getattr(registry, group.upper())
    assert list(option.type.choices) == list(table)
    assert option.default in table


def test_what_only_a_built_in_service_can_do_needs_one():
    with pytest.raises(cfg.Error, match=r'\[identity\]backend is not local'):
        registry.built_in('identity', LocalIdentity, object())
