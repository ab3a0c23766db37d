"""The implementations of each kind of backend, by the values of the option `backend` in its group.

Each is imported on first use: unused backends are not loaded.
"""

import importlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, cast, runtime_checkable

from oslo_config import cfg

from computeapi.backends.hypervisor import Hypervisor
from computeapi.backends.identity import Identity
from computeapi.backends.image import Images
from computeapi.backends.network import NetworkListener, Networks
from computeapi.backends.placement import Placement
from computeapi.backends.share import Shares
from computeapi.backends.volume import VolumeListener, Volumes, VolumeUsers
from computeapi.context import Context
from computeapi.db.engine import Store

if TYPE_CHECKING:
    from computeapi.bus import Bus

# The volume types of the built-in service: a plain one, and one whose volumes several servers can share.
VOLUME_TYPES = {'fake': {}, 'multiattach': {'multiattach': '<is> True'}}

Local = TypeVar('Local')
Maker = TypeVar('Maker')


@runtime_checkable
class Recoverable(Protocol):
    """A backend with work of its own, which a process that died may have left unfinished."""

    def recover(self) -> None:
        """Finish that work; called when a process starts, while others may be running."""


@runtime_checkable
class NeedsUpkeep(Protocol):
    """A backend that needs periodic maintenance on this machine."""

    def upkeep(self) -> None:
        """Do the maintenance; called periodically by worker processes."""


@runtime_checkable
class HasCache(Protocol):
    """A backend with a cache."""

    def forget(self) -> None:
        """Drop the cache; called when the contents of the store were replaced."""


@runtime_checkable
class ExternalService(Protocol):
    """A backend that is another service of the cloud: a NeighbourService."""

    service: Any


def built_in(kind: str, wanted: type[Local], backend: object) -> Local:
    """The backend as its class, for features that only the built-in one has; ConfigFileValueError for any other."""
    if not isinstance(backend, wanted):
        raise cfg.ConfigFileValueError(f'The built-in {kind} service is required, but [{kind}]backend is not local')
    return backend


def maker(table: Mapping[str, Maker], name: str) -> Maker:
    """The factory of the backend with that name: from the table, or from another package as module:function, with the
    same signature; ConfigFileValueError if it cannot be loaded."""
    module, colon, function = name.partition(':')
    if not colon:
        return table[name]
    try:
        return cast(Maker, getattr(importlib.import_module(module), function))
    except (ImportError, AttributeError) as error:
        raise cfg.ConfigFileValueError(f'The backend {name} cannot be loaded: {error}') from None


def local_identity(conf: cfg.ConfigOpts, store: Store) -> Identity:
    from computeapi.backends.identity.local import LocalIdentity

    options = conf.identity
    return LocalIdentity(
        store,
        token_hours=options.token_hours,
        bcrypt_cost=options.bcrypt_cost,
        credential_key=options.credential_key,
        most_tokens=options.tokens_per_user,
        most_credentials=options.application_credentials_per_user,
        clock=store.clock,
    )


def local_images(conf: cfg.ConfigOpts, store: Store) -> Images:
    from computeapi.backends.image.local import LocalImages

    options = conf.standalone
    directory = Path(options.data_dir) / 'images'
    return LocalImages(
        store, directory, max_bytes=options.max_image_bytes, max_images=options.max_images, clock=store.clock
    )


def local_networks(conf: cfg.ConfigOpts, store: Store, listener: NetworkListener) -> Networks:
    from computeapi.backends.network.local import LocalNetworks

    return LocalNetworks(store, clock=store.clock, listeners=[listener])


def local_volumes(
    conf: cfg.ConfigOpts, store: Store, images: Images, listener: VolumeListener, used: VolumeUsers
) -> Volumes:
    from computeapi.backends.volume.local import LocalVolumes

    files = volume_files(conf, images)
    facts: dict[str, Any] = {'files': files, 'exports': volume_exports(conf, files)}
    return LocalVolumes(store, images, types=VOLUME_TYPES, listeners=[listener], used=used, clock=store.clock, **facts)


def volume_files(conf: cfg.ConfigOpts, images: Images) -> Any:
    """The data of built-in volumes, if any guests can access them; else None."""
    if conf.hypervisor.backend != 'qemu' and not conf.volume.exported:
        return None
    from computeapi.backends.volume.local.files import VolumeFiles

    base_images = qemu_drivers().images_of(conf, images)
    return VolumeFiles(Path(conf.standalone.data_dir).absolute() / 'volumes', base_images.file)


def volume_exports(conf: cfg.ConfigOpts, files: Any) -> Any:
    """The exports of volumes to the guests of agents; None if not enabled."""
    if not conf.volume.exported:
        return None
    return qemu_drivers().exports_of(conf, Path(conf.standalone.data_dir).absolute() / 'exports', files.path)


def local_shares(conf: cfg.ConfigOpts, store: Store) -> Shares:
    from computeapi.backends.share.local import LocalShares

    return LocalShares(store, store.clock)


def simulated_hypervisor(conf: cfg.ConfigOpts, store: Store, images: Images) -> Hypervisor:
    from computeapi.backends.hypervisor.simulated import SimulatedHypervisor

    if conf.agent.host is None:
        return SimulatedHypervisor(store, conf.simulated, store.clock)
    from computeapi.backends.hypervisor.simulated_lone import LoneSimulatedHypervisor

    return LoneSimulatedHypervisor(store, conf.simulated, store.clock, conf.agent.host, conf.agent.my_ip)


def remote_hypervisor(conf: cfg.ConfigOpts, store: Store, images: Images) -> Hypervisor:
    from computeapi.backends.hypervisor.remote.driver import RemoteHypervisor
    from computeapi.backends.hypervisor.remote.signing import secrets_of
    from computeapi.bus import Bus

    bus = Bus(conf)
    longest = conf.rpc_response_timeout
    facts = {'down_after': conf.service_down_time, 'longest': longest, 'clock': store.clock}
    driver = RemoteHypervisor(bus, store, **facts, secrets=secrets_of(conf))
    return cast(Hypervisor, driver)


def qemu_hypervisor(conf: cfg.ConfigOpts, store: Store, images: Images) -> Hypervisor:
    drivers = qemu_drivers()
    around: dict[str, Any] = {}
    if conf.network.backend == 'neutron':
        around['bindings'] = neutron_networks(conf, store, unheard)
    elif conf.network.backend == 'local':
        around['wires'] = local_documents(store)
    if conf.volume.backend == 'cinder':
        around['connections'] = cinder_connections(conf)
    elif conf.agent.host is not None and conf.image.backend == 'glance':
        # An agent has no local services: the volume service is that of the cloud whose images it uses.
        around['exports'] = cinder_connections(conf)
    elif conf.volume.backend == 'local':
        around['volumes'] = volume_files(conf, images).path
    driver: Hypervisor = drivers.local_driver(conf, images, drivers.GuestServices(**around))
    return driver


def unheard(context: Context, changed: object) -> None:
    """A listener for backends that only answer queries here."""


def qemu_drivers() -> Any:
    """The module with the QEMU drivers."""
    try:
        from computeapi.backends.hypervisor.qemu import drivers
    except ImportError as error:
        raise cfg.ConfigFileValueError(f'[hypervisor]backend: {error}: the extra `qemu` is not installed') from None
    return drivers


def local_documents(store: Store) -> Any:
    """The resources of the built-in network service in Neutron's format, read-only."""
    from computeapi.backends.network.local.resources import Resources

    return Resources(store, store.clock)


def keystone_identity(conf: cfg.ConfigOpts, store: Store) -> Identity:
    from computeapi.backends.identity.keystone import KeystoneIdentity

    return KeystoneIdentity(conf)


def glance_images(conf: cfg.ConfigOpts, store: Store) -> Images:
    from computeapi.backends.image.glance import GlanceImages

    return GlanceImages(conf)


def neutron_networks(conf: cfg.ConfigOpts, store: Store, listener: NetworkListener) -> Networks:
    from computeapi.backends.network.neutron import NeutronNetworks

    return NeutronNetworks(conf)


def cinder_volumes(
    conf: cfg.ConfigOpts, store: Store, images: Images, listener: VolumeListener, used: VolumeUsers
) -> Volumes:
    from computeapi.backends.volume.cinder import CinderVolumes

    return CinderVolumes(conf)


def cinder_connections(conf: cfg.ConfigOpts) -> Any:
    """A Cinder, or the compatible built-in service, as far as hosts use it."""
    from computeapi.backends.volume.cinder.attachments import CinderUse

    return CinderUse(conf)


def placement_of(conf: cfg.ConfigOpts) -> Placement | None:
    """None if Placement is not enabled."""
    if not conf.placement.enabled:
        return None
    from computeapi.backends.placement.service import PlacementService

    return PlacementService(conf)


def bus_of(conf: cfg.ConfigOpts) -> 'Bus | None':
    """The bus to the agents of hosts; None if there are no agents."""
    if conf.hypervisor.backend != 'remote':
        return None
    from computeapi.bus import Bus

    return Bus(conf)


# Listeners hear what a separate service would report as external events; backends for those do not use them.
IDENTITY: Mapping[str, Callable[[cfg.ConfigOpts, Store], Identity]] = {
    'local': local_identity,
    'keystone': keystone_identity,
}
IMAGE: Mapping[str, Callable[[cfg.ConfigOpts, Store], Images]] = {'local': local_images, 'glance': glance_images}
NETWORK: Mapping[str, Callable[[cfg.ConfigOpts, Store, NetworkListener], Networks]] = {
    'local': local_networks,
    'neutron': neutron_networks,
}
VOLUME: Mapping[str, Callable[[cfg.ConfigOpts, Store, Images, VolumeListener, VolumeUsers], Volumes]] = {
    'local': local_volumes,
    'cinder': cinder_volumes,
}
SHARE: Mapping[str, Callable[[cfg.ConfigOpts, Store], Shares]] = {'local': local_shares}
HYPERVISOR: Mapping[str, Callable[[cfg.ConfigOpts, Store, Images], Hypervisor]] = {
    'simulated': simulated_hypervisor,
    'qemu': qemu_hypervisor,
    'remote': remote_hypervisor,
}
