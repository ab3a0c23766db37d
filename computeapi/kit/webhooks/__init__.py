"""Webhooks: events are sent to a URL."""

from __future__ import annotations

import builtins
import itertools
import logging
import threading
import time
from collections.abc import Iterable

from computeapi.errors import Invalid, NotFound
from computeapi.kit.events import Events
from computeapi.kit.events.event import EventFilter
from computeapi.kit.webhooks.destinations import AddressRefused, HookDestinations, HookTarget
from computeapi.kit.webhooks.sending import ATTEMPT_SECONDS, NO_ANSWER, Post, key_of, new_secret
from computeapi.kit.webhooks.webhook import GONE, Webhook

LOG = logging.getLogger(__name__)

MAX_HOOKS = 20


class Webhooks:
    """The webhooks of a cloud. Each gets its events in the order of the commits, one at a time. A failed delivery is
    retried with increasing delays, and finally given up, before the next event is sent. Each has its own thread, so
    that a receiver that does not answer delays no others.

    allowed: networks that they may connect to, besides the loopback; Invalid.
    """

    def __init__(self, events: Events, allowed: Iterable[str] = ()):
        self.events, self.destinations = events, HookDestinations(allowed)
        self._ids = itertools.count(1)
        self._lock = threading.Lock()
        self._hooks: dict[int, Webhook] = {}
        self._threads: builtins.list[threading.Thread] = []
        self._is_over = False

    def add(
        self,
        url: str,
        secret: str | None = None,
        types: builtins.list[str] | None = None,
        project: str | None = None,
        server: str | None = None,
    ) -> Webhook:
        """Send events, from now on, to an HTTP URL with an allowed address; Invalid.

        secret: as in Standard Webhooks, `whsec_` and base64; generated if not given.
        types, project, server: which events, as for computeapi.kit.events.event.EventFilter.
        """
        wanted, secret = EventFilter(types, project, server=server), secret or new_secret()
        target, key = HookTarget.of(url), key_of(secret)
        self._check(target)
        with self._lock:
            if self._is_over:
                raise Invalid('The cloud is shutting down.')
            if len(self._hooks) >= MAX_HOOKS:
                raise Invalid(f'There are already {MAX_HOOKS} webhooks, which is the maximum.')
            woken = threading.Event()
            reader = self.events.read(wanted, self.events.last, woken.set)
            hook = Webhook(next(self._ids), url, target, reader, secret, key, self._remove, woken)
            self._hooks[hook.id] = hook
            thread = threading.Thread(target=self._run, args=[hook], name=f'webhook-{hook.id}', daemon=True)
            self._threads = [*filter(threading.Thread.is_alive, self._threads), thread]
            thread.start()
        return hook

    def _check(self, target: HookTarget) -> None:
        """Report at once what can never work. A hostname that cannot be resolved may still appear."""
        try:
            self.destinations.addresses(target)
        except AddressRefused as error:
            raise Invalid(str(error)) from None
        except (OSError, UnicodeError):
            pass

    def list(self) -> builtins.list[Webhook]:
        """All webhooks, the oldest first."""
        with self._lock:
            return [*self._hooks.values()]

    def get(self, hook_id: int) -> Webhook:
        """The webhook with this number; NotFound."""
        with self._lock:
            if hook_id not in self._hooks:
                raise NotFound(f'There is no webhook {hook_id}.')
            return self._hooks[hook_id]

    def _remove(self, hook: Webhook) -> None:
        with self._lock:
            self._hooks.pop(hook.id, None)
            if hook.post is not None:
                hook.post.cut()
        hook.woken.set()
        hook.reader.close()

    def clear(self) -> None:
        """Remove all webhooks."""
        for hook in self.list():
            hook.remove()

    def end(self) -> None:
        """Stop deliveries; waits for those that are in progress, at most as long as an attempt may last."""
        with self._lock:
            self._is_over = True
        self.clear()
        until = time.monotonic() + ATTEMPT_SECONDS
        for thread in self._threads:
            thread.join(max(0.0, until - time.monotonic()))

    # ------------------------------------------------------------------ in the threads

    def _run(self, hook: Webhook) -> None:
        while hook.id in self._hooks:
            hook.woken.clear()
            wait = hook.due() - time.monotonic()
            if wait <= 0:
                self._deliver(hook)
            elif hook.id in self._hooks:  # It may have been removed before `clear`.
                hook.woken.wait(min(wait, threading.TIMEOUT_MAX))

    def _deliver(self, hook: Webhook) -> None:
        post = Post(hook.target)
        with self._lock:
            if hook.id not in self._hooks or hook.message is None:
                return
            hook.post = post
        try:
            status = post.send(hook.headers(), hook.message.body, self.destinations)
        except (*NO_ANSWER, UnicodeError) as error:
            hook.failed(error)
        except Exception as error:
            LOG.exception('A webhook failed unexpectedly')
            hook.failed(error)
        else:
            hook.arrived(status)
            if status == GONE:
                hook.remove()
        finally:
            with self._lock:
                hook.post = None
