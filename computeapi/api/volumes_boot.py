"""/os-volumes_boot: an alias of /servers that was once for volume-backed servers, until 2.102."""

from dataclasses import replace

from computeapi.api.controller import ComputeController
from computeapi.api.servers import Servers
from computeapi.api.servers.create import ServerCreation
from computeapi.api.servers.deletion import ServerDeletion
from computeapi.api.servers.power import ServerPower, ServerStarts
from computeapi.api.servers.rebuild import ServerRebuild
from computeapi.api.servers.resize import ServerResize
from computeapi.api.servers.snapshots import ServerImages
from computeapi.versions import COMPUTE

LAST = COMPUTE.version('2.102')
ACTIONS = frozenset(
    {
        'confirmResize',
        'createImage',
        'os-start',
        'os-stop',
        'reboot',
        'rebuild',
        'resize',
        'revertResize',
        'trigger_crash_dump',
    }
)


def renamed(kind: type[ComputeController]) -> type[ComputeController]:
    """The operations of a controller that the alias has."""

    class VolumesBoot(kind):  # type: ignore[valid-type, misc]
        __doc__ = kind.__doc__
        path = '/os-volumes_boot'

    known = (each for each in VolumesBoot.operations if each.action is None or each.action in ACTIONS)
    VolumesBoot.operations = [replace(each, max=min(each.max, LAST)) for each in known if each.min <= LAST]
    return VolumesBoot


SERVERS = (
    Servers,
    ServerCreation,
    ServerDeletion,
    ServerStarts,
    ServerPower,
    ServerResize,
    ServerRebuild,
    ServerImages,
)
VOLUMES_BOOT = tuple(map(renamed, SERVERS))
