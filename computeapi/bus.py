"""The message bus: RabbitMQ, by oslo.messaging. It carries JSON; what is said, others know.

oslo.messaging waits for a broker that is away as long as it takes. Here nobody waits longer than he said: what is asked
is asked in a thread of its own, which is left to itself when the time is over.
"""

from __future__ import annotations

import functools
import importlib
import logging
import os
import threading
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from typing import Any, NoReturn

from oslo_config import cfg

EXCHANGE = 'computeapi'
DEFAULTS = {
    # They outlive a broker that restarts, and one of several that goes.
    'rabbit_quorum_queue': True,
    'rabbit_transient_quorum_queue': True,
    # A connection that was cut without a word is noticed in this time; a broker that is back, in that.
    'heartbeat_timeout_threshold': 20,
    'rabbit_interval_max': 4,
    # For how long an answer is sent again to whoever asked and is gone.
    'kombu_missing_consumer_retry_timeout': 5,
}
"""What is otherwise than oslo.messaging's own, unless the configuration says it."""
GROUP = 'oslo_messaging_rabbit'
# How many calls of a process can be without an answer: one more is not made.
MOST_CALLS = 128
# A call that a broker or an agent did not take is over after this time, at the latest.
GRACE_SECONDS = 2.0
# Who answers a call says twice in this time that it is at it.
MONITOR_SECONDS = 4
# A topic that is not served: what is said there is lost.
NOBODY = 'nobody'
# oslo.messaging tells the servers of a topic apart; here it has one, or they are all alike.
ANY = 'any'


class Unanswered(Exception):
    """The broker is away, or nobody answered in time: whether it was done is not known."""


class Unheard(Exception):
    """Whoever was asked could not make sense of it, or went wrong; `str(error)` is for the log."""


@functools.cache
def library() -> Any:
    """oslo.messaging; cfg.ConfigFileValueError where it is not installed."""
    try:
        # It loads eventlet, which it has no use for here, and which warns of itself, whoever does not want to hear it.
        with warnings.catch_warnings(record=True):
            warnings.simplefilter('ignore')
            import oslo_messaging
    except ImportError as error:
        raise cfg.ConfigFileValueError(f'transport_url: {error}: the extra `agent` is not installed') from None
    return oslo_messaging


def options() -> dict[str, list[cfg.Opt]]:
    """Those of oslo.messaging, by group, with the defaults of this service."""
    found = dict(_listed())
    cfg.set_defaults(found[GROUP], **DEFAULTS)
    return found


def register(conf: cfg.ConfigOpts) -> None:
    """Make the options of oslo.messaging known to a configuration, as it does itself when it needs them."""
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


def _troubles() -> tuple[type[Exception], ...]:
    """What oslo.messaging lets through when the broker is away."""
    from amqp.exceptions import AMQPError
    from kombu.exceptions import KombuError

    return OSError, AMQPError, KombuError


def _private_options() -> Iterator[tuple[str, Any]]:
    """What newer releases look up in any configuration, but make known to the global one alone."""
    for group, module in {'oslo_messaging_metrics': '_metrics', 'oslo_messaging_tracing': '_tracing'}.items():
        try:
            client = importlib.import_module(f'oslo_messaging.{module}.client')
        except ImportError:
            continue
        yield group, getattr(client, group)


def leave() -> NoReturn:
    """End a process that has done what it wanted to do: threads of the library may wait for a broker that is away."""
    logging.shutdown()
    os._exit(0)


class Bus:
    """The bus of a configuration; cfg.ConfigFileValueError where it cannot be had."""

    def __init__(self, conf: cfg.ConfigOpts):
        register(conf)
        self.library, self.troubles = library(), _troubles()
        self.name = conf.control_exchange
        self.transport = self.library.get_rpc_transport(conf)
        self.calls = threading.BoundedSemaphore(MOST_CALLS)
        self.served: list[Any] = []

    def call(self, topic: str, method: str, seconds: float, /, **arguments: Any) -> Any:
        """What the one that serves a topic answers; Unanswered, Unheard.

        seconds: how long that may take. Who serves it says meanwhile that it lives, and is not waited for when it does
        not.
        """
        target = self._target(topic)
        facts = {'timeout': seconds, 'call_monitor_timeout': MONITOR_SECONDS, 'retry': 1}
        client = self.library.get_rpc_client(self.transport, target, **facts)
        return self._within(seconds + GRACE_SECONDS, functools.partial(client.call, {}, method, **arguments))

    def _target(self, topic: str, **facts: Any) -> Any:
        """Several clouds can share a broker, each with a `control_exchange` of its own."""
        return self.library.Target(exchange=self.name, topic=f'{self.name}-{topic}', **facts)

    def _within(self, seconds: float, ask: Callable[[], Any]) -> Any:
        """What `ask` returns in this time."""
        if not self.calls.acquire(blocking=False):
            raise Unanswered(f'{MOST_CALLS} calls wait for the bus already')
        answer: Future[Any] = Future()
        threading.Thread(target=self._settle, args=(answer, ask), name='bus-call', daemon=True).start()
        try:
            return answer.result(seconds)
        except TimeoutError as error:
            raise Unanswered('the bus took nothing') from error
        except self.library.RemoteError as error:
            raise Unheard(f'{error.exc_type}: {error.value}') from None
        except (self.library.MessagingException, *self.troubles) as error:
            raise Unanswered(str(error)) from None
        except Exception as error:
            # One that Python knows comes back as it was, with a traceback of the other side.
            raise Unheard(next(iter(str(error).splitlines()), type(error).__name__)) from None

    def _settle(self, answer: Future[Any], ask: Callable[[], Any]) -> None:
        try:
            answer.set_result(ask())
        except BaseException as error:
            answer.set_exception(error)
        finally:
            self.calls.release()

    def serve(self, topic: str, endpoint: object, threads: int) -> None:
        """Answer what is called on a topic by the public methods of an endpoint, on so many calls at a time; as soon as
        the broker is there, until `close`.

        Those who speak another release find the same methods, and say in what they send what they speak: the library's
        server would go on for ever telling whoever asked for another version, or a method that is not there, that it is
        at it.
        """
        target = self._target(topic, server=ANY)
        policy = self.library.DefaultRPCAccessPolicy
        server = self.library.get_rpc_server(self.transport, target, [endpoint], access_policy=policy)
        self.served.append(server)
        begin = functools.partial(server.start, override_pool_size=threads)
        threading.Thread(target=begin, name=f'bus-{topic}', daemon=True).start()

    def obstacle(self, seconds: float) -> str | None:
        """Why the broker cannot be reached; None: it can."""
        client = self.library.get_rpc_client(self.transport, self._target(NOBODY), retry=0)
        try:
            self._within(seconds, functools.partial(client.cast, {}, 'hello'))
        except Unanswered as error:
            return str(error)
        return None

    def close(self, seconds: float = 2.0) -> None:
        """Answer nothing any more. What is under way is not waited for longer than that."""

        def end() -> None:
            for server in self.served:
                server.stop()
                server.wait()
            self.transport.cleanup()

        ending = threading.Thread(target=end, name='bus-end', daemon=True)
        ending.start()
        ending.join(seconds)
