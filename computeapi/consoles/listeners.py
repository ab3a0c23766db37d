"""The listening port of each console type; separate ports, so that a token opens only the type it is for."""

import ssl
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from socket import socket
from typing import NamedTuple
from urllib.parse import urlsplit

from oslo_config import cfg

from computeapi.listening import listening_at


class ListenerOptions(NamedTuple):
    """A console type and the options of its proxy: their group, the address to listen on, and the URL.

    url: the template of the default URL, by host and port; {s} is an s with TLS, and empty without.
    """

    kind: str
    group: str
    host: str
    port: str
    base_url: str
    url: str


LISTENERS = (
    ListenerOptions(
        'novnc',
        'vnc',
        'novncproxy_host',
        'novncproxy_port',
        'novncproxy_base_url',
        'http{s}://{host}:{port}/vnc_auto.html',
    ),
    ListenerOptions(
        'spice-html5',
        'spice',
        'html5proxy_host',
        'html5proxy_port',
        'html5proxy_base_url',
        'http{s}://{host}:{port}/spice_auto.html',
    ),
    ListenerOptions(
        'serial', 'serial_console', 'serialproxy_host', 'serialproxy_port', 'base_url', 'ws{s}://{host}:{port}/'
    ),
)


class ConsoleListener(NamedTuple):
    """A console type, and its listening socket."""

    kind: str
    socket: socket


def enabled(conf: cfg.ConfigOpts) -> Iterator[ListenerOptions]:
    """The listeners of the enabled console types."""
    return (listener for listener in LISTENERS if conf[listener.group].enabled)


def open_listeners(conf: cfg.ConfigOpts, stack: ExitStack) -> list[ConsoleListener]:
    """A socket for each listener, closed with the stack; OSError, naming the option, if an address is not available."""
    return [
        ConsoleListener(listener.kind, stack.enter_context(listening_socket(conf, listener)))
        for listener in enabled(conf)
    ]


def listening_socket(conf: cfg.ConfigOpts, listener: ListenerOptions) -> socket:
    host, port = conf[listener.group][listener.host], conf[listener.group][listener.port]
    return listening_at(host, port, f'[{listener.group}]{listener.port}', all_versions=True)


def open_default_listeners(conf: cfg.ConfigOpts, stack: ExitStack, host: str, public_url: str) -> list[ConsoleListener]:
    """The same for a process that serves everything: by default at *host* and free ports, and with the host of
    *public_url* in the URLs of consoles."""
    for listener in LISTENERS:
        conf.set_default(listener.host, host, listener.group)
        conf.set_default(listener.port, 0, listener.group)
    listeners, options = open_listeners(conf, stack), {listener.kind: listener for listener in LISTENERS}
    shown = urlsplit(public_url).hostname or host
    for kind, accepting in listeners:
        listener, port, s = options[kind], accepting.getsockname()[1], 's' if conf.cert else ''
        name = f'[{shown}]' if ':' in shown else shown
        conf.set_default(listener.base_url, listener.url.format(s=s, host=name, port=port), listener.group)
    return listeners


def tls(conf: cfg.ConfigOpts) -> ssl.SSLContext | None:
    """The TLS context of the listeners; None without TLS. cfg.Error for unusable files.

    The files are read again for each connection, so that a renewed certificate takes effect without a restart, which
    would disconnect everybody.
    """
    if not conf.cert:
        return None

    try:
        context = latest = _certified(conf)
    except OSError as error:
        raise cfg.ConfigFileValueError(f'[DEFAULT]cert and key: {error}') from None

    def renew(connection: ssl.SSLObject, name: str | None, first: ssl.SSLContext) -> None:
        nonlocal latest
        # While the files are being replaced they may not belong together.
        with suppress(OSError):
            latest = _certified(conf)
        connection.context = latest

    context.sni_callback = renew
    return context


def _certified(conf: cfg.ConfigOpts) -> ssl.SSLContext:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(conf.cert, conf.key)
    return context
