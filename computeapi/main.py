"""The composition root: from a configuration to a running service.  The only module that knows all others."""

from __future__ import annotations

import functools
import logging
import site
import sysconfig
from collections.abc import Callable, Collection, Iterable
from contextvars import ContextVar
from pathlib import Path
from typing import Any

from oslo_config import cfg
from paste.deploy import loadapp

from computeapi import api
from computeapi.api import cloud
from computeapi.api.cloud import Cloud
from computeapi.api.documents import V20, V21, VersionChoices, VersionDocument
from computeapi.api.guests import MetadataAddress, MetadataForAdministrators
from computeapi.backends import registry
from computeapi.backends.hypervisor import Hypervisor
from computeapi.backends.identity import Identity
from computeapi.backends.image import Images
from computeapi.backends.network import Networks
from computeapi.backends.share import Shares
from computeapi.backends.volume import Volume, Volumes
from computeapi.compute.audit import CloudAudit
from computeapi.compute.hosts import HostRegistry
from computeapi.compute.periodic import Periodic
from computeapi.compute.platform import Platform
from computeapi.compute.scheduler import Scheduler
from computeapi.compute.servers import TRANSITIONS, evacuation
from computeapi.compute.servers.deletion import leave_nothing
from computeapi.compute.servers.events import VOLUME_EXTENDED, Event
from computeapi.compute.tasks.heartbeat import Heartbeat
from computeapi.compute.tasks.queue import Tasks
from computeapi.compute.tasks.runner import Runner
from computeapi.compute.tasks.worker import Worker
from computeapi.context import Context
from computeapi.db import servers
from computeapi.db.engine import Store, store_of
from computeapi.errors import DatabaseTrouble
from computeapi.readiness import Readiness, ReadinessApp
from computeapi.web import auth, filters
from computeapi.web.app import App
from computeapi.web.policy import Policies

LOG = logging.getLogger(__name__)
WSGIApp = Callable[..., Any]

# Paste builds the pipeline out of the functions below and passes them only text; this is for whom it builds.
_building: ContextVar[Service] = ContextVar('building')


class Service:
    """One process of the service: the store, the backends that the configuration names, and the API on them.

    lonely: how to get more hosts, for the Scheduler to tell.  binary: what the process is called among the others.
    """

    def __init__(
        self,
        conf: cfg.ConfigOpts,
        store: Store | None = None,
        *,
        lonely: str | None = None,
        binary: str = 'computeapi-api',
    ):
        self.conf, self.lonely, self.binary = conf, lonely, binary
        self.store = store or store_of(conf)
        self.policies = Policies(conf, api.rules())

    @functools.cached_property
    def identity(self) -> Identity:
        return registry.IDENTITY[self.conf.identity.backend](self.conf, self.store)

    @functools.cached_property
    def images(self) -> Images:
        return registry.IMAGE[self.conf.image.backend](self.conf, self.store)

    @functools.cached_property
    def networks(self) -> Networks:
        return registry.NETWORK[self.conf.network.backend](self.conf, self.store, self.refresh_addresses)

    def refresh_addresses(self, context: Context, server_ids: Collection[str]) -> None:
        """What the network service did to these servers; the cloud is looked up late, for it stands on that service."""
        self.cloud.addresses.refresh(context, server_ids)

    @functools.cached_property
    def volumes(self) -> Volumes:
        make = registry.VOLUME[self.conf.volume.backend]
        return make(self.conf, self.store, self.images, self.tell_of_growth, self.uses)

    @functools.cached_property
    def shares(self) -> Shares:
        return registry.SHARE[self.conf.share.backend](self.conf, self.store)

    def tell_of_growth(self, context: Context, volume: Volume) -> None:
        """What a block storage service elsewhere would tell by an external event."""
        holders = [attachment['server_id'] for attachment in volume.attachments]
        events = [Event(VOLUME_EXTENDED, server_id, volume.id) for server_id in holders if server_id]
        self.cloud.external_events.take(context, events)

    def uses(self, volume_id: str, server_id: str) -> bool:
        """What a block storage service elsewhere would ask the compute API."""
        return any(disk.server_id == server_id for disk in self.store.ask(servers.on_volume, volume_id))

    @functools.cached_property
    def hypervisor(self) -> Hypervisor:
        return registry.HYPERVISOR[self.conf.hypervisor.backend](self.conf, self.store)

    @functools.cached_property
    def hosts(self) -> HostRegistry:
        return HostRegistry(self.store, self.hypervisor, beat_seconds=self.conf.report_interval, clock=self.store.clock)

    @functools.cached_property
    def worker(self) -> Worker:
        options, runner = self.conf, Runner(self.platform, TRANSITIONS, leave_nothing)
        tasks, beat = self.platform.tasks, self.heartbeat.beat
        return Worker(tasks, runner, options.workers, options.task_sweep_interval, beat, options.task_timeout)

    @functools.cached_property
    def auditor(self) -> Periodic:
        audit = CloudAudit(self.platform)
        return Periodic('audit', lambda: audit.take_turn(self.heartbeat.is_first), self.conf.audit_interval)

    @functools.cached_property
    def heartbeat(self) -> Heartbeat:
        return Heartbeat(self.platform.tasks, self.binary, self.conf.workers)

    @functools.cached_property
    def platform(self) -> Platform:
        return Platform(
            conf=self.conf,
            store=self.store,
            tasks=Tasks(self.store, self.conf.task_lease, self.store.clock),
            scheduler=Scheduler(self.store, self.conf, self.store.clock, self.lonely),
            hypervisor=self.hypervisor,
            images=self.images,
            networks=self.networks,
            volumes=self.volumes,
            shares=self.shares,
            clock=self.store.clock,
        )

    @functools.cached_property
    def cloud(self) -> Cloud:
        local = self.conf.api.auth_strategy in ('local', 'http_basic')
        return cloud.build(self.platform, self.identity if local else None)

    @functools.cached_property
    def compute_app(self) -> App:
        controllers = [kind(self.cloud) for kind in api.CONTROLLERS]
        options = self.conf.api
        return App(controllers, self.policies, options.compute_link_prefix, options.response_validation)

    def authenticate(self, token: str) -> Context:
        """The caller behind a token, for the built-in REST APIs: by the built-in identity, or by noauth's rules."""
        if self.conf.api.auth_strategy == 'none':
            return auth.noauth_context(token)
        return self.identity.authenticate(token)

    def load(self, name: str) -> WSGIApp:
        """The app *name* of the Paste file."""
        path = find_paste_file(self.conf)
        token = _building.set(self)
        try:
            app: WSGIApp = loadapp(f'config:{path}', name=name)
            return filters.at_public_url(app, self.conf.api.public_url)
        finally:
            _building.reset(token)

    def start(self, *, alone: bool = False) -> None:
        """Begin to work: hosts report, workers take tasks. `alone`: no other process uses the store.

        A process without workers says that it lives, and no more. After an error it can be tried again.
        """
        if alone:
            self.platform.tasks.release_all()
        self.heartbeat.begin(alone=alone)
        if self.conf.workers:
            self.recover()
            self.hosts.start()
            self.auditor.start()
        self.worker.start()

    def recover(self) -> None:
        """Do what whoever died did not come to."""
        self.hosts.register()
        evacuation.return_hosts(self.platform, self.hosts.running())
        for backend in (self.images, self.networks, self.volumes):
            if isinstance(backend, registry.Recovers):
                backend.recover()

    def stop(self) -> None:
        """End what is under way; what takes long is left to the next process."""
        self.auditor.stop()
        self.worker.stop()
        self.hosts.stop()
        try:
            self.heartbeat.end()
        except DatabaseTrouble:
            LOG.warning('The database could not be told that this process ends')

    def close(self) -> None:
        self.store.close()


def find_paste_file(conf: cfg.ConfigOpts) -> Path:
    """api_paste_config as it stands, beside the configuration, where packages put it, or in a checkout."""
    name: str = conf.wsgi.api_paste_config
    beside = [Path(file).parent for file in conf.config_file or ()]
    checkout = Path(__file__).resolve().parent.parent
    # pip puts the files of a wheel below the environment, and with --user below the user's base.
    installed = [
        Path(base) / 'etc/computeapi' for base in ('/', sysconfig.get_path('data'), site.getuserbase(), checkout)
    ]
    for folder in [Path(), *beside, *installed]:
        if (folder / name).is_file():
            return (folder / name).resolve()
    raise FileNotFoundError(f'The Paste file {name} was not found; set [wsgi]api_paste_config')


# ------------------------------------------------------------------ what api-paste.ini names


def urlmap(loader: Any, global_conf: dict[str, str], **apps: str) -> WSGIApp:
    return filters.URLMap({path: loader.get_app(name, global_conf=global_conf) for path, name in apps.items()})


def compute_app(global_conf: dict[str, str], **local_conf: str) -> WSGIApp:
    return _building.get().compute_app


def versions_app(global_conf: dict[str, str], **local_conf: str) -> WSGIApp:
    return VersionChoices(_building.get().conf.api.compute_link_prefix)


def version_v21_app(global_conf: dict[str, str], **local_conf: str) -> WSGIApp:
    return VersionDocument(V21, _building.get().conf.api.compute_link_prefix)


def version_v2_app(global_conf: dict[str, str], **local_conf: str) -> WSGIApp:
    return VersionDocument(V20, _building.get().conf.api.compute_link_prefix)


def openapi_app(global_conf: dict[str, str], **local_conf: str) -> WSGIApp:
    from computeapi.web.openapi import OpenAPI

    return OpenAPI(api.CONTROLLERS)


def readiness_app(global_conf: dict[str, str], **local_conf: str) -> WSGIApp:
    service = _building.get()
    return ReadinessApp(Readiness(service.conf, service.store).check)


def metadata_app(global_conf: dict[str, str], **local_conf: str) -> WSGIApp:
    service = _building.get()
    return MetadataAddress(service.cloud, service.conf.neutron.metadata_proxy_shared_secret)


def server_metadata_app(global_conf: dict[str, str], **local_conf: str) -> WSGIApp:
    return MetadataForAdministrators(_building.get().cloud)


def identity_app(global_conf: dict[str, str], **local_conf: str) -> WSGIApp:
    from computeapi.backends.identity.local import LocalIdentity
    from computeapi.standalone.identity import keystone

    identity = registry.built_in('identity', LocalIdentity, _building.get().identity)
    return keystone(identity)


def image_app(global_conf: dict[str, str], **local_conf: str) -> WSGIApp:
    from computeapi.backends.image.local import LocalImages
    from computeapi.standalone.image import glance

    service = _building.get()
    return glance(registry.built_in('image', LocalImages, service.images), service.authenticate)


def networking_app(global_conf: dict[str, str], **local_conf: str) -> WSGIApp:
    from computeapi.backends.network.local import LocalNetworks
    from computeapi.standalone.network import neutron

    service = _building.get()
    return neutron(registry.built_in('network', LocalNetworks, service.networks), service.authenticate)


def volume_app(global_conf: dict[str, str], **local_conf: str) -> WSGIApp:
    from computeapi.backends.volume.local import LocalVolumes
    from computeapi.standalone.volume import cinder

    service = _building.get()
    return cinder(registry.built_in('volume', LocalVolumes, service.volumes), service.authenticate)


def share_app(global_conf: dict[str, str], **local_conf: str) -> WSGIApp:
    from computeapi.backends.share.local import LocalShares
    from computeapi.standalone.share import manila

    service = _building.get()
    return manila(registry.built_in('share', LocalShares, service.shares), service.authenticate)


def _oslo(kind: type) -> Callable[[WSGIApp], WSGIApp]:
    """A filter of oslo.middleware that is set up by the service's configuration, not by one of its own."""
    conf = _building.get().conf
    return lambda app: kind(app, conf)


def cors(global_conf: dict[str, str], **local_conf: str) -> Callable[[WSGIApp], WSGIApp]:
    from oslo_middleware import cors

    cors.set_defaults(
        allow_headers=['X-Auth-Token', *filters.VERSION_HEADERS, *filters.REQUEST_ID_HEADERS],
        expose_headers=['Location', *filters.VERSION_HEADERS, *filters.REQUEST_ID_HEADERS],
        allow_methods=['GET', 'PUT', 'POST', 'DELETE', 'PATCH'],
    )
    conf = _building.get().conf

    def wrap(app: WSGIApp) -> WSGIApp:
        wrapped = cors.CORS(app, conf)

        def ask(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
            # Without an origin to allow it is for OPTIONS alone, which browsers send without a token; for all
            # else it would do nothing, at the cost of a request object.
            return (wrapped if environ['REQUEST_METHOD'] == 'OPTIONS' else app)(environ, start_response)

        return wrapped if wrapped.allowed_origins else ask

    return wrap


def http_proxy_to_wsgi(global_conf: dict[str, str], **local_conf: str) -> Callable[[WSGIApp], WSGIApp]:
    from oslo_middleware.http_proxy_to_wsgi import HTTPProxyToWSGI

    conf = _building.get().conf

    def wrap(app: WSGIApp) -> WSGIApp:
        wrapped = HTTPProxyToWSGI(app, conf)
        return wrapped if conf.oslo_middleware.enable_proxy_headers_parsing else app

    return wrap


def sizelimit(global_conf: dict[str, str], **local_conf: str) -> Callable[[WSGIApp], WSGIApp]:
    from oslo_middleware.sizelimit import RequestBodySizeLimiter

    return _oslo(RequestBodySizeLimiter)


def compute_req_id(global_conf: dict[str, str], **local_conf: str) -> Callable[[WSGIApp], WSGIApp]:
    return filters.RequestId


def faultwrap(global_conf: dict[str, str], **local_conf: str) -> Callable[[WSGIApp], WSGIApp]:
    return filters.FaultWrap


def request_log(global_conf: dict[str, str], **local_conf: str) -> Callable[[WSGIApp], WSGIApp]:
    return filters.RequestLog


def microversion(global_conf: dict[str, str], **local_conf: str) -> Callable[[WSGIApp], WSGIApp]:
    return filters.Microversion


def legacy_v2_compatible(global_conf: dict[str, str], **local_conf: str) -> Callable[[WSGIApp], WSGIApp]:
    return filters.LegacyV2Compatible


def authtoken(global_conf: dict[str, str], **local_conf: str) -> Callable[[WSGIApp], WSGIApp]:
    """Who the caller is, by [api]auth_strategy."""
    service = _building.get()
    strategy = service.conf.api.auth_strategy
    challenge = 'Keystone uri="{host}/identity"'
    if strategy == 'none':
        return lambda app: auth.Authenticator(app, auth.by_noauth, challenge)
    if strategy == 'local':
        return lambda app: auth.Authenticator(app, auth.by_token(service.identity.authenticate), challenge)
    if strategy == 'http_basic':
        identify = auth.by_password(service.identity.authenticate_password)
        return lambda app: auth.Authenticator(app, identify, 'Basic realm="compute"')
    from keystonemiddleware import auth_token

    keystone = auth_token.filter_factory({**global_conf, 'oslo_config_config': service.conf}, **local_conf)
    return lambda app: keystone(auth.Authenticator(app, auth.by_keystone_headers, challenge))


def keystonecontext(global_conf: dict[str, str], **local_conf: str) -> Callable[[WSGIApp], WSGIApp]:
    policies = _building.get().policies
    return lambda app: auth.KeystoneContext(app, policies)
