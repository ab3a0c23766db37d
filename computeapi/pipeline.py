"""The factories that api-paste.ini names: the filters and apps of the pipeline, built for one Service."""

import functools
import site
import sysconfig
from collections.abc import Callable, Iterable
from contextvars import ContextVar
from pathlib import Path
from typing import Any

from oslo_config import cfg
from paste.deploy import loadapp
from webob.exc import HTTPNotFound

from computeapi import api
from computeapi.api.metadata_service import MetadataAddress, MetadataForAdministrators
from computeapi.api.version_documents import V20, VersionChoices, VersionDocument, v21
from computeapi.backends import registry
from computeapi.main import Service
from computeapi.readiness import Readiness, ReadinessApp
from computeapi.versions import COMPUTE, History
from computeapi.web import auth, filters
from computeapi.web.app import SAFE
from computeapi.web.idempotency import KEY_HEADER, REPLAYED_HEADER, Idempotency

WSGIApp = Callable[..., Any]

# Paste calls the functions below with text only; this is the service it builds the pipeline for.
_building: ContextVar[Service] = ContextVar('building')


def load(service: Service, name: str) -> WSGIApp:
    """The app *name* of the Paste file."""
    path = find_paste_file(service.conf)
    token = _building.set(service)
    try:
        app: WSGIApp = loadapp(f'config:{path}', name=name)
        return filters.at_public_url(app, service.conf.api.public_url)
    finally:
        _building.reset(token)


def offered(conf: cfg.ConfigOpts) -> History:
    """The versions of the compute API that clients can choose from.

    Raises cfg.ConfigFileValueError if [api]max_microversion is not a version of the API.
    """
    newest = conf.api.max_microversion
    try:
        return COMPUTE if newest is None else COMPUTE.until(str(COMPUTE.version(newest)))
    except ValueError as error:
        raise cfg.ConfigFileValueError(f'[api]max_microversion: {error}') from None


def find_paste_file(conf: cfg.ConfigOpts) -> Path:
    """Find api_paste_config: as given, next to the config files, where packages install it, or in a checkout."""
    name: str = conf.wsgi.api_paste_config
    beside = [Path(file).parent for file in conf.config_file or ()]
    checkout = Path(__file__).resolve().parent.parent
    # pip installs the data files of a wheel below the environment; with --user, below the user's base directory.
    installed = [
        Path(base) / 'etc/computeapi' for base in ('/', sysconfig.get_path('data'), site.getuserbase(), checkout)
    ]
    for folder in [Path(), *beside, *installed]:
        if (folder / name).is_file():
            return (folder / name).resolve()
    raise FileNotFoundError(f'The Paste file {name} was not found; set [wsgi]api_paste_config')


def urlmap(loader: Any, global_conf: dict[str, str], **apps: str) -> WSGIApp:
    return filters.URLMap({path: loader.get_app(name, global_conf=global_conf) for path, name in apps.items()})


def compute_app(global_conf: dict[str, str], **local_conf: str) -> WSGIApp:
    return _building.get().compute_app


def versions_app(global_conf: dict[str, str], **local_conf: str) -> WSGIApp:
    conf = _building.get().conf
    return VersionChoices(conf.api.compute_link_prefix, str(offered(conf).max))


def version_v21_app(global_conf: dict[str, str], **local_conf: str) -> WSGIApp:
    conf = _building.get().conf
    return VersionDocument(v21(str(offered(conf).max)), conf.api.compute_link_prefix)


def version_v2_app(global_conf: dict[str, str], **local_conf: str) -> WSGIApp:
    return VersionDocument(V20, _building.get().conf.api.compute_link_prefix)


def openapi_app(global_conf: dict[str, str], **local_conf: str) -> WSGIApp:
    from computeapi.web.openapi import OpenAPI

    conf = _building.get().conf
    return OpenAPI(api.CONTROLLERS, offered(conf), idempotency=conf.api.idempotency_seconds > 0)


def readiness_app(global_conf: dict[str, str], **local_conf: str) -> WSGIApp:
    service = _building.get()
    return ReadinessApp(Readiness(service.conf, service.store).check)


def metrics_app(global_conf: dict[str, str], **local_conf: str) -> WSGIApp:
    service = _building.get()
    if service.metrics is None:
        return HTTPNotFound()
    from computeapi.observers.app import metrics_app

    return metrics_app(service.metrics, service.conf)


def metadata_app(global_conf: dict[str, str], **local_conf: str) -> WSGIApp:
    service = _building.get()
    return MetadataAddress(service.cloud, service.conf.neutron.metadata_proxy_shared_secret)


def server_metadata_app(global_conf: dict[str, str], **local_conf: str) -> WSGIApp:
    return MetadataForAdministrators(_building.get().cloud)


def identity_app(global_conf: dict[str, str], **local_conf: str) -> WSGIApp:
    from computeapi.backends.identity.local import LocalIdentity
    from computeapi.standalone.identity import keystone

    service = _building.get()
    return keystone(registry.built_in('identity', LocalIdentity, service.identity), service.claims)


def image_app(global_conf: dict[str, str], **local_conf: str) -> WSGIApp:
    from computeapi.backends.image.local import LocalImages
    from computeapi.standalone.image import glance

    service = _building.get()
    return glance(registry.built_in('image', LocalImages, service.images), service.authenticate, service.claims)


def networking_app(global_conf: dict[str, str], **local_conf: str) -> WSGIApp:
    from computeapi.backends.network.local import LocalNetworks
    from computeapi.standalone.network import neutron

    service = _building.get()
    return neutron(registry.built_in('network', LocalNetworks, service.networks), service.authenticate, service.claims)


def volume_app(global_conf: dict[str, str], **local_conf: str) -> WSGIApp:
    from computeapi.backends.volume.local import LocalVolumes
    from computeapi.standalone.volume import cinder
    from computeapi.standalone.volume.service import CINDER

    service = _building.get()
    history = CINDER.until(service.conf.volume.max_microversion)
    volumes = registry.built_in('volume', LocalVolumes, service.volumes)
    return cinder(volumes, service.authenticate, service.claims, history)


def share_app(global_conf: dict[str, str], **local_conf: str) -> WSGIApp:
    from computeapi.backends.share.local import LocalShares
    from computeapi.standalone.share import manila
    from computeapi.standalone.share.service import MANILA

    service = _building.get()
    history = MANILA.until(service.conf.share.max_microversion)
    shares = registry.built_in('share', LocalShares, service.shares)
    return manila(shares, service.authenticate, service.claims, history)


def cors_options() -> list[cfg.Opt]:
    """The CORS options of oslo.middleware, with the defaults of this service."""
    from oslo_middleware import cors

    cors.set_defaults(
        allow_headers=['X-Auth-Token', KEY_HEADER, *filters.VERSION_HEADERS, *filters.REQUEST_ID_HEADERS],
        expose_headers=['Location', REPLAYED_HEADER, *filters.VERSION_HEADERS, *filters.REQUEST_ID_HEADERS],
        allow_methods=['GET', 'PUT', 'POST', 'DELETE', 'PATCH'],
    )
    return list(cors.CORS_OPTS)


def cors(global_conf: dict[str, str], **local_conf: str) -> Callable[[WSGIApp], WSGIApp]:
    from oslo_middleware import cors

    conf = _building.get().conf
    conf.register_opts(cors_options(), 'cors')
    if conf.cors.allowed_origin:
        return lambda app: cors.CORS(app, conf)

    def wrap(app: WSGIApp) -> WSGIApp:
        # Without an allowed origin, the filter only answers OPTIONS, which browsers send without a token; for other
        # methods it would do nothing, at the cost of a request object. Most processes never create it.
        wrapped = functools.cache(lambda: cors.CORS(app, conf))

        def respond(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
            answering = wrapped() if environ['REQUEST_METHOD'] == 'OPTIONS' else app
            return answering(environ, start_response)

        return respond

    return wrap


def http_proxy_to_wsgi(global_conf: dict[str, str], **local_conf: str) -> Callable[[WSGIApp], WSGIApp]:
    from oslo_middleware.http_proxy_to_wsgi import HTTPProxyToWSGI

    conf = _building.get().conf

    def wrap(app: WSGIApp) -> WSGIApp:
        wrapped = HTTPProxyToWSGI(filters.seen_by_proxy(app), conf)
        return wrapped if conf.oslo_middleware.enable_proxy_headers_parsing else app

    return wrap


def sizelimit(global_conf: dict[str, str], **local_conf: str) -> Callable[[WSGIApp], WSGIApp]:
    from oslo_middleware.sizelimit import RequestBodySizeLimiter

    conf = _building.get().conf

    def wrap(app: WSGIApp) -> WSGIApp:
        limited = RequestBodySizeLimiter(app, conf)

        def respond(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
            # The body of a GET without a Content-Length is never read; to limit it would cost a request and a response
            # object.
            unread = environ['REQUEST_METHOD'] in SAFE and not environ.get('CONTENT_LENGTH')
            answered: Iterable[bytes] = (app if unread else limited)(environ, start_response)
            return answered

        return respond

    return wrap


def compute_req_id(global_conf: dict[str, str], **local_conf: str) -> Callable[[WSGIApp], WSGIApp]:
    return filters.RequestId


def metrics(global_conf: dict[str, str], **local_conf: str) -> Callable[[WSGIApp], WSGIApp]:
    counting = _building.get().metrics
    return (lambda app: app) if counting is None else counting.requests


def traces(global_conf: dict[str, str], **local_conf: str) -> Callable[[WSGIApp], WSGIApp]:
    tracing = _building.get().traces
    return (lambda app: app) if tracing is None else tracing.requests


def faultwrap(global_conf: dict[str, str], **local_conf: str) -> Callable[[WSGIApp], WSGIApp]:
    return filters.FaultWrap


def request_log(global_conf: dict[str, str], **local_conf: str) -> Callable[[WSGIApp], WSGIApp]:
    return filters.RequestLog


def microversion(global_conf: dict[str, str], **local_conf: str) -> Callable[[WSGIApp], WSGIApp]:
    history = offered(_building.get().conf)
    return lambda app: filters.Microversion(app, history=history)


def legacy_v2_compatible(global_conf: dict[str, str], **local_conf: str) -> Callable[[WSGIApp], WSGIApp]:
    return filters.LegacyV2Compatible


def authtoken(global_conf: dict[str, str], **local_conf: str) -> Callable[[WSGIApp], WSGIApp]:
    """Identifies the caller, by [api]auth_strategy."""
    service = _building.get()
    strategy = service.conf.api.auth_strategy
    challenge = 'Keystone uri="{host}/identity"'
    if strategy == 'none':
        return lambda app: auth.Authenticator(app, auth.by_noauth, challenge)
    if strategy == 'local':
        return lambda app: auth.Authenticator(app, auth.by_token(service.callers.authenticate), challenge)
    if strategy == 'http_basic':
        identify = auth.by_password(service.callers.authenticate_password)
        return lambda app: auth.Authenticator(app, identify, 'Basic realm="compute"')
    from computeapi.web.keystone import KeystoneAuthToken

    options = {**global_conf, **local_conf}
    around = [each.neighbours for each in service.observers]
    return lambda app: KeystoneAuthToken(app, service.conf, options, challenge, around)


def keystonecontext(global_conf: dict[str, str], **local_conf: str) -> Callable[[WSGIApp], WSGIApp]:
    policies = _building.get().policies
    return lambda app: auth.KeystoneContext(app, policies)


def idempotency(global_conf: dict[str, str], **local_conf: str) -> Callable[[WSGIApp], WSGIApp]:
    """Not part of the pipeline unless it is enabled."""
    claims = _building.get().claims
    return (lambda app: app) if claims is None else lambda app: Idempotency(app, claims)
