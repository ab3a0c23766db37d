"""Permission checks of the built-in backends, for callers of any kind."""

from dataclasses import replace

from computeapi.context import Context
from computeapi.errors import Forbidden


def check_writer(context: Context) -> None:
    """Forbidden for read-only callers, and for a service that acts on its own behalf."""
    if not context.may_write:
        raise Forbidden('You are not authorized to perform the requested action.')


def owns(context: Context, project_id: str | None) -> bool:
    """Whether a resource of that project belongs to the caller; without a project it belongs to administrators."""
    return context.is_admin or project_id is not None and project_id == context.project_id


def serving(context: Context) -> Context:
    """The caller; a service that acts for users gets the role of a project member."""
    return replace(context, roles=context.roles | {'member'}) if context.is_service else context
