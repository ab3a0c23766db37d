"""Who asks: the facts about one caller that every layer below the web needs."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace


@dataclass(frozen=True)
class Context:
    """One caller in one request (or one task that outlives it).

    `roles` are lower-case role names; `project_id` is None for an unscoped token. `global_request_id` is
    the id that the client gave to what it does as a whole, over all services.
    """

    user_id: str | None = None
    project_id: str | None = None
    roles: frozenset[str] = frozenset()
    user_name: str | None = None
    project_name: str | None = None
    user_domain_id: str | None = None
    project_domain_id: str | None = None
    system_scope: str | None = None
    domain_id: str | None = None
    auth_token: str | None = field(default=None, repr=False)
    request_id: str | None = None
    global_request_id: str | None = None
    is_admin: bool = False

    def elevated(self) -> 'Context':
        """The same caller with the rights of an administrator."""
        return replace(self, is_admin=True, roles=self.roles | {'admin', 'member', 'reader'})


ACTING: ContextVar[Context | None] = ContextVar('acting', default=None)
"""For whom this thread works: only the log asks. What decides anything is given its Context."""


@contextmanager
def acting_for(context: Context) -> Iterator[None]:
    """What is logged in the block is logged as done for that caller."""
    token = ACTING.set(context)
    try:
        yield
    finally:
        ACTING.reset(token)
