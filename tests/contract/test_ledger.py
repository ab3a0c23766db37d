"""The project's operations compared with the contract: Nova's observed behaviour, in three tables.

operations.csv: the versions, statuses and rules of each operation. `policy` is always checked, `policies` has the rules
that are only checked in some cases.
changes.csv: the versions at which the fields of a query, body or response change; * if they cannot be determined.
policies.csv: the defaults of the rules.
"""

import csv
import functools
import re
from pathlib import Path

import pytest

from computeapi import api
from computeapi.versions import COMPUTE, MAX
from computeapi.web.history import changes


def rows(name):
    with (Path(__file__).parent / name).open() as file:
        return list(csv.DictReader(file))


def wire(name):
    """The name of an operation without the names of its parameters, which clients do not see."""
    return re.sub(r'/{\w+}', '/{}', name)


# The version documents (* ...) are not in the table of operations.
CONTRACT = {wire(row['operation']): row for row in rows('operations.csv') if not row['operation'].startswith('*')}
DEFAULTS = {row['name']: row['default'] for row in rows('policies.csv')}
OURS = {}
for each in api.operations():
    OURS.setdefault(wire(str(each)), []).append(each)


def test_all_operations_are_there_and_no_others():
    assert set(OURS) == set(CONTRACT)


@pytest.mark.parametrize('name', CONTRACT)
def test_versions(name):
    operations, row = sorted(OURS[name], key=lambda each: each.min), CONTRACT[name]
    assert (str(operations[0].min), str(operations[-1].max)) == (row['min'], row['max'] or str(MAX))
    assert [each.max.minor + 1 for each in operations[:-1]] == [each.min.minor for each in operations[1:]]


@pytest.mark.parametrize('name', CONTRACT)
def test_statuses(name):
    expected = dict(step.split(':') for step in CONTRACT[name]['status'].split())
    steps = {}
    for each in sorted(OURS[name], key=lambda each: each.min):
        for version in sorted({each.min, *each.changes}):
            status = str(each.answers.at(version)[0])
            if not steps or steps[max(steps)] != status:
                steps[version] = status
    if set(expected.values()) != {'400'}:
        assert {str(version): status for version, status in steps.items()}.keys() == expected.keys()
        assert all(status in expected[str(version)].split('|') for version, status in steps.items())


# There are no cells to move between.
NEVER_ASKED = {'compute:servers:resize:cross_cell'}


@pytest.mark.parametrize('name', CONTRACT)
def test_policies(name):
    row, operations = CONTRACT[name], OURS[name]
    asked = {policy.name for each in operations for policy in each.policies}
    assert asked - NEVER_ASKED == set(row['policies'].split()) - NEVER_ASKED
    main = {each.policy.name for each in operations if each.policy}
    assert main <= set(row['policy'].split()) or (main <= asked and not row['policy'])


def test_defaults_of_policies():
    ours = {rule.name: rule.check_str for rule in api.rules()}
    assert ours == {name: DEFAULTS.get(name) for name in ours}


CHANGES = {}
for row in rows('changes.csv'):
    CHANGES.setdefault(wire(row['operation']), {})[row['version'], row['what']] = row['fields']

# Places where this project's response schemas are more exact than Nova's, or less.
DIFFERENT = {
    ('GET /flavors/detail', '2.75', 'response'): 'no swap is 0 in lists, too',
    ('GET /os-server-groups', '2.15', 'response'): 'a group keeps a policy of 2.15 before 2.15',
    ('POST /os-server-groups', '2.15', 'response'): 'as above',
    ('GET /os-server-groups/{}', '2.15', 'response'): 'as above',
    ('GET /os-console-auth-tokens/{}', '2.31', 'query'): 'before, whatever is asked is let pass',
    ('GET /os-hypervisors/detail', '2.88', 'response'): 'disk_available_least goes with the other numbers',
    ('GET /os-hypervisors/{}', '2.88', 'response'): 'as above',
    ('PUT /os-services/{}', '2.69', 'response'): 'the service of a cell that is down cannot be changed',
    ('PUT /servers/{}', '2.90', 'response'): 'from here on everybody sees the hostname, as in other answers',
    ('POST /servers/{}/action {rebuild}', '2.90', 'response'): 'as above',
}


@functools.cache
def differences(name):
    """{(version, what): fields added or removed} according to this project's declarations."""
    found = {}
    for version in COMPUTE.versions[1:]:
        for _, what in changes(OURS[name], version):
            for kind, fields in what.items():
                kind = 'query' if kind == 'unknown parameters' else kind
                come_and_go = {field for field in fields if field[0] in '+-'}
                found.setdefault((str(version), kind), set()).update(come_and_go)
    return found


@pytest.mark.parametrize('what', ['query', 'body', 'response'])
@pytest.mark.parametrize('name', CONTRACT)
def test_changes(name, what):
    ours, theirs = differences(name), CHANGES.get(name, {})
    alike = name.replace('/os-volumes_boot', '/servers')
    counted = {key for key in {*ours, *theirs} if key[1] == what and (alike, *key) not in DIFFERENT}
    assert {key for key in ours if key in counted} == {key for key in theirs if key in counted}
    for key in counted:
        assert theirs[key] == '*' or ours[key] == set(theirs[key].split()), key
