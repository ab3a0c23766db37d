"""Servers: one module for each aspect of their life, and TRANSITIONS, all the work that workers can do on them."""

from computeapi.compute.servers import (
    addresses,
    deletion,
    evacuation,
    events,
    interfaces,
    live_migration,
    power,
    rebuild,
    rescue,
    reset,
    resize,
    shares,
    shelving,
    snapshots,
    volume_snapshots,
    volume_swaps,
    volumes,
)
from computeapi.compute.servers.creation import build
from computeapi.compute.tasks.transition import Transition

NOUNS = (
    build,
    power,
    deletion,
    rescue,
    resize,
    live_migration,
    evacuation,
    rebuild,
    shelving,
    snapshots,
    volumes,
    volume_snapshots,
    volume_swaps,
    interfaces,
    shares,
    addresses,
    events,
    reset,
)

TRANSITIONS = tuple(
    dict.fromkeys(each for noun in NOUNS for each in vars(noun).values() if isinstance(each, Transition))
)
