"""Flavors: the sizes of servers."""

from collections.abc import Mapping
from typing import Any

import sqlalchemy as sa

from computeapi import randomness
from computeapi.compute.notifications.flavors import of_flavor
from computeapi.compute.notifications.outbox import Outbox
from computeapi.context import Context
from computeapi.db import flavors
from computeapi.db.engine import Store
from computeapi.db.flavors import Flavor
from computeapi.db.listing import Page
from computeapi.errors import Conflict, FlavorNotFound, NotFound


def using(context: Context) -> str | None:
    """The project whose access limits the flavors that the caller sees; None: an administrator sees all."""
    return None if context.is_admin else context.project_id or ''


class FlavorManager:
    """Flavors in the store. Unless they are administrators, callers see public ones and those with access for them."""

    def __init__(self, store: Store, outbox: Outbox):
        self.store, self.outbox, self.clock = store, outbox, store.clock

    def get(self, context: Context, flavorid: str) -> Flavor:
        """FlavorNotFound, also if the project has no access to the flavor."""
        return self.store.query(self._get, context, flavorid)

    def _get(self, connection: sa.Connection, context: Context, flavorid: str, lock: bool = False) -> Flavor:
        flavor = flavors.get(connection, flavorid, granted_to=using(context), lock=lock)
        if flavor is None:
            raise FlavorNotFound(id=flavorid)
        return flavor

    def page(
        self,
        context: Context,
        page: Page,
        *,
        is_public: bool | None = True,
        name: str | None = None,
        min_memory_mb: int = 0,
        min_root_gb: int = 0,
    ) -> list[Flavor]:
        """One page of the flavors that the caller's project can use; for administrators also of those that are not
        public (is_public False), or of all (None).

        name: a regular expression.  Invalid for another one, and for an unknown marker."""
        of_own = context.is_admin and is_public
        return self.store.query(
            flavors.page,
            page,
            granted_to=using(context),
            usable_by=(context.project_id or '') if of_own else None,
            private=is_public is False,
            name=name,
            min_memory_mb=min_memory_mb,
            min_root_gb=min_root_gb,
        )

    def create(self, context: Context, name: str, *, flavorid: str | None = None, **values: Any) -> Flavor:
        """Create a flavor; Conflict if the ID or the name is taken. `flavorid` None: a UUID is generated."""
        flavorid = flavorid or randomness.new_id()
        row = {'flavorid': flavorid, 'name': name, 'extra_specs': {}, 'disabled': False, **values}
        try:
            with self.store.write() as connection:
                _refuse_taken(connection, flavorid, name)
                flavors.insert(connection, row | {'created_at': self.clock()})
                created: Flavor = flavors.get(connection, flavorid)  # type: ignore[assignment]
                self.outbox.add(connection, context, of_flavor(connection, created, 'create'))
                return created
        except sa.exc.IntegrityError:
            # Another request took the ID or the name in between.
            self.store.query(_refuse_taken, flavorid, name)
            raise

    def describe(self, context: Context, flavorid: str, description: str | None) -> Flavor:
        """Change the description."""
        with self.store.write() as connection:
            flavor = self._get(connection, context, flavorid, lock=True)
            return self._update(connection, context, flavor, description=description, updated_at=self.clock())

    def _update(self, connection: sa.Connection, context: Context, flavor: Flavor, **values: Any) -> Flavor:
        flavors.update(connection, flavor.id, values)
        updated = flavor._replace(**values)
        self.outbox.add(connection, context, of_flavor(connection, updated, 'update'))
        return updated

    def delete(self, context: Context, flavorid: str) -> None:
        """Delete the flavor; servers that use it keep it."""
        with self.store.write() as connection:
            flavor = self._get(connection, context, flavorid, lock=True)
            flavors.delete(connection, flavor.id)
            self.outbox.add(connection, context, of_flavor(connection, flavor, 'delete'))

    # ------------------------------------------------------------ extra specs

    def set_extra_specs(self, context: Context, flavorid: str, specs: Mapping[str, str]) -> None:
        """Add extra specs; existing keys are replaced."""
        with self.store.write() as connection:
            flavor = self._get(connection, context, flavorid, lock=True)
            self._update(connection, context, flavor, extra_specs={**flavor.extra_specs, **specs})

    def delete_extra_spec(self, context: Context, flavorid: str, key: str) -> None:
        with self.store.write() as connection:
            flavor = self._get(connection, context, flavorid, lock=True)
            if key not in flavor.extra_specs:
                raise NotFound(f'Flavor {flavorid} has no extra specs with key {key}.')
            rest = {other: value for other, value in flavor.extra_specs.items() if other != key}
            self._update(connection, context, flavor, extra_specs=rest)

    # ------------------------------------------------------------ access

    def projects(self, context: Context, flavorid: str) -> list[str]:
        """The projects with access to a flavor that is not public; NotFound for a public one."""
        with self.store.read() as connection:
            flavor = self._get(connection, context, flavorid)
            if flavor.is_public:
                raise NotFound('Access list not available for public flavors.')
            return flavors.projects(connection, flavor.id)

    def grant(self, context: Context, flavorid: str, project_id: str, *, even_public: bool) -> list[str]:
        """Give a project access to the flavor; Conflict if it has access, or for a public flavor unless even_public."""
        with self.store.write() as connection:
            flavor = self._get(connection, context, flavorid, lock=True)
            if flavor.is_public and not even_public:
                raise Conflict('Can not add access to a public flavor.')
            if project_id in flavors.projects(connection, flavor.id):
                raise Conflict(
                    f'Flavor access already exists for flavor {flavor.id} and project {project_id} combination.'
                )
            flavors.grant(connection, flavor.id, project_id)
            self.outbox.add(connection, context, of_flavor(connection, flavor, 'update'))
            return flavors.projects(connection, flavor.id)

    def revoke(self, context: Context, flavorid: str, project_id: str) -> list[str]:
        with self.store.write() as connection:
            flavor = self._get(connection, context, flavorid, lock=True)
            if not flavors.revoke(connection, flavor.id, project_id):
                raise NotFound(f'Flavor access not found for {flavor.id} / {project_id} combination.')
            self.outbox.add(connection, context, of_flavor(connection, flavor, 'update'))
            return flavors.projects(connection, flavor.id)


def _refuse_taken(connection: sa.Connection, flavorid: str, name: str) -> None:
    """Conflict if a flavor has this ID or name."""
    taken = flavors.taken(connection, flavorid, name)
    if taken == 'id':
        raise Conflict(f'Flavor with ID {flavorid} already exists.')
    if taken == 'name':
        raise Conflict(f'Flavor with name {name} already exists.')
