"""Consoles of the servers of `serve`: their URLs lead to the same process."""

from contextlib import ExitStack
from urllib.parse import urlsplit

from oslo_config import cfg

from computeapi.consoles.doors import DOORS, OpenDoor, offer, opened


def open_doors(conf: cfg.ConfigOpts, stack: ExitStack, host: str, public_url: str) -> list[OpenDoor]:
    """Open sockets for the types of consoles that servers have, by default at *host* and free ports; the URLs of
    consoles then contain the host of *public_url*."""
    for door in DOORS:
        conf.set_default(door.host, host, door.group)
        conf.set_default(door.port, 0, door.group)
    doors = opened(conf, stack)
    offer(conf, doors, urlsplit(public_url).hostname or host)
    return doors
