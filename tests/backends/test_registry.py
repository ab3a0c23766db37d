"""The available backends, and what happens where built-in services are required but others are configured."""

import ast
import subprocess
import sys

import pytest
from oslo_config import cfg

from computeapi import config
from computeapi.backends import registry
from computeapi.backends.identity.local import LocalIdentity


@pytest.mark.parametrize('group', ['identity', 'image', 'network', 'volume', 'share', 'hypervisor'])
def test_the_option_offers_what_there_is(group):
    (option,) = (option for option in config.GROUPS[group] if option.dest == 'backend')
    table = getattr(registry, group.upper())
    assert list(option.type.choices) == [*table, 'module:function']
    assert option.default in table


def test_another_package_can_bring_one():
    assert registry.maker(registry.SHARE, 'computeapi.backends.registry:local_shares') is registry.local_shares
    for name in ('computeapi.backends.registry:nothing', 'no_such_package:shares'):
        with pytest.raises(cfg.ConfigFileValueError, match=name):
            registry.maker(registry.SHARE, name)


@pytest.mark.parametrize('name', ['nothing', 'a:b:c', ':b'])
def test_what_names_neither_is_refused(name):
    with pytest.raises(cfg.Error):
        config.load(overrides={('share', 'backend'): name})


def test_what_only_a_built_in_service_can_do_needs_one():
    with pytest.raises(cfg.Error, match=r'\[identity\]backend is not local'):
        registry.built_in('identity', LocalIdentity, object())


def test_what_is_not_configured_is_not_loaded():
    loaded = (
        'import sys, computeapi.main; print([name for name in sys.modules if name.startswith("computeapi.backends")])'
    )
    done = subprocess.run([sys.executable, '-c', loaded], capture_output=True, text=True, check=True)
    assert 'computeapi.backends.registry' in done.stdout
    assert not [name for name in ast.literal_eval(done.stdout) if 'local' in name or 'simulated' in name]


def test_without_a_placement_nothing_of_one_is_loaded():
    made = (
        'import sys; from computeapi import config, main;'
        'service = main.Service(config.load(overrides={("api", "auth_strategy"): "none"}));'
        'assert service.mirror is None and service.publishers == []; print(list(sys.modules))'
    )
    done = subprocess.run([sys.executable, '-c', made], capture_output=True, text=True, check=True)
    assert not {'openstack', 'keystoneauth1', 'computeapi.backends.placement.service'} & {
        *ast.literal_eval(done.stdout)
    }
