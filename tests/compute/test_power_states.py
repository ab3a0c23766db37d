"""Servers whose guests switched themselves off are found, whatever hosts answer of others."""

import pytest

from computeapi.backends.hypervisor import HypervisorError, PowerState
from computeapi.compute.servers.power_states import PowerStates
from computeapi.errors import NotSupported


@pytest.mark.parametrize('trouble', [NotSupported('The agent is too old.'), HypervisorError('It does not respond.')])
def test_a_host_that_does_not_say_keeps_nobody_from_the_others(service, servers, monkeypatch, trouble):
    silent, off = (servers.get(servers.add(host=host)) for host in ('compute2', 'compute1'))
    for server in (silent, off):
        service.hypervisor.spawn(server, [])
        service.hypervisor.power_off(server)
    ask = service.hypervisor.power_state

    def power_state(server):
        if server.uuid == silent.uuid:
            raise trouble
        return ask(server)

    monkeypatch.setattr(service.hypervisor, 'power_state', power_state)
    PowerStates(service.platform, service.cloud.external_events).take_turn(lambda: True)
    assert [servers.get(each.uuid).task_state for each in (silent, off)] == [None, 'powering-off']


@pytest.mark.parametrize(('found', 'follows'), [(PowerState.CRASHED, 'powering-off'), (PowerState.PAUSED, None)])
def test_who_broke_down_is_stopped(service, servers, monkeypatch, found, follows):
    server = servers.add(host='compute1')
    monkeypatch.setattr(service.hypervisor, 'power_state', lambda server: found)
    PowerStates(service.platform, service.cloud.external_events).take_turn(lambda: True)
    assert servers.get(server).task_state == follows
