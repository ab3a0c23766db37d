"""The notifications about flavors: versioned ones only, as in Nova."""

from collections.abc import Iterator

import sqlalchemy as sa

from computeapi.compute.notifications import versioned
from computeapi.compute.notifications.outbox import VERSIONED, NewNotification
from computeapi.compute.notifications.versioned import Object
from computeapi.db import flavors
from computeapi.db.flavors import Flavor


def of_flavor(connection: sa.Connection, flavor: Flavor, action: str) -> Iterator[NewNotification]:
    """What somebody has done (create, update or delete) to the flavor."""

    def payload() -> Object:
        # In Nova, only updates contain the extra specs, and deletions do not contain the projects.
        specs = flavor.extra_specs if action == 'update' else None
        projects = flavors.projects(connection, flavor.id) if action != 'delete' else None
        return versioned.flavor(flavor._asdict() | {'extra_specs': specs, 'projects': projects})

    yield NewNotification(VERSIONED, f'flavor.{action}', payload)
