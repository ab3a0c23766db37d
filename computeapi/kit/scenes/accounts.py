"""Who can log in to a cloud that was loaded."""

from typing import NamedTuple

from computeapi.kit.scenes.scene import Scene


class UserAccount(NamedTuple):
    """A user of a document who can log in.

    project: one on which the user has a role, if there is any.  stated: whether the document has the password.
    """

    user: str
    password: str
    domain: str
    project: str | None
    project_domain: str | None
    stated: bool

    @classmethod
    def own(cls, user: str, password: str) -> 'UserAccount':
        """One of those that a cloud begins with, each of which has a project of its name."""
        return cls(user, password, 'Default', user, 'Default', stated=True)


def accounts(scene: Scene) -> list[UserAccount]:
    """Those whose passwords are known, stated or made."""
    projects, domains = scene.index('projects').rows, scene.index('domains').rows
    # One that was made up is none of these.
    stated = {entry['password'] for _, entry in scene.entries('users') if entry.get('password')}
    found = []
    for user_id, password in scene.passwords.items():
        row = scene.row('users', user_id)
        project = projects.get(row['default_project_id'] or '')
        found.append(
            UserAccount(
                user=row['name'],
                password=password,
                domain=domains[row['domain_id']]['name'],
                project=project['name'] if project else None,
                project_domain=domains[project['domain_id']]['name'] if project else None,
                stated=password in stated,
            )
        )
    return found
