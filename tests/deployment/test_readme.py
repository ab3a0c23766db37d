"""The README's deployment, and the claims of docs/how-to/testing.md about hosts; tests/docs tests the rest of both."""

import os
import re
import shutil
import sys
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from openstack.exceptions import ResourceFailure

from computeapi.db.engine import Store
from tests.deployment.conftest import Process, free_port
from tests.deployment.test_uwsgi import PROCESSES
from tests.deployment.test_workers import known
from tests.documents import ROOT, texts

CLONED = ('computeapi', 'etc', 'pyproject.toml', 'README.md', 'LICENSE')


class Machine:
    """A clone in its own folder, with services. The tests' own packages stand in for downloads."""

    def __init__(self, folder):
        self.folder = folder
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

    @contextmanager
    def service(self, script, **environment):
        """Run a script that ends with a service, in a virtual environment; stop the service at the end."""
        *before, last = script.splitlines()
        lines = ['set -e', '[ -e .venv ] || python3 -m venv .venv', '. .venv/bin/activate', *before, f'exec {last}']
        process = Process(['bash', '-c', '\n'.join(lines)], self.folder, self.environment | environment)
        try:
            yield process
        finally:
            assert process.stop() == 0, process.log.read_text()


def test_the_simulated_hosts_do_as_they_are_told(serve, tmp_path):
    (tmp_path / 'computeapi.conf').write_text(*texts('docs/how-to/testing.md', 'Simulated hosts'))
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
    """Whether the server is on another host, after its task state is cleared."""
    while (now := cloud.compute.get_server(server)).task_state:
        pass
    return now.compute_host != server.compute_host


def test_it_is_deployed(tmp_path, database_url):
    [script], machine = texts('README.md', 'Deploy'), Machine(tmp_path)
    listen = f'127.0.0.1:{free_port()}'
    edited = {'OS_DATABASE__CONNECTION': database_url, 'OS_API__AUTH_STRATEGY': 'none'}
    with machine.service(script, COMPUTEAPI_LISTEN=listen, COMPUTEAPI_PROCESSES=str(PROCESSES), **edited) as process:
        printed = process.lines_until('Policies')
        assert re.findall('(?m)^(.*?) +Success ', printed) == ['Config files', 'Database', 'Paste file', 'Policies']
        assert process.answer(f'http://{listen}/v2.1/flavors').json() == {'flavors': []}
        with machine.service('computeapi worker', **edited), closing(Store(database_url)) as store:
            found = known(store, PROCESSES + 1)
    answering = [('computeapi-api', 0)] * PROCESSES
    assert sorted((each.binary, each.workers) for each in found) == [*answering, ('computeapi-worker', 4)]
