"""The fixture `openstack_cloud` in somebody else's project."""

import subprocess
import sys

CONFTEST = """
import pytest


@pytest.fixture(scope='session')
def openstack_cloud_options():
    return {'hosts': 2}
"""
TESTS = """
import pytest


@pytest.mark.parametrize('time', range(3))
def test_each_test_has_a_new_cloud(openstack_cloud, time):
    compute = openstack_cloud.connection().compute
    assert len(list(compute.hypervisors())) == 2
    assert not list(compute.keypairs())
    compute.create_keypair(name='mine')


def test_two_fixtures_are_one_cloud(openstack_cloud, openstack_cloud_of_session):
    assert openstack_cloud is openstack_cloud_of_session
"""
WRONG = """
def test_wrong(openstack_cloud):
    openstack_cloud.connection().compute.find_flavor('m1.tiny')
    assert openstack_cloud.journal.count('POST /servers') == 1
"""
SEVERAL = """
def test_right(openstack_cloud):
    list(openstack_cloud.connection().compute.keypairs())


def test_wrong(openstack_cloud):
    openstack_cloud.connection().compute.get_flavor('none')
"""
IN_A_FIXTURE = """
import pytest


@pytest.fixture
def flavor(openstack_cloud):
    return openstack_cloud.connection().compute.get_flavor('none')


def test_flavor(flavor):
    pass
"""
STRICT = """
[pytest]
filterwarnings = error
"""
WAITING = """
import warnings

import pytest


@pytest.fixture
def server(openstack_cloud):
    openstack_cloud.plans.add(state='BUILD', reads=0)
    image, network = 'cirros-0.6.3-x86_64-disk', 'private'
    return openstack_cloud.connection().create_server(
        'web', image=image, flavor='m1.tiny', network=network, wait=True, auto_ip=True, timeout=20
    )


def test_the_server_is_reachable(server, openstack_cloud):
    connection = openstack_cloud.connection()
    [address] = connection.network.ips()
    assert connection.get_server(server.id).public_v4 == address.floating_ip_address


def test_own_warnings_are_errors(openstack_cloud):
    with pytest.raises(DeprecationWarning):
        warnings.warn('mine', DeprecationWarning)
"""
PLUGIN = ['-p', 'computeapi.pytest_plugin', '-p', 'no:cacheprovider', '-p', 'no:randomly']


def run(folder, *arguments):
    # If the package is installed, pytest finds the plugin by itself; otherwise it is only importable.
    plugin = PLUGIN[2:] if 'computeapi.pytest_plugin' in pytest(folder, '--fixtures') else PLUGIN
    return pytest(folder, *plugin, *arguments)


def pytest(folder, *arguments):
    command = [sys.executable, '-m', 'pytest', *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True).stdout


def test_it_works_in_a_project_of_its_own_and_in_several_processes(tmp_path):
    (tmp_path / 'conftest.py').write_text(CONFTEST)
    (tmp_path / 'test_mine.py').write_text(TESTS)
    output = run(tmp_path, '-n', '2')
    assert '4 passed' in output, output


def test_who_does_not_ask_for_it_does_not_load_it(tmp_path):
    (tmp_path / 'test_none.py').write_text("import sys\n\n\ndef test_none():\n    assert 'webob' not in sys.modules\n")
    output = run(tmp_path)
    assert '1 passed' in output, output


def test_what_was_asked_is_told_of_a_test_that_failed_and_of_no_other(tmp_path):
    (tmp_path / 'test_several.py').write_text(SEVERAL)
    output = run(tmp_path)
    assert '1 failed, 1 passed' in output and output.count('What was asked of the cloud') == 1, output
    [told] = output.split('What was asked of the cloud')[1:]
    assert 'GET /v2.1/flavors/none' in told and ' 404 ' in told and '/v2.1/os-keypairs' not in told, output


def test_what_was_asked_is_told_of_a_fixture_that_failed(tmp_path):
    (tmp_path / 'test_fixture.py').write_text(IN_A_FIXTURE)
    output = run(tmp_path)
    assert '1 error' in output, output
    assert 'GET /v2.1/flavors/none' in output.partition('What was asked of the cloud')[2], output


def test_a_number_of_requests_that_is_wrong_tells_what_was_asked(tmp_path):
    (tmp_path / 'test_wrong.py').write_text(WRONG)
    output = run(tmp_path)
    assert '0 == 1' in output and 'None of that kind' in output and '(GET /flavors' in output, output


def test_the_sdk_waits_for_a_server_where_warnings_are_errors(tmp_path):
    (tmp_path / 'pytest.ini').write_text(STRICT)
    (tmp_path / 'test_waiting.py').write_text(WAITING)
    output = run(tmp_path)
    assert '2 passed' in output, output
