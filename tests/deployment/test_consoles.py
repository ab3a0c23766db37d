"""Consoles as users open them: with `computeapi serve`, and with a separate `computeapi consoleproxy`."""

import datetime
import ipaddress
import re
import ssl
import subprocess
import sys
from contextlib import contextmanager

import pytest
import requests
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from computeapi.db.engine import Store
from computeapi.db.tables.servers import console_tokens
from tests.consoles.conftest import token_of
from tests.consoles.spice_viewer import SpiceViewer
from tests.consoles.viewers import TIMEOUT, Terminal, Viewer, closing, refused
from tests.deployment.conftest import serving, starting
from tests.deployment.test_workers import wait_until

KINDS = {'novnc': Viewer, 'serial': Terminal, 'spice-html5': SpiceViewer}
HERE = {
    f'OS_{group}__{name}_{what}': value
    for group, name in {'VNC': 'NOVNCPROXY', 'SERIAL_CONSOLE': 'SERIALPROXY', 'SPICE': 'HTML5PROXY'}.items()
    for what, value in {'HOST': '127.0.0.1', 'PORT': '0'}.items()
}
TEMPEST = """
import sys
from tempest.common.compute import NoVNCValidateMixin, create_websocket

class Test(NoVNCValidateMixin):
    def runTest(self):
        url = sys.argv[1]
        self.validate_novnc_html(url)
        self.websocket = create_websocket(url)
        self.validate_websocket_upgrade()
        self.validate_rfb_negotiation()
        self.websocket.close()
        self.assertFalse(create_websocket(url.replace('token%3D', 'token%3Dbad')).receive_frame())

Test().debug()
"""
"""The same as Tempest's tests of noVNC, whose import causes many warnings."""


class Proxy:
    """A process of `computeapi consoleproxy`, with its listening addresses by type of console."""

    def __init__(self, process):
        self.process = process

    def address(self, kind):
        """The listening address that it logs when it is ready."""
        line = rf'Consoles of type {kind} are at (\S+) port (\d+)'
        found = wait_until(lambda: re.search(line, self.process.log.read_text()))
        return f'{found[1]}:{found[2]}'


@contextmanager
def proxying(start, database, **environment):
    yield Proxy(start(['-m', 'computeapi', 'consoleproxy'], {'OS_DATABASE__CONNECTION': database} | HERE | environment))


class Deployment:
    """A cloud with a user, and a proxy that shares only its database."""

    def __init__(self, served, database):
        self.log = served.process.log
        self.user, self.admin = served.connect('computeapi-demo'), served.connect()
        self.database = database
        self.image = next(self.user.image.images()).id

    def boot(self, name='web'):
        server = self.user.compute.create_server(name=name, flavor_id='1', image_id=self.image, networks='none')
        return self.user.compute.wait_for_server(server, interval=0.2)

    def url(self, server, kind):
        """The URL that the API returns."""
        return self.admin.compute.create_console(server, kind)['url']

    def console_log(self, server):
        return self.user.compute.get_server_console_output(server)['output']


@pytest.fixture(scope='module')
def deployment(tmp_path_factory):
    folder = tmp_path_factory.mktemp('consoles')
    with starting(folder) as start:
        environment = {'OS_QUOTA__INSTANCES': '-1', 'OS_QUOTA__CORES': '-1', 'OS_SPICE__ENABLED': 'true'}
        served = serving(start)('--data-dir', str(folder / 'data'), '--hosts', '2', **environment)
        deployment = Deployment(served, f'sqlite:///{folder}/data/computeapi.db')
        with deployment.user, deployment.admin:
            yield deployment


@pytest.fixture(scope='module')
def beside(deployment, tmp_path_factory):
    """The proxy next to the cloud."""
    with starting(tmp_path_factory.mktemp('proxy')) as start:
        environment = {'OS_CONSOLE__ALLOWED_ORIGINS': 'dashboard.example.org', 'OS_SPICE__ENABLED': 'true'}
        with proxying(start, deployment.database, **environment) as proxy:
            yield proxy


@pytest.fixture(scope='module')
def server(deployment):
    return deployment.boot()


@pytest.fixture(params=['serve', 'consoleproxy'])
def url(request, deployment):
    """url(server, 'serial'): the URL for WebSocket clients, of either proxy."""
    beside = request.getfixturevalue('beside') if request.param == 'consoleproxy' else None

    def url(server, kind):
        given = deployment.url(server, kind)
        address = re.match('(?:http|ws)://([^/]+)/', given)[1] if beside is None else beside.address(kind)
        return f'ws://{address}/?token={token_of(given)}'

    return url


# ------------------------------------------------------------------ users


def test_the_urls_have_the_shapes_that_clients_know(deployment, server):
    assert re.fullmatch(
        r'http://127.0.0.1:\d+/vnc_auto.html\?path=%3Ftoken%3D[0-9a-f-]{36}', deployment.url(server, 'novnc')
    )
    assert re.fullmatch(r'ws://127.0.0.1:\d+/\?token=[0-9a-f-]{36}', deployment.url(server, 'serial'))


def test_the_url_of_a_serial_console_is_all_that_a_client_needs(deployment, server):
    with Terminal(deployment.url(server, 'serial')) as terminal:
        terminal.read_until('web> ')


@pytest.mark.parametrize('kind', KINDS)
def test_a_user_types_at_a_console_and_reads_it_in_the_log(deployment, server, url, kind):
    with KINDS[kind](url(server, kind)) as client:
        assert '[simulated] web: ready' in client.read_until('web> ')
        client.type(f'typed at {kind}')
        client.read_until(f'typed at {kind}')
        client.type('\n')
        wait_until(lambda: f'web> typed at {kind}\n' in deployment.console_log(server))


def test_tempest_takes_it_for_novnc(deployment, server):
    done = subprocess.run(
        [sys.executable, '-c', TEMPEST, deployment.url(server, 'novnc')], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


def test_who_has_the_token_of_another_console_is_not_let_in(server, url):
    wrong = url(server, 'novnc').partition('?')[0] + '?' + url(server, 'serial').partition('?')[2]
    assert refused(wrong)[0] == 403


def test_tokens_expire(deployment, server, url):
    address = url(server, 'serial')
    store = Store(deployment.database)
    with store.write() as connection:
        connection.execute(console_tokens.update().values(expires_at=datetime.datetime(2000, 1, 1)))
    store.close()
    assert refused(address)[0] == 403


def test_pages_of_other_sites_are_not_let_in(server, url):
    assert refused(url(server, 'serial'), origin='http://evil.example.org')[0] == 403
    with Terminal(url(server, 'serial'), origin='http://127.0.0.1') as terminal:
        terminal.read_until('web> ')


def test_a_dashboard_is_let_in(server, beside, deployment):
    url = f'ws://{beside.address("serial")}/?token={token_of(deployment.url(server, "serial"))}'
    with Terminal(url, origin='https://dashboard.example.org') as terminal:
        terminal.read_until('web> ')


@pytest.mark.parametrize('kind', ['novnc', 'serial'])
@pytest.mark.parametrize(
    'end',
    [
        lambda deployment, server: deployment.user.compute.stop_server(server),
        lambda deployment, server: deployment.user.compute.delete_server(server),
        lambda deployment, server: deployment.admin.compute.live_migrate_server(server, block_migration='auto'),
        lambda deployment, server: deployment.admin.compute.migrate_server(server),
    ],
    ids=['stop', 'delete', 'live-migrate', 'migrate'],
)
def test_a_connection_is_cut_when_the_server_goes(deployment, url, kind, end):
    server = deployment.boot()
    address = url(server, kind)
    with KINDS[kind](address) as client:
        client.read_until('web> ')
        end(deployment, server)
        code, reason = closing(client)
        assert code == 1000 and reason in ('The console has ended.', 'The server is no longer running there.')


def test_tokens_are_in_no_log(deployment, beside, server, url):
    address = url(server, 'serial')
    with Terminal(address) as terminal:
        terminal.read_until('web> ')
    refused(address.replace('token=', 'path=%3Ftoken=wrong-'))
    token = address.partition('token=')[2]
    log = deployment.log.read_text() + beside.process.log.read_text()
    assert token not in log and 'requested the serial console, status: 403' in log


# ------------------------------------------------------------------ operators


@pytest.fixture(scope='module')
def certificate(tmp_path_factory):
    return certify(tmp_path_factory.mktemp('tls') / 'certificate.pem')


def certify(file):
    """Write a certificate for this machine and its key to a file."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, '127.0.0.1')])
    now = datetime.datetime.now(datetime.UTC)
    address = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address('127.0.0.1'))])
    builder = x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
    made = (
        builder.not_valid_before(now)
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(address, False)
        .sign(key, hashes.SHA256())
    )
    formats = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    file.write_bytes(key.private_bytes(*formats) + made.public_bytes(serialization.Encoding.PEM))
    return file


def test_consoles_over_tls(deployment, server, start, certificate):
    context = ssl.create_default_context(cafile=certificate)
    with proxying(start, deployment.database, OS_DEFAULT__CERT=str(certificate), OS_SPICE__ENABLED='true') as proxy:
        for kind, client in KINDS.items():
            url = f'wss://{proxy.address(kind)}/?token={token_of(deployment.url(server, kind))}'
            with client(url, ssl=context, origin='https://127.0.0.1') as opened:
                opened.read_until('web> ')
        page = requests.get(f'https://{proxy.address("novnc")}/vnc_auto.html', verify=str(certificate), timeout=TIMEOUT)
        assert page.status_code == 200


def test_a_certificate_is_renewed_without_a_restart(deployment, server, start, tmp_path):
    file = certify(tmp_path / 'certificate.pem')
    with proxying(start, deployment.database, OS_DEFAULT__CERT=str(file)) as proxy:
        url = f'wss://{proxy.address("serial")}/?token={token_of(deployment.url(server, "serial"))}'
        with Terminal(url, ssl=ssl.create_default_context(cafile=file)) as terminal:
            terminal.read_until('web> ')
            renewed, page = certify(tmp_path / 'renewed.pem'), f'https://{proxy.address("novnc")}/vnc_auto.html'
            for text in (renewed.read_text(), 'half of a certificate'):
                file.write_text(text)
                assert requests.get(page, verify=str(renewed), timeout=TIMEOUT).status_code == 200
            terminal.type('still here')
            terminal.read_until('still here')


def test_a_certificate_that_is_none_is_named(start, tmp_path):
    process = start(['-m', 'computeapi', 'consoleproxy'], HERE | {'OS_DEFAULT__CERT': str(tmp_path / 'away.pem')})
    assert process.process.wait(60) == 2
    assert '[DEFAULT]cert and key: [Errno 2] No such file' in process.log.read_text()


def test_serve_names_the_urls_that_its_certificate_is_for(serve, certificate):
    served = serve('--in-memory', OS_DEFAULT__CERT=str(certificate))
    with served.connect() as cloud:
        image = next(cloud.image.images()).id
        server = cloud.compute.create_server(name='web', flavor_id='1', image_id=image, networks='none')
        server = cloud.compute.wait_for_server(server, interval=0.2)
        url = cloud.compute.create_console(server, 'serial')['url']
        assert cloud.compute.create_console(server, 'novnc')['url'].startswith('https://127.0.0.1:')
    with Terminal(url, ssl=ssl.create_default_context(cafile=certificate)) as terminal:
        terminal.read_until('web> ')


def test_a_proxy_ends_with_its_connections(deployment, server, start):
    with proxying(start, deployment.database) as proxy:
        with Terminal(
            f'ws://{proxy.address("serial")}/?token={token_of(deployment.url(server, "serial"))}'
        ) as terminal:
            terminal.read_until('web> ')
            proxy.process.process.terminate()
            code, _ = closing(terminal)
            assert code in (1000, 1001)
        assert proxy.process.stop() == 0


def test_a_proxy_waits_for_its_database(start, tmp_path):
    with proxying(start, f'sqlite:///{tmp_path}/away/computeapi.db') as proxy:
        address = proxy.address('serial')
        assert refused(f'ws://{address}/?token=x')[0] == 503
        assert requests.get(f'http://{address}/', timeout=TIMEOUT).status_code == 200


def test_a_port_that_is_taken_is_named(start, beside):
    port = beside.address('serial').partition(':')[2]
    process = start(['-m', 'computeapi', 'consoleproxy'], HERE | {'OS_SERIAL_CONSOLE__SERIALPROXY_PORT': port})
    assert process.process.wait(60) == 2
    message = f'Port {port} of 127.0.0.1 is in use; [serial_console]serialproxy_port names another one'
    assert message in process.log.read_text()


def test_a_host_of_consoles_that_cannot_be_is_named(start):
    host = {'OS_SERIAL_CONSOLE__SERIALPROXY_HOST': 'no..host', 'OS_SERIAL_CONSOLE__SERIALPROXY_PORT': '0'}
    process = start(['-m', 'computeapi', 'consoleproxy'], HERE | host)
    assert process.process.wait(60) == 2
    [line] = process.log.read_text().splitlines()
    assert line == 'computeapi: Port 0 of no..host ([serial_console]serialproxy_port): the host name is not valid'
