"""Migration between hosts under TLS, and who is excluded from it."""

import json
import os
import socket
import ssl
import subprocess
import tempfile
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from oslo_config import cfg

from computeapi.backends.hypervisor import HypervisorError
from tests.conftest import FLAVOR
from tests.guests.boot_sector import BANNER
from tests.guests.screens import echoes, wrote
from tests.signing import Signer

SECONDS = 60


class Authority:
    """A CA, and folders with its certificates."""

    def __init__(self, folder, kind='ECC_SECP384R1'):
        self.folder, self.kind = folder, kind
        self.signer = Signer('authority', authority=True, kind=kind)

    def certify(self, *hosts):
        """Renew the files in the folder, for hosts of these names."""
        self.folder.mkdir(exist_ok=True)
        (self.folder / 'ca-cert.pem').write_bytes(self.signer.pem)
        for end in ('server', 'client'):
            own = Signer(hosts[0], self.signer, kind=self.kind, hosts=hosts)
            (self.folder / f'{end}-cert.pem').write_bytes(own.pem)
            (self.folder / f'{end}-key.pem').write_bytes(own.key_pem)


@pytest.fixture
def authority():
    """A CA in a folder that the user of guests can read, too."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o711)
        made = Authority(Path(folder))
        made.certify('compute1', 'compute2')
        yield made


@pytest.fixture
def stranger(tmp_path):
    """An untrusted CA."""
    made = Authority(tmp_path / 'of a stranger')
    made.certify('compute1', 'compute2')
    return made


def write_to(facts, folder):
    """The result of an attacker's attempt to write to a disk that is being received, knowing everything about it.
    folder: the attacker's certificates; None: there are none."""
    server = {'type': 'inet', 'host': facts['address'], 'port': str(facts['port'])}
    target = {'driver': 'nbd', 'server': server, 'export': facts['disks']['root']}
    shown = []
    if folder is not None:
        target |= {'tls-creds': 'own', 'tls-hostname': 'compute2'}
        own = {
            'qom-type': 'tls-creds-x509',
            'id': 'own',
            'endpoint': 'client',
            'verify-peer': False,
            'dir': str(folder),
        }
        shown = ['--object', json.dumps(own)]
    command = ['qemu-io', *shown, '-c', 'write 0 512', f'json:{json.dumps({"driver": "raw", "file": target})}']
    return subprocess.run(command, capture_output=True, text=True, timeout=SECONDS)


def is_cut_off(facts):
    """Whether a connection that would send memory under TLS, but shows no certificate, is closed."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with closing(socket.create_connection((facts['address'], facts['memory']), SECONDS)) as plain:
        try:
            with context.wrap_socket(plain) as secured:
                secured.sendall(b'QEVM')
                return secured.recv(1) == b''
        except (ssl.SSLError, ConnectionResetError):
            return True


def test_what_moves_is_taken_from_and_sent_to_certified_hosts_alone(guests, servers, authority, stranger):
    guests.keep_apart('compute2')
    driver = guests.driver(tls_certificates=str(authority.folder))
    server = servers.get(servers.add(host='compute1', flavor=FLAVOR | {'memory_mb': 16}))
    there = replace(server, host='compute2')
    driver.spawn(server, [])
    wrote(driver, server, f'{BANNER}01')

    authority.certify('compute3')
    facts = driver.prepare_live_migration(server, 'compute2', driver.describe(server))
    with pytest.raises(HypervisorError):
        driver.live_migrate(server, 'compute2', facts, 'running')
    with pytest.raises(HypervisorError, match='do not both encrypt migrations'):
        driver.live_migrate(server, 'compute2', facts | {'tls': False}, 'running')
    driver.destroy(there)
    driver.suspend(server)
    driver.resume(server)
    assert echoes(driver, server, 'as before')

    authority.certify('compute1', 'compute2')
    facts = driver.prepare_live_migration(server, 'compute2', driver.describe(server))
    for folder in (None, stranger.folder):
        assert write_to(facts, folder).returncode
    assert is_cut_off(facts)
    assert driver.live_migrate(server, 'compute2', facts, 'running')
    driver.suspend(there)
    driver.resume(there)
    assert echoes(driver, there, 'moved')

    facts = driver.prepare_migration(there, 'compute1', driver.describe(there))
    assert write_to(facts, authority.folder).returncode == 0
    driver.migrate(there, 'compute1', facts)
    driver.power_on(server)
    assert wrote(driver, server, f'{BANNER}02')


def test_certificates_that_cannot_be_used_are_an_error_at_the_start(guests, authority):
    (authority.folder / 'server-key.pem').chmod(0o600)
    with pytest.raises(cfg.ConfigFileValueError, match='server-key.pem.*Error while reading file'):
        guests.driver(tls_certificates=str(authority.folder))
    (authority.folder / 'server-key.pem').chmod(0o644)
    (authority.folder / 'client-key.pem').unlink()
    with pytest.raises(cfg.ConfigFileValueError, match=r'\[qemu\]tls_certificates: .*client-key.pem'):
        guests.driver(tls_certificates=str(authority.folder))
