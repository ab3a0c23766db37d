"""Checks the services that this one depends on: their endpoints, their versions, and this service's user and roles."""

import threading
import time
from collections.abc import Callable, Mapping, Set
from concurrent.futures import Future
from typing import Any, NamedTuple

from keystoneauth1.adapter import Adapter
from keystoneauth1.exceptions import EndpointNotFound, OptionError
from keystoneauth1.identity.base import BaseIdentityPlugin
from keystoneauth1.plugin import BaseAuthPlugin
from keystoneauth1.session import Session
from oslo_config import cfg

from computeapi.backends.encryption import Cipher
from computeapi.backends.health import Health, HealthReport
from computeapi.backends.neighbour import SERVICE_USER, NeighbourService, own_auth, translating_keystone_errors
from computeapi.context import Context
from computeapi.errors import Error, NeighbourAway

ITSELF = Context().elevated()
MAX_WORDS_LENGTH = 300
MAX_SECONDS = 10.0
"""The time limit for all checks, which run in parallel."""
ROLES = frozenset({'admin', 'service'})
"""The roles that this service's user needs: for its own operations, and for service tokens."""


class CheckedService(NamedTuple):
    """A service. `path`: something that its own users may read.  `microversion`: the least one that is needed."""

    name: str
    group: str
    service_type: str
    major: int
    path: str
    is_wanted: Callable[[cfg.ConfigOpts], bool]
    microversion: tuple[int, int] | None = None


def _has_backend(kind: str, backend: str) -> Callable[[cfg.ConfigOpts], bool]:
    return lambda conf: bool(conf[kind].backend == backend)


def _checks_tokens(conf: cfg.ConfigOpts) -> bool:
    return bool(conf.api.auth_strategy == 'keystone' or conf.identity.backend == 'keystone')


def _placement_enabled(conf: cfg.ConfigOpts) -> bool:
    return bool(conf.placement.enabled)


NEIGHBOURS = (
    CheckedService('Keystone', 'keystone', 'identity', 3, '/auth/projects', _checks_tokens),
    CheckedService('Glance', 'glance', 'image', 2, '/images?limit=1', _has_backend('image', 'glance')),
    CheckedService(
        'Neutron', 'neutron', 'network', 2, '/networks?limit=1&fields=id', _has_backend('network', 'neutron')
    ),
    CheckedService(
        'Cinder', 'cinder', 'block-storage', 3, '/volumes?limit=1', _has_backend('volume', 'cinder'), (3, 44)
    ),
    CheckedService('Placement', 'placement', 'placement', 1, '/resource_providers?name=-', _placement_enabled, (1, 38)),
)


def check_all(conf: cfg.ConfigOpts, seconds: float = MAX_SECONDS) -> Mapping[str, HealthReport]:
    """The state of each configured service, by name. All are checked in parallel, with this time limit."""
    wanted = [each for each in NEIGHBOURS if each.is_wanted(conf)]
    checks: dict[str, Future[HealthReport]] = {each.name: _started(check_service, conf, each) for each in wanted}
    if any(each.group in ('glance', 'neutron', 'cinder') for each in wanted):
        checks['Service user'] = _started(check_service_user, conf)
    deadline = time.monotonic() + seconds
    return {name: _result(future, deadline, seconds) for name, future in checks.items()}


def _started(check: Callable[..., HealthReport], *arguments: Any) -> Future[HealthReport]:
    """Runs in a daemon thread, so that the process need not wait for it when it exits."""
    future: Future[HealthReport] = Future()
    threading.Thread(target=lambda: future.set_result(_report_of(check, *arguments)), daemon=True).start()
    return future


def _result(future: Future[HealthReport], deadline: float, seconds: float) -> HealthReport:
    try:
        return future.result(max(0, deadline - time.monotonic()))
    except TimeoutError:
        return HealthReport(Health.AWAY, f'No response for {seconds:g} s.')


def _report_of(check: Callable[..., HealthReport], *arguments: Any) -> HealthReport:
    """Turns every error into a HealthReport."""
    try:
        return check(*arguments)
    except NeighbourAway as error:
        cause = error.__cause__
        found = Health.WRONG if isinstance(cause, EndpointNotFound) else Health.AWAY
        return _shortened(found, f'{error} {cause or ""}')
    except cfg.NoSuchOptError as error:
        return HealthReport(Health.WRONG, f'{error}: the extra `openstack` is not installed')
    except (Error, cfg.Error, OptionError, ImportError) as error:
        return _shortened(Health.WRONG, str(error))
    except Exception as error:
        return _shortened(Health.WRONG, f'{type(error).__name__}: {error}')


def _shortened(health: Health, words: str) -> HealthReport:
    return HealthReport(health, ' '.join(words.split())[:MAX_WORDS_LENGTH])


def check_service(conf: cfg.ConfigOpts, neighbour: CheckedService) -> HealthReport:
    """Log in, find the service and read something there."""
    service = NeighbourService(conf, *neighbour[:4])
    with service.translating_errors(ITSELF):
        adapter = service.adapter(ITSELF)
        who, missing = _whoami(own_auth(conf, neighbour.group), service.session, ROLES)
        data = _located(service, adapter)
        if data is None:
            return HealthReport(
                Health.WRONG, f'The catalog has no {neighbour.service_type} service with API v{neighbour.major}.'
            )
        adapter.get(neighbour.path)
    words = f'{_versions(data)} at {data.url}, as {who}'
    if neighbour.microversion and (data.max_microversion or (0, 0)) < neighbour.microversion:
        return HealthReport(Health.WRONG, f'{words}: {_dotted(neighbour.microversion)} is required')
    return HealthReport(Health.LACKING, f'{words}: it lacks {missing}') if missing else HealthReport(Health.OK, words)


def _located(service: NeighbourService, adapter: Adapter) -> Any:
    """The endpoint data; None if the catalog has none, or the service does not speak the needed version."""
    try:
        found = adapter.get_endpoint_data()
    except ValueError:
        # keystoneauth raises this if region, interface or name match nothing in the catalog.
        return None
    if found is None and service.override:
        # keystoneauth does not tell unreachable services from those with other versions, so ask directly.
        service.session.get(service.override, authenticated=False)
    return found


def check_service_user(conf: cfg.ConfigOpts) -> HealthReport:
    """Checks the user whose service token accompanies callers' tokens."""
    if not (conf[SERVICE_USER].auth_type or conf[SERVICE_USER].auth_section):
        return HealthReport(
            Health.LACKING,
            '[service_user] is not configured: [keystone_authtoken] is used, whose user may have other roles',
        )
    service = NeighbourService(conf, 'Keystone', SERVICE_USER, 'identity', 3)
    with service.translating_errors(ITSELF):
        who, missing = _whoami(own_auth(conf, SERVICE_USER), service.session, {'service'})
    if missing:
        return HealthReport(Health.LACKING, f'{who}: it lacks {missing}')
    return HealthReport(Health.OK, who)


def check_token_keys(conf: cfg.ConfigOpts) -> HealthReport:
    """Whether the tokens that tasks need can be stored."""
    try:
        keys = conf[SERVICE_USER].task_token_key
        Cipher(keys)
    except ValueError as error:
        return HealthReport(Health.WRONG, f'[service_user]task_token_key is not a valid key: {error}')
    if keys or conf.volume.backend != 'cinder':
        return HealthReport(Health.OK, f'[service_user]task_token_key: {len(keys)} set')
    return HealthReport(Health.WRONG, 'Cinder requires a [service_user]task_token_key')


def _whoami(auth: BaseAuthPlugin, session: Session, needed: Set[str]) -> tuple[str, str]:
    """The user that logs in with this plugin, and the roles that it lacks."""
    with translating_keystone_errors():
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
