"""/os-quota-class-sets: limits by class; those of the class `default` are every project's until it has its own."""

from operator import itemgetter
from typing import Any

from computeapi.api.controller import ComputeController
from computeapi.api.quota_sets import GROUPS, ID, QUOTA, chosen, each_resource
from computeapi.api.types import INTEGER
from computeapi.errors import Invalid
from computeapi.versions import added
from computeapi.web.contract import ADMIN, Field, Policy, View, closed
from computeapi.web.controller import operation
from computeapi.web.request import Request

SHOW = Policy('os_compute_api:os-quota-class-sets:show', ADMIN, 'Show the quotas of a quota class')
UPDATE = Policy('os_compute_api:os-quota-class-sets:update', ADMIN, 'Change the quotas of a quota class')

GROUPS_NO_NETWORKS = '2.50'
UPDATE_BODY = closed(
    {'quota_class_set': closed(each_resource(lambda name: QUOTA, GROUPS_NO_NETWORKS))}, required=['quota_class_set']
)
LONGEST_NAME = 255

LIMITS = each_resource(lambda name: Field(INTEGER, itemgetter(name)), GROUPS_NO_NETWORKS)
UPDATED = View(LIMITS | {name: added(GROUPS_NO_NETWORKS, LIMITS[name]) for name in GROUPS})
QUOTA_CLASS_SET = View(ID | UPDATED.fields)


class QuotaClassSets(ComputeController):
    """Limits by class."""

    path = '/os-quota-class-sets/{id}'

    @operation('GET', policy=SHOW, response={'quota_class_set': QUOTA_CLASS_SET})
    def show(self, req: Request, id: str) -> dict[str, Any]:
        """Show the quotas of a class; one that nobody has written has the configured ones."""
        return {'quota_class_set': QUOTA_CLASS_SET.render(req, {'id': id, **self.cloud.quotas.class_limits(id)})}

    @operation('PUT', policy=UPDATE, body=UPDATE_BODY, response={'quota_class_set': UPDATED})
    def update(self, req: Request, id: str, body: Any) -> dict[str, Any]:
        """Change quotas of a class."""
        if len(id) > LONGEST_NAME:
            raise Invalid(f'quota_class_name has {len(id)} characters, more than {LONGEST_NAME}.')
        limits = self.cloud.quotas.set_class_limits(id, chosen(body['quota_class_set']))
        return {'quota_class_set': UPDATED.render(req, limits)}
