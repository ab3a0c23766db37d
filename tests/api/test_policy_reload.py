"""Changes to policy.yaml take effect while requests are served."""

import pytest
from oslo_config import cfg
from oslo_policy import policy as oslo_policy

from computeapi import api
from computeapi.api.flavors import CREATE, SPECS_INDEX
from computeapi.context import Context
from computeapi.web.policy import Policies

BOB = Context(user_id='bob', project_id='project', roles=frozenset({'member', 'reader'}))


@pytest.fixture
def rules(tmp_path):
    return tmp_path / 'policy.yaml'


@pytest.fixture
def policies(conf, rules):
    """Policies that check for changes at every call."""
    rules.write_text('{}')
    conf.set_override('policy_file', str(rules), 'oslo_policy')
    made = Policies(conf, api.rules())
    made.reload_at = 0.0
    return made


def test_a_changed_file_counts_from_the_next_reload_on(policies, rules):
    assert not policies.allows(BOB, CREATE)
    rules.write_text(f'"{CREATE.name}": "@"')
    assert not policies.allows(BOB, CREATE)
    policies.reload_at = 0.0
    assert policies.allows(BOB, CREATE)


def test_while_a_file_is_loaded_the_previous_rules_hold(policies, rules, monkeypatch):
    set_rules, seen = oslo_policy.Enforcer.set_rules, []

    def meanwhile(enforcer, *args, **kwargs):
        set_rules(enforcer, *args, **kwargs)
        # What another thread would see at this moment.
        seen.append((policies.allows(BOB, SPECS_INDEX), policies.allows(BOB, CREATE)))

    rules.write_text(f'"{CREATE.name}": "@"  # longer than before')
    monkeypatch.setattr(oslo_policy.Enforcer, 'set_rules', meanwhile)
    assert policies.allows(BOB, CREATE)
    assert seen == [(True, False)]


BROKEN = ['"a: b', '[1]', 'no rules', f'"{CREATE.name}": 5', f'"{CREATE.name}": [1]']


@pytest.mark.parametrize('text', BROKEN)
def test_a_file_without_valid_rules_is_a_mistake_in_the_configuration(conf, rules, text):
    rules.write_text(text)
    conf.set_override('policy_file', str(rules), 'oslo_policy')
    with pytest.raises(cfg.ConfigFileValueError, match=r'^\[oslo_policy\]policy_file: no valid rules: .+$'):
        Policies(conf, api.rules())


@pytest.mark.parametrize('text', BROKEN)
def test_a_mistake_in_a_changed_file_leaves_the_previous_rules_in_force(policies, rules, text, caplog):
    rules.write_text(f'"{CREATE.name}": "@"')
    assert policies.allows(BOB, CREATE)
    rules.write_text(text + '  # longer than before')
    policies.reload_at = 0.0
    assert policies.allows(BOB, CREATE)
    assert 'The previous policy rules stay in force' in caplog.text
    rules.write_text('{}')
    policies.reload_at = 0.0
    assert not policies.allows(BOB, CREATE)
