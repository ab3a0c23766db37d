"""Misbehaving guest agents, and a misbehaving QEMU."""

import socket

import pytest

from computeapi.backends.hypervisor.qemu import guest_agent
from computeapi.backends.hypervisor.qemu.folder import GuestFolder
from computeapi.backends.hypervisor.qemu.guest_agent import GuestAgent, Silent


def test_an_agent_whose_qemu_has_just_ended_is_silent(tmp_path, monkeypatch):
    ours, its = socket.socketpair()
    its.close()
    monkeypatch.setattr(guest_agent, 'connected', lambda path, seconds: ours)
    with pytest.raises(Silent), GuestAgent(GuestFolder(tmp_path)):
        pass
    assert ours.fileno() == -1
