"""`computeapi run`: a command with a cloud of its own; and the control API of `computeapi serve`."""

import argparse
import os
import signal
import subprocess
import sys
import time

import pytest
import requests

from computeapi import cli
from computeapi.errors import Invalid
from computeapi.kit import options as kit_options
from tests.deployment.conftest import free_port

RUN = [sys.executable, '-m', 'computeapi', 'run', '--hosts', '3', '--']
COUNT = """
import openstack, os, sys
with openstack.connect(cloud='computeapi-demo') as cloud:
    assert cloud.compute.find_flavor('m1.tiny')
with openstack.connect(load_yaml_config=False) as cloud:
    print(len(list(cloud.compute.hypervisors())), flush=True)
sys.exit(3)
"""


def test_a_command_finds_its_cloud_and_its_status_is_told():
    done = subprocess.run([*RUN, sys.executable, '-W', 'ignore', '-c', COUNT], capture_output=True, text=True)
    assert (done.stdout, done.returncode) == ('3\n', 3), done.stderr


@pytest.mark.parametrize(
    'openrc',
    [
        {'OS_PROJECT_ID': '1' * 32, 'OS_PROJECT_DOMAIN_ID': 'default', 'OS_PROJECT_NAME': 'shop', 'OS_USERNAME': 'me'},
        {
            'OS_AUTH_TYPE': 'v3applicationcredential',
            'OS_APPLICATION_CREDENTIAL_ID': '1' * 32,
            'OS_APPLICATION_CREDENTIAL_SECRET': 'secret',
        },
        {'OS_CLOUD': 'mycloud', 'OS_TOKEN': 'x', 'OS_COMPUTE_ENDPOINT_OVERRIDE': 'http://127.0.0.1:1/v2.1'},
    ],
    ids=lambda openrc: next(iter(openrc)),
)
def test_a_command_does_not_find_the_cloud_of_the_shell(openrc):
    command = [*RUN, sys.executable, '-W', 'ignore', '-c', COUNT]
    done = subprocess.run(command, env=os.environ | openrc, capture_output=True, text=True)
    assert (done.stdout, done.returncode) == ('3\n', 3), done.stderr


def test_what_a_shell_says_besides_a_command_finds():
    said = {'OS_CLOUD': 'computeapi-demo', 'OS_COMPUTE_API_VERSION': '2.96', 'OS_SERVICE_USER__USER_DOMAIN_ID': 'x'}
    command = [*RUN, 'sh', '-c', f'echo {" ".join(f"${name}" for name in said)}']
    done = subprocess.run(command, env=os.environ | said, capture_output=True, text=True)
    assert done.stdout.split() == [*said.values()], done.stderr


def test_a_shell_controls_its_cloud():
    script = f'{sys.executable} -m computeapi control take-snapshot one && {sys.executable} -m computeapi control reset'
    done = subprocess.run([*RUN, 'sh', '-c', script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_what_a_command_asks_is_written_to_a_file(tmp_path):
    options = [*RUN[:4], '--journal', 'x.jsonl', '--']
    done = subprocess.run([*options, sys.executable, '-W', 'ignore', '-c', COUNT], cwd=tmp_path, capture_output=True)
    assert done.returncode == 3, done.stderr
    assert '"operation":"GET /os-hypervisors' in (tmp_path / 'x.jsonl').read_text()


def test_a_command_that_is_not_there():
    done = subprocess.run([*RUN, '/no/such/command'], capture_output=True, text=True)
    assert done.returncode == 127 and '/no/such/command' in done.stderr


def test_who_ends_it_ends_the_command():
    process = subprocess.Popen([*RUN, 'sh', '-c', 'echo ready; exec sleep 60'], stdout=subprocess.PIPE, text=True)
    with process:
        assert process.stdout.readline() == 'ready\n'
        process.terminate()
        assert process.wait(60) == 128 + signal.SIGTERM


@pytest.fixture
def serve(tmp_path):
    """serve(*options): the process, and its future URL."""
    processes = []

    def start(*options):
        port = free_port()
        command = [sys.executable, '-m', 'computeapi', 'serve', '--port', str(port), *options]
        processes.append(subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT))
        return processes[-1], f'http://127.0.0.1:{port}'

    yield start
    for process in processes:
        # The process itself deletes its in-memory data; nobody else would.
        process.terminate()
        process.communicate()


def answer(url, **more):
    """The response, as soon as the server can be reached."""
    for _ in range(200):
        try:
            return requests.get(url, timeout=60, **more)
        except requests.ConnectionError:
            time.sleep(0.05)
    raise TimeoutError(url)


def test_serve_has_a_control_api_when_asked(serve):
    _, url = serve('--in-memory', '--control-token', 'secret')
    headers = {'X-Control-Token': 'secret'}
    assert answer(f'{url}/control/snapshots', headers=headers).json() == {'snapshots': [{'name': 'initial'}]}


def test_serve_has_none_otherwise(serve):
    _, url = serve('--in-memory')
    # Like any unknown path: a choice of versions.
    assert answer(f'{url}/control/snapshots').status_code == 300


def test_serve_says_what_it_takes_a_cloud_in_memory_for():
    parser = argparse.ArgumentParser()
    kit_options.add_serve(parser)
    _, _, listed = parser.format_help().partition('with --in-memory:')
    for name in kit_options.ASKING:
        option = f'--{name.replace("_", "-")}'
        assert f' {option} ' in listed
        with pytest.raises(Invalid, match=f'{option} requires --in-memory'):
            given = argparse.Namespace(**dict.fromkeys(kit_options.ASKING), webhook_allow=[], in_memory=False)
            setattr(given, name, 'something')
            kit_options.kit_of(given).__enter__()


@pytest.mark.parametrize(('host', 'is_told'), [('127.0.0.1', 0), ('localhost', 0), ('::1', 0), ('0.0.0.0', 1)])
def test_who_can_log_in_by_a_seed_is_told(host, is_told, capsys):
    parser = argparse.ArgumentParser()
    kit_options.add_serve(parser)
    options = parser.parse_args(['--seed', '7'], argparse.Namespace(in_memory=True, host=host))
    with kit_options.kit_of(options) as kit:
        assert kit.tools.seed.number == 7
    assert ('passwords' in capsys.readouterr().err) == is_told


@pytest.mark.parametrize(
    ('rules', 'told'),
    [(None, 'No such file'), ('a: [', 'expected the node'), ('- a', 'must have a name'), (b'\xff', 'decode')],
)
def test_rules_that_cannot_be_read_are_refused(rules, told, tmp_path, capsys):
    path = tmp_path / 'policy.yaml'
    if rules is not None:
        path.write_bytes(rules if isinstance(rules, bytes) else rules.encode())
    # Otherwise the default rules would apply, and the test would pass.
    with pytest.raises(SystemExit, match='2'):
        cli.main(['run', '--policy', str(path), '--', 'true'])
    printed = capsys.readouterr().err
    assert told in printed and str(path) in printed


def test_rules_that_nothing_asks_for_are_told(tmp_path, capsys):
    (path := tmp_path / 'policy.yaml').write_text(
        '"os_compute_api:servers:make": "@"\n"os_compute_api:servers:create": "@"'
    )
    assert kit_options.policy_file(str(path)) == str(path)
    assert capsys.readouterr().err.endswith('no operation uses: os_compute_api:servers:make\n')


def test_a_cloud_that_is_kept_is_not_reset(serve, tmp_path):
    process, _ = serve('--control-token', 'secret')
    output, _ = process.communicate(timeout=30)
    assert process.returncode == 2 and b'--in-memory' in output
    assert not os.listdir(tmp_path)
