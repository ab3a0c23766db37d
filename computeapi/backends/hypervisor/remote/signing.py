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

SHORTEST_SECRET = 32
# The largest sum of clock difference and transport time between two machines.
MOST_SECONDS = 60


def key_of(secret: str, host: str) -> str:
    """The key of a host's agent, which reveals neither the secret nor another host's key."""
    return hmac.new(secret.encode(), f'agent {host}'.encode(), hashlib.sha256).hexdigest()


def secret_of(conf: cfg.ConfigOpts) -> str | None:
    """The control plane's secret; cfg.ConfigFileValueError if it is too short to be safe."""
    secret: str | None = conf.agent.secret
    if secret is not None and len(secret) < SHORTEST_SECRET:
        raise cfg.ConfigFileValueError(f'[agent]secret has fewer than {SHORTEST_SECRET} characters')
    return secret


def sign(key: str | None, method: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of a call on the bus; if there is a key, with a nonce and a signature."""
    if key is None:
        return {**arguments}
    said, moment = {**arguments, 'nonce': secrets.token_hex(16)}, int(time.time())
    return {**said, 'signed': {'moment': moment, 'digest': _digest(key, method, said, moment)}}


def is_signed(key: str | None, method: str, arguments: Mapping[str, Any]) -> bool:
    """Whether the message was signed with the key just now; always true without a key."""
    if key is None:
        return True
    signed, said = arguments.get('signed'), {name: arguments[name] for name in arguments if name != 'signed'}
    if not isinstance(signed, Mapping) or not isinstance(signed.get('moment'), int):
        return False
    moment, digest = signed['moment'], str(signed.get('digest'))
    wanted = _digest(key, method, said, moment)
    return abs(time.time() - moment) <= MOST_SECONDS and hmac.compare_digest(wanted.encode(), digest.encode())


class Receiver:
    """Accepts each message once, for as long as its signature is valid.

    key: as for `is_signed`.  since: what was signed by then, in seconds since the epoch, is rejected, because the
    receiver's previous process may have accepted it."""

    def __init__(self, key: str | None, since: float = 0):
        self.key, self.since = key, int(since)
        self._lock = threading.Lock()
        # By digest, the time at which the signature becomes invalid; in the order in which they came.
        self._accepted: dict[str, float] = {}

    def accepts(self, method: str, arguments: Mapping[str, Any]) -> bool:
        """Whether the message is signed, and was not received before."""
        if self.key is None:
            return True
        if not is_signed(self.key, method, arguments) or arguments['signed']['moment'] <= self.since:
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
            self._accepted[digest] = signed['moment'] + MOST_SECONDS + 1
        return True


def _digest(key: str, method: str, arguments: Mapping[str, Any], moment: int) -> str:
    said = json.dumps([method, moment, arguments], sort_keys=True)
    return hmac.new(key.encode(), said.encode(), hashlib.sha256).hexdigest()
