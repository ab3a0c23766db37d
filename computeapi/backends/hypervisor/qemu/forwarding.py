"""Floating addresses of guests in user mode networking: ports of the loopback that QEMU forwards to its guest.

Those of 203.0.113.7 are at 127.0.113.7: all of 127.0.0.0/8 is this machine, without any setup. Of floating addresses
with the same last three octets, only the oldest is forwarded. The port's security groups decide who may connect, as if
each connection came from the loopback, which it does.
"""

import logging
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from ipaddress import IPv4Address, IPv4Network
from pathlib import Path
from typing import NamedTuple

from computeapi.backends.hypervisor import HypervisorError
from computeapi.backends.hypervisor.qemu import command_line
from computeapi.backends.hypervisor.qemu.bridges.wires import Documents, Wire, WireRule, read_wires, understood
from computeapi.backends.hypervisor.qemu.folder import GuestFolder, HostFolder
from computeapi.backends.hypervisor.qemu.guest import QemuGuest
from computeapi.backends.hypervisor.qemu.monitor import Monitor
from computeapi.backends.hypervisor.qemu.process import QMP, GuestProcess
from computeapi.context import Context

LOG = logging.getLogger(__name__)
LOOPBACK = IPv4Network('127.0.0.0/8')
TCP = 6
RAISED_BY = 10_000
LOWEST = Path('/proc/sys/net/ipv4/ip_unprivileged_port_start')
NETDEV = re.compile(r'\((?P<name>\S+)\):$')
FORWARD = re.compile(r'\s*TCP\[HOST_FORWARD]\s+\d+\s+(?P<host>\S+)\s+(?P<port>\d+)\s+(?P<guest>\S+)\s+(?P<to>\d+)\s')
AMISS = 'Floating addresses of guests do not lead where they should: %s'


class Forward(NamedTuple):
    """netdev: the card's backend.  address, port: of this machine.  guest, to: the guest's address and port."""

    netdev: str
    address: str
    port: int
    guest: str
    to: int


class Forwarding:
    """hosts: the folders of the hosts of these guests.  service: the network service.  ports: the guest ports to
    forward.

    lowest: the first port that guests' QEMUs may bind; lower ports are forwarded from 10,000 higher."""

    def __init__(self, hosts: Sequence[Path], service: Documents, ports: Iterable[int], lowest: int):
        self.hosts, self.service, self.lowest = [HostFolder(path) for path in hosts], service, lowest
        self.ports = [*ports]
        # The forwards of each QEMU, as far as they were set up without a failure.
        self.applied: dict[tuple[str, int], frozenset[Forward]] = {}
        self.amiss: set[str] = set()
        # The QEMUs that did not answer, with the problem; the one that was tried longest ago comes first.
        self.silent: dict[tuple[str, int], str] = {}

    def refresh(self) -> None:
        """Update the forwards of all running guests to what the network service says now."""
        guests = {(folder.server_id, pid): (folder, guest) for folder, pid, guest in self._running()}
        self.applied = {key: forwards for key, forwards in self.applied.items() if key in guests}
        try:
            wires = self._wires(guest for _, guest in guests.values())
            owners = self._owners() if any(wire.floating for wire in wires.values()) else {}
        except HypervisorError as error:
            LOG.warning(AMISS, error)
            return
        # Each QEMU that hangs costs the timeout of its monitor, so only one of them is tried in each refresh.
        silent = [key for key in self.silent if key in guests]
        self.silent = {key: self.silent[key] for key in silent[1:]}
        amiss = {*self.silent.values(), *shadowed(wires.values(), owners)}
        for key, (folder, guest) in [each for each in guests.items() if each[0] not in self.silent]:
            wanted = frozenset(self._wanted(guest, wires, owners))
            # A QEMU that this process has not updated yet may have forwards of a previous process.
            if self.applied.pop(key, None) == wanted:
                self.applied[key] = wanted
                continue
            try:
                problems = self._apply(folder, wanted)
            except HypervisorError as error:
                problem = self.silent[key] = AMISS % error
                amiss.add(problem)
            else:
                # A conflict is retried: it may disappear, e.g. another guest that had the address until now.
                amiss |= problems
                if not problems:
                    self.applied[key] = wanted
        for problem in sorted(amiss - self.amiss):
            LOG.warning(problem)
        self.amiss = amiss

    def _running(self) -> Iterator[tuple[GuestFolder, int, QemuGuest]]:
        for folder in (folder for host in self.hosts for folder in host.all()):
            guest, pid = folder.read(), GuestProcess(folder).pid
            # A guest that is still arriving has its ports at its source.
            if guest is not None and pid is not None and guest.cards and guest.landing is None:
                yield folder, pid, guest

    def _wires(self, guests: Iterable[QemuGuest]) -> Mapping[str, Wire]:
        port_ids = {str(card.interface['port_id']) for guest in guests for card in guest.cards}
        return {wire.port_id: wire for wire in read_wires(self.service, Context().elevated(), port_ids)}

    def _owners(self) -> dict[str, IPv4Address]:
        """By address of this machine, the floating address that it belongs to: the oldest one, in use or not, so that
        nobody gets the connections to a guest by means of a similar address."""
        with understood():
            found = self.service.find(Context().elevated(), 'floatingips')
            addresses = [IPv4Address(each['floating_ip_address']) for each in found]
        return {loopback_of(each): each for each in reversed(addresses)}

    def _wanted(
        self, guest: QemuGuest, wires: Mapping[str, Wire], owners: Mapping[str, IPv4Address]
    ) -> Iterator[Forward]:
        for card in guest.cards:
            wire = wires.get(card.interface['port_id'])
            if wire is None or not wire.is_up:
                continue
            for floating, fixed in wire.floating:
                for port in self.ports if owners.get(loopback_of(floating)) == floating else ():
                    if admits(wire.rules, port):
                        here = port if port >= self.lowest else port + RAISED_BY
                        yield Forward(command_line.netdev_of(card), loopback_of(floating), here, str(fixed), port)

    def _apply(self, folder: GuestFolder, wanted: frozenset[Forward]) -> set[str]:
        """Returns what has failed; HypervisorError if the guest's QEMU does not answer."""
        problems = set()
        with Monitor(folder / QMP) as monitor:
            there = forwards_of(commanded(monitor, 'info usernet'))
            for forward in there - wanted:
                commanded(monitor, f'hostfwd_remove {forward.netdev} tcp:{forward.address}:{forward.port}')
            for each in wanted - there:
                rule = f'tcp:{each.address}:{each.port}-{each.guest}:{each.to}'
                problem = commanded(monitor, f'hostfwd_add {each.netdev} {rule}').strip()
                if problem:
                    problems.add(f'{rule} is not passed on to {folder.server_id}: {problem}')
        return problems


def lowest_port(*, privileged: bool) -> int:
    """The first port that a process may bind here, with root's privileges or without."""
    return 1 if privileged and os.geteuid() == 0 else int(LOWEST.read_text())


def commanded(monitor: Monitor, line: str) -> str:
    """The answer of QEMU's human monitor, which is the only interface to its user networks."""
    return str(monitor.command('human-monitor-command', {'command-line': line}))


def forwards_of(output: str) -> frozenset[Forward]:
    """Parses the output of `info usernet`."""
    found, netdev = set(), ''
    for line in output.splitlines():
        if begins := NETDEV.search(line):
            netdev = begins['name']
        elif there := FORWARD.match(line):
            found.add(Forward(netdev, there['host'], int(there['port']), there['guest'], int(there['to'])))
    return frozenset(found)


def loopback_of(address: IPv4Address) -> str:
    """The address of this machine with the same last three octets."""
    return str(LOOPBACK.network_address + (int(address) & int(LOOPBACK.hostmask)))


def shadowed(wires: Iterable[Wire], owners: Mapping[str, IPv4Address]) -> Iterator[str]:
    """What is to be logged of floating addresses whose address of this machine belongs to another one."""
    for floating, _ in (pair for wire in wires for pair in wire.floating):
        here = loopback_of(floating)
        if here in owners and owners[here] != floating:
            yield f'Floating address {floating} is not passed on: {here} belongs to {owners[here]}'


def admits(rules: Sequence[WireRule] | None, port: int) -> bool:
    """Whether a TCP connection from this machine is allowed; rules: None allows all."""
    return rules is None or any(
        rule.ingress
        and rule.protocol in (None, TCP)
        and (rule.first is None or rule.first <= port <= (rule.first if rule.last is None else rule.last))
        and (rule.remotes is None or any(LOOPBACK.subnet_of(each) for each in rule.remotes))
        for rule in rules
    )
