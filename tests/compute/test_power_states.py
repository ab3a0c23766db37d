"""Servers whose machines are not in the expected power state are found, whatever the hosts report about others."""

import pytest

from computeapi.backends.hypervisor import HypervisorError, PowerState
from computeapi.compute.servers import power_states as module
from computeapi.compute.servers.power_states import PowerStates
from computeapi.errors import NotSupported


@pytest.mark.parametrize('error', [NotSupported('The agent is too old.'), HypervisorError('It does not respond.')])
def test_a_host_that_does_not_say_keeps_nobody_from_the_others(service, servers, monkeypatch, error):
    silent, off = (servers.get(servers.add(host=host)) for host in ('compute2', 'compute1'))
    for server in (silent, off):
        service.hypervisor.spawn(server, [])
        service.hypervisor.power_off(server)
    ask = service.hypervisor.power_state

    def power_state(server):
        if server.uuid == silent.uuid:
            raise error
        return ask(server)

    monkeypatch.setattr(service.hypervisor, 'power_state', power_state)
    PowerStates(service.cloud.changes).take_turn()
    assert [servers.get(each.uuid).task_state for each in (silent, off)] == [None, 'powering-off']


def test_a_host_that_takes_its_time_delays_the_others_only_so_long(service, servers, monkeypatch):
    hosts, asked, seconds = ['slow'] * 3 + ['fast'] * 3, [], {'slow': 31, 'fast': 1}
    for host in hosts:
        servers.add(host=host)

    def power_state(server):
        asked.append(server.host)
        return PowerState.RUNNING

    monkeypatch.setattr(service.hypervisor, 'power_state', power_state)
    monkeypatch.setattr(module, 'elapsed', lambda: sum(seconds[host] for host in asked))
    PowerStates(service.cloud.changes).take_turn()
    assert sorted(asked) == ['fast', 'fast', 'fast', 'slow']


@pytest.mark.parametrize(
    ('vm_state', 'found', 'follows'),
    [
        ('active', PowerState.CRASHED, 'powering-off'),
        ('active', PowerState.PAUSED, None),
        ('paused', PowerState.SHUTDOWN, 'powering-off'),
        ('paused', PowerState.RUNNING, None),
        ('stopped', PowerState.RUNNING, 'powering-off'),
        ('stopped', PowerState.CRASHED, None),
        ('stopped', None, None),
        ('suspended', PowerState.SHUTDOWN, None),
        ('rescued', PowerState.SHUTDOWN, None),
    ],
)
def test_who_is_otherwise_than_told_is_stopped(service, servers, monkeypatch, vm_state, found, follows):
    server = servers.add(host='compute1', vm_state=vm_state)
    monkeypatch.setattr(service.hypervisor, 'power_state', lambda server: found)
    PowerStates(service.cloud.changes).take_turn()
    assert servers.get(server).task_state == follows


def test_who_was_started_meanwhile_runs_on(service, servers, monkeypatch):
    server = servers.add(host='compute1', vm_state='stopped')

    def power_state(_):
        servers.change(server, vm_state='active')
        return PowerState.RUNNING

    monkeypatch.setattr(service.hypervisor, 'power_state', power_state)
    PowerStates(service.cloud.changes).take_turn()
    assert servers.get(server).task_state is None
