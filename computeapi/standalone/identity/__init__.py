"""Keystone v3 on the local identity backend; docs/reference/what-works.md lists what is left out."""

from computeapi.backends.identity.local import LocalIdentity
from computeapi.standalone.identity.application_credentials import KeystoneAccessRules, KeystoneApplicationCredentials
from computeapi.standalone.identity.base import KeystoneApp, KeystoneController
from computeapi.standalone.identity.catalog import (
    EndpointFilter,
    EndpointGroupsOfProject,
    EndpointsOfProject,
    KeystoneEndpointGroups,
    KeystoneEndpoints,
    KeystoneRegions,
    KeystoneServices,
)
from computeapi.standalone.identity.credentials import EC2Credentials, KeystoneCredentials
from computeapi.standalone.identity.discovery import version, versions
from computeapi.standalone.identity.domains import KeystoneDomains
from computeapi.standalone.identity.groups import GroupsOfUser, KeystoneGroups
from computeapi.standalone.identity.limits import KeystoneLimits, RegisteredLimits
from computeapi.standalone.identity.policies import KeystonePolicies
from computeapi.standalone.identity.projects import KeystoneProjects, ProjectsOfUser, ProjectTags
from computeapi.standalone.identity.role_assignments import GRANTS, RoleAssignments
from computeapi.standalone.identity.roles import ImpliedRoles, KeystoneRoles, RoleInferences
from computeapi.standalone.identity.tokens import KeystoneTokens, TokenScopes
from computeapi.standalone.identity.trusts import KeystoneTrusts
from computeapi.standalone.identity.users import KeystoneUsers
from computeapi.standalone.service import Claims, VersionPage, mounted
from computeapi.web.filters import WSGIApp

CONTROLLERS: tuple[type[KeystoneController], ...] = (
    KeystoneTokens,
    TokenScopes,
    KeystoneRegions,
    KeystoneServices,
    KeystoneEndpoints,
    KeystoneEndpointGroups,
    EndpointGroupsOfProject,
    EndpointsOfProject,
    EndpointFilter,
    KeystoneDomains,
    KeystoneProjects,
    ProjectTags,
    ProjectsOfUser,
    KeystoneUsers,
    KeystoneGroups,
    GroupsOfUser,
    KeystoneApplicationCredentials,
    KeystoneAccessRules,
    KeystoneTrusts,
    EC2Credentials,
    KeystoneCredentials,
    KeystoneRoles,
    ImpliedRoles,
    RoleInferences,
    *GRANTS,
    RoleAssignments,
    RegisteredLimits,
    KeystoneLimits,
    KeystonePolicies,
)


def keystone(identity: LocalIdentity, claims: Claims = None) -> WSGIApp:
    """Keystone v3 as a WSGI app."""
    app = KeystoneApp([kind(identity) for kind in CONTROLLERS], identity.authenticate)
    return mounted(app.minding(claims), '/v3', VersionPage(app, versions, status=300), VersionPage(app, version, '/v3'))
