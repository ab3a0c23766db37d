"""The `computeapi` command, except `serve`."""

import json
import re
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest
from sqlalchemy import make_url

from computeapi import cli, config
from computeapi.clock import utcnow
from computeapi.compute.cells import Cells
from computeapi.compute.tasks.heartbeat import Heartbeat
from computeapi.compute.tasks.queue import Tasks
from computeapi.db import schema
from computeapi.db.engine import Store
from computeapi.db.tables.servers import tasks
from computeapi.main import Service
from computeapi.serve import directory


@pytest.fixture
def run(capsys):
    """run('db version') -> exit status, standard output, standard error."""

    def run(command, *more):
        try:
            status = cli.main([*command.split(), *map(str, more)])
        except SystemExit as error:
            status = error.code
        return (status, *capsys.readouterr())

    return run


@pytest.fixture
def conf(tmp_path, database_url):
    path = tmp_path / 'computeapi.conf'
    path.write_text(f'[database]\nconnection = {database_url}\n[api]\nauth_strategy = none\n')
    return path


def test_the_database_is_brought_up_to_date(run, conf, monkeypatch):
    assert run('db upgrade --config-file', conf) == (0, f'{schema.head()}\n', '')
    monkeypatch.setenv('OS_COMPUTEAPI_CONFIG_FILES', str(conf))
    assert run('db version') == (0, f'{schema.head()}\n', '')


def test_a_database_that_is_not_there_is_said_to_be_so(run, conf, database_url):
    status, out, error = run('db version --config-file', conf)
    assert (status, out) == (1, '') and f'no tables in {make_url(database_url).render_as_string()};' in error


@pytest.mark.parametrize('command', ['db version', 'status upgrade check', 'cell list', 'audit'])
def test_a_look_makes_no_database(run, monkeypatch, tmp_path, command):
    monkeypatch.chdir(tmp_path)
    assert run(command)[0] != 0
    assert list(tmp_path.iterdir()) == []


def test_the_version_of_what_serve_keeps(run, two_cells, tmp_path):
    assert run(f'db version --data-dir {tmp_path}') == (0, f'{schema.head()}\n', '')


@pytest.fixture
def served(monkeypatch, tmp_path):
    """The current directory has a data directory of `serve`."""
    monkeypatch.chdir(tmp_path)
    Path('computeapi-data').mkdir()
    with closing(Store(directory.database('computeapi-data'))) as store:
        schema.upgrade(store)


@pytest.mark.parametrize(
    'command', ['db version', 'db upgrade', 'status upgrade check', 'status', 'cell list', 'audit']
)
def test_without_a_configuration_the_directory_of_serve_is_looked_into(run, served, command):
    _, out, error = run(command)
    assert 'revision None' not in out and error == ''
    assert not Path('computeapi.db').exists()


@pytest.mark.parametrize('configured', ['file', 'variable'])
def test_with_a_configuration_all_commands_use_the_same_database(run, served, monkeypatch, configured):
    """Even if it is the default, which is what workers use, and there is a data directory of `serve` as well."""
    if configured == 'file':
        Path('computeapi.conf').write_text('[api]\nauth_strategy = none\n')
        monkeypatch.setenv('OS_COMPUTEAPI_CONFIG_FILES', 'computeapi.conf')
    else:
        monkeypatch.setenv('OS_DATABASE__CONNECTION', 'sqlite:///computeapi.db')
    for command in ('db archive --before 2030-01-01', 'cell list', 'audit', 'status', 'status upgrade check'):
        status, out, error = run(command)
        assert status != 0 and 'revision None' in out + error, command
    assert run('db upgrade') == (0, f'{schema.head()}\n', '') and Path('computeapi.db').exists()
    for command in ('db archive --before 2030-01-01', 'cell list', 'audit'):
        assert run(command)[0] == 0, command
    assert 'Success  sqlite:///computeapi.db is at' in run('status upgrade check')[1]
    if configured == 'file':
        assert (
            f'{directory.database("computeapi-data")} is' in run('status upgrade check --data-dir computeapi-data')[1]
        )


def test_status_says_what_is_missing(run, conf):
    status, out, _ = run('status upgrade check --config-file', conf)
    assert status == 2 and f'not {schema.head()}: run `computeapi db upgrade`' in out
    run('db upgrade --config-file', conf)
    status, out, _ = run('status upgrade check --config-file', conf)
    assert (status, out.count('Success')) == (0, 6)


def test_status_looks_into_the_directory_of_serve_that_is_named(run, two_cells, tmp_path):
    status, out, _ = run(f'status upgrade check --data-dir {tmp_path}')
    assert status == 0 and f'{directory.database(tmp_path)} is at revision {schema.head()}' in out


@pytest.fixture
def two_cells(tmp_path):
    """A service with three hosts in two cells, in the data directory of `serve`."""
    conf = config.load(overrides={('simulated', 'hosts'): 3, ('simulated', 'cells'): 2})
    service = Service(conf, Store(directory.database(tmp_path)))
    schema.upgrade(service.store)
    service.hosts.register()
    yield service
    service.close()


def test_a_cell_is_down_and_up_again(run, two_cells, tmp_path):
    for change in ('down', 'up'):
        status, out, _ = run(f'cell {change} cell2 --data-dir {tmp_path}')
        first, second = out.splitlines()
        assert status == 0 and first.endswith(' up compute1 compute3') and second.endswith(f' {change} compute2')
        assert run(f'cell list --data-dir {tmp_path}') == (0, out, '')
        assert [*Cells(two_cells.store).out_of_reach()] == ['compute2'] * (change == 'down')
    assert run(f'cell down cell3 --data-dir {tmp_path}') == (2, '', 'computeapi: There is no cell cell3.\n')
    assert run(f'cell list --data-dir {tmp_path}/nowhere')[0] == 1


@pytest.fixture
def status(run, tmp_path):
    """status(configuration): the status with an up-to-date SQLite database."""

    def status(text):
        path = tmp_path / 'other.conf'
        path.write_text(f'[database]\nconnection = sqlite:///{tmp_path}/other.db\n[api]\nauth_strategy = none\n{text}')
        run('db upgrade --config-file', path)
        return run('status upgrade check --config-file', path)[:2]

    return status


def test_status_of_the_rest(status, tmp_path):
    assert status('')[0] == 0
    code, out = status('[wsgi]\napi_paste_config = nowhere.ini\n')
    assert code == 2 and 'The Paste file nowhere.ini was not found' in out
    (tmp_path / 'policy.yaml').write_text('"os_compute_api:no-such-thing": "@"\n')
    code, out = status('')
    assert code == 1 and 'os_compute_api:no-such-thing' in out
    (tmp_path / 'policy.yaml').write_text('"os_compute_api:os-flavor-manage:create": "rule:no_such_rule"\n')
    assert status('')[0] == 2
    (tmp_path / 'policy.yaml').write_text('not: [yaml\n')
    assert status('')[0] == 2


def test_misspelt_options_are_found(status):
    code, out = status('max_limt = 5\n[databse]\nconnection = x\n[neutron]\nauth_section = us\n[us]\nusername = x\n')
    assert code == 1 and 'have no effect: [api]max_limt, [databse]\n' in out
    code, out = status('[vendor]\nname = x\n[network]\nbackend = other.package:network\nbackends = x\n')
    assert code == 1 and 'have no effect: [network]backends\n' in out


def test_status_says_how_the_service_is(run, conf, database_url):
    status, out, _ = run('status --config-file', conf)
    assert status == 1 and 'run `computeapi db upgrade`' in out
    run('db upgrade --config-file', conf)
    status, out, _ = run('status --config-file', conf)
    assert status == 1 and 'None was seen' in out
    store = Store(database_url)
    dead, living = (
        Heartbeat(Tasks(store, 12, clock), 'computeapi-worker', 'control', 2) for clock in (an_hour_ago, store.clock)
    )
    for each in (dead, living):
        each.begin()
    with store.write() as connection:
        connection.execute(tasks.insert(), QUEUED | {'created_at': an_hour_ago()})
    status, out, _ = run('status --config-file', conf)
    store.close()
    assert status == 0 and re.findall(r'(?m)^(.*?)  +(\w.*?)  ', out) == [
        *((name, 'ok') for name in ('database', 'schema', 'workers', 'disk')),
        ('process', 'dead'),
        ('process', 'alive'),
        ('queue', '1'),
    ]
    assert 'started 0:59:' in out and 'the oldest due for 0:59:' in out


def an_hour_ago():
    return utcnow() - timedelta(minutes=59, seconds=1)


QUEUED = {'kind': 'test', 'server_id': 'server', 'context': {}, 'arguments': {}, 'attempts': 0}


def test_status_of_a_database_that_does_not_answer(run, tmp_path):
    path = tmp_path / 'computeapi.conf'
    path.write_text('[database]\nconnection = postgresql+psycopg://me:hidden@127.0.0.1:1/none\n')
    status, out, error = run('status --config-file', path)
    assert status == 1 and 'Connection refused' in out and 'hidden' not in out + error


def test_a_value_that_does_not_fit_is_found_at_the_start(run, tmp_path, monkeypatch):
    path = tmp_path / 'computeapi.conf'
    path.write_text('[api]\nmax_limit = many\n')
    status, _, error = run('db version --config-file', path)
    assert status == 2 and error.startswith(f'computeapi: [api]max_limit in {path}: ') and "'many'" in error
    path.write_text('[api]\nmax_limit = 5\n')
    monkeypatch.setenv('OS_API__MAX_LIMIT', '0')
    status, _, error = run('db version --config-file', path)
    assert status == 2 and error.startswith('computeapi: [api]max_limit in OS_API__MAX_LIMIT: Should be greater')


def test_status_of_a_database_that_does_not_answer_hides_the_password(run, tmp_path):
    path = tmp_path / 'computeapi.conf'
    path.write_text('[database]\nconnection = postgresql+psycopg://me:hidden@127.0.0.1:1/none\n')
    status, out, _ = run('status upgrade check --config-file', path)
    assert status == 2 and 'Connection refused' in out and 'hidden' not in out
    status, _, error = run('db upgrade --config-file', path)
    assert status == 1 and 'Connection refused' in error and 'hidden' not in error and error.count('\n') == 1


@pytest.mark.parametrize(
    ('command', 'reason'),
    [
        ('db version --config-file nowhere.conf', 'nowhere.conf'),
        ('serve --port 65536', 'is not a port'),
        ('serve --hosts 0', 'argument --hosts: 0 is not'),
        ('serve --page-limit 0', 'argument --page-limit: 0 is not'),
        ('serve --passing-seconds=-1', 'argument --passing-seconds: -1 is not'),
        ('serve --passing-seconds nan', 'argument --passing-seconds: nan is not'),
        ('serve --admin-password=', 'argument --admin-password: the password is empty'),
        ('populate --data-dir /dev/null', '/dev/null is not a directory'),
        ('openapi 2.999', '2.999 is not a version'),
        ('history 1.1', '1.1 is not a version'),
        ('agent-key compute1', '[agent]secret is not set'),
        ('nothing', 'nothing'),
    ],
)
def test_mistakes_are_told_in_words(run, command, reason):
    status, out, error = run(command)
    assert (status, out) == (2, '') and reason in error and 'Traceback' not in error


@pytest.mark.parametrize(
    ('command', 'text'),
    [
        ('routes', 'os_compute_api:os-flavor-manage:create'),
        ('history 2.61', 'extra_specs'),
        ('policy', '#"os_compute_api:os-flavor-manage:create": '),
        ('config', '#auth_strategy = keystone'),
    ],
)
def test_what_the_service_knows_of_itself_is_printed(run, command, text):
    status, out, _ = run(command)
    assert status == 0 and text in out


def test_openapi_is_json(run):
    document = json.loads(run('openapi latest')[1])
    assert '/flavors/{flavor_id}' in str(list(document['paths']))
