"""Processes that answer requests each stay on a CPU of their own."""

import errno
import json
import os
import subprocess
import sys
import uuid
from contextlib import contextmanager

import pytest

from computeapi import config, cpu_affinity

CPUS = sorted(os.sched_getaffinity(0))[:2]
PROCESS = """
import json, os, subprocess, sys, threading
from computeapi import cpu_affinity

cpu_affinity.RESERVATION, cpus = {reservation!r}, {cpus}
os.sched_setaffinity(0, cpus)
end = threading.Event()

def begin_thread():
    thread = threading.Thread(target=end.wait)
    thread.start()
    return sorted(os.sched_getaffinity(thread.native_id)), thread.native_id

def child():
    code = 'import os; print(sorted(os.sched_getaffinity(0)))'
    return json.loads(subprocess.run([sys.executable, '-c', code], capture_output=True, check=True).stdout)

earlier, number = begin_thread()
cpu_affinity.CPU_AFFINITY.settle()
told = dict(main=sorted(os.sched_getaffinity(0)), later=begin_thread()[0], child=child())
told['earlier'] = sorted(os.sched_getaffinity(number))
with cpu_affinity.CPU_AFFINITY.suspended():
    told['suspended'] = [sorted(os.sched_getaffinity(0)), child(), sorted(os.sched_getaffinity(number))]
told['resumed'] = sorted(os.sched_getaffinity(0))
print(json.dumps(told), flush=True)
sys.stdin.readline()
end.set()
"""


@pytest.fixture
def reservation():
    return f'\0computeapi-test/{uuid.uuid4()}/{{cpu}}'


@contextmanager
def running(*arguments):
    process = subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


@contextmanager
def settled(reservation):
    """What a process tells that may run on CPUS."""
    with running(sys.executable, '-c', PROCESS.format(reservation=reservation, cpus=CPUS)) as process:
        yield json.loads(process.stdout.readline())


def test_all_threads_stay_on_one_cpu(reservation):
    with settled(reservation) as told:
        assert len(told['main']) == 1 and set(told['main']) <= set(CPUS)
        assert told['main'] == told['earlier'] == told['later'] == told['child'] == told['resumed']


def test_a_thread_can_leave_the_cpu_for_a_while(reservation):
    with settled(reservation) as told:
        assert told['suspended'] == [CPUS, CPUS, told['main']]


def test_each_process_has_a_cpu_of_its_own_while_there_is_one(reservation):
    with settled(reservation) as first:
        with settled(reservation) as second, settled(reservation) as third:
            own = [each['main'] for each in (first, second, third)][: len(CPUS)]
            assert sorted(own) == [[cpu] for cpu in CPUS]
            assert third['main'] == third['suspended'][0] == CPUS
        # Killed, they no longer hold anything.
        with settled(reservation) as fourth:
            assert fourth['main'] == second['main']


@pytest.mark.parametrize('number', [errno.EPERM, errno.EINVAL])
def test_requests_are_answered_where_threads_cannot_be_moved(reservation, monkeypatch, number):
    def refuse(thread, cpus):
        raise OSError(number, 'refused')

    monkeypatch.setattr(cpu_affinity, 'RESERVATION', reservation)
    monkeypatch.setattr(os, 'sched_setaffinity', refuse)
    affinity, done = cpu_affinity.CPUAffinity(), []
    affinity.settle()
    with affinity.reserved, affinity.suspended():
        done.append(number)
    assert done == [number]


SERVE = """
import sys
from computeapi import cli, cpu_affinity

cpu_affinity.RESERVATION = {reservation!r}
sys.exit(cli.main(['serve', '--in-memory', '--port', '0', '--hosts', '1']))
"""
WSGI = """
import sys
from computeapi import cpu_affinity

cpu_affinity.RESERVATION = {reservation!r}
from computeapi import wsgi

wsgi.process.begin()
print('begun', flush=True)
sys.stdin.readline()
"""


@pytest.mark.parametrize('code', [SERVE, WSGI])
@pytest.mark.parametrize(('option', 'number'), [('true', 1), ('false', len(os.sched_getaffinity(0)))])
def test_processes_that_answer_requests_settle(code, option, number, reservation, tmp_path, monkeypatch):
    monkeypatch.setenv('OS_DEFAULT__CPU_AFFINITY', option)
    monkeypatch.setenv('OS_DATABASE__CONNECTION', f'sqlite:///{tmp_path}/database')
    with running(sys.executable, '-c', code.format(reservation=reservation)) as process:
        assert process.stdout.readline()
        assert len(os.sched_getaffinity(process.pid)) == number


@pytest.mark.parametrize(('backend', 'number'), [('simulated', 1), ('qemu', 0)])
def test_guests_are_not_kept_on_the_cpu_of_their_service(backend, number, monkeypatch):
    settled = []
    monkeypatch.setattr(cpu_affinity.CPU_AFFINITY, 'settle', lambda: settled.append(backend))
    cpu_affinity.settle(config.load(overrides={('hypervisor', 'backend'): backend}))
    assert len(settled) == number
