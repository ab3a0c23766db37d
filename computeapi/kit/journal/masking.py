"""Masks what must not be kept of a request: passwords, tokens, keys, and the data that users give to their guests."""

import functools
import re
from collections.abc import Iterable, Iterator
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode

import orjson

from computeapi.web.filters import AFTER_TOKENS

MASK = '***'
HEADER = re.compile('token|authorization|cookie|secret|passw|signature|api-key|referer', re.IGNORECASE)
"""Matches the name of a header whose value is a secret."""
KEY = re.compile(
    r'passw|passphrase|passcode|pass$|secret|token|private_?key|user_?data|auth_?key|api_?key|access_?key|random_seed'
    r'|internal_access_path|^contents$|^blob$|^signature$',
    re.IGNORECASE,
)
"""Matches the name of a field or a parameter whose value is a secret."""
HARMLESS = frozenset({'password_expires_at', 'adminpass_expires_at', 'enable_instance_password'})
CONSOLES = frozenset({'console', 'remote_console'})
MIN_LENGTH = 4
"""The minimum length of secrets that are also masked where they are repeated."""


class Masking:
    """Masks one request and its response. Secrets that are found in one part are also masked in the parts after it."""

    def __init__(self) -> None:
        self._secrets: set[str] = set()

    def headers(self, headers: Iterable[tuple[str, str]]) -> dict[str, str]:
        """Headers by name; the values of a repeated header are joined by commas."""
        kept: dict[str, str] = {}
        for name, value in headers:
            shown = self._hidden(value) if HEADER.search(name) else self._cleared(value)
            kept[name] = f'{kept[name]}, {shown}' if name in kept else shown
        return kept

    def path(self, path: str) -> str:
        def hidden(found: re.Match[str]) -> str:
            return self._hidden(found[0])

        return self._cleared(AFTER_TOKENS.sub(hidden, path))

    def query(self, text: str) -> str:
        """A query string."""
        if not text:
            return text
        pairs = parse_qsl(text, keep_blank_values=True, errors='replace')
        shown = [(name, self._hidden(value) if is_secret(name) else self._cleared(value)) for name, value in pairs]
        # A query string without secrets is unchanged.
        return text if shown == pairs else urlencode(shown, quote_via=quote, safe='*')

    def document(self, data: bytes) -> bytes:
        """A JSON document; empty if it cannot be parsed."""
        try:
            value = orjson.loads(data)
        except ValueError:
            return b''
        masked = self._masked(value)
        text = orjson.dumps(masked)
        # Most documents repeat no secret. A repetition may precede the field that contains the secret.
        repeats = any(orjson.dumps(secret)[1:-1] in text for secret in self._secrets)
        return orjson.dumps(self._all_cleared(masked)) if repeats else text

    def _masked(self, value: Any, parent: str = '', hidden: bool = False) -> Any:
        if isinstance(value, dict):
            hidden_value = any(_ends_in_secret(value.get(name)) for name in ('path', 'key', 'name'))
            return {
                key: self._masked(
                    part, key, _hides(key, part, parent) or hidden or (hidden_value and key in ('value', 'values'))
                )
                for key, part in value.items()
            }
        if isinstance(value, list):
            return [self._masked(part, parent, hidden) for part in value]
        return self._hidden(value) if hidden and value is not None and value != '' else value

    def _hidden(self, value: Any) -> str:
        """Replace a secret value by the mask, and remember the secret."""
        if not isinstance(value, bool) and len(str(value)) >= MIN_LENGTH:
            self._secrets.update(_forms(str(value)))
            self._secrets.discard(MASK)
        return MASK

    def _cleared(self, text: str) -> str:
        """Mask known secrets in other text, such as a message about an invalid field."""
        for secret in sorted(self._secrets, key=len, reverse=True):
            text = text.replace(secret, MASK)
        return text

    def _all_cleared(self, value: Any) -> Any:
        if isinstance(value, dict):
            return {self._cleared(key): self._all_cleared(part) for key, part in value.items()}
        if isinstance(value, list):
            return [self._all_cleared(part) for part in value]
        return self._cleared(value) if isinstance(value, str) else value


@functools.lru_cache(maxsize=4096)
def is_secret(name: str) -> bool:
    """Whether a value with this name is a secret."""
    return name not in HARMLESS and KEY.search(name) is not None


def _hides(key: str, value: Any, parent: str) -> bool:
    """Whether everything in this field is a secret."""
    if (key == 'url' and parent in CONSOLES) or (key == 'id' and parent == 'token'):
        return True
    # The object that describes a login method or a token is not itself a secret.
    structured = isinstance(value, dict) and (key == 'token' or (key == 'password' and 'user' in value))
    return is_secret(key) and not structured


def _ends_in_secret(name: Any) -> bool:
    """Whether a change, or a pair of name and value, is about a secret."""
    return isinstance(name, str) and is_secret(name.rpartition('/')[2])


def _forms(text: str) -> Iterator[str]:
    """The forms in which a text may appear inside another one."""
    yield text
    yield repr(text)[1:-1]
    yield orjson.dumps(text).decode()[1:-1]
    yield quote(text, safe='')
