"""What the built-in backends ask about their callers, by whatever way they came in."""

from dataclasses import replace

from computeapi.context import Context
from computeapi.errors import Forbidden


def check_writer(context: Context) -> None:
    """Forbidden for who may only read, and for a service that acts for itself."""
    if not context.may_write:
        raise Forbidden('You are not authorized to perform the requested action.')


def owns(context: Context, project_id: str | None) -> bool:
    """Whether what belongs to that project is the caller's; what is nobody's is the administrators'."""
    return context.is_admin or project_id is not None and project_id == context.project_id


def serving(context: Context) -> Context:
    """The caller; another service as a member of its project, where it does what users asked it for."""
    return replace(context, roles=context.roles | {'member'}) if context.is_service else context
