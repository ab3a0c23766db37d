"""Consoles of the servers of `serve`: their URLs lead to the same process."""

from contextlib import ExitStack
from urllib.parse import urlsplit

from oslo_config import cfg

from computeapi.consoles.doors import DOORS, OpenDoor, offer, opened


def open_doors(conf: cfg.ConfigOpts, stack: ExitStack, host: str, public_url: str) -> list[OpenDoor]:
    """Sockets for the types of consoles that servers have, at *host* and ports that are free, unless conf says where;
    URLs of consoles then name the host of *public_url*."""
    for door in DOORS:
        conf.set_default(door.host, host, door.group)
        conf.set_default(door.port, 0, door.group)
    doors = opened(conf, stack)
    offer(conf, doors, urlsplit(public_url).hostname or host)
    return doors
