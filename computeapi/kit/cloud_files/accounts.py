"""The users that can log in to a cloud after a file was loaded."""

from typing import NamedTuple

from computeapi.kit.cloud_files.content import CloudContent


class UserAccount(NamedTuple):
    """A user of a document, with the password.

    project: one on which the user has a role, if there is any.  stated: whether the document contains the password.
    """

    user: str
    password: str
    domain: str
    project: str | None
    project_domain: str | None
    stated: bool

    @classmethod
    def own(cls, user: str, password: str) -> 'UserAccount':
        """An initial user of a cloud, with a project of the same name."""
        return cls(user, password, 'Default', user, 'Default', stated=True)


def accounts(content: CloudContent) -> list[UserAccount]:
    """The users whose passwords are known, because they were given or generated."""
    projects, domains = content.index('projects').rows, content.index('domains').rows
    # A generated password is never among these.
    stated = {entry['password'] for _, entry in content.entries('users') if entry.get('password')}
    found = []
    for user_id, password in content.passwords.items():
        row = content.row('users', user_id)
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
