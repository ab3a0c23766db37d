"""Key pairs: give users access to their servers."""

from dataclasses import replace

from computeapi.compute.notifications.keypairs import CREATE, IMPORT, before_deletion, of_keypair
from computeapi.compute.notifications.outbox import Outbox
from computeapi.compute.quotas import Quotas
from computeapi.context import Context
from computeapi.db import keypairs
from computeapi.db.engine import Store
from computeapi.db.keypairs import Keypair
from computeapi.db.listing import Page
from computeapi.errors import Conflict, Invalid, KeypairNotFound


class KeypairManager:
    """Key pairs in the store. They belong to a user, whatever the project; private keys are never stored."""

    def __init__(self, store: Store, outbox: Outbox, quotas: Quotas):
        self.store, self.outbox, self.quotas, self.clock = store, outbox, quotas, store.clock

    def get(self, user_id: str, name: str) -> Keypair:
        """KeypairNotFound if the user has none of that name."""
        found = self.store.query(keypairs.get, user_id, name)
        if found is None:
            raise KeypairNotFound(name=name, user_id=user_id)
        return found

    def public_key(self, user_id: str, name: str | None) -> str | None:
        """The key for a server of the user; Invalid if the user has no key pair of that name."""
        try:
            return None if name is None else self.get(user_id, name).public_key
        except KeypairNotFound:
            raise Invalid('Invalid key_name provided.') from None

    def list(self, user_id: str, page: Page) -> list[Keypair]:
        """One page of the user's key pairs, by name; Invalid for an unknown marker."""
        return self.store.query(keypairs.page, user_id, page)

    def add(self, context: Context, user_id: str, name: str, kind: str, public_key: str) -> Keypair:
        """Store a public key (or certificate) of the user; OverQuota, Invalid if it is malformed, Conflict."""
        return self._add(context, user_id, name, kind, public_key, IMPORT)

    def _add(self, context: Context, user_id: str, name: str, kind: str, public_key: str, action: str) -> Keypair:
        # Loading it takes time and memory, and most processes are given no key.
        from computeapi.compute import keys

        values = {'user_id': user_id, 'name': name, 'type': kind, 'public_key': public_key}
        with self.store.write() as connection:
            self.quotas.reserve_key_pair(connection, context, user_id)
            values['fingerprint'] = keys.fingerprint(kind, public_key)
            if keypairs.get(connection, user_id, name):
                raise Conflict(f"Key pair '{name}' already exists.")
            keypairs.insert(connection, values | {'created_at': self.clock()})
            added: Keypair = keypairs.get(connection, user_id, name)  # type: ignore[assignment]
            self.outbox.add(connection, context, of_keypair(context, added, action))
            return added

    def generate(self, context: Context, user_id: str, name: str, kind: str) -> Keypair:
        """Create a key pair and return it with its private key, which is not stored; OverQuota, Conflict."""
        from computeapi.compute import keys

        made = keys.generate(kind, user_id)
        pair = self._add(context, user_id, name, kind, made.public_key, CREATE)
        return replace(pair, private_key=made.private_key)

    def delete(self, context: Context, user_id: str, name: str) -> None:
        """Delete the key pair; servers that were created with it keep the key."""
        with self.store.write() as connection:
            self.outbox.add(connection, context, before_deletion(connection, context, user_id, name))
            if not keypairs.delete(connection, user_id, name):
                raise KeypairNotFound(name=name, user_id=user_id)
