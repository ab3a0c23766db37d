"""Image signatures: which are valid, which certificates are trusted, and how key manager responses are handled."""

import json
import subprocess
import sys
import threading
import uuid
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from castellan.common.objects.symmetric_key import SymmetricKey
from castellan.common.objects.x_509 import X509

from computeapi import config
from computeapi.backends.image import Image
from computeapi.backends.image.glance import GlanceImages
from computeapi.backends.image.signatures import Signatures
from computeapi.errors import CertificateValidationFailed, NeighbourAway, SignatureVerificationFailed
from tests.backends.implementations import ALICE
from tests.signing import DAY, KEYS, Signer

DATA = b'a disk'
IN_MEMORY = 'castellan.tests.unit.key_manager.mock_key_manager.MockKeyManager'
NOWHERE = 'http://127.0.0.1:1'
LOGGED_IN = replace(ALICE, auth_token='alices')
ROOT = Signer('root', authority=True)
BETWEEN = Signer('between', ROOT, authority=True)
OWNER = Signer('owner', BETWEEN)


def configured(folder, text):
    file = folder / 'computeapi.conf'
    who = f'[service_user]\nauth_type = admin_token\nendpoint = {NOWHERE}\ntoken = services\n'
    file.write_text(f'[image]\nbackend = glance\n{who}{text}')
    return config.load([str(file)])


@pytest.fixture
def signatures(tmp_path):
    """Signatures with castellan's in-memory key manager."""
    return Signatures(configured(tmp_path, f'[key_manager]\nbackend = {IN_MEMORY}\n'))


@pytest.fixture
def keep(signatures):
    """keep(signer): the IDs of certificates in the key manager."""
    return lambda *signers: [signatures.manager.store(LOGGED_IN, X509(each.der)) for each in signers]


@pytest.fixture
def check(signatures):
    """Verifies the signature of an image with trusted certificates."""

    def look(properties, data=DATA, trusted=(), validates=False, context=LOGGED_IN):
        image = Image('i', 'signed', 'active', None, properties=properties)
        verifier = signatures.verifier(context, image, trusted, validates=validates)
        verifier.check([data[:3], b'', data[3:]])

    return look


# ------------------------------------------------------------------ signatures


@pytest.mark.parametrize('kind', KEYS)
def test_what_was_signed_is_that_and_nothing_else(check, keep, kind):
    owner = Signer('owner', kind=kind)
    properties = owner.properties(DATA, *keep(owner))
    check(properties)
    with pytest.raises(SignatureVerificationFailed, match='failed: it does not match the data.$'):
        check(properties, DATA + b'!')
    with pytest.raises(SignatureVerificationFailed):
        check(properties | {'img_signature_hash_method': 'SHA-512'})
    with pytest.raises(SignatureVerificationFailed, match='not match'):
        check(properties | {'img_signature_certificate_uuid': keep(Signer('owner', kind=kind))[0]})


@pytest.mark.parametrize(
    'changes, words',
    [
        ({'img_signature': None}, 'do not exist. Cannot verify signature. Missing property: img_signature.'),
        ({'img_signature_hash_method': None}, 'Missing property: img_signature_hash_method.'),
        ({'img_signature_key_type': None}, 'Missing property: img_signature_key_type.'),
        ({'img_signature_certificate_uuid': None}, 'Missing property: img_signature_uuid.'),
        ({'img_signature_hash_method': 'MD5'}, 'Invalid signature hash method: MD5.'),
        ({'img_signature_key_type': 'RSA'}, 'Invalid signature key type: RSA.'),
        ({'img_signature_key_type': 'DSA'}, 'Invalid public key type for signature key type: DSA.'),
        ({'img_signature': 'A'}, 'not properly encoded using base64'),
        ({'img_signature': 'ä'}, 'ASCII'),
        ({'img_signature': 'AAAA'}, 'not match'),
        ({'img_signature_certificate_uuid': str(uuid.UUID(int=1))}, 'Certificate not found with ID: 00000000-'),
        ({'img_signature_certificate_uuid': '../sys/auth'}, 'Certificate not found with ID: ../sys/auth.'),
    ],
)
def test_signatures_that_say_nothing(check, keep, changes, words):
    properties = {**OWNER.properties(DATA, *keep(OWNER)), **changes}
    with pytest.raises(SignatureVerificationFailed) as failed:
        check({name: value for name, value in properties.items() if value is not None})
    assert str(failed.value).startswith('Signature verification for the image failed: ')
    assert words in str(failed.value)


@pytest.mark.parametrize('found', [SymmetricKey('AES', 256, b'key'), X509(b'no certificate')])
def test_what_the_key_manager_has_is_no_certificate(signatures, check, found):
    certificate_id = signatures.manager.store(LOGGED_IN, found)
    with pytest.raises(SignatureVerificationFailed):
        check(OWNER.properties(DATA, certificate_id))


# ------------------------------------------------------------------ certificates


def test_a_chain_leads_from_what_is_trusted(check, keep):
    root, between, owner = keep(ROOT, BETWEEN, OWNER)
    properties = OWNER.properties(DATA, owner)
    check(properties, trusted=[between, root])
    check(properties, trusted=[root, str(uuid.uuid4()), between], validates=True)
    for trusted in ([root], [between], [owner], [str(uuid.uuid4())], keep(Signer('between', authority=True), ROOT)):
        with pytest.raises(CertificateValidationFailed) as failed:
            check(properties, trusted=trusted)
        words = f'Image signature certificate validation failed for certificate: {owner}. '
        # Once a chain has been started, cursive only reports where it ends.
        assert str(failed.value).startswith((f'{words}Certificate chain building failed.', f"{words}certificate '"))


def test_nobody_is_trusted(check, keep):
    properties = OWNER.properties(DATA, *keep(OWNER))
    with pytest.raises(CertificateValidationFailed, match='but no trusted certificate IDs were provided'):
        check(properties, validates=True)


def test_certificates_have_their_time_and_purpose(check, keep):
    past = {'age': 2 * DAY, 'left': -DAY}
    old, plain = Signer('root', authority=True, **past), Signer('root')
    for root in (old, plain):
        with pytest.raises(CertificateValidationFailed, match='chain building failed'):
            owner = Signer('owner', root)
            check(owner.properties(DATA, *keep(owner)), trusted=keep(root))
    owner = Signer('owner', ROOT, **past)
    with pytest.raises(CertificateValidationFailed, match='outside its valid date range'):
        check(owner.properties(DATA, *keep(owner)), trusted=keep(ROOT))


def test_certificates_of_each_other_are_followed_once(check, keep):
    one, two = Signer('one', authority=True), Signer('two', authority=True)
    one.certificate, two.certificate = one.certified_by(two, True), two.certified_by(one, True)
    owner = Signer('owner', one)
    with pytest.raises(CertificateValidationFailed, match='issued by each other'):
        check(owner.properties(DATA, *keep(owner)), trusted=keep(one, two))


def test_each_certificate_is_looked_up_once(signatures, check, keep, monkeypatch):
    asked, get = [], signatures.manager.get
    monkeypatch.setattr(signatures.manager, 'get', lambda context, key: asked.append(key) or get(context, key))
    trusted, [owner] = keep(ROOT, BETWEEN), keep(OWNER)
    check(OWNER.properties(DATA, owner), trusted=trusted)
    assert sorted(asked) == sorted([owner, *trusted])


# ------------------------------------------------------------------ key managers


class KeyManagers(ThreadingHTTPServer):
    """Responds as Barbican or Vault with this status, and with the certificate if it is 200."""

    def __init__(self, status):
        super().__init__(('127.0.0.1', 0), Answering)
        self.status, self.tokens = status, set()
        self.url = f'http://127.0.0.1:{self.server_port}'
        threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True).start()


class Answering(BaseHTTPRequestHandler):
    def do_GET(self):
        name = 'X-Vault-Token' if self.headers['X-Vault-Token'] else 'X-Auth-Token'
        self.server.tokens.add((self.headers[name], self.headers['X-Service-Token']))
        vaults = {'type': 'certificate', 'value': OWNER.der.hex(), 'name': None, 'created': 1}
        barbicans = {'status': 'ACTIVE', 'secret_type': 'certificate', 'content_types': {'default': 'application/x'}}
        versions = [{'id': 'v1', 'status': 'stable', 'links': [{'rel': 'self', 'href': f'{self.server.url}/v1/'}]}]
        body = {'title': 'No', 'data': {'data': vaults}, 'versions': {'values': versions}, **barbicans}
        content = OWNER.pem if self.path.endswith('/payload') else json.dumps(body).encode()
        status = 200 if self.path == '/' and self.server.status < 500 else self.server.status
        self.send_response(status)
        self.send_header('Content-Type', 'application/json')
        self.send_header('Content-Length', str(len(content)))
        self.end_headers()
        # A gateway responds with an HTML page.
        self.wfile.write(content if status < 500 else b'<' + content[1:])

    def log_message(self, *_):
        """Log nothing."""


@pytest.fixture
def served():
    made = []

    def serve(status):
        made.append(KeyManagers(status))
        return made[-1]

    yield serve
    for each in made:
        each.shutdown()
        each.server_close()


def reached(folder, backend, url):
    own = {
        'barbican': f'barbican_endpoint = {url}\nbarbican_api_version = v1',
        'vault': f'vault_url = {url}\nroot_token_id = roots',
    }[backend]
    signatures = Signatures(configured(folder, f'[key_manager]\nbackend = {backend}\n[{backend}]\n{own}\n'))

    def look(context=LOGGED_IN):
        image = Image('i', 'signed', 'active', None, properties=OWNER.properties(DATA, str(uuid.uuid4())))
        signatures.verifier(context, image, (), validates=False).check([DATA])

    return look


@pytest.mark.parametrize('backend', ['barbican', 'vault'])
def test_a_key_manager_that_has_it(tmp_path, served, backend):
    server = served(200)
    reached(tmp_path, backend, server.url)()
    assert server.tokens == {('alices', 'services') if backend == 'barbican' else ('roots', None)}


def test_without_the_callers_token_this_service_asks(tmp_path, served):
    server = served(200)
    look = reached(tmp_path, 'barbican', server.url)
    look(ALICE)
    assert server.tokens == {('services', 'services')}


@pytest.mark.parametrize('backend, name', [('barbican', 'Barbican'), ('vault', 'Vault')])
@pytest.mark.parametrize('status', [None, 502, 503, 504])
def test_a_key_manager_that_is_away(tmp_path, served, backend, name, status):
    url = NOWHERE if status is None else served(status).url
    with pytest.raises(NeighbourAway, match=f'^{name} is currently unavailable.$'):
        reached(tmp_path, backend, url)()


@pytest.mark.parametrize(
    'backend, status, words',
    [
        ('barbican', 401, 'Unable to retrieve certificate with ID: '),
        ('barbican', 403, 'Unable to retrieve certificate with ID: '),
        ('barbican', 404, 'Certificate not found with ID: '),
        ('barbican', 500, 'Unable to retrieve certificate with ID: '),
        ('vault', 403, 'Unable to retrieve certificate with ID: '),
        ('vault', 404, 'Certificate not found with ID: '),
        ('vault', 500, 'Unable to retrieve certificate with ID: '),
    ],
)
def test_a_key_manager_that_refuses(tmp_path, served, backend, status, words):
    with pytest.raises(SignatureVerificationFailed, match=words):
        reached(tmp_path, backend, served(status).url)()


# ------------------------------------------------------------------ options


ASKED = {'verify_glance_signatures': 'true', 'enable_certificate_validation': 'true'}


@pytest.mark.parametrize('missing', [None, *ASKED])
def test_the_default_certificates_count_where_both_are_asked_for(tmp_path, missing):
    options = {name: value for name, value in ASKED.items() if name != missing}
    text = '\n'.join(f'{name} = {value}' for name, value in options.items())
    conf = configured(tmp_path, f'[glance]\ndefault_trusted_certificate_ids = a, b\n{text}\n')
    assert GlanceImages(conf).trusted_certificates == (() if missing else ('a', 'b'))


def test_nothing_is_asked_and_nothing_loaded_where_nothing_is_to_be_verified(tmp_path):
    configured(tmp_path, '')
    lines = f"""
import sys
from computeapi import config, main
from computeapi.context import Context
conf = config.load([{str(tmp_path / 'computeapi.conf')!r}], {{('api', 'auth_strategy'): 'none'}})
service = main.Service(conf)
assert service.images.check_signature(Context(), 'x', ()) is False
assert 'computeapi.backends.image.glance' in sys.modules
assert not {{'cursive', 'castellan', 'barbicanclient'}} & sys.modules.keys()
"""
    subprocess.run([sys.executable, '-c', lines], check=True)
