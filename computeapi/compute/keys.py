"""SSH keys and X.509 certificates: generation and fingerprints."""

import base64
import hashlib
from datetime import timedelta
from typing import NamedTuple

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from computeapi.clock import utcnow
from computeapi.db.keypairs import SSH
from computeapi.errors import Invalid

KEY_SIZE = 2048
COMMENT = 'Generated-by-Nova'
VALIDITY = timedelta(days=3650)
# The attribute by which Windows matches a client certificate to an account.
USER_PRINCIPAL_NAME = x509.ObjectIdentifier('1.3.6.1.4.1.311.20.2.3')
MAX_COMMON_NAME_LENGTH = 64


class Pair(NamedTuple):
    """A new key: the public part, which is stored, and the private part, which is returned once."""

    public_key: str
    private_key: str


def generate(kind: str, owner: str) -> Pair:
    """A new RSA key in the format of *kind* (ssh or x509); *owner* is the subject of a certificate."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=KEY_SIZE)
    public_key = _ssh_line(key) if kind == SSH else _certificate(key, owner)
    return Pair(public_key, _private_text(kind, key))


def fingerprint(kind: str, public_key: str) -> str:
    """The fingerprint of a key, in the usual format: hexadecimal bytes separated by colons; Invalid."""
    return _ssh_fingerprint(public_key) if kind == SSH else _certificate_fingerprint(public_key)


def encrypt(public_key: str, text: str) -> str | None:
    """Encrypt a short text with the public key, as `nova get-password` expects it: PKCS #1 v1.5, in base64. None if it
    is not an RSA key, or too short for the text."""
    try:
        key = serialization.load_ssh_public_key(public_key.encode())
        if isinstance(key, rsa.RSAPublicKey):
            return base64.b64encode(key.encrypt(text.encode(), padding.PKCS1v15())).decode()
    except (ValueError, UnsupportedAlgorithm):
        pass
    return None


def _ssh_fingerprint(public_key: str) -> str:
    try:
        serialization.load_ssh_public_key(public_key.encode())
    except (ValueError, UnsupportedAlgorithm):
        raise Invalid('Keypair data is invalid: failed to generate fingerprint') from None
    blob = base64.b64decode(public_key.split()[1])
    # MD5 only identifies the key, it protects nothing; it matches the output of `ssh-keygen -E md5`.
    return hashlib.md5(blob, usedforsecurity=False).digest().hex(':')


def _certificate_fingerprint(certificate: str) -> str:
    try:
        loaded = x509.load_pem_x509_certificate(certificate.encode())
    except (ValueError, UnsupportedAlgorithm) as error:
        raise Invalid(f'Keypair data is invalid: failed to generate X509 fingerprint. Error message: {error}') from None
    return loaded.fingerprint(hashes.SHA1()).hex(':')


def _private_text(kind: str, key: rsa.RSAPrivateKey) -> str:
    form = serialization.PrivateFormat.TraditionalOpenSSL if kind == SSH else serialization.PrivateFormat.PKCS8
    return key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption()).decode()


def _ssh_line(key: rsa.RSAPrivateKey) -> str:
    encoding, form = serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH
    return f'{key.public_key().public_bytes(encoding, form).decode()} {COMMENT}'


def _certificate(key: rsa.RSAPrivateKey, owner: str) -> str:
    """A self-signed certificate for client authentication."""
    name = owner.encode()[:MAX_COMMON_NAME_LENGTH].decode(errors='ignore')
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = utcnow()
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now)
        .not_valid_after(now + VALIDITY)
        .add_extension(x509.SubjectAlternativeName([_principal_name(f'{name}@localhost')]), critical=False)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH]), critical=False)
        .sign(key, hashes.SHA256())
    )
    return certificate.public_bytes(serialization.Encoding.PEM).decode()


def _principal_name(name: str) -> x509.OtherName:
    """The name as a short DER UTF8String: a tag, the length in one byte, the text."""
    text = name.encode()
    return x509.OtherName(USER_PRINCIPAL_NAME, b'\x0c' + bytes([len(text)]) + text)
