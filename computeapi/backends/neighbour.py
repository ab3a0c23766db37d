"""Another service of the cloud, spoken to as the caller or as this service itself, by keystoneauth's means.

A context that has the caller's token speaks as the caller, with a token of this service beside it: so the request holds
even after the caller's token has run out, and does what only services may do. A context without one, as `elevated()`
gives, speaks as this service, which then names the project that it does it for; only an administrator's may.
"""

import copy
import functools
import html
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar
from weakref import WeakValueDictionary

from keystoneauth1 import exceptions, loading
from keystoneauth1.discover import EndpointData, get_discovery
from keystoneauth1.loading.adapter import process_conf_options
from keystoneauth1.loading.session import Session as SessionLoader
from keystoneauth1.plugin import BaseAuthPlugin
from keystoneauth1.service_token import ServiceTokenAuthWrapper
from keystoneauth1.session import Session
from openstack.connection import Connection
from openstack.proxy import Proxy
from oslo_config import cfg

from computeapi.backends.seal import Seal
from computeapi.context import FROM_THE_VERSION, Context
from computeapi.errors import Error, Forbidden, NeighbourAway, NotAuthenticated

ProxyType = TypeVar('ProxyType', bound=Proxy)
Ask = Callable[..., Any]
"""Asks a service: (url, method, ...), as Session.request."""
Refusals = Mapping[Any, Callable[[str], Error]]
"""What makes an error of ours of a service's words: by the status that it answers, or by its own type of error."""

SERVICE_USER = 'service_user'
CREDENTIALS = (SERVICE_USER, 'keystone_authtoken')
"""The groups of options whose user this service is where a neighbour's own group names none."""

AWAY = (
    exceptions.ConnectionError,
    exceptions.DiscoveryFailure,
    exceptions.EndpointNotFound,
    exceptions.RetriableConnectionFailure,
)
AWAY_STATUSES = frozenset({502, 503, 504})
LONGEST_MESSAGE = 500

MOST_NAMED = 50
"""How many ids stand in one address: with all else it must fit into 4 KiB of headers."""

LOGINS: WeakValueDictionary[tuple[int, str], BaseAuthPlugin] = WeakValueDictionary()
"""The users of the groups of a configuration, each of which logs in once for all services. Who has one of them has its
configuration, too: no other one has its id meanwhile."""

TITLE = re.compile(r'<(head|h1)\b.*?</\1>', re.DOTALL | re.IGNORECASE)
TAG = re.compile(r'<[^>]*>')


class Refused(Error):
    """What a neighbour said no to that nobody foresaw; `status` is what it answered."""

    def __init__(self, name: str, status: int, message: str):
        super().__init__(f'{name} answered {status}: {message}')
        self.status = status


class NoToken(NotAuthenticated):
    text = "The caller's token is not known here: tasks have it only with [service_user]task_token_key."


class Speaker:
    """As whom a service is asked: as callers, or as this service, whose users *group* and SERVICE_USER name.

    override: where the service is, if not where the catalog says.
    """

    def __init__(self, conf: cfg.ConfigOpts, group: str, override: str | None = None):
        self.conf, self.group, self.override = conf, group, override
        self.seal = Seal(conf[SERVICE_USER].task_token_key)

    @functools.cached_property
    def itself(self) -> BaseAuthPlugin:
        """This service, as its users are configured. cfg.ConfigFileValueError if there is none."""
        return OwnAuth(self.conf, self.group, self.override)

    @functools.cached_property
    def beside(self) -> BaseAuthPlugin:
        """The user whose token tells that it is a service that asks."""
        return OwnAuth(self.conf, SERVICE_USER)

    def auth(self, context: Context) -> BaseAuthPlugin:
        token = context.auth_token or self.seal.opened(context.sealed_token)
        if token is None and not context.is_admin:
            raise NoToken()
        speaker = self.itself if token is None else CallerAuth(self.itself, token, context.project_id)
        # Some things only services may do, whatever their users' roles are.
        return ServiceTokenAuthWrapper(speaker, self.beside)


class NeighbourService(Speaker):
    """A service and how it is reached; made without asking it anything.

    name: what people call it, e.g. Neutron.  group: of its options.  service_type: in the catalog.
    major: the version of its API that is spoken.  around: what is to stand around each request, from before the first
    one on: functions of what services behind URLs are called, and of what asks them.
    """

    def __init__(self, conf: cfg.ConfigOpts, name: str, group: str, service_type: str, major: int):
        self.name = name
        self.around: list[Callable[[Callable[[str], str], Ask], Ask]] = []
        self.options: dict[str, Any] = {'user_agent': 'computeapi'}
        process_conf_options(conf[group], self.options)
        self.options['service_type'] = self.options['service_type'] or service_type
        if not any(self.options[bound] for bound in ('version', 'min_version', 'max_version')):
            self.options |= {'min_version': str(major), 'max_version': f'{major}.latest'}
        # The version is looked for there, too: it may be the root of the service.
        super().__init__(conf, group, self.options.pop('endpoint_override'))

    @functools.cached_property
    def session(self) -> Session:
        session = CarefulSessions().load_from_conf_options(self.conf, self.group, auth=self.itself)
        for around in self.around:
            session.request = around(self.name_at, session.request)  # type: ignore[method-assign]
        return session

    def name_at(self, url: str) -> str:
        """What is at the URL, which may be a path: this service, or Keystone, which its users log in to."""
        login = getattr(own_auth(self.conf, self.group), 'auth_url', None)
        root = login and FROM_THE_VERSION.sub('', login).rstrip('/')
        return 'Keystone' if root and url.startswith(root) else self.name

    @functools.cached_property
    def connection(self) -> Connection:
        """What openstacksdk's proxies ask about caches and metrics, of which there are none here."""
        return Connection(session=self.session)

    def proxy(self, context: Context, kind: type[ProxyType]) -> ProxyType:
        """The service for this caller, as a proxy of openstacksdk."""
        request_id = context.global_request_id or context.request_id
        made = kind(self.session, auth=self.auth(context), global_request_id=request_id, **self.options)
        made._connection = self.connection
        return made

    @contextmanager
    def asked(self, context: Context, refusals: Refusals | None = None) -> Iterator[None]:
        """What the service answers in the block as errors of ours: by type or status as *refusals* say, each made of
        the service's own words; else NeighbourAway, NotAuthenticated and Forbidden of callers, Refused."""
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
    """The names in order, as many at a time as one request can name."""
    wanted = sorted(set(names))
    return [wanted[start : start + MOST_NAMED] for start in range(0, len(wanted), MOST_NAMED)]


def has_token(context: Context) -> bool:
    """Whether a neighbour is asked as the caller."""
    return bool(context.auth_token or context.sealed_token)


def own_auth(conf: cfg.ConfigOpts, group: str) -> BaseAuthPlugin:
    """Who this service is at a neighbour: the user in its group, or else in one of CREDENTIALS."""
    for each in dict.fromkeys((group, *CREDENTIALS)):
        loading.register_auth_conf_options(conf, each)
        found = LOGINS.get((id(conf), each)) or loading.load_auth_from_conf_options(conf, each)
        if found is not None:
            LOGINS[id(conf), each] = found
            return found
    raise cfg.ConfigFileValueError(f'[{group}] requires the credentials of this service: auth_type and its options')


class CarefulSession(Session):
    """Tries again when a connection ends, but not with what makes something: it may have been made."""

    def request(self, url: str, method: str, *args: Any, **facts: Any) -> Any:
        if method == 'POST':
            facts['connect_retries'] = 0
        return super().request(url, method, *args, **facts)


class CarefulSessions(SessionLoader):
    plugin_class = CarefulSession


class Delegate(BaseAuthPlugin):
    """Finds services where another plugin does."""

    def __init__(self, behind: BaseAuthPlugin):
        super().__init__()
        self.behind = behind

    def get_token(self, session: Session) -> str | None:
        return self.behind.get_token(session)

    def get_endpoint(self, session: Session, **facts: Any) -> str | None:
        return self.behind.get_endpoint(session, **facts)

    def get_endpoint_data(self, session: Session, **facts: Any) -> Any:
        return self.behind.get_endpoint_data(session, **facts)

    def get_api_major_version(self, session: Session, **facts: Any) -> Any:
        return self.behind.get_api_major_version(session, **facts)

    def get_all_version_data(self, session: Session, *args: Any, **facts: Any) -> Any:
        return self.behind.get_all_version_data(session, *args, **facts)

    def get_project_id(self, session: Session) -> str | None:
        return self.behind.get_project_id(session)

    def get_connection_params(self, session: Session) -> Any:
        return self.behind.get_connection_params(session)

    def invalidate(self) -> bool:
        return self.behind.invalidate()


class OwnAuth(Delegate):
    """This service's own user, and where it finds a service: there, or where the catalog says.

    When Keystone does not give it a token, it is Keystone that is away.
    """

    def __init__(self, conf: cfg.ConfigOpts, group: str, override: str | None = None):
        super().__init__(own_auth(conf, group))
        self.conf, self.override = conf, override

    def get_token(self, session: Session) -> str | None:
        with keystone_asked():
            return self.behind.get_token(session)

    def get_endpoint_data(self, session: Session, **facts: Any) -> Any:
        self.get_token(session)
        found = self.behind.get_endpoint_data(session, **facts | {'endpoint_override': self.override})
        if found is not None and is_guessed(found):
            check_answers(session, found.url)
        return found

    def get_endpoint(self, session: Session, **facts: Any) -> str | None:
        data = self.get_endpoint_data(session, discover_versions=False, **facts)
        return None if data is None else data.url

    def get_api_major_version(self, session: Session, **facts: Any) -> Any:
        self.get_token(session)
        return self.behind.get_api_major_version(session, **facts)

    def get_all_version_data(self, session: Session, *args: Any, **facts: Any) -> Any:
        self.get_token(session)
        return self.behind.get_all_version_data(session, *args, **facts)

    def get_project_id(self, session: Session) -> str | None:
        self.get_token(session)
        return self.behind.get_project_id(session)


class CallerAuth(Delegate):
    """A caller's token, at the endpoints that this service knows; in their URLs stands the caller's project."""

    def __init__(self, behind: BaseAuthPlugin, token: str, project_id: str | None):
        super().__init__(behind)
        self.token, self.project_id = token, project_id

    def get_token(self, session: Session) -> str | None:
        return self.token

    def get_endpoint(self, session: Session, **facts: Any) -> str | None:
        data = self.get_endpoint_data(session, discover_versions=False, **facts)
        return None if data is None else data.url

    def get_endpoint_data(self, session: Session, **facts: Any) -> Any:
        data = self.behind.get_endpoint_data(session, **facts)
        own = self.behind.get_project_id(session)
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
    """Whether the library takes the root of a service for the version that is wanted, for nobody said where that is."""
    return found.api_version is None and not FROM_THE_VERSION.search(found.url or '')


def check_answers(session: Session, url: str | None) -> None:
    """One of AWAY, if that is so because nobody answers there: what is asked of a root is not found, whatever it is."""
    try:
        get_discovery(session, url or '', authenticated=False)
    except exceptions.HttpError as error:
        if error.http_status in AWAY_STATUSES:
            raise exceptions.DiscoveryFailure(f'No versions at {url}: {error}') from error
    except exceptions.DiscoveryFailure:
        # Somebody does, who knows no versions.
        return


def _in_project(url: str | None, own: str, project_id: str) -> str | None:
    return url and url.replace(own, project_id)


@contextmanager
def keystone_asked() -> Iterator[None]:
    try:
        yield
    except AWAY as error:
        raise NeighbourAway(name='Keystone') from error
    except exceptions.HttpError as error:
        if error.http_status in AWAY_STATUSES:
            raise NeighbourAway(name='Keystone') from error
        raise Refused('Keystone', error.http_status, "this service's own user was refused") from error


def status_of(error: Exception) -> int | None:
    """The HTTP status that an error of keystoneauth or openstacksdk is about, if any."""
    found = getattr(error, 'http_status', None) or getattr(error, 'status_code', None)
    return found if isinstance(found, int) else None


def document_of(error: Exception) -> Mapping[str, Any]:
    """What the service said about an error, as JSON: e.g. type and message of a NeutronError; {} if it did not."""
    try:
        body = getattr(error, 'response', None).json()  # type: ignore[union-attr]
    except (AttributeError, ValueError):
        return {}
    inner = next(iter(body.values()), None) if isinstance(body, dict) else None
    return inner if isinstance(inner, dict) else {}


def message_of(error: Exception) -> str:
    """What the service said, in one line; of a page only its words."""
    text = str(document_of(error).get('message') or _without_tags(getattr(error, 'details', None) or '') or error)
    return ' '.join(text.split())[:LONGEST_MESSAGE]


def _without_tags(text: str) -> str:
    """What a page says below its title."""
    return html.unescape(TAG.sub(' ', TITLE.sub('', text))).strip() if text.lstrip().startswith('<') else text
