"""Every command that needs the database reports its problem in one line, with exit status 1."""

import subprocess
import sys
from contextlib import closing

import pytest
import sqlalchemy as sa

from computeapi import cli
from computeapi.db import schema
from computeapi.db.engine import Store
from tests.databases import URLS

COMMANDS = (
    'db upgrade',
    'db archive --before 2030-01-01',
    'db purge --before 2030-01-01 --batch 7',
    'cell list',
    'audit',
    'cell down cell1',
    'serve --port 0',
)


def configured(folder, url):
    conf = folder / 'computeapi.conf'
    conf.write_text(f'[database]\nconnection = {url}\nconnect_timeout = 2\n')
    return conf


def run(command, folder, url):
    """The exit status and the lines of error output, in a process of its own."""
    conf = configured(folder, url)
    name, *more = command.split()
    if name == 'serve':
        more += ['--data-dir', str(folder / 'data')]
    whole = [sys.executable, '-m', 'computeapi', name, *more, '--config-file', str(conf)]
    done = subprocess.run(whole, capture_output=True, text=True, check=False, timeout=60)
    return done.returncode, done.stderr.splitlines()


@pytest.fixture
def run_command(capsys):
    """run_command(command, folder, url): like `run`, but without a process, which takes seconds, except for `serve`."""

    def run_in_process(command, folder, url):
        if command.startswith('serve'):
            return run(command, folder, url)
        status = cli.main([*command.split(), '--config-file', str(configured(folder, url))])
        return status, capsys.readouterr().err.splitlines()

    return run_in_process


def test_tables_of_another_release(database_url, tmp_path, run_command):
    with closing(Store(database_url)) as store:
        schema.create(store)
        with store.write() as connection:
            connection.execute(sa.text("UPDATE alembic_version SET version_num = '0999'"))
    for command in COMMANDS:
        status, [line] = run_command(command, tmp_path, database_url)
        assert status == 1 and '0999' in line


def test_no_database(database, tmp_path, run_command):
    url = sa.make_url(URLS.get(database) or 'sqlite://')
    nowhere = url.set(database=f'{tmp_path}/no/where.db' if url.get_backend_name() == 'sqlite' else 'nowhere')
    for command in COMMANDS:
        status, [line] = run_command(command, tmp_path, nowhere.render_as_string(hide_password=False))
        assert status == 1 and line.startswith('computeapi: The database cannot be used: ')


@pytest.mark.parametrize('command', ['db upgrade', 'serve --port 0'])
def test_a_wrong_password(database, tmp_path, command):
    if database == 'sqlite':
        return
    url = sa.make_url(URLS[database]).set(username='nobody_known', password='hidden')
    status, [line] = run(command, tmp_path, url.render_as_string(hide_password=False))
    assert status == 1 and 'nobody_known' in line and 'hidden' not in line


@pytest.mark.parametrize('command', COMMANDS)
def test_a_file_that_is_damaged(tmp_path, command):
    (tmp_path / 'file.db').write_bytes(b'What is this?' * 999)
    status, [line] = run(command, tmp_path, f'sqlite:///{tmp_path}/file.db')
    assert status == 1 and f'{tmp_path}/file.db: file is not a database' in line


@pytest.mark.parametrize('command', ['db upgrade', 'serve --port 0'])
def test_a_disk_that_is_full(tmp_path, command):
    conf = tmp_path / 'computeapi.conf'
    conf.write_text(
        f'[database]\nconnection = sqlite:///{tmp_path}/file.db\n[standalone]\ndata_dir = {tmp_path}/data\n'
    )
    # -B: otherwise Python could leave a truncated bytecode file behind, for everybody who imports it later.
    whole = f'ulimit -f 64; exec {sys.executable} -B -m computeapi {command} --config-file {conf}'
    done = subprocess.run(['bash', '-c', whole], capture_output=True, text=True, check=False, timeout=60)
    [line] = done.stderr.splitlines()
    assert done.returncode == 1 and ('disk' in line or 'full' in line)


@pytest.mark.parametrize('url', ['nonsense', 'oracle://127.0.0.1/x', 'nothing://127.0.0.1/x', ''])
def test_a_url_of_no_database(capsys, tmp_path, url):
    (tmp_path / 'computeapi.conf').write_text(f'[database]\nconnection = {url}\n')
    for command in ('db version', 'db upgrade', 'cell list', 'status'):
        assert cli.main([*command.split(), '--config-file', str(tmp_path / 'computeapi.conf')]) == 2
        out, error = capsys.readouterr()
        assert len(error.splitlines()) == 1 or (command == 'status' and 'Failure' in out)


def test_what_is_archived_and_purged_is_counted(database_url, tmp_path):
    assert run('db archive --before 2030-01-01', tmp_path, database_url)[0] == 1
    assert run('db upgrade', tmp_path, database_url)[0] == 0
    assert run('db archive --before 2030-01-01', tmp_path, database_url) == (0, [])
    assert run('db archive --before someday', tmp_path, database_url)[0] == 2
