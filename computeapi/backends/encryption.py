"""Encrypts callers' tokens, and passwords, that outlive their requests in the database."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from computeapi.errors import Error

if TYPE_CHECKING:
    from cryptography.fernet import MultiFernet


class UnreadableToken(Error):
    text = 'The token of this task cannot be decrypted: was it encrypted with another [service_user]task_token_key?'


class Cipher:
    """Encrypts with the first key, and decrypts with any; without a key nothing is stored.

    ValueError for a key that is not 32 bytes in URL-safe base64.
    """

    def __init__(self, keys: Sequence[str] = ()):
        self.fernet = _fernet_of(keys) if keys else None

    def encrypt(self, token: str | None) -> str | None:
        """The encrypted text for the database; None if it is not to be stored."""
        return self.fernet.encrypt(token.encode()).decode() if self.fernet and token else None

    def decrypt(self, encrypted: str | None) -> str | None:
        """The plain text; UnreadableToken if it was encrypted with another key."""
        if encrypted is None or self.fernet is None:
            return None
        from cryptography.fernet import InvalidToken

        try:
            return self.fernet.decrypt(encrypted).decode()
        except (InvalidToken, ValueError):
            raise UnreadableToken() from None


def _fernet_of(keys: Sequence[str]) -> MultiFernet:
    # Loaded only if there are keys.
    from cryptography.fernet import Fernet, MultiFernet

    return MultiFernet([Fernet(key) for key in keys])
