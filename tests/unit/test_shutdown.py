"""How a process is told to end, and what it starts does."""

import signal
import subprocess
import sys
import time

import pytest

SCRIPT = """
import subprocess
from computeapi.shutdown import ShutdownSignals
shutdown = ShutdownSignals()
started = subprocess.Popen(['sleep', '600'])
started.terminate()
print(started.wait(), flush=True)
shutdown.wait()
shutdown.wait()
print('put away')
"""


@pytest.mark.parametrize('number', [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize('pause', [0, 0.001])
def test_a_process_ends_when_it_is_told_and_what_it_started_can_be_told_the_same(number, pause):
    with subprocess.Popen([sys.executable, '-c', SCRIPT], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == f'{-signal.SIGTERM}\n'
        # However late further signals come.
        while process.poll() is None:
            process.send_signal(number)
            time.sleep(pause)
        assert process.stdout.read() == 'put away\n'
    assert process.returncode == 0
