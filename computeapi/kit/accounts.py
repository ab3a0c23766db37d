"""The users of a cloud whose passwords are known."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from computeapi.kit.cloud_files.accounts import UserAccount


class KnownAccounts:
    """Accounts by user name. If users of several domains have the same name, later ones include the domain: demo@east.

    known: is replaced, never changed.  changed: is called after that.
    """

    def __init__(self) -> None:
        self.known: Mapping[str, UserAccount] = {}
        self.changed: Callable[[], None] = lambda: None

    def add(self, accounts: Iterable[UserAccount]) -> None:
        """Add these."""
        known = dict(self.known)
        for each in accounts:
            there = known.get(each.user, each)
            known[each.user if there.domain == each.domain else f'{each.user}@{each.domain}'] = each
        self.set(known)

    def set(self, known: Mapping[str, UserAccount]) -> None:
        """Replace all."""
        before, self.known = self.known, known
        if known != before:
            self.changed()
