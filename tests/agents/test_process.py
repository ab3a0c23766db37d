"""Configurations with which an agent refuses to start."""

import pytest
from oslo_config import cfg

from computeapi.agent.process import AgentProcess
from tests.agents.in_process import agent_conf


@pytest.mark.parametrize(
    ('group', 'name', 'value', 'problem'),
    [
        ('image', 'backend', 'glance', r'\[service_user\] requires the credentials of this service'),
        ('network', 'backend', 'neutron', r'\[service_user\] requires the credentials of this service'),
        ('volume', 'backend', 'cinder', r'\[service_user\] requires the credentials of this service'),
        ('agent', 'secret', ['x' * 32], r'\[agent\]secret is for the control plane'),
        ('agent', 'key', [], r'\[agent\]key is empty'),
        ('agent', 'key', ['', 'x' * 64], r'\[agent\]key is empty'),
        ('agent', 'host', 'a/b', 'a/b is not a valid host name'),
        ('hypervisor', 'backend', 'remote', r'\[hypervisor\]backend: an agent must drive a hypervisor itself'),
    ],
)
def test_a_configuration_that_is_none_for_an_agent_is_an_error_at_the_start(tmp_path, group, name, value, problem):
    conf = agent_conf(tmp_path / 'agent', 'alpha')
    conf.set_override(name, value, group)
    with pytest.raises(cfg.ConfigFileValueError, match=problem):
        AgentProcess(conf)


def test_agents_do_not_share_their_state(tmp_path):
    conf = agent_conf(tmp_path / 'agent', 'alpha')
    first = AgentProcess(conf)
    with pytest.raises(BlockingIOError, match='in use by another agent'):
        AgentProcess(conf)
    first.stop()
    AgentProcess(conf).stop()
