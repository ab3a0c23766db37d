"""Tokens of callers that outlive their requests, as they lie in the database: encrypted."""

from collections.abc import Sequence

from cryptography.fernet import Fernet, InvalidToken, MultiFernet

from computeapi.errors import Error


class UnreadableToken(Error):
    text = 'The token that was kept for this cannot be decrypted: is [service_user]task_token_key that of its process?'


class Seal:
    """Encrypts tokens with the first key, and decrypts with any; without a key it keeps none.

    ValueError for a key that is not 32 bytes in URL-safe base64.
    """

    def __init__(self, keys: Sequence[str] = ()):
        self.fernet = MultiFernet([Fernet(key) for key in keys]) if keys else None

    def closed(self, token: str | None) -> str | None:
        """The token for the database; None where it is not to be kept."""
        return self.fernet.encrypt(token.encode()).decode() if self.fernet and token else None

    def opened(self, sealed: str | None) -> str | None:
        """The token; UnreadableToken if it was encrypted with another key."""
        if sealed is None:
            return None
        try:
            return self.fernet.decrypt(sealed).decode() if self.fernet else None
        except (InvalidToken, ValueError):
            raise UnreadableToken() from None
