"""/os-console-auth-tokens: what a console proxy asks about the token that a client brought."""

from typing import Any

from computeapi.api.controller import ComputeController
from computeapi.api.types import INTEGER, NULLABLE_STRING, STRING, UUID
from computeapi.db.consoles import ConsoleToken
from computeapi.versions import ABSENT, added
from computeapi.web.contract import ADMIN, Field, Policy, View, attr, query
from computeapi.web.controller import api_version, operation
from computeapi.web.request import Request

SHOW = Policy('os_compute_api:os-console-auth-tokens', ADMIN, 'See where the token of a console leads')


def tls_port(token: ConsoleToken) -> Any:
    return ABSENT if token.tls_port is None else token.tls_port


CONSOLE = View(
    {
        'instance_uuid': Field(UUID, attr('server_id')),
        'host': Field(STRING, attr('address')),
        'port': Field(INTEGER, attr('port')),
        'tls_port': added('2.99', Field(INTEGER, tls_port, optional=True)),
        'internal_access_path': Field(NULLABLE_STRING, attr('internal_access_path')),
    }
)


class ConsoleAuthTokens(ComputeController):
    """The tokens in the URLs of consoles. Requests before 2.31 are refused: see computeapi.api.gone."""

    path = '/os-console-auth-tokens'

    @operation(
        'GET',
        '/{id}',
        policy=SHOW,
        query=query({}, strict='2.99'),
        response={'console': CONSOLE},
        errors=(404,),
        secret_path=True,
    )
    @api_version('2.31')
    def show(self, req: Request, id: str) -> dict[str, Any]:
        """Show where the token of a console leads."""
        return {'console': CONSOLE.render(req, self.cloud.consoles.find(id))}
