"""Keystone v3 in front of the local identity: as much of it as clients of the compute API use."""

from computeapi.standalone.identity.credentials import Credentials
from computeapi.standalone.identity.discovery import Discovery
from computeapi.standalone.identity.domains import Domains
from computeapi.standalone.identity.projects import Projects
from computeapi.standalone.identity.roles import Grants, Roles
from computeapi.standalone.identity.tokens import Tokens
from computeapi.standalone.identity.users import Users


class IdentityFace(Discovery, Tokens, Domains, Projects, Users, Roles, Grants, Credentials):
    """`catalog` lists the services as {'type', 'name', 'path'}; URLs come from the request's host."""

    name = 'identity'
