"""Another service of the cloud, called as the caller or as this service itself, with keystoneauth.

A context with the caller's token acts as the caller and adds a service token of this service, so that the request works
even after the caller's token has expired, and may do what only services may. A context without a token, as from
`elevated()`, acts as this service, which names the project it acts for; only administrators' contexts may do so.
"""

import copy
import functools
import html
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from urllib.parse import parse_qs, urlsplit
from weakref import WeakValueDictionary

from keystoneauth1 import exceptions, loading
from keystoneauth1.adapter import Adapter
from keystoneauth1.discover import EndpointData, get_discovery
from keystoneauth1.loading.adapter import process_conf_options
from keystoneauth1.loading.session import Session as SessionLoader
from keystoneauth1.plugin import BaseAuthPlugin
from keystoneauth1.service_token import ServiceTokenAuthWrapper
from keystoneauth1.session import Session
from oslo_config import cfg

from computeapi.backends.direct_session import DirectSession
from computeapi.backends.encryption import Cipher
from computeapi.context import FROM_THE_VERSION, Context
from computeapi.errors import Error, Forbidden, NeighbourAway, NotAuthenticated

Ask = Callable[..., Any]
"""Calls a service: (url, method, ...), like Session.request."""
Refusals = Mapping[Any, Callable[[str], Error]]
"""Makes an Error from a service's message, by its HTTP status or by the type in its error document."""

SERVICE_USER = 'service_user'
CREDENTIALS = (SERVICE_USER, 'keystone_authtoken')
"""The option groups with this service's user, used if a service's own group has none."""

AWAY = (
    exceptions.ConnectionError,
    exceptions.DiscoveryFailure,
    exceptions.EndpointNotFound,
    exceptions.RetriableConnectionFailure,
)
AWAY_STATUSES = frozenset({502, 503, 504})
MAX_MESSAGE_LENGTH = 500

MAX_NAMED = 50
"""How many IDs a URL names at most: it must fit into 4 KiB of headers with everything else."""

LOGINS: WeakValueDictionary[tuple[int, str], BaseAuthPlugin] = WeakValueDictionary()
"""The auth plugins of a configuration's groups, each of which logs in once for all services. Every holder of a
plugin also holds its configuration, whose ID is therefore not reused meanwhile."""

TITLE = re.compile(r'<(head|h1)\b.*?</\1>', re.DOTALL | re.IGNORECASE)
TAG = re.compile(r'<[^>]*>')


class Refused(Error):
    """An unexpected error answer of another service; `status` is its HTTP status."""

    def __init__(self, name: str, status: int, message: str):
        super().__init__(f'{name} answered {status}: {message}')
        self.status = status


class NoToken(NotAuthenticated):
    text = "The caller's token is not available: tasks keep it only if [service_user]task_token_key is set."


class ServiceAuth:
    """Provides authentication for a service: as callers, or as this service, with the users of *group* and
    SERVICE_USER.

    override: the endpoint, if not the catalog's.
    """

    def __init__(self, conf: cfg.ConfigOpts, group: str, override: str | None = None):
        self.conf, self.group, self.override = conf, group, override
        self.cipher = Cipher(conf[SERVICE_USER].task_token_key)

    @functools.cached_property
    def own_auth(self) -> BaseAuthPlugin:
        """This service, as its users are configured. cfg.ConfigFileValueError if there is none."""
        return OwnAuth(self.conf, self.group, self.override)

    @functools.cached_property
    def service_token_auth(self) -> BaseAuthPlugin:
        """The user of the service token."""
        return OwnAuth(self.conf, SERVICE_USER)

    def auth(self, context: Context) -> BaseAuthPlugin:
        token = context.auth_token or self.cipher.decrypt(context.sealed_token)
        if token is None and not context.is_admin:
            raise NoToken()
        auth = self.own_auth if token is None else CallerAuth(self.own_auth, token, context.project_id)
        # Some actions are reserved for services, whatever roles their users have.
        return ServiceTokenAuthWrapper(auth, self.service_token_auth)


class NeighbourService(ServiceAuth):
    """A service and how it is reached; creating one sends no request.

    name: for people, e.g. Neutron.  group: of its options.  service_type: in the catalog.
    major: the API version to use.  around: wrappers of every request, set before the first one: functions that take a
    function from URLs to service names, and the request function, and return a request function.
    """

    def __init__(self, conf: cfg.ConfigOpts, name: str, group: str, service_type: str, major: int):
        self.name = name
        self.around: list[Callable[[Callable[[str], str], Ask], Ask]] = []
        self.options: dict[str, Any] = {'user_agent': 'computeapi'}
        process_conf_options(conf[group], self.options)
        self.options['service_type'] = self.options['service_type'] or service_type
        if not any(self.options[bound] for bound in ('version', 'min_version', 'max_version')):
            self.options |= {'min_version': str(major), 'max_version': f'{major}.latest'}
        # Versions are discovered at an override, too, because it may be the root of the service.
        super().__init__(conf, group, self.options.pop('endpoint_override'))

    @functools.cached_property
    def session(self) -> Session:
        session = RetryingSessionLoader().load_from_conf_options(self.conf, self.group, auth=self.own_auth)
        session.session = DirectSession(session.session.adapters)
        for around in self.around:
            session.request = around(self.name_at, session.request)  # type: ignore[method-assign]
        return session

    def name_at(self, url: str) -> str:
        """The service at the URL, which may be a path: this one, or the Keystone that its users log in to."""
        login = getattr(own_auth(self.conf, self.group), 'auth_url', None)
        root = login and FROM_THE_VERSION.sub('', login).rstrip('/')
        return 'Keystone' if root and url.startswith(root) else self.name

    def adapter(self, context: Context) -> Adapter:
        """The service for this caller."""
        request_id = context.global_request_id or context.request_id
        return Adapter(self.session, auth=self.auth(context), global_request_id=request_id, **self.options)

    @contextmanager
    def translating_errors(self, context: Context, refusals: Refusals | None = None) -> Iterator[None]:
        """Translates errors of the service in the block: to those that *refusals* has for their type or status, made
        with the service's message; else to NeighbourAway, to NotAuthenticated or Forbidden for callers, or to Refused.
        """
        try:
            yield
        except AWAY as error:
            raise NeighbourAway(name=self.name) from error
        except Error:
            raise
        except Exception as error:
            status = status_of(error)
            if status is None:
                raise
            raise self._error(context, status, error, refusals or {}) from error

    def _error(self, context: Context, status: int, error: Exception, refusals: Refusals) -> Error:
        message = message_of(error)
        make = refusals.get(document_of(error).get('type')) or refusals.get(status)
        if make is not None:
            return make(message)
        if status in AWAY_STATUSES:
            return NeighbourAway(name=self.name)
        if has_token(context) and status == 401:
            return NotAuthenticated()
        if has_token(context) and status == 403:
            return Forbidden(message)
        return Refused(self.name, status, message)


def pieces(names: Iterable[str]) -> list[list[str]]:
    """The names sorted, in chunks that fit into one request each."""
    wanted = sorted(set(names))
    return [wanted[start : start + MAX_NAMED] for start in range(0, len(wanted), MAX_NAMED)]


def next_page(page: Mapping[str, Any], collection: str) -> Mapping[str, Any] | None:
    """The query of the next page of a collection; None if this is the last one."""
    links = {link['rel']: link['href'] for link in page.get(f'{collection}_links', ())}
    # Only the query is used: the address may be one for clients.
    return parse_qs(urlsplit(links['next']).query) if 'next' in links else None


def has_token(context: Context) -> bool:
    """Whether requests are made as the caller."""
    return bool(context.auth_token or context.sealed_token)


def own_auth(conf: cfg.ConfigOpts, group: str) -> BaseAuthPlugin:
    """This service's user at another service: the one in its group, or else in one of CREDENTIALS."""
    for each in dict.fromkeys((group, *CREDENTIALS)):
        loading.register_auth_conf_options(conf, each)
        found = LOGINS.get((id(conf), each)) or loading.load_auth_from_conf_options(conf, each)
        if found is not None:
            LOGINS[id(conf), each] = found
            return found
    raise cfg.ConfigFileValueError(f'[{group}] requires the credentials of this service: auth_type and its options')


class RetryingSession(Session):
    """Retries failed connections, except for POST requests, which may have had an effect."""

    def request(self, url: str, method: str, *args: Any, **kwargs: Any) -> Any:
        if method == 'POST':
            kwargs['connect_retries'] = 0
        return super().request(url, method, *args, **kwargs)


class RetryingSessionLoader(SessionLoader):
    plugin_class = RetryingSession


class DelegatingAuth(BaseAuthPlugin):
    """Passes everything on to another plugin."""

    def __init__(self, delegate: BaseAuthPlugin):
        super().__init__()
        self.delegate = delegate

    def get_token(self, session: Session) -> str | None:
        return self.delegate.get_token(session)

    def get_endpoint(self, session: Session, **kwargs: Any) -> str | None:
        data = self.get_endpoint_data(session, discover_versions=False, **kwargs)
        return None if data is None else data.url

    def get_endpoint_data(self, session: Session, **kwargs: Any) -> Any:
        return self.delegate.get_endpoint_data(session, **kwargs)

    def get_api_major_version(self, session: Session, **kwargs: Any) -> Any:
        return self.delegate.get_api_major_version(session, **kwargs)

    def get_all_version_data(self, session: Session, *args: Any, **kwargs: Any) -> Any:
        return self.delegate.get_all_version_data(session, *args, **kwargs)

    def get_project_id(self, session: Session) -> str | None:
        return self.delegate.get_project_id(session)

    def get_connection_params(self, session: Session) -> Any:
        return self.delegate.get_connection_params(session)

    def invalidate(self) -> bool:
        return self.delegate.invalidate()


class OwnAuth(DelegatingAuth):
    """This service's own user, with the endpoint of a service: the override, or the catalog's.

    If Keystone cannot be reached for a token, the error names Keystone. Endpoints are kept as long as the token whose
    catalog has them: keystoneauth copies and searches the whole catalog each time.
    """

    def __init__(self, conf: cfg.ConfigOpts, group: str, override: str | None = None):
        super().__init__(own_auth(conf, group))
        self.conf, self.override = conf, override
        self.endpoints: tuple[Any, dict[str, EndpointData]] = (None, {})

    def get_token(self, session: Session) -> str | None:
        with translating_keystone_errors():
            return self.delegate.get_token(session)

    def get_endpoint_data(self, session: Session, **kwargs: Any) -> Any:
        token, wanted = self.get_token(session), repr(sorted(kwargs.items()))
        of_token, known = self.endpoints
        if of_token == token and wanted in known:
            return known[wanted]
        found = self.delegate.get_endpoint_data(session, **kwargs | {'endpoint_override': self.override})
        if found is not None and is_guessed(found):
            check_answers(session, found.url)
        elif found is not None:
            self.endpoints = (token, {**(known if of_token == token else {}), wanted: found})
        return found

    def get_api_major_version(self, session: Session, **kwargs: Any) -> Any:
        self.get_token(session)
        return self.delegate.get_api_major_version(session, **kwargs)

    def get_all_version_data(self, session: Session, *args: Any, **kwargs: Any) -> Any:
        self.get_token(session)
        return self.delegate.get_all_version_data(session, *args, **kwargs)

    def get_project_id(self, session: Session) -> str | None:
        self.get_token(session)
        return self.delegate.get_project_id(session)


class CallerAuth(DelegatingAuth):
    """A caller's token, with the endpoints that this service knows; URLs with a project ID get that of the caller."""

    def __init__(self, delegate: BaseAuthPlugin, token: str, project_id: str | None):
        super().__init__(delegate)
        self.token, self.project_id = token, project_id

    def get_token(self, session: Session) -> str | None:
        return self.token

    def get_endpoint_data(self, session: Session, **kwargs: Any) -> Any:
        data = self.delegate.get_endpoint_data(session, **kwargs)
        own = self.delegate.get_project_id(session)
        if data is None or not own or not self.project_id or own not in (data.url or ''):
            return data
        found = copy.copy(data)
        found.catalog_url = _in_project(found.catalog_url, own, self.project_id)
        found.service_url = _in_project(found.service_url, own, self.project_id)
        return found

    def get_project_id(self, session: Session) -> str | None:
        return self.project_id

    def invalidate(self) -> bool:
        return False


def is_guessed(found: EndpointData) -> bool:
    """Whether keystoneauth takes the root of a service for the wanted version, as it could not discover versions."""
    return found.api_version is None and not FROM_THE_VERSION.search(found.url or '')


def check_answers(session: Session, url: str | None) -> None:
    """Raises one of AWAY if the service is down: without versions, any request to its root would give 404."""
    try:
        get_discovery(session, url or '', authenticated=False)
    except exceptions.HttpError as error:
        if error.http_status in AWAY_STATUSES:
            raise exceptions.DiscoveryFailure(f'No versions at {url}: {error}') from error
    except exceptions.DiscoveryFailure:
        # It answers, but has no version document.
        return


def _in_project(url: str | None, own: str, project_id: str) -> str | None:
    return url and url.replace(own, project_id)


@contextmanager
def translating_keystone_errors() -> Iterator[None]:
    try:
        yield
    except AWAY as error:
        raise NeighbourAway(name='Keystone') from error
    except exceptions.HttpError as error:
        if error.http_status in AWAY_STATUSES:
            raise NeighbourAway(name='Keystone') from error
        raise Refused('Keystone', error.http_status, "this service's own user was refused") from error


def status_of(error: Exception) -> int | None:
    """The HTTP status of an error of keystoneauth, if any."""
    found = getattr(error, 'http_status', None)
    return found if isinstance(found, int) else None


def document_of(error: Exception) -> Mapping[str, Any]:
    """The contents of a JSON error document, e.g. type and message of a NeutronError; {} if there is none."""
    try:
        body = getattr(error, 'response', None).json()  # type: ignore[union-attr]
    except (AttributeError, ValueError):
        return {}
    inner = next(iter(body.values()), None) if isinstance(body, dict) else None
    return inner if isinstance(inner, dict) else {}


def message_of(error: Exception) -> str:
    """The error message in one line, without HTML."""
    text = str(document_of(error).get('message') or _without_tags(getattr(error, 'details', None) or '') or error)
    return ' '.join(text.split())[:MAX_MESSAGE_LENGTH]


def _without_tags(text: str) -> str:
    """The text of an HTML page below its title."""
    return html.unescape(TAG.sub(' ', TITLE.sub('', text))).strip() if text.lstrip().startswith('<') else text
