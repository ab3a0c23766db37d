"""The README's commands and files, tried as they stand there. Of what they print, `...` stands for anything."""

import os
import re
import shutil
import subprocess
import sys
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from openstack.exceptions import ResourceFailure

from computeapi.db.engine import Store
from tests.deployment.conftest import Process, free_port
from tests.deployment.test_workers import known
from tests.documents import ROOT, texts

CLONED = ('computeapi', 'etc', 'pyproject.toml', 'README.md', 'LICENSE')
MARK = '-- next --'
TIME = r'\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}'


class Machine:
    """A clone in a folder of its own, and shells there. What a command would download is what the tests have."""

    def __init__(self, folder, port):
        self.folder, self.port = folder, port
        for name in CLONED:
            (shutil.copytree if (ROOT / name).is_dir() else shutil.copy)(ROOT / name, folder / name)
        installed = [path for path in sys.path if path.endswith('site-packages')]
        self.environment = {
            'HOME': str(folder),
            'PATH': f'{Path(sys.executable).parent}:{os.environ["PATH"]}',
            'PYTHONPATH': os.pathsep.join(installed),
            'PIP_NO_INDEX': '1',
            'PIP_NO_BUILD_ISOLATION': '0',
            'no_proxy': '*',
        }

    def text(self, script):
        """The README's words, for the port that is free here."""
        port = str(self.port)
        return script.replace('computeapi serve', f'computeapi serve --port {port}').replace('8774', port)

    @contextmanager
    def service(self, script, **environment):
        """Run what ends with a service, and stop it at the end."""
        *before, last = self.text(script).replace('&& ', '&&\n').splitlines()
        lines = ['set -e', *before, f'exec {last}']
        process = Process(['bash', '-c', '\n'.join(lines)], self.folder, self.environment | environment)
        try:
            yield process
        finally:
            assert process.stop() == 0, process.log.read_text()

    def run(self, script):
        """What a shell prints."""
        command = ['bash', '-c', self.text(script)]
        environment = os.environ | self.environment
        done = subprocess.run(command, cwd=self.folder, env=environment, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr
        return done.stdout


@pytest.fixture(scope='module')
def machine(tmp_path_factory):
    """Where the README's first command has installed the service, and runs it."""
    machine = Machine(tmp_path_factory.mktemp('clone'), free_port())
    [command] = texts('README.md', 'Install and run')
    with machine.service(command) as process:
        process.lines_until('curl')
        yield machine


def test_the_session_prints_what_stands_there(machine):
    session = ''.join(texts('README.md', 'A session', '$ '))
    steps = re.findall(r'(?m)^\$ (.*)\n((?:(?!\$ ).*\n)*)', session)
    script = f'\necho; echo {MARK}\n'.join(command for command, _ in steps)
    printed = [text.strip() for text in machine.run(script).split(MARK)]
    for (command, expected), text in zip(steps, printed, strict=True):
        assert re.fullmatch(pattern_of(expected), text), (command, text)


def pattern_of(text):
    return TIME.join(map(re.escape, re.split(TIME, text.strip()))).replace(r'\.\.\.', '.*')


def test_the_simulated_hosts_do_as_they_are_told(serve, tmp_path):
    (tmp_path / 'computeapi.conf').write_text(*texts('README.md', 'A session', '[simulated]'))
    served = serve('--in-memory', '--hosts', '3', '--config-file', 'computeapi.conf')
    with served.connect() as cloud:
        image, flavor = cloud.image.find_image('cirros-0.6.3-x86_64-disk'), cloud.compute.find_flavor('m1.tiny')
        facts = {'image_id': image.id, 'flavor_id': flavor.id, 'networks': 'none'}
        good, bad = (cloud.compute.create_server(name=name, **facts) for name in ('good', 'bad'))
        assert cloud.compute.get_server(good).status == 'BUILD'
        good = cloud.compute.wait_for_server(good)
        with pytest.raises(ResourceFailure):
            cloud.compute.wait_for_server(bad)
        cloud.compute.live_migrate_server(good, block_migration='auto')
        assert not moved(cloud, good)
        cloud.compute.migrate_server(good)
        assert not moved(cloud, good)


def moved(cloud, server):
    """Whether the server is on another host, once it is no longer on its way."""
    while (now := cloud.compute.get_server(server)).task_state:
        pass
    return now.compute_host != server.compute_host


def test_it_is_deployed(machine, database_url):
    script, worker = texts('README.md', 'Deploy')
    listen = f'127.0.0.1:{free_port()}'
    edited = {'OS_DATABASE__CONNECTION': database_url, 'OS_API__AUTH_STRATEGY': 'none'}
    with machine.service(f'. .venv/bin/activate\n{script}', COMPUTEAPI_LISTEN=listen, **edited) as process:
        printed = process.lines_until('Policies')
        assert re.findall('(?m)^(.*?) +Success ', printed) == ['Database', 'Paste file', 'Policies']
        assert process.answer(f'http://{listen}/v2.1/flavors').json() == {'flavors': []}
        with machine.service(f'. .venv/bin/activate\n{worker}', **edited), closing(Store(database_url)) as store:
            found = known(store, 5)
    assert sorted((each.binary, each.workers) for each in found) == [('computeapi-api', 0)] * 4 + [
        ('computeapi-worker', 4)
    ]
