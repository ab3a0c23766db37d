"""A mechanism driver without any network: it binds ports on whatever host, and says that they are plugged.

On a host whose name begins with `unbindable` it binds none. The file that NEIGHBOURS_PLUGGING names says when a port is
ACTIVE after it was bound: `never`, or after so many seconds, as with an agent that takes its time; without it, at once.
"""

import os
import threading

from neutron_lib import constants, context
from neutron_lib.api.definitions import portbindings
from neutron_lib.plugins import directory
from neutron_lib.plugins.ml2 import api

KINDS = {portbindings.VNIC_NORMAL, portbindings.VNIC_DIRECT, portbindings.VNIC_MACVTAP}


class BindsAnything(api.MechanismDriver):
    connectivity = portbindings.CONNECTIVITY_L2

    def initialize(self):
        pass

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
