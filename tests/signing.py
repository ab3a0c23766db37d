"""Certificates, and image signatures made with their keys, using cryptography."""

from base64 import b64encode
from datetime import UTC, datetime, timedelta

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa

DAY = timedelta(days=1)
USAGES = (
    *('digital_signature', 'content_commitment', 'key_encipherment', 'data_encipherment', 'key_agreement'),
    *('crl_sign', 'encipher_only', 'decipher_only'),
)
KEYS = {
    'RSA-PSS': lambda: rsa.generate_private_key(65537, 2048),
    'ECC_SECP384R1': lambda: ec.generate_private_key(ec.SECP384R1()),
}


class Signer:
    """A key of this type with its certificate, issued by another signer or self-signed.

    authority: whether it may issue certificates.  age, left: of its validity period.  hosts: its host names, for TLS.
    """

    def __init__(self, name, issuer=None, *, authority=False, kind='RSA-PSS', age=DAY, left=DAY, hosts=()):
        self.kind, self.key = kind, KEYS[kind]()
        self.name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
        self.certificate = self.certified_by(issuer or self, authority, age, left, hosts)

    def certified_by(self, issuer, authority=False, age=DAY, left=DAY, hosts=()):
        now = datetime.now(UTC)
        usages = dict.fromkeys(USAGES, False) | {'digital_signature': bool(hosts), 'key_encipherment': bool(hosts)}
        usage = x509.KeyUsage(**usages, key_cert_sign=authority)
        names = x509.SubjectAlternativeName([x509.DNSName(host) for host in hosts])
        builder = (
            x509.CertificateBuilder(issuer.name, self.name, self.key.public_key(), x509.random_serial_number())
            .not_valid_before(now - age)
            .not_valid_after(now + left)
            .add_extension(x509.BasicConstraints(ca=authority, path_length=None), critical=True)
            .add_extension(usage, critical=True)
        )
        named = builder.add_extension(names, critical=False) if hosts else builder
        return named.sign(issuer.key, hashes.SHA256())

    @property
    def key_pem(self):
        plain = serialization.NoEncryption()
        return self.key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain)

    @property
    def pem(self):
        return self.certificate.public_bytes(serialization.Encoding.PEM)

    @property
    def der(self):
        return self.certificate.public_bytes(serialization.Encoding.DER)

    def properties(self, data, certificate_id):
        """The properties for the signature of an image with these data."""
        return {
            'img_signature': b64encode(self.signature(data)).decode(),
            'img_signature_hash_method': 'SHA-256',
            'img_signature_key_type': self.kind,
            'img_signature_certificate_uuid': certificate_id,
        }

    def signature(self, data):
        digest = hashes.SHA256()
        pss = padding.PSS(padding.MGF1(digest), padding.PSS.MAX_LENGTH)
        return self.key.sign(data, *((pss, digest) if self.kind == 'RSA-PSS' else (ec.ECDSA(digest),)))
