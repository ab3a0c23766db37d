"""The options of [compute]."""

from typing import Any

from oslo_config import cfg
from oslo_config.types import Integer


class DiskLimit(Integer):
    """A number of disks, or -1. No server could boot without a disk."""

    def __init__(self) -> None:
        super().__init__(min=-1)

    def __call__(self, value: object) -> Any:
        found = super().__call__(value)
        if found == 0:
            raise ValueError('Should be -1, or at least 1')
        return found


COMPUTE_GROUP = [
    cfg.BoolOpt(
        'live_migration_wait_for_vif_plug',
        default=True,
        help='Whether a live migration waits, before the server is copied, until the network service reports that its '
        'ports are connected on the new host, if it reports this at all. [DEFAULT]vif_plugging_timeout and '
        'vif_plugging_is_fatal say how long it waits and what happens then.',
    ),
    cfg.Opt(
        'max_disk_devices_to_attach',
        type=DiskLimit(),
        default=-1,
        help='Maximum number of disks per server, including volumes; -1: no limit, except that of the host. It applies '
        'when a server is created or unshelved, and when a volume is attached.',
    ),
]
