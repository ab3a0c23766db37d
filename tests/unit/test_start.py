"""Modules that take long to load are only loaded by commands that need them."""

import subprocess
import sys

import pytest

LISTED = (
    'import sys; from computeapi.cli import main\ntry: main({arguments})\nfinally: print(*sys.modules, file=sys.stderr)'
)
HEAVY = {'oslo_config', 'oslo_policy', 'sqlalchemy', 'webob', 'routes', 'jsonschema', 'requests', 'yaml', 'orjson'}
OWN = {
    f'computeapi.{name}'
    for name in ('api', 'backends', 'compute', 'config', 'db', 'kit.around', 'main', 'serve', 'web')
}


def loaded(*arguments: str) -> set[str]:
    """The modules that are loaded after this command."""
    program = LISTED.format(arguments=list(arguments))
    done = subprocess.run([sys.executable, '-c', program], capture_output=True, text=True, check=True)
    return set(done.stderr.split())


@pytest.mark.parametrize(
    'arguments', [['--help'], ['--version'], ['db', '--help'], ['worker', '--help'], ['serve', '--help']]
)
def test_help_needs_nothing_of_the_service(arguments):
    names = loaded(*arguments)
    assert 'computeapi.cli' in names
    assert not names & (HEAVY | OWN)


@pytest.mark.parametrize('arguments', [['control', '--help'], ['control', 'take-snapshot', '--help']])
def test_what_can_be_done_to_a_cloud_is_read_from_a_file(arguments):
    names = loaded(*arguments)
    assert 'computeapi.kit.shell' in names
    assert not names & (HEAVY - {'orjson'} | OWN)


def test_what_most_processes_never_need_is_not_loaded():
    program = 'import sys, computeapi.serve; print(*sys.modules)'
    done = subprocess.run([sys.executable, '-c', program], capture_output=True, text=True, check=True)
    bus = {'computeapi.bus', 'oslo_messaging', 'kombu', 'eventlet'}
    databases = {'sqlalchemy.dialects.mysql', 'sqlalchemy.dialects.postgresql'}
    assert not set(done.stdout.split()) & {'cryptography', 'computeapi.compute.keys', *bus, *databases}


def test_a_cloud_that_needs_no_other_service_loads_no_client():
    names = loaded('run', '--', 'true')
    assert {'computeapi.serve', 'computeapi.api'} <= names
    assert not names & {'requests', 'keystoneauth1', 'openstack', 'keystonemiddleware'}


def test_kinds_of_checks_that_no_rule_is_of_are_not_loaded():
    program = """
import sys
from computeapi import api
from computeapi.web.policy import BASE_RULES
assert len(api.rules()) > len(BASE_RULES)
print(*sys.modules)
"""
    done = subprocess.run([sys.executable, '-c', program], capture_output=True, text=True, check=True)
    names = set(done.stdout.split())
    assert 'oslo_policy.policy' in names and not names & {'oslo_policy._external', 'requests'}


def test_tables_are_upgraded_without_the_api(monkeypatch):
    monkeypatch.setenv('OS_DATABASE__CONNECTION', 'sqlite://')
    names = loaded('db', 'version')
    assert 'computeapi.db.schema' in names
    assert not names & {'computeapi.main', 'computeapi.api', 'computeapi.serve', 'computeapi.kit'}
