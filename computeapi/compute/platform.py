"""The foundation of compute: the store, the queue, the scheduler, and other services behind Protocols."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from oslo_config import cfg

from computeapi.backends.encryption import Cipher
from computeapi.backends.hypervisor import Hypervisor
from computeapi.backends.image import Images
from computeapi.backends.network import Networks
from computeapi.backends.share import Shares
from computeapi.backends.volume import Volumes
from computeapi.clock import utcnow
from computeapi.compute.mirror import Mirror
from computeapi.compute.notifications.outbox import Outbox
from computeapi.compute.notifications.servers import ServerNotifications
from computeapi.compute.scheduler import Scheduler
from computeapi.compute.tasks.queue import Tasks
from computeapi.db.engine import Store

NO_CIPHER = Cipher()


@dataclass(frozen=True)
class Platform:
    """All that workers need, and what requests about servers start from.

    outbox: where notifications to other services are written.  notifications: those about servers.  mirror: keeps
    Placement up to date; None if it is not used.  cipher: encrypts the initial passwords of guests.
    """

    conf: cfg.ConfigOpts
    store: Store
    tasks: Tasks
    scheduler: Scheduler
    hypervisor: Hypervisor
    images: Images
    networks: Networks
    volumes: Volumes
    shares: Shares
    outbox: Outbox
    notifications: ServerNotifications
    mirror: Mirror | None = None
    clock: Callable[[], datetime] = utcnow
    cipher: Cipher = NO_CIPHER
