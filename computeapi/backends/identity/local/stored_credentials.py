"""Credentials that users store with the identity service, such as EC2 keys; they are encrypted."""

from __future__ import annotations

import hashlib
import json
import secrets
from typing import TYPE_CHECKING, Any, NamedTuple

import orjson
import sqlalchemy as sa

from computeapi import errors, randomness
from computeapi.backends.identity.local.managers import Manager, Recent
from computeapi.db import identity as queries
from computeapi.db.engine import Store, repeated
from computeapi.db.identity import StoredCredential

if TYPE_CHECKING:
    from cryptography.fernet import Fernet

EC2 = 'ec2'
MAX_CREDENTIALS = 100
"""The maximum number of credentials of a user."""


class Credential(NamedTuple):
    id: str
    user_id: str
    project_id: str | None
    type: str
    blob: str


class CredentialManager(Manager):
    """key: the Fernet key that encrypts them; without one no credentials can be stored."""

    noun = 'credential'

    def __init__(self, store: Store, recent: Recent, key: str | None):
        super().__init__(store, recent)
        self.key = key

    def list(self, **values: Any) -> list[Credential]:
        with self.store.read() as connection:
            return [self._decrypted(row) for row in queries.STORED_CREDENTIALS.named(connection, **values)]

    def get(self, credential_id: str, **values: Any) -> Credential:
        with self.store.read() as connection:
            row = queries.STORED_CREDENTIALS.find(connection, id=credential_id, **values)
        if row is None:
            raise self.missing(credential_id)
        return self._decrypted(row)

    @repeated
    def create(self, user_id: str, type: str, blob: str, project_id: str | None = None) -> Credential:
        credential_id = randomness.new_hex_id() if type != EC2 else id_of_access_key(blob)
        row = StoredCredential(credential_id, user_id, project_id, type, self._encrypted(blob))
        with self.change() as connection:
            # The lock serializes this with other creations for the user.
            _check_user(connection, user_id, lock=True)
            if queries.STORED_CREDENTIALS.number_of(connection, user_id=user_id) >= MAX_CREDENTIALS:
                raise errors.Forbidden(f'A user can have at most {MAX_CREDENTIALS} credentials.')
            if project_id is not None:
                # The lock makes a deletion of the project wait, which then deletes this one as well.
                queries.PROJECTS.find(connection, lock=True, id=project_id)
            queries.STORED_CREDENTIALS.insert(connection, **row._asdict())
        return self.get(credential_id)

    def create_ec2(self, user_id: str, project_id: str) -> Credential:
        """Create a new EC2 key pair for a user on a project."""
        keys = {'access': secrets.token_hex(16), 'secret': secrets.token_hex(16)}
        return self.create(user_id, EC2, json.dumps(keys), project_id)

    def update(self, credential_id: str, **changes: Any) -> Credential:
        """The ID stays the same, even if the access key changes."""
        with self.change() as connection:
            row = queries.STORED_CREDENTIALS.find(connection, lock=True, id=credential_id)
            if row is None:
                raise self.missing(credential_id)
            changed = self._decrypted(row)._replace(**changes)
            _check_user(connection, changed.user_id)
            if changed.type == EC2:
                access_key(changed.blob)
            if 'blob' in changes:
                changes['encrypted_blob'] = self._encrypted(changes.pop('blob'))
            queries.STORED_CREDENTIALS.update(connection, changes, id=credential_id)
        return self.get(credential_id)

    def delete(self, credential_id: str, **values: Any) -> None:
        with self.change() as connection:
            if not queries.STORED_CREDENTIALS.delete(connection, id=credential_id, **values):
                raise self.missing(credential_id)

    @property
    def _fernet(self) -> Fernet:
        if self.key is None:
            raise errors.NotSupported('Storing credentials requires a key: set [identity]credential_key.')
        # Most processes have no such key, and need not load this.
        from cryptography.fernet import Fernet

        return Fernet(self.key)

    def _encrypted(self, blob: str) -> str:
        return self._fernet.encrypt(blob.encode()).decode()

    def _decrypted(self, row: StoredCredential) -> Credential:
        from cryptography.fernet import InvalidToken

        try:
            blob = self._fernet.decrypt(row.encrypted_blob).decode()
        except InvalidToken:
            raise errors.NotSupported(f'Credential {row.id} was encrypted with a different key.') from None
        return Credential(row.id, row.user_id, row.project_id, row.type, blob)


def _check_user(connection: sa.Connection, user_id: str, *, lock: bool = False) -> None:
    if queries.USERS.find(connection, lock=lock, id=user_id) is None:
        raise errors.Invalid(f'Invalid input for field/attribute user_id. There is no {user_id}.')


def id_of_access_key(blob: str) -> str:
    """The ID of an EC2 key pair; Invalid if the blob contains none."""
    return hashlib.sha256(access_key(blob).encode()).hexdigest()


def access_key(blob: str) -> str:
    """The public half of an EC2 key pair; Invalid if the blob contains no such pair of strings."""
    try:
        keys = orjson.loads(blob)
        access, secret = keys['access'], keys.get('secret', '')
    except (ValueError, TypeError, KeyError):
        access = secret = None
    if not isinstance(access, str) or not isinstance(secret, str):
        raise errors.Invalid('Invalid input for field/attribute blob. It must be JSON with an access key.')
    return access
