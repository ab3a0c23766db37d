"""Commands that continue without the process that started them."""

import time

import pytest

from computeapi.backends.hypervisor.qemu import child as module
from computeapi.backends.hypervisor.qemu.child import Child
from computeapi.backends.hypervisor.qemu.detached_process import lives
from tests.waiting import eventually

COPIES = ['sh', '-c', 'dd if=/dev/zero bs=1M count=64 of="$0.copy" 2>"$0.said"; sleep 60']


@pytest.fixture
def child(tmp_path):
    made = Child(tmp_path / 'made')
    yield made
    made.end()


def test_nothing_of_it_is_left_when_it_was_ended(child):
    for _ in range(10):
        child.start([*COPIES, str(child.target)])
        eventually(lambda: child.running.pid is not None)
        group = child.running.pid
        child.end()
        assert not lives(group) and not child.is_under_way and not child.is_done


def test_one_that_has_just_begun_is_ended(child, monkeypatch):
    monkeypatch.setattr(module, 'SCRIPT', f'sleep 0.3; {module.SCRIPT}')
    child.start(['sh', '-c', 'sleep 60', str(child.part)])
    child.end()
    time.sleep(0.6)
    assert not child.is_under_way
