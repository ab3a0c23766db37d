"""A POST with an Idempotency-Key is executed once, however often it is sent: repeats get the answer to the first one.

The header is that of draft-ietf-httpapi-idempotency-key-header. A stored answer may contain passwords and private keys,
so it is encrypted with the client's key, which is not stored: access to the database does not reveal answers.
"""

import base64
import hmac
import logging
import re
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, suppress
from typing import Any, NamedTuple, Protocol, TypeVar

import orjson
import webob

from computeapi.context import Context
from computeapi.errors import DatabaseError, Error, Invalid
from computeapi.web import faults
from computeapi.web.auth import raw_path
from computeapi.web.filters import Environ, WSGIApp, close, environ_key
from computeapi.web.request import CONTEXT, REQUEST_ID, Request, caller_of

LOG = logging.getLogger(__name__)

KEY_HEADER = 'Idempotency-Key'
REPLAYED_HEADER = 'Idempotency-Replayed'
"""Set in a replayed answer: the ID of the request that was answered first."""

MAX_KEY_LENGTH = 255
QUOTED = re.compile(r'"((?:[ !#-\[\]-~]|\\["\\])*)"')
"""A String of RFC 8941, as the draft requires."""
BARE = re.compile(r"[\w!#$%&'*+.^`|~:/=-]*", re.ASCII)
"""An unquoted key, as many clients send it."""

MAX_READ = 1024 * 1024
"""The maximum size of the body of such a request, in bytes; the pipeline may allow less."""
MAX_KEPT = 64 * 1024
"""A larger answer, in bytes, is stored only if the request changed something."""

ClaimT = TypeVar('ClaimT', bound='Claim')


class Claim(Protocol):
    """The state of a key; without an answer, the request is still to be executed."""

    @property
    def answer(self) -> str | None: ...


class ClaimedKeys(Protocol[ClaimT]):
    """The store of keys, shared by all processes of the service: see computeapi.db.idempotency_keys.KeyClaims."""

    def take(self, key_id: str, user_id: str, fingerprint: str) -> ClaimT: ...
    def doing(self, claim: ClaimT) -> AbstractContextManager[None]: ...
    def keep(self, claim: ClaimT, answer: str) -> None: ...
    def drop(self, claim: ClaimT) -> bool: ...


class FullAnswer(NamedTuple):
    """An answer as it goes over the wire, and the ID of the request that it answered."""

    status: str
    headers: list[tuple[str, str]]
    body: bytes
    request_id: str

    def __call__(self, environ: Environ, start_response: Callable[..., Any]) -> Iterable[bytes]:
        start_response(self.status, self.headers)
        return [self.body]


class Secrets:
    """The values derived from a client's key: the ID to find it by, and the keys to encrypt its answer and sign
    requests.

    Each caller has a namespace of its own. A key is as hard to guess as the client made it, hence UUIDs; a slow key
    derivation function would help weak keys a little, at a cost for every request.
    """

    def __init__(self, key: str, caller: Context):
        # Never loaded unless a client sends a key.
        from cryptography.fernet import Fernet
        from cryptography.hazmat.primitives.hashes import SHA256
        from cryptography.hazmat.primitives.kdf.hkdf import HKDF

        whose = [caller.user_id, caller.project_id, caller.domain_id, caller.system_scope]
        derived = HKDF(SHA256(), length=96, salt=None, info=orjson.dumps(whose)).derive(key.encode())
        self.id = derived[:32].hex()
        self.signing = derived[32:64]
        self.fernet = Fernet(base64.urlsafe_b64encode(derived[64:]))

    def fingerprint(self, request_parts: Any, body: bytes) -> str:
        """The fingerprint of a request: of what it asks for, as JSON, and of its body."""
        return hmac.new(self.signing, orjson.dumps(request_parts) + b'\n' + body, 'sha256').hexdigest()

    def encrypt(self, answer: FullAnswer) -> str:
        body = base64.b64encode(answer.body).decode()
        return self.fernet.encrypt(orjson.dumps(answer._replace(body=b'')._asdict() | {'body': body})).decode()

    def decrypt(self, answer: str) -> FullAnswer:
        facts = orjson.loads(self.fernet.decrypt(answer))
        headers = [(name, value) for name, value in facts['headers']]
        return FullAnswer(facts['status'], headers, base64.b64decode(facts['body']), facts['request_id'])


class Idempotency:
    """idempotency: comes after the filters that identify the caller.

    An answer is stored if it is not an error, or if something was changed before the error: a request that changed
    nothing can be retried.
    refuse: formats an error as the service does.
    """

    def __init__(
        self,
        app: WSGIApp,
        claims: ClaimedKeys[Any],
        caller: Callable[[Environ], Context | None] = lambda environ: environ[CONTEXT],
        refuse: Callable[[Request, Error], webob.Response] = lambda req, error: faults.of(error),
    ):
        self.app, self.claims, self.caller, self.refuse = app, claims, caller, refuse

    def __call__(self, environ: Environ, start_response: Callable[..., Any]) -> Iterable[bytes]:
        text = environ.get(environ_key(KEY_HEADER))
        caller = self.caller(environ) if text is not None and environ['REQUEST_METHOD'] == 'POST' else None
        if caller is None or text is None:
            return self.app(environ, start_response)
        req = Request(environ)
        try:
            secrets = Secrets(read(text), caller)
            claim = self.claims.take(secrets.id, caller.user_id or '', secrets.fingerprint(*request_parts(req, caller)))
        except Error as error:
            return self.refuse(req, error)(environ, start_response)
        answer = replayed(secrets.decrypt(claim.answer)) if claim.answer else self.first(req, claim, secrets)
        return answer(environ, start_response)

    def first(self, req: Request, claim: Any, secrets: Secrets) -> FullAnswer:
        """Execute the request."""
        try:
            with self.claims.doing(claim):
                answer = complete_response(self.app, req)
        except BaseException:
            with suppress(DatabaseError):
                self.claims.drop(claim)
            raise
        try:
            optional = int(answer.status[:3]) >= 400 or len(answer.body) > MAX_KEPT
            if not (optional and self.claims.drop(claim)):
                self.claims.keep(claim, secrets.encrypt(answer))
        except DatabaseError:
            LOG.warning('A response to a request with an Idempotency-Key is not stored', extra=caller_of(req.environ))
        return answer


def read(text: str) -> str:
    """The key in the header; Invalid."""
    text = text.strip(' ')
    quoted = QUOTED.fullmatch(text)
    key = re.sub(r'\\(.)', r'\1', quoted[1]) if quoted else text
    if not (quoted or BARE.fullmatch(text)) or not 0 < len(key) <= MAX_KEY_LENGTH:
        raise Invalid(f'{KEY_HEADER} must be a quoted string of 1 to {MAX_KEY_LENGTH} printable ASCII characters.')
    return key


def request_parts(req: Request, caller: Context) -> tuple[Any, bytes]:
    """Everything that identifies the request, as JSON and the body. The roles of the caller are part of it, because a
    replayed answer is not authorized again. TooLarge; Invalid for an incomplete body."""
    versions = sorted(item for item in req.environ.items() if item[0].endswith('API_VERSION'))
    where = [req.method, raw_path(req.environ), req.query_string]
    return [*where, versions, sorted(caller.roles)], req.data(MAX_READ)


def complete_response(app: WSGIApp, req: Request) -> FullAnswer:
    """The complete answer of the app."""
    status, headers, pieces = req.call_application(app)
    try:
        body = b''.join(pieces)
    finally:
        close(pieces)
    return FullAnswer(status, headers, body, req.environ.get(REQUEST_ID) or '-')


def replayed(answer: FullAnswer) -> FullAnswer:
    """The stored answer, marked as a replay."""
    return answer._replace(headers=[*answer.headers, (REPLAYED_HEADER, answer.request_id)])
