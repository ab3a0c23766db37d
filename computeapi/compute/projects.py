"""The projects that others may be given something for."""

from computeapi.backends.identity import Identity
from computeapi.context import Context
from computeapi.errors import Invalid

LONGEST_ID = 255


class KnownProjects:
    """identity: None where nobody keeps projects (auth_strategy none) or they are kept elsewhere."""

    def __init__(self, identity: Identity | None):
        self.identity = identity

    def check(self, context: Context, project_id: str) -> None:
        """Invalid for a project that does not exist. Without an identity service every project does; who is no
        administrator is not told which do."""
        missing = context.is_admin and self.identity is not None and not self.identity.project_exists(project_id)
        if missing or len(project_id) > LONGEST_ID:
            raise Invalid(f'Project ID {project_id} is not a valid project.')
