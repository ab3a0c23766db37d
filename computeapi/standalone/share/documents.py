"""The resources of the share service as clients read them."""

import uuid
from collections.abc import Callable
from typing import Any

from computeapi.backends.share import Share
from computeapi.backends.share.local import AccessRule
from computeapi.standalone.access import ADMIN
from computeapi.standalone.fields import constant, each, read, time
from computeapi.standalone.share.service import added, changed, removed
from computeapi.web.contract import View, attr
from computeapi.web.request import Request

TYPE_ID = str(uuid.uuid5(uuid.NAMESPACE_URL, 'computeapi:share-type'))
TYPE_NAME = 'default'
EXTRA_SPECS = {'driver_handles_share_servers': 'False'}
TYPE = View(
    {
        'id': constant(TYPE_ID),
        'name': constant(TYPE_NAME),
        'description': added('2.41', constant(None)),
        'is_default': added('2.46', constant(True)),
        'share_type_access:is_public': added('2.7', constant(True)),
        'os-share-type-access:is_public': removed('2.7', constant(True)),
        'required_extra_specs': constant(EXTRA_SPECS),
        'extra_specs': constant(EXTRA_SPECS),
    }
)
"""The only share type: shares differ in size and protocol."""


TIMES = {'created_at': read(lambda row: time(row.created_at)), 'updated_at': read(lambda row: time(row.updated_at))}
LINKS = read(lambda req: lambda share: req.links('shares', share.id), request=True)

SHARE_SUMMARY = View({**each('id', 'name'), 'links': LINKS})
SHARE = View(
    {
        **each(
            'id', 'name', 'description', 'status', 'size', 'project_id', 'is_public', 'availability_zone', 'metadata'
        ),
        'share_proto': read(attr('protocol')),
        'share_type': changed({'2.0': constant(TYPE_NAME), '2.6': constant(TYPE_ID)}),
        'share_type_name': added('2.6', constant(TYPE_NAME)),
        'volume_type': constant(TYPE_NAME),
        'created_at': TIMES['created_at'],
        'export_location': removed('2.9', read(attr('export_location'))),
        'export_locations': removed('2.9', read(lambda share: [share.export_location])),
        'access_rules_status': added('2.10', constant('active')),
        'user_id': added('2.16', read(attr('user_id'))),
        'progress': added('2.54', constant('100%')),
        'share_network_id': constant(None),
        'share_server_id': constant(None, policy=ADMIN),
        'snapshot_id': constant(None),
        'snapshot_support': added('2.2', constant(False)),
        'task_state': added('2.5', constant(None)),
        'replication_type': added('2.11', constant(None)),
        'has_replicas': added('2.11', constant(False)),
        'create_share_from_snapshot_support': added('2.24', constant(False)),
        'revert_to_snapshot_support': added('2.27', constant(False)),
        'share_group_id': added('2.31', constant(None)),
        'source_share_group_snapshot_member_id': added('2.31', constant(None)),
        'mount_snapshot_support': added('2.32', constant(False)),
        'is_soft_deleted': added('2.69', constant(False)),
        'scheduled_to_be_deleted_at': added('2.69', constant(None)),
        'source_backup_id': added('2.80', constant(None)),
        'encryption_key_ref': added('2.90', constant(None)),
        'host': constant('', policy=ADMIN),
        'links': LINKS,
    }
)

HIDDEN = '******'


def shown_unless_hidden(get: Callable[[AccessRule], Any]) -> Callable[[Request], Callable[[AccessRule], Any]]:
    return lambda req: lambda rule: HIDDEN if rule.is_hidden_from(req.context) else get(rule)


RULE = View(
    {
        **each('id', 'access_type', 'access_level'),
        'access_to': read(shown_unless_hidden(attr('access_to')), request=True),
        'state': constant('active'),
        'access_key': read(shown_unless_hidden(lambda rule: None), request=True),
        'share_id': added('2.45', read(attr('share_id'))),
        'metadata': added('2.45', read(attr('metadata'))),
        **{name: added('2.33', field) for name, field in TIMES.items()},
    }
)
# Rules work at once; clients see in the answer to a new one that they may have to wait for it.
GRANTED = View({**RULE.fields, 'state': changed({'2.0': constant('new'), '2.28': constant('queued_to_apply')})})


def export_location(share: Share) -> dict[str, Any]:
    """The only export location of a share."""
    return {
        'id': share.id,
        'path': share.export_location,
        'preferred': True,
        'is_admin_only': False,
        'share_instance_id': share.id,
        'created_at': time(share.created_at),
        'updated_at': time(share.updated_at),
    }
