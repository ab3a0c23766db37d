"""Plugs and unplugs network cards, whether the guest runs or not."""

import contextlib
import os
from collections.abc import Iterable, Mapping
from typing import Any

from computeapi.backends.hypervisor import HypervisorError
from computeapi.backends.hypervisor.qemu import command_line
from computeapi.backends.hypervisor.qemu.bridges import links
from computeapi.backends.hypervisor.qemu.guest import Card, QemuGuest
from computeapi.backends.hypervisor.qemu.guest_lifecycle import card_of
from computeapi.backends.hypervisor.qemu.monitor import Monitor, Refusal
from computeapi.backends.hypervisor.qemu.work import GuestWork, TooSlow


def plug(work: GuestWork, interfaces: Iterable[Mapping[str, Any]]) -> None:
    guest = work.folder.existing()
    for entry in interfaces:
        slot = guest.free_slot(command_line.FIRST_SLOT, command_line.LAST_SLOT)
        if slot is None:
            raise HypervisorError('The virtual machine has no room for one more interface.')
        card = card_of(work.server, entry, slot)
        known = next((each for each in guest.cards if each.port_id == card.port_id), None)
        if known is None:
            # Recorded first, so that a repeated call finds the same slot.
            card.again = bool(guest.ghosts)
            guest.cards.append(card)
            work.folder.write(guest)
        connect(work, guest, known or card)


def connect(work: GuestWork, guest: QemuGuest, card: Card) -> None:
    networks, there = work.host.networks, (guest.server_id, card.interface)
    networks.set_up(*there)
    if not work.process.runs:
        return
    with work.monitor() as monitor:
        device = command_line.card_device(guest, card, networks.card(*there))
        if device['id'] not in devices(monitor):
            # A netdev may be left over from an interrupted call.
            drop_netdev(monitor, card)
            add_netdev(monitor, networks.netdev(*there) | {'id': command_line.netdev_of(card)})
            monitor.command('device_add', device)


def add_netdev(monitor: Monitor, netdev: dict[str, Any]) -> None:
    """A tap is opened here, because QEMU may no longer have the rights to."""
    if netdev['type'] == 'tap':
        tap = links.opened_tap(netdev['ifname'])
        try:
            monitor.hand_over(netdev['id'], tap)
        finally:
            os.close(tap)
        netdev = {'type': 'tap', 'id': netdev['id'], 'fd': netdev['id']}
    monitor.command('netdev_add', netdev)


def unplug(work: GuestWork, interfaces: Iterable[Mapping[str, Any]]) -> None:
    guest = work.folder.existing()
    gone = {card_of(work.server, entry, 0).port_id for entry in interfaces}
    for card in [card for card in guest.cards if card.port_id in gone]:
        if work.process.runs:
            with work.monitor() as monitor:
                disconnect(work, monitor, guest, card)
        work.host.networks.tear_down(guest.server_id, card.interface)
        guest.cards.remove(card)
        work.folder.write(guest)


def disconnect(work: GuestWork, monitor: Monitor, guest: QemuGuest, card: Card) -> None:
    """Remove the card; if the guest does not release it, it stays without a backend."""
    name = command_line.card_id(card)
    if name in devices(monitor):
        # The request is repeated with each call, in case the guest has ignored it.
        monitor.execute('device_del', id=name)
        try:
            work.until(f'unplug {name}', lambda: name not in devices(monitor), work.host.options.detach_seconds)
        except TooSlow:
            guest.ghosts.append(card.slot)
    drop_netdev(monitor, card)


def drop_netdev(monitor: Monitor, card: Card) -> None:
    """The backend of the card; QEMU has no list of these."""
    with contextlib.suppress(Refusal):
        monitor.execute('netdev_del', id=command_line.netdev_of(card))


def check_whole(monitor: Monitor, guest: QemuGuest) -> None:
    """HypervisorError if the guest has a device that a new QEMU resuming its memory would not have."""
    own = {command_line.card_id(card) for card in guest.cards}
    if {name for name in devices(monitor) if name.startswith(command_line.CARD)} - own:
        raise HypervisorError('The guest has not released an interface. It can be detached after a restart.')


def devices(monitor: Monitor) -> set[str]:
    """The names of devices that have one."""
    return {each['name'] for each in monitor.execute('qom-list', path='/machine/peripheral')}


def objects(monitor: Monitor) -> set[str]:
    """Keys and other objects that were added to QEMU."""
    return {each['name'] for each in monitor.execute('qom-list', path='/objects')}
