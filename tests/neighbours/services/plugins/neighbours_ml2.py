"""A mechanism driver without any network: it binds ports on whatever host, and says that they are plugged.

On a host whose name begins with `unbindable` it binds none. The file that NEIGHBOURS_PLUGGING names says when a port is
ACTIVE after it was bound: `never`, or after so many seconds, as with an agent that takes its time; without it, at once.
"""

import os
import threading

from neutron_lib import constants, context
from neutron_lib.api.definitions import portbindings
from neutron_lib.db import constants as db
from neutron_lib.plugins import directory
from neutron_lib.plugins.ml2 import api
from neutron_lib.services.qos import base
from neutron_lib.services.qos import constants as qos

KINDS = {portbindings.VNIC_NORMAL, portbindings.VNIC_DIRECT, portbindings.VNIC_MACVTAP}


class BindsAnything(api.MechanismDriver):
    connectivity = portbindings.CONNECTIVITY_L2

    def initialize(self):
        Bandwidth.create()

    def responsible_for_ports_allocation(self, bound):
        """Whichever provider has what a port asks for."""
        return True

    def bind_port(self, bound):
        if bound.current[portbindings.VNIC_TYPE] not in KINDS or bound.host.startswith('unbindable'):
            return
        wait = plugging()
        segment = bound.segments_to_bind[0][api.ID]
        status = constants.PORT_STATUS_DOWN if wait else constants.PORT_STATUS_ACTIVE
        details = {
            portbindings.CAP_PORT_FILTER: True,
            portbindings.OVS_HYBRID_PLUG: False,
            portbindings.VIF_DETAILS_CONNECTIVITY: self.connectivity,
            'bridge_name': 'br-int',
            'datapath_type': 'system',
        }
        bound.set_binding(segment, portbindings.VIF_TYPE_OVS, details, status=status)
        if wait and wait != 'never':
            timer = threading.Timer(float(wait), plugged, [bound.current['id'], bound.host])
            timer.daemon = True
            timer.start()


class Bandwidth(base.DriverBase):
    """Ports may ask for a least bandwidth; where they are, nobody looks."""

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
    """`never`, seconds, or '': at once."""
    try:
        with open(os.environ['NEIGHBOURS_PLUGGING']) as file:
            return file.read().strip()
    except (KeyError, FileNotFoundError):
        return ''


def plugged(port_id, host):
    admin, status = context.get_admin_context(), constants.PORT_STATUS_ACTIVE
    directory.get_plugin().update_port_status(admin, port_id, status, host=host)
