"""Views of a server whose cell is down: SUMMARY, DETAIL and SHOW, as in the module `view`."""

from computeapi.api.servers import readers
from computeapi.api.servers.view import IMAGE, LINKED, SHORT
from computeapi.api.types import STRING
from computeapi.api.unreachable import STATUS, UNKNOWN
from computeapi.web.contract import Field, View

LISTED = {'id': LINKED['id'], 'links': LINKED['links'], 'status': STATUS}
DETAILED = LISTED | {'tenant_id': SHORT['tenant_id'], 'created': SHORT['created']}
ALONE = DETAILED | {
    'user_id': SHORT['user_id'],
    'flavor': SHORT['flavor'],
    'image': Field(IMAGE, readers.image, request=True),
    'server_groups': SHORT['server_groups'],
    'OS-EXT-AZ:availability_zone': Field(STRING, lambda server: server.pinned_availability_zone or UNKNOWN),
    'OS-EXT-STS:power_state': Field({'const': 0}, lambda server: 0),
}
SUMMARY, DETAIL, SHOW = View(LISTED), View(DETAILED), View(ALONE)
