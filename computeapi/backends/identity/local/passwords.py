"""Passwords as bcrypt hashes."""

import base64
import hashlib

import bcrypt

from computeapi.cpu_affinity import CPU_AFFINITY


class Passwords:
    def __init__(self, cost: int):
        self.cost = cost
        # Checked in place of a missing hash, so that an unknown user takes as long as a wrong password.
        self.nobody = bcrypt.gensalt(cost) + b'.' * 31

    def hash(self, password: str) -> str:
        with CPU_AFFINITY.suspended():
            return bcrypt.hashpw(_digest(password), bcrypt.gensalt(self.cost)).decode()

    def matches(self, password: str, password_hash: str | None) -> bool:
        """Whether this is the password behind the hash; never true without a hash."""
        expected = password_hash.encode() if password_hash else self.nobody
        with CPU_AFFINITY.suspended():
            return bcrypt.checkpw(_digest(password), expected) and password_hash is not None

    def is_current(self, password_hash: str) -> bool:
        """Whether the hash has the configured cost."""
        return int(password_hash.split('$')[2]) == self.cost


def _digest(password: str) -> bytes:
    """The password in 44 bytes, because bcrypt only uses the first 72."""
    return base64.b64encode(hashlib.sha256(password.encode()).digest())
