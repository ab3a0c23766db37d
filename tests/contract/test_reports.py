"""What `computeapi` prints from the table of operations, and the samples that are such prints."""

import io
import json
from pathlib import Path

import openapi_spec_validator
import pytest
import yaml
from oslo_config import cfg
from oslo_policy import policy as oslo_policy

from computeapi import api as table
from computeapi import config, options, reports
from computeapi.config import neighbours
from computeapi.versions import COMPUTE, HISTORY, MAX
from computeapi.web.history import changes

ROOT = Path(__file__).parents[2]
SAMPLES = ROOT / 'etc/computeapi'


def printed(report, *arguments):
    out = io.StringIO()
    report(out, *arguments)
    return out.getvalue()


@pytest.mark.parametrize(
    ('name', 'report'), [('computeapi.conf.sample', reports.config), ('policy.yaml.sample', reports.policy)]
)
def test_the_samples_are_current(name, report):
    """Made by `computeapi config` and `computeapi policy`."""
    assert (SAMPLES / name).read_text() == printed(report)


def test_the_history_is_current():
    """Made by `computeapi history --markdown > docs/reference/history.md`."""
    assert (ROOT / 'docs/reference/history.md').read_text() == printed(reports.history, None, True)


def test_routes_are_all_operations():
    lines = printed(reports.routes).splitlines()
    assert len(lines) == len(table.operations())
    assert [line.split() for line in lines if '/flavors/{id} ' in line][1] == [
        'PUT', '/flavors/{id}', f'2.55-{MAX}', 'os_compute_api:os-flavor-manage:update'
    ]  # fmt: skip
    assert any('/flavors/{id}/action {addTenantAccess} ' in line for line in lines)


def test_history_tells_every_version_and_what_it_changed():
    story = printed(reports.history)
    assert all(f'\n{version}  {sentence}\n' in '\n' + story for version, sentence in HISTORY.items())
    lines = printed(reports.history, '2.55').splitlines()
    assert lines[0] == f'2.55  {HISTORY["2.55"]}'
    assert '    PUT /flavors/{id}: added' in lines
    assert '    POST /flavors: body +/flavor/description; response +/flavor/description' in lines


SILENT = {
    '2.18': 'paths are read with and without a project at every version',
    '2.27': 'the headers are read before there is an operation',
    '2.46': 'the filter that names requests knows no versions',
}
"""Versions that touch no operation here, and why."""


def test_history_names_an_operation_for_every_version_that_changes_one():
    operations = table.operations()
    silent = {version for version in HISTORY if not changes(operations, COMPUTE.version(version))}
    assert silent == set(SILENT)


def test_openapi_of_a_version():
    document = json.loads(printed(reports.openapi, '2.61'))
    assert document['info']['version'] == '2.61'
    openapi_spec_validator.validate(document)
    assert json.loads(printed(reports.openapi))['info']['version'] == str(MAX)


@pytest.mark.parametrize('report', [reports.history, reports.openapi])
@pytest.mark.parametrize('version', ['2.999', 'abc', '2.0'])
def test_versions_that_do_not_exist(report, version):
    with pytest.raises(ValueError, match='is not a version of this API'):
        printed(report, version)


def uncommented(text, mark):
    """The lines of a sample that are values and not words."""
    return '\n'.join(line[1:] if line.startswith(mark) else line for line in text.splitlines() if line[:2] != '# ')


def test_the_policy_sample_is_the_defaults():
    sample = yaml.safe_load(uncommented(printed(reports.policy), '#"'))
    assert sample == {rule.name: rule.check_str for rule in table.rules()}
    assert set(map(type, oslo_policy.Rules.from_dict(sample).values())) != set()


def test_the_configuration_sample_has_what_libraries_read_and_each_group_once():
    groups = [line for line in printed(reports.config).splitlines() if line.startswith('[')]
    assert len(groups) == len(set(groups))
    read_by_libraries = {'cors', 'oslo_middleware', 'oslo_policy', 'keystone_authtoken', 'oslo_messaging_rabbit'}
    assert {f'[{name}]' for name in read_by_libraries} <= set(groups)


def test_the_configuration_sample_is_the_defaults(tmp_path):
    path = tmp_path / 'computeapi.conf'
    path.write_text(uncommented(printed(reports.config), '#'))
    conf, defaults = config.load([str(path)]), config.load()
    # Some of castellan's defaults cannot be written down.
    others = dict(neighbours.key_manager_options())
    for group, listed in ((group, listed) for group, listed in options.list_opts() if group not in others):
        for each in (conf, defaults):
            # As the libraries do themselves when they need them.
            each.register_opts(listed, None if group == 'DEFAULT' else group)
        for option in listed:
            own, default = (each if group == 'DEFAULT' else each[group] for each in (conf, defaults))
            # What depends on the machine is printed as it might be.
            expected = getattr(default, option.dest) if option.sample_default is None else option.sample_default
            assert (getattr(own, option.dest) or None) == (expected or None)
            assert isinstance(option, cfg.Opt) and option.help
