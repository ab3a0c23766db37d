"""A mechanism driver without any network: it binds ports on any host, and reports that they are plugged.

On hosts whose name begins with `unbindable`, binding fails. The file named by NEIGHBOURS_PLUGGING sets when a port
becomes ACTIVE after binding: `never`, or after a number of seconds, as with a slow agent; without the file, at once. On
hosts whose name begins with `hybrid` or `silent`, the port is plugged through a bridge, a moment later. Neutron then
also reports a binding that is not active yet, except on `silent` hosts, where it is not plugged before it is active.
"""

import os
import threading

from neutron.plugins.ml2 import db as ml2_db
from neutron_lib import constants, context
from neutron_lib.api.definitions import portbindings
from neutron_lib.db import constants as db
from neutron_lib.plugins import directory
from neutron_lib.plugins.ml2 import api
from neutron_lib.services.qos import base
from neutron_lib.services.qos import constants as qos

HYBRID, SILENT = 'hybrid', 'silent'
A_MOMENT = '0.5'
KINDS = {portbindings.VNIC_NORMAL, portbindings.VNIC_DIRECT, portbindings.VNIC_MACVTAP}


class BindsAnything(api.MechanismDriver):
    connectivity = portbindings.CONNECTIVITY_L2

    def initialize(self):
        Bandwidth.create()

    def responsible_for_ports_allocation(self, bound):
        """Any provider that has what a port requests is accepted."""
        return True

    def bind_port(self, bound):
        if bound.current[portbindings.VNIC_TYPE] not in KINDS or bound.host.startswith('unbindable'):
            return
        hybrid = bound.host.startswith((HYBRID, SILENT))
        wait = plugging() or (A_MOMENT if hybrid else '')
        segment = bound.segments_to_bind[0][api.ID]
        status = constants.PORT_STATUS_DOWN if wait else constants.PORT_STATUS_ACTIVE
        details = {
            portbindings.CAP_PORT_FILTER: True,
            portbindings.OVS_HYBRID_PLUG: hybrid,
            portbindings.VIF_DETAILS_CONNECTIVITY: self.connectivity,
            'bridge_name': 'br-int',
            'datapath_type': 'system',
        }
        if hybrid and bound.original and bound.original_host == bound.host:
            # Another part of the binding changed. An agent would plug the port again and report it; this driver does
            # not.
            bound.set_binding(segment, portbindings.VIF_TYPE_OVS, details)
            return
        bound.set_binding(segment, portbindings.VIF_TYPE_OVS, details, status=status)
        if wait and wait != 'never':
            timer = threading.Timer(float(wait), plugged, [bound.current['id'], bound.host])
            timer.daemon = True
            timer.start()


class Bandwidth(base.DriverBase):
    """Ports may request a minimum bandwidth; it is not enforced."""

    made = None

    @classmethod
    def create(cls):
        least = {'type:range': [0, db.DB_INTEGER_MAX_VALUE]}
        ways = {'type:values': constants.VALID_DIRECTIONS}
        rule = {qos.MIN_KBPS: least, qos.DIRECTION: ways}
        cls.made = cls.made or cls(
            name='anything',
            vif_types=[portbindings.VIF_TYPE_OVS],
            vnic_types=list(KINDS),
            supported_rules={qos.RULE_TYPE_MINIMUM_BANDWIDTH: rule},
        )


def plugging():
    """`never`, a number of seconds, or '' for at once."""
    try:
        with open(os.environ['NEIGHBOURS_PLUGGING']) as file:
            return file.read().strip()
    except (KeyError, FileNotFoundError):
        return ''


def plugged(port_id, host):
    """Reports the port as plugged, as an agent does."""
    admin, status, plugin = context.get_admin_context(), constants.PORT_STATUS_ACTIVE, directory.get_plugin()
    if plugin.port_bound_to_host(admin, port_id, host):
        plugin.update_port_status(admin, port_id, status, host=host)
    elif not host.startswith(SILENT):
        plugin.nova_notifier.notify_port_active_direct(ml2_db.get_port(admin, port_id))
