"""Starts and stops the services of a folder: `python -m services.up start|stop FOLDER`."""

import hashlib
import os
import shutil
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pymysql

from .catalog import Catalog
from .configuration import APIS, HOST, PASSWORD, PORTS, REGION, Configuration
from .processes import Processes

DATABASE = {'host': HOST, 'port': 3306, 'user': 'root'}
BROKER = 'guest:guest@127.0.0.1:5672'
THREADS = 4


class Neighbours:
    """Everything created for a folder, and nothing else, has *mark* in its name."""

    def __init__(self, folder):
        self.folder = folder.absolute()
        self.mark = 'neighbours_' + hashlib.sha256(str(self.folder).encode()).hexdigest()[:8]
        self.begun = time.monotonic()
        self.processes = Processes(self.folder)

    def say(self, text):
        print(f'{time.monotonic() - self.begun:6.1f} s  {text}', file=sys.stderr, flush=True)

    # Start

    def start(self):
        self.stop()
        self.configuration = Configuration(
            self.folder,
            dict(zip(PORTS, free_ports(len(PORTS)), strict=True)),
            f'mysql+pymysql://root@{HOST}:3306/{self.mark}_',
            f'rabbit://{BROKER}/{self.mark}',
        )
        self.configuration.write()
        self.make_databases()
        rabbit('add_vhost', self.mark)
        rabbit('set_permissions', '-p', self.mark, 'guest', '.*', '.*', '.*')
        memcached = self.configuration.ports['memcached']
        self.processes.start('memcached', 'memcached', '-u', 'nobody', '-l', HOST, '-p', memcached, '-m', 64)
        self.catalog = Catalog(self.configuration)
        with ThreadPoolExecutor(len(APIS)) as pool:
            keystone = pool.submit(self.start_keystone)
            others = {name: pool.submit(self.start_api, name) for name in APIS if name != 'keystone'}
            keystone.result()
            filled = [pool.submit(self.fill, others[name], fill) for name, fill in self.filling().items()]
            for each in (*others.values(), *filled):
                each.result()
        self.say('all is there')
        return self.environment()

    def filling(self):
        return {'neutron': self.catalog.networks, 'cinder': self.catalog.volume_types}

    def fill(self, started, fill):
        started.result()
        fill()

    def start_keystone(self):
        self.sync('keystone')
        where = self.configuration.identity
        url = [word for each in ('admin', 'public', 'internal') for word in (f'--bootstrap-{each}-url', where)]
        self.manage('keystone', 'bootstrap', '--bootstrap-password', PASSWORD, '--bootstrap-region-id', REGION, *url)
        self.serve('keystone')
        self.catalog.identity()
        self.say('users and the catalog')

    def start_api(self, name):
        self.sync(name)
        self.serve(name)
        if name == 'cinder':
            for binary in ('cinder-scheduler', 'cinder-volume'):
                self.processes.start(binary, self.program(binary), *self.options('cinder'), **self.environ('cinder'))

    def sync(self, name):
        """Create the tables."""
        commands = {'neutron': ['upgrade', 'heads'], 'keystone': ['db_sync'], 'glance': ['db_sync']}
        commands['barbican'] = ['db', 'upgrade']
        self.manage(name, *commands.get(name, ['db', 'sync']))
        self.say(f'tables of {name}')

    def manage(self, name, *words):
        program = self.program('neutron-db-manage' if name == 'neutron' else f'{name}-manage')
        options = ['--config-dir', self.folder / 'etc' / name] if name == 'placement' else self.options(name)
        self.run(f'{name}-manage', program, *options, *words, **self.environ(name))

    def run(self, name, *command, **environment):
        done = subprocess.run(
            [str(word) for word in command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            cwd=self.folder,
            env=os.environ | {key: str(value) for key, value in environment.items()},
        )
        (self.folder / 'logs').mkdir(exist_ok=True)
        with (self.folder / 'logs' / f'{name}.log').open('a') as log:
            log.write(done.stdout)
        if done.returncode:
            raise RuntimeError(f'{name} failed: {done.stdout[-2000:]}')

    def serve(self, name):
        """Run one process with threads. Wait for a first request here, because some services initialize themselves on
        it in a way that is not thread-safe."""
        port = self.configuration.ports[name]
        # Barbican's own module looks for its file in a single place.
        paste = self.configuration.packaged / name / f'{name}-api-paste.ini'
        what = ('--paste', f'config:{paste}') if name == 'barbican' else ('--module', f'{name}.wsgi.api:application')
        command = [
            *(self.program('uwsgi'), '--http-socket', f'{HOST}:{port}', *what),
            *('--processes', 1, '--threads', THREADS, '--enable-threads', '--need-app', '--die-on-term', '--master'),
            *('--lazy-apps', '--buffer-size', 65535, '--add-header', 'Connection: close', '--disable-logging'),
            *('--venv', self.folder / 'env', '--pyargv', ' '.join(map(str, self.options(name)))),
        ]
        self.processes.start(name, *command, **self.environ(name))
        self.processes.wait(name, self.configuration.url(name, '/'))
        self.say(f'{name} answers')

    def program(self, name):
        return self.folder / 'env' / 'bin' / name

    def options(self, name):
        file = next((self.folder / 'etc' / name).glob('*.conf'))
        return ['--config-file', file] if name in ('cinder', 'keystone', 'glance', 'neutron') else []

    def environ(self, name):
        """The environment by which the service's processes find their files."""
        # Barbican looks for its configuration in the home directory.
        home = {'HOME': self.folder / 'etc' / name} if name == 'barbican' else {}
        return home | {
            f'OS_{name.upper()}_CONFIG_DIR': self.folder / 'etc' / name,
            'PYTHONPATH': self.folder / 'plugins',
            'PYTHONWARNINGS': 'ignore',
            'NEIGHBOURS_PLUGGING': self.folder / 'plugging',
            # Overrides the outer environment: bytecode is compiled once.
            'PYTHONDONTWRITEBYTECODE': '',
            'PATH': f'{self.folder}/env/bin:{os.environ["PATH"]}',
        }

    def make_databases(self):
        with pymysql.connect(**DATABASE) as connection, connection.cursor() as cursor:
            for name in APIS:
                cursor.execute(f'CREATE DATABASE {self.mark}_{name} CHARACTER SET utf8mb3')

    def environment(self):
        """The environment variables for tests."""
        ports = self.configuration.ports
        return {
            'COMPUTEAPI_TEST_NEIGHBOURS': f'http://admin:{PASSWORD}@{HOST}:{ports["keystone"]}/v3',
            'COMPUTEAPI_TEST_NEIGHBOURS_FOLDER': str(self.folder),
            'COMPUTEAPI_TEST_NEIGHBOURS_COMPUTE': str(ports['nova']),
            'COMPUTEAPI_TEST_NEIGHBOURS_MEMCACHED': f'{HOST}:{ports["memcached"]}',
        }

    # Stop

    def stop(self):
        """Stop the processes, and drop their databases and virtual host."""
        self.processes.stop()
        self.processes = Processes(self.folder)
        with pymysql.connect(**DATABASE) as connection, connection.cursor() as cursor:
            for name in APIS:
                cursor.execute(f'DROP DATABASE IF EXISTS {self.mark}_{name}')
        rabbit('delete_vhost', self.mark, check=False)
        for name in ('data', 'etc', 'plugging', 'environment'):
            path = self.folder / name
            shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)


def rabbit(*words, check=True):
    subprocess.run(['rabbitmqctl', '--quiet', *words], check=check, capture_output=True)


def free_ports(count):
    sockets = [socket.create_server((HOST, 0)) for _ in range(count)]
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


def main(command, folder):
    neighbours = Neighbours(Path(folder))
    if command == 'stop':
        neighbours.stop()
        return
    try:
        environment = neighbours.start()
    except BaseException:
        neighbours.stop()
        raise
    lines = [f'export {name}={value}\n' for name, value in environment.items()]
    (neighbours.folder / 'environment').write_text(''.join(lines))
    print(''.join(lines), end='')


if __name__ == '__main__':
    main(*sys.argv[1:])
