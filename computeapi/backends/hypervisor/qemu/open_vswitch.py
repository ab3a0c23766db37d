"""Guests on the host's Open vSwitch, which a Neutron manages: os-vif plugs the ports.

Neutron's agent or OVN's controller does the rest: networks, DHCP, security groups, floating IPs.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Protocol

import os_vif
from os_vif.objects import instance_info, network, vif
from oslo_config import cfg
from vif_plug_ovs import privsep

from computeapi.backends.atomic_files import write
from computeapi.backends.hypervisor import HypervisorError
from computeapi.backends.hypervisor.qemu.bridges import links
from computeapi.backends.hypervisor.qemu.bridges.taps import Interface, Taps, changing, port_of, tap_of
from computeapi.backends.hypervisor.qemu.libraries import failing
from computeapi.backends.network import PortBinding
from computeapi.context import Context
from computeapi.errors import Error

OVS = 'ovs'


class PortBindings(Protocol):
    """The part of the network service that hosts use."""

    def binding(self, context: Context, port_id: str, host: str) -> PortBinding: ...


class OpenVSwitch(Taps):
    """folder: records how each port was plugged, because Neutron may no longer know it when it is unplugged.

    connection: of the switch's database, e.g. tcp:127.0.0.1:6640."""

    def __init__(self, folder: Path, service: PortBindings, host: str, connection: str):
        self.folder, self.service, self.host = folder, service, host
        privsep.vif_plug.set_client_mode(False)
        os_vif.initialize()
        cfg.CONF.set_override('ovsdb_connection', connection, 'os_vif_ovs')

    def set_up(self, server_id: str, interface: Interface) -> None:
        port_id = port_of(interface)
        # Asked outside of the lock, so that other work on the host does not wait for the network service.
        binding = self.binding(port_id)
        with self.noting(port_id) as note:
            card = vif_of(port_id, interface['mac_address'], binding)
            write(note, json.dumps([server_id, interface['mac_address'], asdict(binding)]).encode())
            tap = tap_of(port_id)
            links.make_tap(tap, binding.mtu)
            with failing('A port could not be plugged in at the switch of the host.'):
                os_vif.plug(card, server_of(server_id, binding))
            if isinstance(card, vif.VIFBridge):
                links.put_on(tap, card.bridge_name)

    def binding(self, port_id: str) -> PortBinding:
        """HypervisorError if the port is not bound to a switch here."""
        try:
            found = self.service.binding(Context().elevated(), port_id, self.host)
        except Error as error:
            raise HypervisorError(
                f'The network service did not return the binding of port {port_id}: {error}'
            ) from None
        if found.vif_type != OVS:
            raise HypervisorError(f'Port {port_id} is bound as {found.vif_type}, but this host requires ovs.')
        return found

    def tear_down(self, server_id: str, interface: Interface) -> None:
        port_id = port_of(interface)
        with self.noting(port_id) as note:
            if note.exists():
                plugged_by, mac_address, facts = json.loads(note.read_bytes())
                binding = PortBinding(**facts)
                with failing('A port could not be taken out at the switch of the host.'):
                    os_vif.unplug(vif_of(port_id, mac_address, binding), server_of(plugged_by, binding))
            links.remove(tap_of(port_id))
            note.unlink(missing_ok=True)

    def refresh(self) -> None:
        """Neutron's agent applies changes."""

    def guest_at(self, address: str) -> str | None:
        """Neutron's metadata agent answers guests."""
        return None

    @contextmanager
    def noting(self, port_id: str) -> Iterator[Path]:
        """The record of the port, under the lock."""
        with changing(self.folder):
            yield self.folder / f'{port_id}.json'


def vif_of(port_id: str, mac_address: str, binding: PortBinding) -> vif.VIFBase:
    """The VIF for os-vif: plugged into the switch directly, or into a bridge in front of it if Neutron filters with
    iptables on bridges (hybrid plugging)."""
    details = binding.vif_details
    profile = vif.VIFPortProfileOpenVSwitch(
        interface_id=port_id, create_port=True, datapath_type=details.get('datapath_type')
    )
    led_to = network.Network(id=binding.network_id, bridge=details.get('bridge_name') or 'br-int', mtu=binding.mtu)
    facts = {
        'id': port_id,
        'address': mac_address,
        'network': led_to,
        'plugin': OVS,
        'port_profile': profile,
        'has_traffic_filtering': bool(details.get('port_filter')),
        'vif_name': tap_of(port_id),
    }
    if details.get('ovs_hybrid_plug'):
        return vif.VIFBridge(bridge_name=f'qbr{port_id[:11]}', **facts)
    return vif.VIFOpenVSwitch(bridge_name=led_to.bridge, **facts)


def server_of(server_id: str, binding: PortBinding) -> instance_info.InstanceInfo:
    return instance_info.InstanceInfo(uuid=server_id, name=server_id, project_id=binding.project_id)
