"""Signs messages between the control plane and the agent of a host with a key that belongs to that host alone.

An attacker who controls a host, and can send anything to any queue, therefore cannot speak for another host. Without
keys, everybody whom the broker admits is trusted.
"""

import hashlib
import hmac
import json
import secrets
import threading
import time
from collections.abc import Mapping
from typing import Any

from oslo_config import cfg

MIN_SECRET_LENGTH = 32
# The largest sum of clock difference and transport time between two machines.
MAX_SECONDS = 60
Keys = tuple[str, ...]
"""Keys, or the secrets that they are derived from: the first signs, and all are accepted. While one is being replaced,
there are two."""


def key_of(secret: str, host: str) -> str:
    """The key of a host's agent, which reveals neither the secret nor another host's key."""
    return hmac.new(secret.encode(), f'agent {host}'.encode(), hashlib.sha256).hexdigest()


def keys_of(secrets: Keys, host: str) -> Keys:
    return tuple(key_of(secret, host) for secret in secrets)


def secrets_of(conf: cfg.ConfigOpts) -> Keys:
    """The control plane's secrets; cfg.ConfigFileValueError if one is too short to be safe."""
    found = _given(conf, 'secret')
    if any(len(secret) < MIN_SECRET_LENGTH for secret in found):
        raise cfg.ConfigFileValueError(f'[agent]secret has fewer than {MIN_SECRET_LENGTH} characters')
    return found


def own_keys(conf: cfg.ConfigOpts) -> Keys:
    """The keys of this host's agent; cfg.ConfigFileValueError if the option is set, and empty."""
    return _given(conf, 'key')


def _given(conf: cfg.ConfigOpts, name: str) -> Keys:
    # Nothing by mistake must not turn signatures off, and anybody can sign with an empty key.
    found: list[str] | None = conf.agent[name]
    if found is not None and (not found or '' in found):
        raise cfg.ConfigFileValueError(f'[agent]{name} is empty, or one of its values')
    return tuple(found or ())


def sign(keys: Keys, method: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of a call on the bus; if there are keys, with a nonce and a signature by the first."""
    if not keys:
        return {**arguments}
    message, moment = {**arguments, 'nonce': secrets.token_hex(16)}, int(time.time())
    return {**message, 'signed': {'moment': moment, 'digest': _digest(keys[0], method, message, moment)}}


def is_signed(keys: Keys, method: str, arguments: Mapping[str, Any]) -> bool:
    """Whether the message was signed with one of the keys just now; always true without keys."""
    if not keys:
        return True
    signed, message = arguments.get('signed'), {name: arguments[name] for name in arguments if name != 'signed'}
    if not isinstance(signed, Mapping) or not isinstance(signed.get('moment'), int):
        return False
    moment, digest = signed['moment'], str(signed.get('digest')).encode()
    return abs(time.time() - moment) <= MAX_SECONDS and any(
        hmac.compare_digest(_digest(key, method, message, moment).encode(), digest) for key in keys
    )


class Receiver:
    """Accepts each message once, for as long as its signature is valid.

    keys: as for `is_signed`.  since: what was signed by then, in seconds since the epoch, is rejected, because the
    receiver's previous process may have accepted it."""

    def __init__(self, keys: Keys, since: float = 0):
        self.keys, self.since = keys, int(since)
        self._lock = threading.Lock()
        # By digest, the time at which the signature becomes invalid; in the order in which they came.
        self._accepted: dict[str, float] = {}

    def accepts(self, method: str, arguments: Mapping[str, Any]) -> bool:
        """Whether the message is signed, and was not received before."""
        if not self.keys:
            return True
        if not is_signed(self.keys, method, arguments) or arguments['signed']['moment'] <= self.since:
            return False
        # The control plane of an earlier release signs without a nonce, and may send the same message again.
        return 'nonce' not in arguments or self._is_first(arguments['signed'])

    def _is_first(self, signed: Mapping[str, Any]) -> bool:
        digest, now = signed['digest'], time.time()
        with self._lock:
            while self._accepted and next(iter(self._accepted.values())) < now:
                del self._accepted[next(iter(self._accepted))]
            if digest in self._accepted:
                return False
            self._accepted[digest] = signed['moment'] + MAX_SECONDS + 1
        return True


def _digest(key: str, method: str, arguments: Mapping[str, Any], moment: int) -> str:
    text = json.dumps([method, moment, arguments], sort_keys=True)
    return hmac.new(key.encode(), text.encode(), hashlib.sha256).hexdigest()
