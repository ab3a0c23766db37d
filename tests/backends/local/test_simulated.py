"""Configuration of the simulated hypervisor's behaviour."""

import pytest
from oslo_config import cfg

from computeapi.backends.hypervisor import Capability, HypervisorError, NotYet, PowerState
from computeapi.backends.hypervisor.behaviour import OPERATIONS
from computeapi.backends.hypervisor.simulated import SimulatedHypervisor

NAMES = {
    *('spawn', 'destroy', 'power_on', 'power_off', 'reboot', 'pause', 'unpause', 'suspend', 'resume', 'rescue'),
    *('unrescue', 'crash_dump', 'set_password', 'snapshot', 'plug', 'unplug', 'attach', 'detach', 'extend'),
    *('snapshot_volume', 'delete_volume_snapshot', 'swap', 'migrate', 'check_live_migration', 'live_migrate'),
}
"""Names used in configurations; names may be added, but none may be removed."""


def test_rules_are_for_what_a_driver_is_told_to_do():
    assert OPERATIONS >= NAMES


@pytest.mark.parametrize('kind', ['fail', 'hang'])
@pytest.mark.parametrize('name', ['power_state', 'stop', 'hosts', 'console', 'fly', ''])
def test_a_rule_for_anything_else_is_refused(store, conf, kind, name):
    conf.set_override(kind, [f'{name}:web'], 'simulated')
    with pytest.raises(cfg.Error, match=rf'\[simulated\]{kind}: there is no operation {name}; there are attach, '):
        SimulatedHypervisor(store, conf.simulated)


def test_what_it_is_told_that_it_lacks(store, conf):
    conf.set_override('lacks', ['pause', 'host_power'], 'simulated')
    left = SimulatedHypervisor(store, conf.simulated).capabilities
    assert SimulatedHypervisor.capabilities - left == {Capability.PAUSE, Capability.HOST_POWER}
    conf.set_override('lacks', ['wings'], 'simulated')
    with pytest.raises(cfg.Error, match='there is no capability wings; there are attach_interface, '):
        SimulatedHypervisor(store, conf.simulated)


def test_a_rule_may_be_for_some_servers_only(store, conf, servers):
    conf.set_override('fail', ['power_off:bad'], 'simulated')
    driver = SimulatedHypervisor(store, conf.simulated)
    good, bad = servers.get(servers.add(name='good')), servers.get(servers.add(name='bad-1'))
    for server in (good, bad):
        driver.spawn(server, [])
    driver.power_off(good)
    with pytest.raises(HypervisorError, match='power_off:bad'):
        driver.power_off(bad)
    assert (driver.power_state(good), driver.power_state(bad)) == (PowerState.SHUTDOWN, PowerState.RUNNING)


class Waiting:
    """A task that reached each step this many seconds ago."""

    def __init__(self, seconds=0.0):
        self.seconds, self.steps = seconds, []

    def __call__(self, step):
        self.steps.append(step)
        return self.seconds


@pytest.fixture
def paused(store, conf, servers):
    """paused(waiting, **options): whether the driver has paused a server; raises NotYet."""
    server = servers.get(servers.add(task_state='pausing'))
    SimulatedHypervisor(store, conf.simulated).spawn(server, [])

    def pause(waiting, **options):
        for name, value in options.items():
            conf.set_override(name, value, 'simulated')
        driver = SimulatedHypervisor(store, conf.simulated)
        (driver if waiting is None else driver.during(waiting)).pause(server)
        return driver.power_state(server) is PowerState.PAUSED

    pause.server = server
    return pause


def test_it_takes_the_time_that_is_left(paused):
    with pytest.raises(NotYet) as wait:
        paused(Waiting(1.5), passing_seconds=2)
    assert wait.value.seconds == 0.5
    assert paused(Waiting(2), passing_seconds=2)


def test_who_cannot_wait_need_not(paused):
    assert paused(None, passing_seconds=2)


def test_what_takes_no_time_is_no_step(paused):
    waiting = Waiting()
    assert paused(waiting) and waiting.steps == []


def test_an_option_of_its_own_says_how_long_it_takes(store, conf, servers):
    conf.set_override('passing_seconds', 2, 'simulated')
    conf.set_override('spawn_seconds', 0, 'simulated')
    driver = SimulatedHypervisor(store, conf.simulated).during(Waiting())
    server = servers.get(servers.add())
    driver.spawn(server, [])
    with pytest.raises(NotYet):
        driver.power_off(server)


def test_what_hangs_waits_until_the_rule_is_gone_for_an_hour_at_most(paused):
    with pytest.raises(NotYet):
        paused(Waiting(3599), hang=['pause'])
    with pytest.raises(HypervisorError, match='told to hang: pause'):
        paused(Waiting(3600), hang=['pause'])
    assert paused(Waiting(10), hang=[])


def test_what_hangs_ends_when_the_server_is_overtaken(paused, servers):
    servers.change(paused.server.uuid, task_state='deleting')
    with pytest.raises(HypervisorError, match='told to hang: pause'):
        paused(Waiting(), hang=['pause'])


def test_another_process_finds_what_runs(store, conf, servers):
    server = servers.get(servers.add())
    SimulatedHypervisor(store, conf.simulated).spawn(server, [])
    assert SimulatedHypervisor(store, conf.simulated).power_state(server) is PowerState.RUNNING
