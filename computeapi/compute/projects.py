"""The projects that others may be given something for."""

from computeapi.backends.identity import Identity
from computeapi.context import Context
from computeapi.errors import Invalid

LONGEST_ID = 255


class KnownProjects:
    """identity: None where nobody keeps projects (auth_strategy none) or nobody is asked about them."""

    def __init__(self, identity: Identity | None):
        self.identity = identity

    def check(self, context: Context, project_id: str) -> None:
        """Invalid for a project that does not exist. Without an identity service every project does; who is no
        administrator is not told which do."""
        if len(project_id) > LONGEST_ID or not self._exists(context, project_id):
            raise Invalid(f'Project ID {project_id} is not a valid project.')

    def _exists(self, context: Context, project_id: str) -> bool:
        if self.identity is None or not context.is_admin or project_id == context.project_id:
            return True
        return self.identity.project_exists(context, project_id)
