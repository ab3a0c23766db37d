"""Encryption of volume types. A type has at most one encryption, although clients address it by an ID."""

from typing import Any

from computeapi import errors
from computeapi.backends.volume import VolumeType
from computeapi.standalone.access import ADMIN, CALLER
from computeapi.standalone.fields import time
from computeapi.standalone.pairs import present
from computeapi.standalone.schema import wrapped
from computeapi.standalone.volume.documents import NAME, NOTHING
from computeapi.standalone.volume.service import CinderController
from computeapi.web.controller import operation
from computeapi.web.request import Request

FACTS = {
    'provider': {'type': 'string', 'maxLength': 255},
    'cipher': NAME,
    'key_size': {'anyOf': [{'type': 'integer', 'minimum': 0, 'maximum': 1 << 20}, NOTHING]},
    'control_location': {'type': 'string', 'enum': ['front-end', 'back-end']},
}
SHOWN = ('volume_type_id', 'encryption_id', *FACTS)
CREATE = wrapped('encryption', FACTS, 'provider', 'control_location')
UPDATE = wrapped('encryption', FACTS)
MISSING = 'Volume type encryption for type {} does not exist.'


class CinderEncryptions(CinderController):
    path = '/types/{type_id}/encryption'

    @operation('GET', policy=ADMIN)
    def show(self, req: Request, type_id: str) -> dict[str, Any]:
        """Show the encryption; empty if volumes of the type are not encrypted."""
        kind = self.volumes.types.get(req.context, type_id)
        return _document(kind) if kind.encryption else {}

    @operation('POST', policy=ADMIN, body=CREATE)
    def create(self, req: Request, type_id: str, body: dict[str, Any]) -> dict[str, Any]:
        if self.volumes.types.get(req.context, type_id).encryption:
            raise errors.Conflict(f'Volume type encryption for type {type_id} already exists.')
        made = self.volumes.types.encrypt(type_id, body['encryption']) or {}
        return {'encryption': {name: made.get(name) for name in SHOWN}}

    @operation('GET', '/{encryption_id}', policy=ADMIN)
    def show_fact(self, req: Request, type_id: str, encryption_id: str) -> dict[str, Any]:
        kind = self.volumes.types.get(req.context, type_id)
        fact = encryption_id  # clients read a single fact by its name here, but update and delete by the ID
        return {fact: present(_document(kind) if kind.encryption else {}, fact, MISSING.format(type_id))}

    @operation('PUT', '/{encryption_id}', policy=ADMIN, body=UPDATE)
    def update(self, req: Request, type_id: str, encryption_id: str, body: dict[str, Any]) -> dict[str, Any]:
        self._check(req, type_id)
        self.volumes.types.encrypt(type_id, body['encryption'])
        return body

    @operation('DELETE', '/{encryption_id}', policy=ADMIN, status=202)
    def delete(self, req: Request, type_id: str, encryption_id: str) -> None:
        self._check(req, type_id)
        self.volumes.types.encrypt(type_id, None)

    def _check(self, req: Request, type_id: str) -> None:
        """Raises NotFound if the type has no encryption. The ID is not checked, as a type has only one and
        python-cinderclient sends `provider` instead."""
        if not self.volumes.types.get(req.context, type_id).encryption:
            raise errors.NotFound(MISSING.format(type_id))


class CinderVolumeEncryption(CinderController):
    """The encryption of one volume; no keys are stored."""

    path = '/volumes/{volume_id}/encryption'

    @operation('GET', policy=CALLER)
    def show(self, req: Request, volume_id: str) -> dict[str, Any]:
        volume = self.volumes.get(req.context, volume_id)
        encryption = self.volumes.types.get(req.context.elevated(), volume.volume_type_id or '').encryption
        facts = {name: encryption.get(name) for name in FACTS} if encryption else {}
        return {'encryption_key_id': None, **facts}


def _document(kind: VolumeType) -> dict[str, Any]:
    encryption = kind.encryption or {}
    times = {name: time(encryption.get(name)) for name in ('created_at', 'updated_at')}
    return {**{name: encryption.get(name) for name in SHOWN}, **times, 'deleted': False, 'deleted_at': None}
