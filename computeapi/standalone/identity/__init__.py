"""Keystone v3 in front of the local identity: as much of it as clients of the compute API use."""

from collections.abc import Mapping, Sequence

from computeapi.backends.identity.local import LocalIdentity
from computeapi.standalone.identity.base import KeystoneApp
from computeapi.standalone.identity.catalog import Catalog
from computeapi.standalone.identity.credentials import KeystoneCredentials
from computeapi.standalone.identity.discovery import CatalogRecords, version, versions
from computeapi.standalone.identity.projects import KeystoneDomains, KeystoneProjects, ProjectsOfUser
from computeapi.standalone.identity.roles import (
    DomainGrants,
    KeystoneRoles,
    ProjectGrants,
    RoleAssignments,
    SystemGrants,
)
from computeapi.standalone.identity.tokens import KeystoneTokens, TokenScopes
from computeapi.standalone.identity.users import KeystoneUsers
from computeapi.standalone.service import VersionPage, mounted
from computeapi.web.filters import WSGIApp

CONTROLLERS = (
    KeystoneTokens,
    TokenScopes,
    CatalogRecords,
    KeystoneDomains,
    KeystoneProjects,
    ProjectsOfUser,
    KeystoneUsers,
    KeystoneCredentials,
    KeystoneRoles,
    ProjectGrants,
    DomainGrants,
    SystemGrants,
    RoleAssignments,
)


def keystone(identity: LocalIdentity, catalog: Sequence[Mapping[str, str]], region: str = 'RegionOne') -> WSGIApp:
    """Keystone v3 as a WSGI app. The catalog is of {'type', 'name', 'path'}; its URLs come from the request's host."""
    listed = Catalog(catalog, region)
    app = KeystoneApp([kind(identity, listed) for kind in CONTROLLERS], identity.authenticate)
    return mounted(app, '/v3', VersionPage(app, versions, status=300), VersionPage(app, version, '/v3'))
