"""Identity: validates tokens and passwords."""

from typing import Protocol

from computeapi.context import Context


class Identity(Protocol):
    def authenticate(self, token: str) -> Context:
        """The caller that the token was issued to; NotAuthenticated if it is unknown, expired or revoked."""

    def authenticate_password(self, user_name: str, password: str, address: str | None = None) -> Context:
        """The user of that name in the default domain, scoped to its default project (http_basic).

        address: of the client; TooManyAttempts after many wrong passwords from there."""

    def project_exists(self, context: Context, project_id: str) -> bool:
        """Whether the project exists, as far as the caller may know: one that it must not see counts as existing."""
