"""Checks the services that this one depends on: their endpoints, their versions, and this service's user and roles."""

import threading
import time
from collections.abc import Callable, Mapping, Set
from concurrent.futures import Future
from typing import Any, NamedTuple

from keystoneauth1.exceptions import EndpointNotFound, OptionError
from keystoneauth1.identity.base import BaseIdentityPlugin
from keystoneauth1.plugin import BaseAuthPlugin
from keystoneauth1.session import Session
from openstack.proxy import Proxy
from oslo_config import cfg

from computeapi.backends.neighbour import SERVICE_USER, NeighbourService, keystone_asked, own_auth
from computeapi.backends.seal import Seal
from computeapi.backends.standing import Impression, Standing
from computeapi.context import Context
from computeapi.errors import Error, NeighbourAway

ITSELF = Context().elevated()
LONGEST_WORDS = 300
LONGEST_SECONDS = 10.0
"""The time limit for all checks, which run in parallel."""
ROLES = frozenset({'admin', 'service'})
"""The roles that this service's user needs: for its own operations, and for service tokens."""


class Place(NamedTuple):
    """A service. `path`: something that its own users may read.  `microversion`: the least one that is needed."""

    name: str
    group: str
    service_type: str
    major: int
    path: str
    is_wanted: Callable[[cfg.ConfigOpts], bool]
    microversion: tuple[int, int] | None = None


def _is(kind: str, backend: str) -> Callable[[cfg.ConfigOpts], bool]:
    return lambda conf: bool(conf[kind].backend == backend)


def _checks_tokens(conf: cfg.ConfigOpts) -> bool:
    return bool(conf.api.auth_strategy == 'keystone' or conf.identity.backend == 'keystone')


def _is_told(conf: cfg.ConfigOpts) -> bool:
    return bool(conf.placement.enabled)


NEIGHBOURS = (
    Place('Keystone', 'keystone', 'identity', 3, '/auth/projects', _checks_tokens),
    Place('Glance', 'glance', 'image', 2, '/images?limit=1', _is('image', 'glance')),
    Place('Neutron', 'neutron', 'network', 2, '/networks?limit=1&fields=id', _is('network', 'neutron')),
    Place('Cinder', 'cinder', 'block-storage', 3, '/volumes?limit=1', _is('volume', 'cinder'), (3, 44)),
    Place('Placement', 'placement', 'placement', 1, '/resource_providers?name=-', _is_told, (1, 38)),
)


def impressions(conf: cfg.ConfigOpts, seconds: float = LONGEST_SECONDS) -> Mapping[str, Impression]:
    """The state of each configured service, by name. All are checked in parallel, with this time limit."""
    wanted = [each for each in NEIGHBOURS if each.is_wanted(conf)]
    asked: dict[str, Future[Impression]] = {each.name: _begun(inquire, conf, each) for each in wanted}
    if any(each.group in ('glance', 'neutron', 'cinder') for each in wanted):
        asked['Service user'] = _begun(service_user, conf)
    deadline = time.monotonic() + seconds
    return {name: _ended(future, deadline, seconds) for name, future in asked.items()}


def _begun(ask: Callable[..., Impression], *arguments: Any) -> Future[Impression]:
    """Runs in a daemon thread, so that the process need not wait for it when it exits."""
    future: Future[Impression] = Future()
    threading.Thread(target=lambda: future.set_result(_told(ask, *arguments)), daemon=True).start()
    return future


def _ended(future: Future[Impression], deadline: float, seconds: float) -> Impression:
    try:
        return future.result(max(0, deadline - time.monotonic()))
    except TimeoutError:
        return Impression(Standing.AWAY, f'No response for {seconds:g} s.')


def _told(ask: Callable[..., Impression], *arguments: Any) -> Impression:
    """Turns every error into an Impression."""
    try:
        return ask(*arguments)
    except NeighbourAway as error:
        cause = error.__cause__
        found = Standing.WRONG if isinstance(cause, EndpointNotFound) else Standing.AWAY
        return _in_short(found, f'{error} {cause or ""}')
    except cfg.NoSuchOptError as error:
        return Impression(Standing.WRONG, f'{error}: the extra `openstack` is not installed')
    except (Error, cfg.Error, OptionError, ImportError) as error:
        return _in_short(Standing.WRONG, str(error))
    except Exception as error:
        return _in_short(Standing.WRONG, f'{type(error).__name__}: {error}')


def _in_short(standing: Standing, words: str) -> Impression:
    return Impression(standing, ' '.join(words.split())[:LONGEST_WORDS])


def inquire(conf: cfg.ConfigOpts, neighbour: Place) -> Impression:
    """Log in, find the service and read something there."""
    service = NeighbourService(conf, *neighbour[:4])
    with service.asked(ITSELF):
        proxy = service.proxy(ITSELF, Proxy)
        who, missing = _whoami(own_auth(conf, neighbour.group), service.session, ROLES)
        data = _located(service, proxy)
        if data is None:
            return Impression(
                Standing.WRONG, f'The catalog has no {neighbour.service_type} service with API v{neighbour.major}.'
            )
        proxy.get(neighbour.path, raise_exc=True)
    words = f'{_versions(data)} at {data.url}, as {who}'
    if neighbour.microversion and (data.max_microversion or (0, 0)) < neighbour.microversion:
        return Impression(Standing.WRONG, f'{words}: {_dotted(neighbour.microversion)} is required')
    return Impression(Standing.LACKING, f'{words}: it lacks {missing}') if missing else Impression(Standing.OK, words)


def _located(service: NeighbourService, proxy: Proxy) -> Any:
    """The endpoint data; None if the catalog has none, or the service does not speak the needed version."""
    try:
        found = proxy.get_endpoint_data()
    except ValueError:
        # keystoneauth raises this if region, interface or name match nothing in the catalog.
        return None
    if found is None and service.override:
        # keystoneauth does not tell unreachable services from those with other versions, so ask directly.
        service.session.get(service.override, authenticated=False)
    return found


def service_user(conf: cfg.ConfigOpts) -> Impression:
    """Checks the user whose service token accompanies callers' tokens."""
    if not (conf[SERVICE_USER].auth_type or conf[SERVICE_USER].auth_section):
        return Impression(
            Standing.LACKING,
            '[service_user] is not configured: [keystone_authtoken] is used, whose user may have other roles',
        )
    service = NeighbourService(conf, 'Keystone', SERVICE_USER, 'identity', 3)
    with service.asked(ITSELF):
        who, missing = _whoami(own_auth(conf, SERVICE_USER), service.session, {'service'})
    if missing:
        return Impression(Standing.LACKING, f'{who}: it lacks {missing}')
    return Impression(Standing.OK, who)


def token_keys(conf: cfg.ConfigOpts) -> Impression:
    """Whether the tokens that tasks need can be stored."""
    try:
        keys = conf[SERVICE_USER].task_token_key
        Seal(keys)
    except ValueError as error:
        return Impression(Standing.WRONG, f'[service_user]task_token_key is not a valid key: {error}')
    if keys or conf.volume.backend != 'cinder':
        return Impression(Standing.OK, f'[service_user]task_token_key: {len(keys)} set')
    return Impression(Standing.WRONG, 'Cinder requires a [service_user]task_token_key')


def _whoami(auth: BaseAuthPlugin, session: Session, needed: Set[str]) -> tuple[str, str]:
    """The user that logs in with this plugin, and the roles that it lacks."""
    with keystone_asked():
        if not isinstance(auth, BaseIdentityPlugin):
            return type(auth).__name__, ''
        access = auth.get_access(session)
    roles = {role.lower() for role in access.role_names or ()}
    who = f'{access.username} of {access.project_name or "no project"} ({", ".join(sorted(roles)) or "no roles"})'
    return who, ', '.join(sorted(needed - roles))


def _versions(data: Any) -> str:
    """E.g. v3.0 to v3.71, where there are microversions."""
    spoken = [data.api_version, data.max_microversion]
    return ' to '.join(f'v{_dotted(version)}' for version in dict.fromkeys(filter(None, spoken)))


def _dotted(version: tuple[int, ...]) -> str:
    return '.'.join(map(str, version))
