"""To whom a new resource belongs, and whether the project may have one more."""

from collections.abc import Mapping
from typing import Any

from computeapi import errors
from computeapi.db import network_projects
from computeapi.db.network_collection import Work

UNLIMITED = -1

MAX_PROJECT = 255
"""The longest id of a project, in characters."""


def owner(work: Work, facts: Mapping[str, Any]) -> str:
    """The project that the facts name, or the caller's; only an administrator may name another."""
    project_id: str | None = facts.get('project_id', work.context.project_id)
    if not project_id:
        raise errors.Invalid('Invalid input for project_id. Reason: the token has no project, so it must be given.')
    if project_id != work.context.project_id and not work.context.is_admin:
        raise errors.Invalid(
            "Specifying 'project_id' or 'tenant_id' other than the authenticated project in request requires admin "
            'privileges'
        )
    return project_id


def reserve(work: Work, project_id: str, resource: str) -> None:
    """OverQuota if the project has as many as it may; others of the project wait until this transaction ends."""
    network_projects.lock_project(work, project_id)
    limit = network_projects.limits(work, project_id)[resource]
    if limit != UNLIMITED and network_projects.usage(work, project_id, (resource,))[resource] >= limit:
        raise errors.OverQuota(f"Quota exceeded for resources: ['{resource}'].")
