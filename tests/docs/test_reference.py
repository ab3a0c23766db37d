"""The reference pages generated with the documentation contain everything that the code declares."""

import re

import pytest
import yaml

from computeapi import api, options
from computeapi.kit import shell
from tests.documents import ROOT


@pytest.fixture
def pages(monkeypatch):
    """{'options.md': '# Options ...', ...}"""
    monkeypatch.syspath_prepend(ROOT / 'docs')
    import generators

    return dict(generators.pages())


def test_every_operation_has_its_chapter(pages):
    told = [line for text in pages.values() for line in re.findall('(?m)^## (.*)$', text)]
    found = {str(each) for each in api.operations()}
    assert {line.replace('\\', '') for line in told} >= found
    for name in re.findall(r'(?m)^\S+$', pages['operations/index.md'].partition('1\n')[2].partition('```')[0]):
        assert f'operations/{name}.md' in pages


def test_fields_are_told_with_the_versions_that_have_them(pages):
    creation = pages['operations/server-creation.md']
    assert '| `server/description` | string or null up to 255 characters | from 2.19 |\n' in creation
    assert '| `server/personality` | array | until 2.56 |\n' in creation
    tags = [line for line in creation.splitlines() if line.startswith('| `server/block_device_mapping_v2[]/tag`')]
    assert [line.split(' | ')[-1] for line in tags] == ['2.32 |', 'from 2.42 |']
    assert '| `tags` | array up to 50 items, required | from 2.26 |\n' in pages['operations/server-tags.md']


def test_every_option_rule_and_command_is_there(pages):
    for _, listed in options.list_opts():
        assert all(f'| `{option.name}` |' in pages['options.md'] for option in listed)
    assert all(f'| `{rule.name}` ' in pages['rules.md'] for rule in api.rules())
    assert '### computeapi db archive\n' in pages['commands.md'] and '--load FILE' in pages['commands.md']
    assert all(f'| `{each["name"]}` |' in pages['commands.md'] for each in shell.operations())


def test_release_notes_are_of_kinds_that_there_are():
    kinds = {section[0] for section in yaml.safe_load((ROOT / 'releasenotes/config.yaml').read_text())['sections']}
    notes = sorted((ROOT / 'releasenotes/notes').glob('*.yaml'))
    assert notes
    for path in notes:
        note = yaml.safe_load(path.read_text())
        assert note.keys() <= kinds, path
        # In Markdown, like all pages.
        assert all(isinstance(item, str) and '``' not in item for items in note.values() for item in items), path
