"""A broker that a test can stop."""

import os
import shutil
import signal
import subprocess
import tempfile
from contextlib import contextmanager
from pathlib import Path

from tests import broker, databases
from tests.deployment.conftest import free_port


class OwnBroker:
    """Another RabbitMQ on this machine, which can be stopped without affecting anybody else."""

    def __init__(self, folder):
        self.node, self.port, self.pid_file = f'{databases.own_name()}@localhost', free_port(), folder / 'pid'
        own = {
            'NODENAME': self.node,
            'NODE_IP_ADDRESS': '127.0.0.1',
            'NODE_PORT': self.port,
            'DIST_PORT': free_port(),
            'MNESIA_BASE': folder / 'data',
            'LOG_BASE': folder / 'log',
            'CONFIG_FILE': folder / 'none',
            'ENABLED_PLUGINS_FILE': folder / 'plugins',
            'PID_FILE': self.pid_file,
        }
        self.around = os.environ | {f'RABBITMQ_{name}': str(value) for name, value in own.items()}
        self.process = None

    @property
    def transport_url(self):
        return f'rabbit://guest:guest@127.0.0.1:{self.port}'

    def start(self):
        silent = {'stdout': subprocess.DEVNULL, 'stderr': subprocess.DEVNULL}
        self.process = subprocess.Popen(['rabbitmq-server'], env=self.around, **silent)
        self.control('wait', str(self.pid_file))

    def restart(self):
        """Restart as an operator does: a quorum queue that RabbitMQ is creating when it is killed never works again."""
        self.control('stop_app')
        self.control('start_app')

    def end(self):
        os.kill(int(self.pid_file.read_text()), signal.SIGKILL)
        # Popen's child is a wrapper script: the broker itself runs as another user.
        self.process.wait()

    def control(self, *words):
        broker.control('--node', self.node, *words)


@contextmanager
def started():
    """A running broker, which is stopped at the end."""
    folder = Path(tempfile.mkdtemp())
    # When root runs the tests, the broker starts as this user.
    shutil.chown(folder, 'rabbitmq')
    made = OwnBroker(folder)
    made.start()
    try:
        yield made
    finally:
        made.end()
        shutil.rmtree(folder)
