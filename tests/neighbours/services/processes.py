"""Processes that outlive the script that started them, identified by PID and start time."""

import json
import os
import signal
import subprocess
import time
import urllib.error
import urllib.request
from contextlib import suppress
from pathlib import Path

MAX_SECONDS = 120
# The time that a process has to exit after SIGTERM.
TIMEOUT_SECONDS = 10


class Processes:
    """The processes of one folder: their logs are in logs/, their PIDs in processes.json."""

    def __init__(self, folder):
        self.folder, self.file = folder, folder / 'processes.json'
        self.known = json.loads(self.file.read_text()) if self.file.exists() else {}

    def start(self, name, *command, **environment):
        """Each process leads a session of its own, so that it ends with all processes that it started."""
        (self.folder / 'logs').mkdir(exist_ok=True)
        with (self.folder / 'logs' / f'{name}.log').open('ab') as log:
            process = subprocess.Popen(
                [str(word) for word in command],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                # A directory without modules that could shadow those of the services.
                cwd=self.folder,
                env=os.environ | {key: str(value) for key, value in environment.items()},
                start_new_session=True,
            )
        self.known[name] = process.pid, begun(process.pid)
        self.file.write_text(json.dumps(self.known))

    def lives(self, name):
        pid, then = self.known[name]
        return then is not None and begun(pid) == then

    def wait(self, name, url):
        """Wait until the service responds, whatever the status; raises RuntimeError if it exits before."""
        deadline = time.monotonic() + MAX_SECONDS
        while not answers(url):
            if not self.lives(name) or time.monotonic() > deadline:
                raise RuntimeError(f'{name} does not answer: see {self.folder}/logs/{name}.log')
            time.sleep(0.1)

    def stop(self):
        living = [name for name in self.known if self.lives(name)]
        for name in living:
            self.kill(name, signal.SIGTERM)
        deadline = time.monotonic() + TIMEOUT_SECONDS
        while any(map(self.lives, living)) and time.monotonic() < deadline:
            time.sleep(0.1)
        for name in living:
            self.kill(name, signal.SIGKILL)
        self.file.unlink(missing_ok=True)

    def kill(self, name, how):
        """Signal the remaining process group, even if its leader is gone."""
        with suppress(ProcessLookupError):
            os.killpg(self.known[name][0], how)


def begun(pid):
    """The start time of the process in the kernel's ticks; None if it does not exist, or is a zombie."""
    with suppress(FileNotFoundError, ProcessLookupError):
        state, *facts = Path(f'/proc/{pid}/stat').read_text().rpartition(')')[2].split()
        return None if state == 'Z' else facts[18]


def answers(url):
    try:
        with urllib.request.urlopen(url, timeout=10):
            return True
    except urllib.error.HTTPError as error:
        error.close()
        return error.code < 500
    except OSError:
        return False
