"""keystonemiddleware's filter, as this service has it."""

from typing import Any

import webob.exc
from keystoneauth1.exceptions import EndpointNotFound
from keystonemiddleware.auth_token import AuthProtocol

from computeapi.errors import NeighbourAway
from computeapi.web import faults


class KeystoneAuthToken(AuthProtocol):  # type: ignore[misc]
    """Answers with a fault, not a page, while Keystone is away."""

    def fetch_token(self, token: str, **facts: Any) -> Any:
        try:
            return super().fetch_token(token, **facts)
        except (webob.exc.HTTPServiceUnavailable, EndpointNotFound) as error:
            away = faults.of(NeighbourAway(name='Keystone'))
            raise webob.exc.HTTPServiceUnavailable(
                body=away.body, content_type=away.content_type, charset=away.charset
            ) from error
