"""Domains, and the hierarchies of projects in them."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

import sqlalchemy as sa

from computeapi import errors
from computeapi.backends.identity.local.managers import PlainManager, RecordManager
from computeapi.db import catalog, role_assignments
from computeapi.db import identity as queries
from computeapi.db.engine import repeated
from computeapi.db.identity import Domain, Project
from computeapi.db.records import Rows

DEFAULT_DOMAIN = 'default'
DEEPEST = 5
MAX_TAGS = 80

Place = TypeVar('Place', Domain, Project)


class TaggedManager(RecordManager[Place]):
    """Manages records with tags: domains or projects."""

    def set_tags(self, record_id: str, change: Callable[[Sequence[str]], Iterable[str]]) -> Place:
        """Replace the tags by the result of *change*, which gets the current ones."""
        with self.change() as connection:
            record = self.require(connection, record_id, lock=True)
            self.require_mutable(record_id, record.options.get('immutable', False))
            tags = sorted(change(record.tags))
            if len(tags) > MAX_TAGS:
                raise errors.Invalid(f'A {self.noun} can have at most {MAX_TAGS} tags.')
            return self.change_record(connection, record, record_id, {'tags': tags})


class DomainManager(TaggedManager[Domain], PlainManager[Domain]):
    records = queries.DOMAINS
    noun = 'domain'
    defaults = {'description': '', 'enabled': True, 'tags': [], 'options': {}, 'extra': {}}

    @repeated
    def update(self, record_id: str, **changes: Any) -> Domain:
        """Change some columns. Disabling a domain revokes its users' tokens, and those for it and its projects."""
        with self.change() as connection:
            domain = self.require(connection, record_id, lock=True)
            self.require_mutable(record_id, domain.options.get('immutable', False), changes)
            if not changes.get('enabled', True):
                queries.delete_tokens_of_domain(connection, record_id)
            return self.change_record(connection, domain, record_id, changes)

    @repeated
    def delete(self, record_id: str) -> None:
        """Delete a disabled domain with everything in it."""
        with self.change() as connection:
            domain = self.require(connection, record_id, lock=True)
            self.require_mutable(record_id, domain.options.get('immutable', False))
            if domain.enabled or record_id == DEFAULT_DOMAIN:
                raise errors.Forbidden('Cannot delete a domain that is enabled, or the default one. Disable it first.')
            role_assignments.delete_grants_of_domain(connection, record_id)
            catalog.delete_belongings(connection, record_id)
            inside: list[Rows[Any]] = [queries.PROJECTS, queries.USERS, queries.GROUPS, role_assignments.ROLES]
            for records in inside:
                records.delete(connection, domain_id=record_id)
            self.records.delete(connection, id=record_id)

    def granted(self, user_id: str) -> list[Domain]:
        """The domains on which a user has a role."""
        with self.store.read() as connection:
            return role_assignments.granted_domains(connection, user_id)


class ProjectManager(TaggedManager[Project]):
    records = queries.PROJECTS
    noun = 'project'
    parts = {'domain_id': queries.DOMAINS}

    @repeated
    def create(
        self,
        name: str,
        *,
        domain_id: str | None = None,
        parent_id: str | None = None,
        description: str = '',
        enabled: bool = True,
        tags: Sequence[str] = (),
        options: dict[str, Any] | None = None,
        extra: dict[str, Any] | None = None,
    ) -> Project:
        """Create a project below its parent, or else in its domain (by default the default one)."""
        values = {'description': description, 'enabled': enabled, 'tags': list(tags)}
        more = {'options': options or {}, 'extra': extra or {}}
        with self.change() as connection:
            domain_id = self._domain_of(connection, domain_id, parent_id)
            require_enabled(queries.DOMAINS.find(connection, id=domain_id), 'create')
            project = self.insert(
                connection, name=name, domain_id=domain_id, parent_id=parent_id or domain_id, **values, **more
            )
            queries.insert_ancestors(connection, project.id, project.parent_id)
        return project

    def _domain_of(self, connection: sa.Connection, domain_id: str | None, parent_id: str | None) -> str:
        """The domain of a new project; Invalid if its parent is in another one, Forbidden if it would be too deep."""
        if parent_id is None or queries.DOMAINS.find(connection, id=parent_id):
            if domain_id and parent_id and domain_id != parent_id:
                raise errors.Invalid('Invalid input for field/attribute parent_id. It is a different domain.')
            return domain_id or parent_id or DEFAULT_DOMAIN
        parent = self.records.find(connection, lock=True, id=parent_id)
        if parent is None or parent.domain_id != (domain_id or parent.domain_id):
            raise errors.Invalid('Invalid input for field/attribute parent_id. The domain has no such project.')
        require_enabled(parent, 'create')
        if len(queries.projects_above(connection, parent_id)) + 2 > DEEPEST:
            raise errors.Forbidden(f'The project hierarchy cannot be deeper than {DEEPEST} levels.')
        return parent.domain_id

    @repeated
    def update(self, project_id: str, **changes: Any) -> Project:
        """Change some columns. Disabling a project revokes its tokens."""
        with self.change() as connection:
            project = self.require(connection, project_id, lock=True)
            self.require_mutable(project_id, project.options.get('immutable', False), changes)
            if not changes.get('enabled', True):
                self._require_disabled_below(connection, project_id)
                queries.delete_tokens(connection, project_id=project_id)
            elif not project.enabled and 'enabled' in changes:
                self._require_enabled_above(connection, project)
            return self.change_record(connection, project, project_id, changes)

    @repeated
    def delete(self, project_id: str) -> None:
        with self.change() as connection:
            project = self.require(connection, project_id, lock=True)
            self.require_mutable(project_id, project.options.get('immutable', False))
            if queries.projects_below(connection, project_id):
                raise errors.Forbidden(f'Cannot delete project {project_id}: there are projects below it.')
            role_assignments.GRANTS.delete(connection, target_kind='project', target_id=project_id)
            catalog.delete_belongings(connection, project_id)
            self.records.delete(connection, id=project_id)

    def above(self, project_id: str) -> list[Project]:
        """All ancestors of a project."""
        with self.store.read() as connection:
            return queries.projects_above(connection, project_id)

    def below(self, project_id: str) -> list[Project]:
        with self.store.read() as connection:
            return queries.projects_below(connection, project_id)

    def granted(self, user_id: str) -> list[Project]:
        """The projects on which a user has a role."""
        with self.store.read() as connection:
            return role_assignments.granted_projects(connection, user_id)

    def _require_disabled_below(self, connection: sa.Connection, project_id: str) -> None:
        if any(project.enabled for project in queries.projects_below(connection, project_id)):
            raise errors.Forbidden(f'Cannot disable project {project_id}: there are enabled projects below it.')

    def _require_enabled_above(self, connection: sa.Connection, project: Project) -> None:
        """The parent is locked until the transaction ends; there is none if the project is directly in its domain."""
        require_enabled(self.records.find(connection, lock=True, id=project.parent_id), 'enable')
        require_enabled(queries.DOMAINS.find(connection, id=project.domain_id), 'enable')


def require_enabled(above: Project | Domain | None, do: str) -> None:
    if above is not None and not above.enabled:
        raise errors.Forbidden(f'Cannot {do} a project below {above.id}, which is disabled.')
