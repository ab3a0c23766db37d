"""Transfers of volumes between projects."""

import hashlib
import hmac
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime

import sqlalchemy as sa

from computeapi import errors, randomness
from computeapi.backends.rights import check_writer
from computeapi.backends.volume import Volume
from computeapi.backends.volume.local.base import project_of, unfit
from computeapi.backends.volume.local.quotas import VolumeQuotas
from computeapi.backends.volume.local.records import Records
from computeapi.context import Context
from computeapi.db import volumes
from computeapi.db.engine import Store
from computeapi.db.volumes import SNAPSHOTS, TRANSFERS, VOLUMES

AWAITING = 'awaiting-transfer'


@dataclass(frozen=True)
class Transfer:
    """An offer of a volume by its project; whoever knows the key may take it. Only a hash of the key is stored."""

    id: str
    project_id: str
    volume_id: str
    name: str | None
    key_hash: str
    no_snapshots: bool
    created_at: datetime


class VolumeTransfers(Records[Transfer]):
    table, record = TRANSFERS, Transfer

    def __init__(self, store: Store, clock: Callable[[], datetime], quotas: VolumeQuotas):
        super().__init__(store, clock)
        self.quotas = quotas

    def create(
        self, context: Context, volume_id: str, *, name: str | None = None, no_snapshots: bool = False
    ) -> tuple[Transfer, str]:
        """Offer an available volume; returns the transfer, and the key needed to accept it.

        Replaces an older offer, which can exist if an administrator reset the volume to available.
        """
        key = secrets.token_hex(8)
        check_writer(context)
        with self.store.write() as connection:
            volume = Volume(**VOLUMES.get(connection, context, volume_id, lock=True))
            if volume.status != 'available':
                raise unfit(volume, 'transferred')
            found = randomness.new_id(), volume.project_id, volume_id, name, _hash(key), no_snapshots, self.clock()
            transfer = Transfer(*found)
            TRANSFERS.delete(connection, volumes.transfers_of(volume_id))
            TRANSFERS.insert(connection, vars(transfer))
            VOLUMES.update(connection, volume_id, {'status': AWAITING, 'updated_at': self.clock()})
        return transfer, key

    def accept(self, context: Context, transfer_id: str, key: str) -> Transfer:
        """Take the volume, with the snapshots of its owner unless they were excluded. Raises Invalid, OverQuota."""
        project_id = project_of(context)
        with self._locked(context.elevated(), transfer_id) as (connection, transfer):
            if not hmac.compare_digest(_hash(key), transfer.key_hash):
                raise errors.Invalid(f'Invalid auth key: Attempt to transfer {transfer_id} with invalid auth key.')
            self._take(connection, context, transfer, project_id)
            TRANSFERS.delete(connection, TRANSFERS.among([transfer_id]))
        return transfer

    @contextmanager
    def _locked(self, context: Context, thing_id: str) -> Iterator[tuple[sa.Connection, Transfer]]:
        """Locks the volume, then the transfer: the same order as when a volume is deleted or offered again."""
        with self.store.write() as connection:
            VOLUMES.lock(connection, TRANSFERS.get(connection, context, thing_id)['volume_id'])
            yield connection, self._lock(connection, context, thing_id)

    def _take(self, connection: sa.Connection, context: Context, transfer: Transfer, project_id: str) -> None:
        volume = Volume(**VOLUMES.get(connection, context.elevated(), transfer.volume_id))
        if volume.status != AWAITING:
            raise unfit(volume, 'transferred')
        # Snapshots that an earlier transfer left with a former owner stay there.
        own = (volumes.snapshots_of(volume.id), *SNAPSHOTS.matches({'project_id': volume.project_id}))
        snapshots = [] if transfer.no_snapshots else SNAPSHOTS.select(connection, *own)
        size = volume.size + sum(snapshot['size'] for snapshot in snapshots)
        more = {'volumes': 1, 'snapshots': len(snapshots), 'gigabytes': size}
        self.quotas.take(connection, project_id, volume.volume_type_id, **more)
        owner = {'project_id': project_id, 'user_id': context.user_id, 'updated_at': self.clock()}
        for snapshot in snapshots:
            SNAPSHOTS.update(connection, snapshot['id'], owner)
        VOLUMES.update(connection, volume.id, {**owner, 'status': 'available', 'group_id': None})

    def delete(self, context: Context, transfer_id: str) -> None:
        """Withdraw the offer."""
        with self._locked(context, transfer_id) as (connection, transfer):
            TRANSFERS.delete(connection, TRANSFERS.among([transfer_id]))
            volume = Volume(**VOLUMES.get(connection, context.elevated(), transfer.volume_id))
            if volume.status == AWAITING:
                VOLUMES.update(connection, volume.id, {'status': 'available', 'updated_at': self.clock()})


def _hash(key: str) -> str:
    return hashlib.sha256(key.encode()).hexdigest()
