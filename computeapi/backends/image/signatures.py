"""Whether the data of an image are what their owner signed: cursive says so, by certificates that castellan finds.

Which key manager has them, and how it is reached, are castellan's options: [key_manager], [barbican], [vault].
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
from computeapi.backends.neighbour import AWAY, AWAY_STATUSES, SERVICE_USER, Speaker, has_token, status_of
from computeapi.context import Context
from computeapi.errors import CertificateValidationFailed, Error, NeighbourAway, SignatureVerificationFailed

NAMES = {'barbican': 'Barbican', 'vault': 'Vault'}
"""What people call the key managers that castellan has a driver for."""
# Its driver for Vault says no more of an answer than this.
AWAY_WORDS = frozenset(f'Key manager error: {HTTPStatus(status).phrase}' for status in AWAY_STATUSES)
AWAY_WORDS |= {HTTPStatus(status).phrase for status in AWAY_STATUSES}
REFUSALS = (CastellanException, ClientException, RequestException, Error, UnsupportedAlgorithm)
"""What looking for a certificate can end with, beside what its drivers stumble over in strange answers."""
STRANGE = (LookupError, TypeError, ValueError)


class Caller(RequestContext):
    """Whom castellan asks the key manager as. Of all that it takes, this alone can bring more than a token."""

    def __init__(self, auth: BaseAuthPlugin):
        super().__init__(overwrite=False)
        self.auth = auth

    def get_auth_plugin(self) -> BaseAuthPlugin:
        return self.auth


class Certificates:
    """The certificates that a caller has in the key manager; each is looked up once."""

    def __init__(self, manager: KeyManager, name: str, caller: Caller):
        self.manager, self.name, self.caller = manager, name, caller
        self.found: dict[str, ManagedObject] = {}

    def get(self, certificate_id: str) -> ManagedObject:
        """NeighbourAway; the errors that cursive knows, if it cannot be had: KeyManagerError and its siblings."""
        # It becomes a part of an address.
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
        """What castellan ran into, which it does not always tell apart."""
        for each in causes(error):
            if isinstance(each, Error):
                return each
            if isinstance(each, (*AWAY, RequestException)) or status_of(each) in AWAY_STATUSES:
                return NeighbourAway(name=self.name)
        return NeighbourAway(name=self.name) if str(error) in AWAY_WORDS else KeyManagerError(reason=error)


def causes(error: BaseException | None) -> Iterator[Exception]:
    """The error, and what it came of."""
    while isinstance(error, Exception):
        yield error
        error = error.__cause__ or error.__context__


class GivenCertificates:
    """The key manager as cursive asks for it: by the only configuration that a process has, and with the context that
    was passed to cursive. Here there may be several, and the context is the Certificates that are meant."""

    def API(self) -> 'GivenCertificates':
        return self

    def get(self, context: Certificates, certificate_id: str) -> ManagedObject:
        return context.get(certificate_id)


signature_utils.key_manager = GivenCertificates()


class Verifier:
    """What the data of one image are passed through."""

    def __init__(self, cursive: Any, image_id: str):
        self.cursive, self.image_id = cursive, image_id

    def check(self, data: Iterable[bytes]) -> None:
        """SignatureVerificationFailed unless it is these that were signed."""
        for piece in data:
            self.cursive.update(piece)
        with verifying():
            self.cursive.verify()


class Signatures:
    """Signatures of images, by the key manager of the configuration.

    It is asked as whoever asked for the server, with the token that is kept for the task and a token of this service
    beside it, as Nova does: certificates belong to projects, and Barbican shows them to those who are in one. Without
    [service_user]task_token_key tasks have no token, and this service asks as itself; its user must be told by
    Barbican's access control lists who may read a certificate.
    """

    def __init__(self, conf: cfg.ConfigOpts):
        self.manager = key_manager.API(conf)
        self.name = NAMES.get(conf.key_manager.backend, 'The key manager')
        self.speaker = Speaker(conf, SERVICE_USER)

    def verifier(self, context: Context, image: Image, trusted: Sequence[str], *, validates: bool) -> Verifier:
        """By the signature that the image has, whose certificate was validated: against those that are trusted, if
        there are any, and *validates* says that there must be. SignatureVerificationFailed,
        CertificateValidationFailed, NeighbourAway."""
        asker = context if has_token(context) else context.elevated()
        certificates = Certificates(self.manager, self.name, Caller(self.speaker.auth(asker)))
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
    """ValueError if certificates are each other's issuers: cursive would follow them for ever."""
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
    """Those that cursive looks for issuers among."""
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
    """What cursive and cryptography say of a signature or of what is to verify it, as SignatureVerificationFailed."""
    try:
        yield
    except SignatureVerificationError as error:
        raise SignatureVerificationFailed(str(error)) from error
    except InvalidSignature as error:
        raise SignatureVerificationFailed(reason='it does not match the data') from error
    except (TypeError, ValueError, UnsupportedAlgorithm) as error:
        raise SignatureVerificationFailed(reason=error) from error
