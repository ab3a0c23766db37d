"""Processes that outlive the script that started them, and are known by their numbers and when they began."""

import json
import os
import signal
import subprocess
import time
import urllib.error
import urllib.request
from contextlib import suppress
from pathlib import Path

LONGEST_SECONDS = 120
# What a process that was asked to end has for it.
PATIENCE_SECONDS = 10


class Processes:
    """Those of one folder: their logs are in logs/, their numbers in processes.json."""

    def __init__(self, folder):
        self.folder, self.file = folder, folder / 'processes.json'
        self.known = json.loads(self.file.read_text()) if self.file.exists() else {}

    def start(self, name, *command, **environment):
        """Each is the leader of a session of its own, so that it ends with all that it started."""
        (self.folder / 'logs').mkdir(exist_ok=True)
        with (self.folder / 'logs' / f'{name}.log').open('ab') as log:
            process = subprocess.Popen(
                [str(word) for word in command],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                # What Python finds beside them has no name of theirs.
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
        """Until it answers, whatever it says; RuntimeError if it ends before."""
        deadline = time.monotonic() + LONGEST_SECONDS
        while not answers(url):
            if not self.lives(name) or time.monotonic() > deadline:
                raise RuntimeError(f'{name} does not answer: see {self.folder}/logs/{name}.log')
            time.sleep(0.1)

    def stop(self):
        living = [name for name in self.known if self.lives(name)]
        for name in living:
            self.kill(name, signal.SIGTERM)
        deadline = time.monotonic() + PATIENCE_SECONDS
        while any(map(self.lives, living)) and time.monotonic() < deadline:
            time.sleep(0.1)
        for name in living:
            self.kill(name, signal.SIGKILL)
        self.file.unlink(missing_ok=True)

    def kill(self, name, how):
        """What is left of the group, also when its leader is gone."""
        with suppress(ProcessLookupError):
            os.killpg(self.known[name][0], how)


def begun(pid):
    """When the process began, by the kernel's count; None if there is none, or only its exit status."""
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
