"""The message bus: RabbitMQ, by oslo.messaging. It carries JSON; the messages are defined elsewhere.

oslo.messaging waits for an unreachable broker without a limit. Here no caller waits longer than it asked for: each call
runs in a thread of its own, which is abandoned when the time is over.
"""

from __future__ import annotations

import functools
import importlib
import logging
import os
import threading
import uuid
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from typing import Any, NoReturn

from oslo_config import cfg

LOG = logging.getLogger(__name__)
EXCHANGE = 'computeapi'
DEFAULTS = {
    # They survive a restart of the broker, and the loss of one of several.
    'rabbit_quorum_queue': True,
    'rabbit_transient_quorum_queue': True,
    # Seconds within which a silently broken connection is noticed, and within which a broker that is back is.
    'heartbeat_timeout_threshold': 20,
    'rabbit_interval_max': 4,
    # For how long an answer is retried if the caller is gone.
    'kombu_missing_consumer_retry_timeout': 5,
}
"""The defaults that differ from oslo.messaging's; the configuration can override them."""
GROUP, NOTIFICATIONS = 'oslo_messaging_rabbit', 'oslo_messaging_notifications'
OF_NOTIFICATIONS = frozenset({'transport_url', 'topics'})
"""The options for notifications that are used."""
# The maximum number of calls in flight per process; further ones are refused.
MAX_CALLS = 128
# How much longer than its own limit a call may take if the broker or the agent did not accept it.
GRACE_SECONDS = 2.0
# While a call is in progress, the server sends two heartbeats in this time.
MONITOR_SECONDS = 4
# The delay before a process tries again to serve a topic, after the broker refused or failed.
AGAIN_SECONDS = 5.0
# A topic that is not served: messages to it are lost.
NOBODY = 'nobody'
# oslo.messaging distinguishes the servers of a topic; here there is one, or all are equivalent.
ANY = 'any'


class Unanswered(Exception):
    """The broker is away, or no answer came in time: whether the call was executed is unknown."""


class RemoteFailure(Exception):
    """The remote side could not handle the call, or failed in it; `str(error)` is for the log."""


@functools.cache
def library() -> Any:
    """oslo.messaging; cfg.ConfigFileValueError if it is not installed.

    It loads eventlet, which is not used here. This loads a second `threading`, which takes the thread for its main one:
    Python then never learns that the thread has ended. So it is loaded in a thread that nobody joins.
    """
    loaded: Future[Any] = Future()
    threading.Thread(target=_settle, args=(loaded, _load), name='bus-library', daemon=True).start()
    try:
        return loaded.result()
    except ImportError as error:
        raise cfg.ConfigFileValueError(f'transport_url: {error}: the extra `agent` is not installed') from None


def _load() -> Any:
    # eventlet prints a warning about itself whatever the warning filters are.
    with warnings.catch_warnings(record=True):
        warnings.simplefilter('ignore')
        return importlib.import_module('oslo_messaging')


def _settle(answer: Future[Any], ask: Callable[[], Any]) -> None:
    try:
        answer.set_result(ask())
    except BaseException as error:
        answer.set_exception(error)


def options() -> dict[str, list[cfg.Opt]]:
    """The options of oslo.messaging, by group, with the defaults of this service."""
    found = dict(_listed())
    cfg.set_defaults(found[GROUP], **DEFAULTS)
    return found


def register(conf: cfg.ConfigOpts) -> None:
    """Register the options of oslo.messaging in a configuration, as the library itself does when it needs them."""
    for group, listed in (*_listed(), *_private_options()):
        conf.register_opts(listed, group=None if group == 'DEFAULT' else group)
    for name, value in DEFAULTS.items():
        conf.set_default(name, value, GROUP)


def _listed() -> Iterator[tuple[str, list[cfg.Opt]]]:
    library().set_transport_defaults(EXCHANGE)
    from oslo_messaging import opts

    for group, listed in opts.list_opts():
        if group in (None, GROUP):
            yield group or 'DEFAULT', listed
        elif group == NOTIFICATIONS:
            yield group, [option for option in listed if option.name in OF_NOTIFICATIONS]


def broker_errors() -> tuple[type[Exception], ...]:
    """The errors that oslo.messaging lets through when the broker is away."""
    from amqp.exceptions import AMQPError
    from kombu.exceptions import KombuError

    return OSError, AMQPError, KombuError


def _private_options() -> Iterator[tuple[str, Any]]:
    """Options that newer releases look up in every configuration, but register only in the global one."""
    for group, module in {'oslo_messaging_metrics': '_metrics', 'oslo_messaging_tracing': '_tracing'}.items():
        try:
            client = importlib.import_module(f'oslo_messaging.{module}.client')
        except ImportError:
            continue
        yield group, getattr(client, group)


def leave() -> NoReturn:
    """End a process whose work is done; threads of the library may still wait for a broker that is away."""
    logging.shutdown()
    os._exit(0)


class ReplyNames:
    """The part of the name of a reply queue that follows `reply_`: the topic that its process serves, and a random
    part."""

    def __init__(self, topic: str):
        self.topic = topic

    def get(self) -> str:
        """The interface that oslo.messaging expects."""
        return f'{self.topic}_{uuid.uuid4().hex}'


class Bus:
    """The bus of a configuration; cfg.ConfigFileValueError if it is not usable.

    own: the topic of a process whose broker user may only use what is its own. Its reply queue is named after it,
    because a user who may read reply queues of any name can read the answers to the control plane."""

    def __init__(self, conf: cfg.ConfigOpts, own: str | None = None):
        register(conf)
        self.library, self.broker_errors = library(), broker_errors()
        self.name = conf.control_exchange
        try:
            self.transport = self.library.get_rpc_transport(conf)
        except (self.library.MessagingException, cfg.Error, ValueError) as error:
            raise cfg.ConfigFileValueError(f'transport_url: {error}') from None
        if own is not None:
            # The library's own way to name queues needs lock files, and that the leader of the process group lives.
            self.transport._driver._q_manager = ReplyNames(self._named(own))
        self.calls = threading.BoundedSemaphore(MAX_CALLS)
        self.served: dict[str, Any] = {}
        self.closing = threading.Event()

    def call(self, topic: str, method: str, seconds: float, /, **arguments: Any) -> Any:
        """Call a method of the server of a topic and return its answer; raises Unanswered or RemoteFailure.

        seconds: the time limit. The server sends heartbeats during the call; without them, the call ends early.
        """
        target = self._target(topic)
        facts = {'timeout': seconds, 'call_monitor_timeout': MONITOR_SECONDS, 'retry': 1}
        client = self.library.get_rpc_client(self.transport, target, **facts)
        return self._within(seconds + GRACE_SECONDS, functools.partial(client.call, {}, method, **arguments))

    def _target(self, topic: str, **kwargs: Any) -> Any:
        return self.library.Target(exchange=self.name, topic=self._named(topic), **kwargs)

    def _named(self, topic: str) -> str:
        """Several clouds can share a broker, each with its own `control_exchange`."""
        return f'{self.name}-{topic}'

    def _within(self, seconds: float, ask: Callable[[], Any]) -> Any:
        """The result of `ask`, if it returns within this time."""
        if not self.calls.acquire(blocking=False):
            raise Unanswered(f'{MAX_CALLS} calls are already waiting for the bus')
        answer: Future[Any] = Future()
        threading.Thread(target=self._release_after, args=(answer, ask), name='bus-call', daemon=True).start()
        try:
            return answer.result(seconds)
        except TimeoutError as error:
            raise Unanswered('the bus accepted no message') from error
        except self.library.RemoteError as error:
            raise RemoteFailure(f'{error.exc_type}: {error.value}') from None
        except (self.library.MessagingException, *self.broker_errors) as error:
            raise Unanswered(str(error)) from None
        except Exception as error:
            # An exception class that Python can import is raised as it is, with a traceback of the remote side.
            raise RemoteFailure(next(iter(str(error).splitlines()), type(error).__name__)) from None

    def _release_after(self, answer: Future[Any], ask: Callable[[], Any]) -> None:
        try:
            _settle(answer, ask)
        finally:
            self.calls.release()

    def serve(self, topic: str, endpoint: object, threads: int) -> None:
        """Answer calls on a topic with the public methods of an endpoint, in up to *threads* threads. It begins as soon
        as the broker is reachable and allows it, and goes on until `close`.

        Peers of another release find the same methods; what they send states which version they speak. The version
        check of the library is not used: for an unknown version or method, its server would go on sending heartbeats to
        the caller forever.
        """
        begin = functools.partial(self._begin, topic, endpoint, threads)
        threading.Thread(target=begin, name=f'bus-{topic}', daemon=True).start()

    def _begin(self, topic: str, endpoint: object, threads: int) -> None:
        target, policy = self._target(topic, server=ANY), self.library.DefaultRPCAccessPolicy
        while not self.closing.is_set():
            # One that could not start cannot be started again.
            server = self.library.get_rpc_server(self.transport, target, [endpoint], access_policy=policy)
            self.served[topic] = server
            try:
                server.start(override_pool_size=threads)
                return
            except (self.library.MessagingException, *self.broker_errors) as error:
                LOG.error('The broker delivers no calls to %s; retrying in %g s: %s', topic, AGAIN_SECONDS, error)
            self.closing.wait(AGAIN_SECONDS)

    def obstacle(self, seconds: float) -> str | None:
        """Why the broker cannot be reached; None if it can."""
        client = self.library.get_rpc_client(self.transport, self._target(NOBODY), retry=0)
        try:
            self._within(seconds, functools.partial(client.cast, {}, 'hello'))
        except Unanswered as error:
            return str(error)
        return None

    def close(self, seconds: float = 2.0) -> None:
        """Stop answering calls. Calls in progress are waited for no longer than *seconds*."""

        def end() -> None:
            for server in list(self.served.values()):
                server.stop()
                server.wait()
            self.transport.cleanup()

        self.closing.set()
        ending = threading.Thread(target=end, name='bus-end', daemon=True)
        ending.start()
        ending.join(seconds)
