"""The clouds to which a recording is played."""

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import requests

from computeapi.errors import Error, Invalid
from computeapi.kit.operations import APIS
from computeapi.kit.replay.recording import Recorded

if TYPE_CHECKING:
    from openstack.connection import Connection

TIMEOUT_SECONDS = 120
SERVICES = {'volume': 'block_storage', 'share': 'shared_file_system'}
"""Names of services in openstacksdk that differ from ours."""


class CloudUnreachable(Error):
    """A cloud cannot be reached at all."""


class Answer(NamedTuple):
    """The response of a cloud. status: None if there was none, and then `body` is the reason."""

    status: int | None
    headers: Mapping[str, str]
    body: Any


class ReplayTarget(Protocol):
    """A cloud, with a user who is logged in to a project."""

    name: str
    user: str | None
    project: str | None

    def send(self, step: Recorded, path: str, query: str, headers: Mapping[str, str], **body: Any) -> Answer:
        """Send a recorded request, with another path (below the version of the service), query, headers and body
        (`json` or `data`)."""

    def close(self) -> None:
        """Close connections."""


class CatalogTarget:
    """A cloud whose services are found in the catalog of its Keystone, by openstacksdk.

    where: its URL or that of its Keystone, or a name in clouds.yaml; None: as OS_* say.  cloud: a name in clouds.yaml
    with the credentials, instead of OS_*.  Raises CloudUnreachable.
    """

    def __init__(self, where: str | None, cloud: str | None = None):
        try:
            import openstack
            from keystoneauth1.exceptions import ClientException
            from openstack.exceptions import SDKException
        except ImportError:
            raise Invalid('Logging in to a cloud requires the package openstacksdk; --token does not.') from None
        self.name = where or cloud or os.environ.get('OS_CLOUD') or os.environ.get('OS_AUTH_URL', 'the cloud')
        self._errors = (ClientException, SDKException)
        options: dict[str, Any] = {'cloud': cloud} if cloud else {}
        if where and '://' in where:
            options['auth'] = {'auth_url': identity_url(where)}
        elif where:
            options['cloud'] = where
        try:
            self.connection: Connection = openstack.connect(**options)
            self.project, self.user = self.connection.current_project_id, self.connection.current_user_id
        except self._errors as error:
            raise CloudUnreachable(f'{self.name}: {error}') from None

    def send(self, step: Recorded, path: str, query: str, headers: Mapping[str, str], **body: Any) -> Answer:
        service = step.service or 'compute'
        url = f'{path}?{query}' if query else path
        try:
            proxy = getattr(self.connection, SERVICES.get(service, service))
            if step.root in LEGACY:
                url = proxy.get_endpoint().replace('/v2.1', step.root).rstrip('/') + url
            answer = proxy.request(url, step.method, headers=dict(headers), raise_exc=False, redirect=False, **body)
        except self._errors as error:
            return Answer(None, {}, str(error))
        return _answer(answer)

    def close(self) -> None:
        self.connection.close()


LEGACY = frozenset(APIS[0].roots) - {'/v2.1'}


class TokenTarget:
    """A cloud whose services are all below one URL, like those of computeapi, or only a compute service."""

    user: str | None = None
    project: str | None = None

    def __init__(self, url: str, token: str):
        self.name, self.session = url, requests.Session()
        self.url = url.rstrip('/').removesuffix('/v2.1')
        self.session.headers['X-Auth-Token'] = token

    def send(self, step: Recorded, path: str, query: str, headers: Mapping[str, str], **body: Any) -> Answer:
        mount = next(each.mounts[0] for each in APIS if each.name == (step.service or 'compute'))
        url = f'{self.url}{mount}{step.root}{path}'
        try:
            answer = self.session.request(
                step.method, url, params=query, headers=dict(headers), timeout=TIMEOUT_SECONDS, **body
            )
        except requests.RequestException as error:
            return Answer(None, {}, str(error))
        return _answer(answer)

    def close(self) -> None:
        self.session.close()


def target_of(where: str | None, cloud: str | None, token: str | None) -> ReplayTarget:
    """The cloud for these options; CloudUnreachable, Invalid."""
    if token is None:
        return CatalogTarget(where, cloud)
    if where is None or '://' not in where:
        raise Invalid('--token requires the URL of a cloud.')
    return TokenTarget(where, token)


def identity_url(url: str) -> str:
    """The URL of the Keystone, which is at this URL or, as in computeapi, at /identity below it."""
    try:
        found = requests.get(url, timeout=TIMEOUT_SECONDS, headers={'Accept': 'application/json'}).json()
    except (requests.RequestException, ValueError) as error:
        raise CloudUnreachable(f'{url}: {error}') from None
    is_identity = isinstance(found, dict) and ('version' in found or 'values' in found.get('versions', ()))
    return url if is_identity else f'{url.rstrip("/")}/identity'


def _answer(answer: requests.Response) -> Answer:
    try:
        body = answer.json() if 'json' in answer.headers.get('Content-Type', '') else None
    except ValueError:
        body = None
    return Answer(answer.status_code, answer.headers, body)
