"""Processes that share their counts: they start, are killed, and start again."""

import os
import signal
import subprocess
import sys

import pytest
from oslo_config import cfg
from prometheus_client.parser import text_string_to_metric_families

from computeapi.observers.slots import Slot

COUNTING = """
import sys
from computeapi import config
from computeapi.db.engine import Store
from computeapi.observers.metrics import Metrics

conf = config.load(overrides={('metrics', 'directory'): sys.argv[1]})
store = Store('sqlite:///' + sys.argv[1] + '.db')
metrics = Metrics(conf.metrics, store)
print(metrics.slot.number, flush=True)
for line in sys.stdin:
    if line == 'connect\\n':
        connection = store.engine.connect()
        metrics.sample()
    elif line == 'count\\n':
        metrics.families['computeapi_task_takeovers_total'].labels('build').inc()
        metrics.families['computeapi_task_seconds'].labels('build').observe(0.5)
    text = metrics.exposition() if line == 'tell\\n' else b''
    print(text.count(b'\\n'), flush=True)
    sys.stdout.buffer.write(text)
    sys.stdout.flush()
"""


class Counting:
    """A process that counts takeovers."""

    def __init__(self, directory):
        command = [sys.executable, '-c', COUNTING, str(directory)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.slot = int(self.process.stdout.readline())

    def ask(self, line):
        print(line, file=self.process.stdin, flush=True)
        number = int(self.process.stdout.readline())
        return ''.join(self.process.stdout.readline() for _ in range(number))

    def count(self, times):
        for _ in range(times):
            self.ask('count')

    def tell(self):
        """{name: the sum of the samples of that name}."""
        found = {}
        for family in text_string_to_metric_families(self.ask('tell')):
            for sample in family.samples:
                if sample.labels.get('le', '+Inf') == '+Inf' and sample.labels.get('state') != 'idle':
                    found[sample.name] = found.get(sample.name, 0) + sample.value
        return found

    @property
    def takeovers(self):
        found = self.tell()
        assert found['computeapi_task_seconds_bucket'] == found['computeapi_task_takeovers_total']
        return found['computeapi_task_takeovers_total']

    def end(self, number=signal.SIGKILL):
        self.process.send_signal(number)
        self.process.communicate()


@pytest.fixture
def start(tmp_path):
    started = []

    def begin():
        started.append(Counting(tmp_path / 'counts'))
        return started[-1]

    yield begin
    for each in started:
        each.end()


def files(folder):
    return {path.name for path in (folder / 'counts').iterdir()}


def test_their_counts_add_up_whoever_is_asked(start):
    one, two = start(), start()
    one.count(2)
    two.count(3)
    assert (one.slot, two.slot) == (0, 1)
    assert one.takeovers == two.takeovers == 5


def test_what_a_process_counted_that_was_killed_is_gone_on_with(start, tmp_path):
    one, two = start(), start()
    one.count(2)
    two.count(3)
    before = files(tmp_path)
    for _ in range(5):
        two.end()
        assert one.takeovers == 5
        two = start()
        assert two.slot == 1
    two.count(1)
    assert one.takeovers == two.takeovers == 6
    assert files(tmp_path) == before


def test_what_a_process_had_open_goes_with_it(start):
    one, two = start(), start()
    one.ask('connect')
    two.ask('connect')
    assert one.tell()['computeapi_database_connections'] == 2
    two.end()
    assert one.tell()['computeapi_database_connections'] == 1
    assert start().tell()['computeapi_database_connections'] == 1


def test_the_first_one_begins_anew(start, tmp_path):
    for each in [start(), start(), start()]:
        each.count(2)
        each.end()
    one = start()
    one.count(1)
    assert (one.slot, one.takeovers) == (0, 1)
    assert not [name for name in files(tmp_path) if name.endswith(('_1.db', '_2.db'))]


def test_nobody_else_can_write_there(tmp_path):
    slot = Slot(tmp_path / 'a' / 'counts')
    assert (tmp_path / 'a' / 'counts').stat().st_mode & 0o777 == 0o700
    assert slot.number == 0
    slot.leave()
    (tmp_path / 'open').mkdir()
    os.chmod(tmp_path / 'open', 0o777)
    with pytest.raises(cfg.ConfigFileValueError, match='must be owned by'):
        Slot(tmp_path / 'open')
