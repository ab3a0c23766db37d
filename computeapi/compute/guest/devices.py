"""The devices that a guest can identify by the tags that its owner gave them."""

from typing import Any, NamedTuple

from computeapi.backends.hypervisor import BusAddress
from computeapi.compute.guest.facts import Guest, Part, parts

FIRST = '2016-06-30'
NOWHERE = BusAddress('none', 'none')


class TaggedDevice(NamedTuple):
    """An interface (an entry of network_info), a disk or a share."""

    bus: BusAddress
    tag: str
    facts: Any


PLACE = {
    'bus': Part(FIRST, lambda device, _: device.bus.bus),
    'address': Part(FIRST, lambda device, _: device.bus.address),
}
TAGGED = PLACE | {
    'tags': Part(FIRST, lambda device, _: [device.tag]),
}
INTERFACE = TAGGED | {
    'type': Part(FIRST, lambda *_: 'nic'),
    'mac': Part(FIRST, lambda device, _: device.facts['mac_address']),
    # Only a virtual function of a physical card can be trusted, and no port here is one.
    'vf_trusted': Part('2018-08-27', lambda *_: False),
}
DISK = TAGGED | {
    'type': Part(FIRST, lambda *_: 'disk'),
    'path': Part(FIRST, lambda device, _: device.facts.device_name),
    'serial': Part(FIRST, lambda device, _: device.facts.volume_id),
}
# A share is mounted by its tag and is on no bus.
SHARE = PLACE | {
    'type': Part(FIRST, lambda *_: 'share'),
    'share_id': Part(FIRST, lambda device, _: device.facts.share_id),
    'tag': Part(FIRST, lambda device, _: device.tag),
}
SHARES_SINCE = '2025-04-04'


def tagged_devices(guest: Guest, version: str) -> list[dict[str, Any]]:
    """The tagged interfaces and disks, and the mounted shares, as they are now."""
    interfaces = [
        TaggedDevice(guest.buses.get(entry['port_id'], NOWHERE), entry['tag'], entry)
        for entry in guest.server.network_info
        if entry.get('tag') and entry['mac_address']
    ]
    disks = [TaggedDevice(guest.buses.get(disk.uuid, NOWHERE), disk.tag, disk) for disk in guest.disks if disk.tag]
    shares = [TaggedDevice(NOWHERE, share.tag, share) for share in guest.shares if version >= SHARES_SINCE]
    return [
        *(parts(INTERFACE, each, version) for each in interfaces),
        *(parts(DISK, each, version) for each in disks),
        *(parts(SHARE, each, version) for each in shares),
    ]
