"""The projects that others may be given access or quotas."""

from computeapi.backends.identity import Identity
from computeapi.context import Context
from computeapi.errors import Invalid

MAX_ID_LENGTH = 255


class KnownProjects:
    """identity: None if there is none (auth_strategy none), or if projects are not verified."""

    def __init__(self, identity: Identity | None):
        self.identity = identity

    def check(self, context: Context, project_id: str) -> None:
        """Invalid for a project that does not exist. Without an identity service, every project exists; only
        administrators learn which projects do."""
        if len(project_id) > MAX_ID_LENGTH or not self._exists(context, project_id):
            raise Invalid(f'Project ID {project_id} is not a valid project.')

    def _exists(self, context: Context, project_id: str) -> bool:
        if self.identity is None or not context.is_admin or project_id == context.project_id:
            return True
        return self.identity.project_exists(context, project_id)
