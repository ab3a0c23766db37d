"""Where each type of console is let in: a port of its own, so that a token opens nothing but what it is for."""

import ssl
from collections.abc import Iterator
from contextlib import ExitStack
from socket import socket
from typing import NamedTuple

from oslo_config import cfg

from computeapi.listening import listening_at


class Door(NamedTuple):
    """A type of console, and the options of its proxy: their group, where it listens, and its URL.

    url: how that is built of a host and a port where nobody says it, with and without TLS ({s} is an s with it).
    """

    kind: str
    group: str
    host: str
    port: str
    base_url: str
    url: str


DOORS = (
    Door(
        'novnc',
        'vnc',
        'novncproxy_host',
        'novncproxy_port',
        'novncproxy_base_url',
        'http{s}://{host}:{port}/vnc_auto.html',
    ),
    Door(
        'spice-html5',
        'spice',
        'html5proxy_host',
        'html5proxy_port',
        'html5proxy_base_url',
        'http{s}://{host}:{port}/spice_auto.html',
    ),
    Door('serial', 'serial_console', 'serialproxy_host', 'serialproxy_port', 'base_url', 'ws{s}://{host}:{port}/'),
)


class OpenDoor(NamedTuple):
    """A type of console, and a socket that accepts those who want one."""

    kind: str
    socket: socket


def wanted(conf: cfg.ConfigOpts) -> Iterator[Door]:
    """Those whose type of console servers have."""
    return (door for door in DOORS if conf[door.group].enabled)


def opened(conf: cfg.ConfigOpts, stack: ExitStack) -> list[OpenDoor]:
    """A socket for each, closed with the stack; OSError, which names the option, where an address cannot be had."""
    return [OpenDoor(door.kind, stack.enter_context(listening(conf, door))) for door in wanted(conf)]


def listening(conf: cfg.ConfigOpts, door: Door) -> socket:
    host, port = conf[door.group][door.host], conf[door.group][door.port]
    return listening_at(host, port, f'[{door.group}]{door.port}', all_versions=True)


def offer(conf: cfg.ConfigOpts, doors: list[OpenDoor], host: str) -> None:
    """Let URLs lead to these doors at that host, unless conf says otherwise."""
    options = {door.kind: door for door in DOORS}
    for kind, accepting in doors:
        door, port, s = options[kind], accepting.getsockname()[1], 's' if conf.cert else ''
        name = f'[{host}]' if ':' in host else host
        conf.set_default(door.base_url, door.url.format(s=s, host=name, port=port), door.group)


def tls(conf: cfg.ConfigOpts) -> ssl.SSLContext | None:
    """How the doors prove who they are; None where they do not. cfg.Error for files that do not fit."""
    if not conf.cert:
        return None
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    try:
        context.load_cert_chain(conf.cert, conf.key)
    except OSError as error:
        raise cfg.ConfigFileValueError(f'[DEFAULT]cert and key: {error}') from None
    return context
