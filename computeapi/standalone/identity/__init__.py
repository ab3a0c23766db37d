"""Keystone v3 on the local identity backend; docs/reference/what-works.md lists what is left out."""

from typing import Any

from computeapi.backends.identity.local import LocalIdentity
from computeapi.standalone.identity.application_credentials import KeystoneAccessRules, KeystoneApplicationCredentials
from computeapi.standalone.identity.base import KEYSTONE, KeystoneApp, KeystoneController
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


def versions(url: str) -> dict[str, Any]:
    return {'versions': {'values': [version(url)['version']]}}


def version(url: str) -> dict[str, Any]:
    return {
        'version': {
            'id': f'v{KEYSTONE.max}',
            'status': 'stable',
            'updated': '2020-04-07T00:00:00Z',
            'links': [{'rel': 'self', 'href': f'{url}/v3/'}],
            'media-types': [{'base': 'application/json', 'type': 'application/vnd.openstack.identity-v3+json'}],
        }
    }


def keystone(identity: LocalIdentity, claims: Claims = None) -> WSGIApp:
    """Keystone v3 as a WSGI app."""
    app = KeystoneApp([kind(identity) for kind in CONTROLLERS], identity.authenticate)
    return mounted(app.minding(claims), '/v3', VersionPage(app, versions, status=300), VersionPage(app, version, '/v3'))
