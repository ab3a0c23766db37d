"""Verifies the signatures of images with cursive, and certificates that castellan fetches.

The key manager and its connection are configured by castellan's options: [key_manager], [barbican], [vault].
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from http import HTTPStatus
from typing import Any

from castellan import key_manager
from castellan.common.exception import CastellanException, KeyManagerError, ManagedObjectNotFoundError
from castellan.common.objects.managed_object import ManagedObject
from castellan.key_manager.key_manager import KeyManager
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.x509 import Certificate
from cursive import certificate_utils, signature_utils
from cursive.exception import SignatureVerificationError
from keystoneauth1.exceptions import ClientException
from keystoneauth1.plugin import BaseAuthPlugin
from oslo_config import cfg
from oslo_context.context import RequestContext
from oslo_utils.uuidutils import is_uuid_like
from requests import RequestException

from computeapi.backends.image import Image
from computeapi.backends.neighbour import AWAY, AWAY_STATUSES, SERVICE_USER, ServiceAuth, has_token, status_of
from computeapi.context import Context
from computeapi.errors import CertificateValidationFailed, Error, NeighbourAway, SignatureVerificationFailed

KEY_MANAGER_NAMES = {'barbican': 'Barbican', 'vault': 'Vault'}
"""The names of the key managers that castellan has drivers for."""
# Castellan's driver for Vault reports no more than this of an HTTP error.
AWAY_WORDS = frozenset(f'Key manager error: {HTTPStatus(status).phrase}' for status in AWAY_STATUSES)
AWAY_WORDS |= {HTTPStatus(status).phrase for status in AWAY_STATUSES}
REFUSALS = (CastellanException, ClientException, RequestException, Error, UnsupportedAlgorithm)
"""The expected errors of a certificate look-up; drivers may also raise STRANGE ones for unexpected answers."""
STRANGE = (LookupError, TypeError, ValueError)


class Caller(RequestContext):
    """Castellan's context for calls of the key manager: the only argument that can carry more than a token."""

    def __init__(self, auth: BaseAuthPlugin):
        super().__init__(overwrite=False)
        self.auth = auth

    def get_auth_plugin(self) -> BaseAuthPlugin:
        return self.auth


class Certificates:
    """The certificates that a caller can read in the key manager; each is fetched once."""

    def __init__(self, manager: KeyManager, name: str, caller: Caller):
        self.manager, self.name, self.caller = manager, name, caller
        self.found: dict[str, ManagedObject] = {}

    def get(self, certificate_id: str) -> ManagedObject:
        """NeighbourAway; or the errors that cursive handles, if it cannot be read: KeyManagerError and related ones."""
        # It becomes part of a URL.
        if not is_uuid_like(certificate_id):
            raise ManagedObjectNotFoundError(uuid=certificate_id)
        if certificate_id not in self.found:
            try:
                self.found[certificate_id] = self.manager.get(self.caller, certificate_id)
            except ManagedObjectNotFoundError:
                raise
            except (*REFUSALS, *STRANGE) as error:
                raise self.error(error) from error
        return self.found[certificate_id]

    def error(self, error: BaseException) -> Exception:
        """The error behind an error of castellan, which does not always distinguish them."""
        for each in causes(error):
            if isinstance(each, Error):
                return each
            if isinstance(each, (*AWAY, RequestException)) or status_of(each) in AWAY_STATUSES:
                return NeighbourAway(name=self.name)
        return NeighbourAway(name=self.name) if str(error) in AWAY_WORDS else KeyManagerError(reason=error)


def causes(error: BaseException | None) -> Iterator[Exception]:
    """The error and its causes."""
    while isinstance(error, Exception):
        yield error
        error = error.__cause__ or error.__context__


class GivenCertificates:
    """Replaces cursive's key manager: cursive would use the only configuration of the process, and the context that was
    passed to it. Here there may be several configurations, and the context is the Certificates to use."""

    def API(self) -> 'GivenCertificates':
        return self

    def get(self, context: Certificates, certificate_id: str) -> ManagedObject:
        return context.get(certificate_id)


signature_utils.key_manager = GivenCertificates()


class Verifier:
    """Verifies the data of one image."""

    def __init__(self, cursive: Any, image_id: str):
        self.cursive, self.image_id = cursive, image_id

    def check(self, data: Iterable[bytes]) -> None:
        """SignatureVerificationFailed unless these data were signed."""
        for piece in data:
            self.cursive.update(piece)
        with verifying():
            self.cursive.verify()


class Signatures:
    """Signatures of images, with the key manager of the configuration.

    As in Nova, it is called as the user who requested the server, with the token that is stored for the task and a
    service token: certificates belong to projects, and Barbican shows them to project members. Without
    [service_user]task_token_key tasks have no token, and this service calls as itself; Barbican's access control lists
    must then allow its user to read a certificate.
    """

    def __init__(self, conf: cfg.ConfigOpts):
        self.manager = key_manager.API(conf)
        self.name = KEY_MANAGER_NAMES.get(conf.key_manager.backend, 'The key manager')
        self.service_auth = ServiceAuth(conf, SERVICE_USER)

    def verifier(self, context: Context, image: Image, trusted: Sequence[str], *, validates: bool) -> Verifier:
        """The verifier for the image's signature, after its certificate was validated: against the trusted ones if
        there are any, which *validates* makes mandatory. SignatureVerificationFailed, CertificateValidationFailed,
        NeighbourAway."""
        asker = context if has_token(context) else context.elevated()
        certificates = Certificates(self.manager, self.name, Caller(self.service_auth.auth(asker)))
        facts = {name: image.properties.get(name) for name in PROPERTIES}
        with verifying():
            found = signature_utils.get_verifier(context=certificates, **facts)
        certificate_id = facts['img_signature_certificate_uuid'] or ''
        if trusted:
            validate(certificates, certificate_id, trusted)
        elif validates:
            raise CertificateValidationFailed(
                'Image signature certificate validation enabled, but no trusted certificate IDs were provided. '
                'Unable to validate the certificate used to verify the image signature.'
            )
        return Verifier(found, image.id)


PROPERTIES = (
    'img_signature_certificate_uuid',
    'img_signature_hash_method',
    'img_signature',
    'img_signature_key_type',
)


def validate(certificates: Certificates, certificate_id: str, trusted: Sequence[str]) -> None:
    """CertificateValidationFailed unless there is a chain from a trusted certificate to this one."""
    try:
        check_end(certificates, certificate_id, trusted)
        certificate_utils.verify_certificate(certificates, certificate_id, trusted)
    except (SignatureVerificationError, TypeError, ValueError, UnsupportedAlgorithm) as error:
        raise CertificateValidationFailed(id=certificate_id, reason=error) from error


def check_end(certificates: Certificates, certificate_id: str, trusted: Sequence[str]) -> None:
    """ValueError if certificates have issued each other: cursive would follow them forever."""
    issuers = [*usable(certificates, trusted)]
    seen: list[Certificate] = []
    certificate: Certificate | None = signature_utils.get_certificate(certificates, certificate_id)
    while certificate is not None:
        if certificate in seen:
            raise ValueError('The trusted certificates are issued by each other.')
        seen.append(certificate)
        issuer = next((each for each in issuers if certificate_utils.is_issuer(each, certificate)), None)
        certificate = None if issuer == certificate else issuer


def usable(certificates: Certificates, trusted: Sequence[str]) -> Iterator[Certificate]:
    """The certificates among which cursive looks for issuers."""
    for certificate_id in trusted:
        try:
            found = signature_utils.get_certificate(certificates, certificate_id)
        except SignatureVerificationError:
            continue
        dates = certificate_utils.is_within_valid_dates(found)
        if dates and certificate_utils.can_sign_certificates(found, certificate_id):
            yield found


@contextmanager
def verifying() -> Iterator[None]:
    """Turns errors of cursive and cryptography about a signature or its key into SignatureVerificationFailed."""
    try:
        yield
    except SignatureVerificationError as error:
        raise SignatureVerificationFailed(str(error)) from error
    except InvalidSignature as error:
        raise SignatureVerificationFailed(reason='it does not match the data') from error
    except (TypeError, ValueError, UnsupportedAlgorithm) as error:
        raise SignatureVerificationFailed(reason=error) from error
