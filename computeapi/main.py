"""The composition root: builds a running service from a configuration. The only module that knows all others."""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Protocol, TypeVar

from oslo_config import cfg

from computeapi import api
from computeapi.api import cloud
from computeapi.api.cloud import CloudManagers
from computeapi.backends import registry
from computeapi.backends.encryption import Cipher
from computeapi.backends.hypervisor import Hypervisor
from computeapi.backends.identity import Identity
from computeapi.backends.image import Images
from computeapi.backends.network import Networks
from computeapi.backends.share import Shares
from computeapi.backends.volume import Volume, Volumes
from computeapi.compute.audit import CloudAudit
from computeapi.compute.hosts import HostRegistry, is_host_up
from computeapi.compute.mirror import Mirror
from computeapi.compute.notifications.outbox import outbox_of
from computeapi.compute.notifications.servers import ServerNotifications
from computeapi.compute.periodic import Periodic
from computeapi.compute.platform import Platform
from computeapi.compute.publishers import publishers_of
from computeapi.compute.scheduler import Scheduler
from computeapi.compute.servers import TRANSITIONS, evacuation, leftovers
from computeapi.compute.servers.events import VOLUME_EXTENDED, Event
from computeapi.compute.servers.healing import Healing
from computeapi.compute.servers.power_states import PowerStates
from computeapi.compute.tasks.heartbeat import Heartbeat
from computeapi.compute.tasks.queue import Tasks
from computeapi.compute.tasks.runner import Runner
from computeapi.compute.tasks.worker import Worker
from computeapi.config import neighbours
from computeapi.context import Context
from computeapi.db import block_devices
from computeapi.db.engine import Store, store_of
from computeapi.db.idempotency_keys import KeyClaims
from computeapi.db.tasks import Task
from computeapi.errors import DatabaseError
from computeapi.observers import Observer
from computeapi.web import auth
from computeapi.web.app import App
from computeapi.web.policy import Policies

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider

    from computeapi.bus import Bus
    from computeapi.observers.metrics import Metrics
    from computeapi.observers.traces import Traces

LOG = logging.getLogger(__name__)
# Writing to Placement can be interrupted at any point, and may take long. Seconds to wait for it when the process ends.
PUBLISHER_STOP_SECONDS = 2


Backend = TypeVar('Backend')
Work = Callable[[Task], None]


class WrapNeighbour(Protocol):
    """Wraps the backend of another service that compute depends on."""

    def __call__(self, name: str, backend: Backend) -> Backend: ...


class Service:
    """One process of the service: the store, the configured backends, and the API on top of them.

    lonely: a hint on how to get more hosts, which the Scheduler adds to its error when the only host does not fit.
    binary: the name of this process in the list of processes.
    wrap_driver: wraps the configured hypervisor driver.
    wrap_neighbour: wraps the other services that compute depends on; called with the name of their option group.
    wrap_work: wraps the function with which workers run a task.
    tracer_provider: creates spans when tracing is on; by default one built from the OTEL_* variables.
    """

    def __init__(
        self,
        conf: cfg.ConfigOpts,
        store: Store | None = None,
        *,
        lonely: str | None = None,
        binary: str = 'computeapi-api',
        wrap_driver: Callable[[Hypervisor], Hypervisor] = lambda driver: driver,
        wrap_neighbour: WrapNeighbour = lambda name, backend: backend,
        wrap_work: Callable[[Work], Work] = lambda run: run,
        tracer_provider: TracerProvider | None = None,
    ):
        self.conf, self.lonely, self.binary = conf, lonely, binary
        self.wrap_driver, self.wrap_neighbour, self.wrap_work = wrap_driver, wrap_neighbour, wrap_work
        self.tracer_provider = tracer_provider
        self.store = store or store_of(conf)
        self.policies = Policies(conf, api.rules())

    @functools.cached_property
    def metrics(self) -> Metrics | None:
        if not self.conf.metrics.enabled:
            return None
        from computeapi.observers.metrics import Metrics

        return Metrics(self.conf.metrics, self.store)

    @functools.cached_property
    def observers(self) -> list[Observer]:
        """The observers that wrap the work of this process; empty unless the operator enables some."""
        observers: list[Observer | None] = [self.metrics, self.traces]
        return [each for each in observers if each is not None]

    @functools.cached_property
    def traces(self) -> Traces | None:
        """Raises cfg.ConfigFileValueError if the tracing libraries are not installed."""
        if not self.conf.tracing.enabled:
            return None
        try:
            from computeapi.observers.traces import Traces, provider_of
        except ImportError as error:
            raise cfg.ConfigFileValueError(f'[tracing]enabled: {error}: the extra `tracing` is not installed') from None
        return Traces(self.tracer_provider or provider_of(self.binary))

    def observed(self, backend: Backend) -> Backend:
        """The same backend; if it is another service, the observers wrap the requests sent to it."""
        if isinstance(backend, registry.ExternalService):
            backend.service.around.extend(each.neighbours for each in self.observers)
        return backend

    @functools.cached_property
    def identity(self) -> Identity:
        return self.observed(registry.maker(registry.IDENTITY, self.conf.identity.backend)(self.conf, self.store))

    @functools.cached_property
    def callers(self) -> Identity:
        """The identity service as compute uses it."""
        return self.wrap_neighbour('identity', self.identity)

    @functools.cached_property
    def images(self) -> Images:
        return self.observed(registry.maker(registry.IMAGE, self.conf.image.backend)(self.conf, self.store))

    @functools.cached_property
    def networks(self) -> Networks:
        make = registry.maker(registry.NETWORK, self.conf.network.backend)
        return self.observed(make(self.conf, self.store, self.refresh_addresses))

    def refresh_addresses(self, context: Context, server_ids: Collection[str]) -> None:
        """Refresh the addresses of these servers after a change in the network service.

        The cloud is looked up late because it depends on that service.
        """
        self.cloud.addresses.refresh(context, server_ids)

    @functools.cached_property
    def volumes(self) -> Volumes:
        make = registry.maker(registry.VOLUME, self.conf.volume.backend)
        return self.observed(make(self.conf, self.store, self.images, self.report_extended_volume, self.uses))

    @functools.cached_property
    def shares(self) -> Shares:
        return registry.maker(registry.SHARE, self.conf.share.backend)(self.conf, self.store)

    def report_extended_volume(self, context: Context, volume: Volume) -> None:
        """Report an extended volume; an external block storage service would send an external event instead."""
        holders = [attachment['server_id'] for attachment in volume.attachments]
        events = [Event(VOLUME_EXTENDED, server_id, volume.id) for server_id in holders if server_id]
        self.cloud.external_events.take(context, events)

    def uses(self, volume_id: str, server_id: str) -> bool:
        """Whether the server uses the volume; an external block storage service would ask the compute API."""
        return any(disk.server_id == server_id for disk in self.store.query(block_devices.on_volume, volume_id))

    @functools.cached_property
    def hypervisor(self) -> Hypervisor:
        make = registry.maker(registry.HYPERVISOR, self.conf.hypervisor.backend)
        driver = self.wrap_driver(make(self.conf, self.store, self.images))
        for observer in self.observers:
            driver = observer.hypervisor(driver)
        return driver

    @functools.cached_property
    def hosts(self) -> HostRegistry:
        driven = self.hypervisor.hosts if self.bus is None else list
        return HostRegistry(
            self.store,
            driven,
            control=self.conf.host if self.conf.workers else None,
            beat_seconds=self.conf.report_interval,
            clock=self.store.clock,
            upkeep=self.upkeep,
            outbox=self.platform.outbox,
        )

    def upkeep(self) -> None:
        """Maintain the hosts and volumes on this machine."""
        self.hypervisor.upkeep()
        if isinstance(self.volumes, registry.NeedsUpkeep):
            self.volumes.upkeep()
        # A host that is up although it was forced down has nothing to restart, which would remove what was evacuated.
        evacuation.return_hosts(self.platform, self.hosts.running())

    @functools.cached_property
    def bus(self) -> Bus | None:
        """The bus on which agents of remote hosts are heard; None without them. The driver has its own bus to call
        them."""
        return registry.bus_of(self.conf)

    @functools.cached_property
    def worker(self) -> Worker:
        options, work = self.conf, self.wrap_work(Runner(self.platform, TRANSITIONS, leftovers.settle, leftovers.RESET))
        for observer in self.observers:
            work = observer.tasks(work)
        tasks, beat = self.platform.tasks, self.heartbeat.beat
        return Worker(tasks, work, options.workers, options.task_sweep_interval, beat, options.task_timeout)

    @functools.cached_property
    def audit(self) -> CloudAudit:
        return CloudAudit(self.platform)

    @functools.cached_property
    def auditor(self) -> Periodic:
        return self.periodic_in_one_process('audit', self.repair, self.conf.audit_interval)

    def periodic_in_one_process(self, name: str, act: Callable[[], None], seconds: float) -> Periodic:
        """Work that one process does for all."""
        return Periodic(name, lambda: act() if self.heartbeat.is_first() else None, seconds)

    @functools.cached_property
    def healer(self) -> Periodic:
        """Refreshes network info; disabled for the built-in networks, which report every change themselves."""
        healing = Healing(self.platform)
        seconds = 0 if self.conf.network.backend == 'local' else self.conf.heal_instance_info_cache_interval
        return self.periodic_in_one_process('healing', healing.take_turn, seconds)

    @functools.cached_property
    def power_state_checker(self) -> Periodic:
        """Syncs power states; disabled for the simulated hypervisor, whose guests never change state by themselves."""
        states = PowerStates(self.cloud.changes)
        seconds = 0 if self.conf.hypervisor.backend == 'simulated' else self.conf.sync_power_state_interval
        return self.periodic_in_one_process('power states', states.take_turn, seconds)

    @functools.cached_property
    def mirror(self) -> Mirror | None:
        placement = self.observed(registry.placement_of(self.conf))
        return None if placement is None else Mirror(self.store, placement, self.hypervisor, self.conf)

    @functools.cached_property
    def publishers(self) -> list[Periodic]:
        """What tells other services of changes here."""
        return publishers_of(self.platform)

    @functools.cached_property
    def cipher(self) -> Cipher:
        return Cipher(neighbours.task_token_keys(self.conf))

    @functools.cached_property
    def password_cipher(self) -> Cipher:
        """Encrypts the initial passwords of guests until they are on their config drives."""
        return self.cipher

    @functools.cached_property
    def heartbeat(self) -> Heartbeat:
        return Heartbeat(self.platform.tasks, self.binary, self.conf.host, self.conf.workers)

    @functools.cached_property
    def tasks(self) -> Tasks:
        mark = dict if self.traces is None else self.traces.of_task
        return Tasks(self.store, self.conf.task_lease, self.store.clock, self.cipher, mark)

    @functools.cached_property
    def platform(self) -> Platform:
        outbox = outbox_of(self.conf, self.store.clock)
        return Platform(
            conf=self.conf,
            store=self.store,
            tasks=self.tasks,
            scheduler=Scheduler(self.store, self.conf, self.store.clock, self.lonely, self.hypervisor),
            hypervisor=self.hypervisor,
            images=self.wrap_neighbour('image', self.images),
            networks=self.wrap_neighbour('network', self.networks),
            volumes=self.wrap_neighbour('volume', self.volumes),
            shares=self.wrap_neighbour('share', self.shares),
            cipher=self.password_cipher,
            mirror=self.mirror,
            outbox=outbox,
            notifications=ServerNotifications(outbox, self.conf, self.store.clock),
            clock=self.store.clock,
        )

    @functools.cached_property
    def cloud(self) -> CloudManagers:
        known = self.conf.identity.backend != 'local' or self.conf.api.auth_strategy in ('local', 'http_basic')
        return cloud.build(self.platform, self.callers if known else None)

    @functools.cached_property
    def compute_app(self) -> App:
        controllers = [kind(self.cloud) for kind in api.CONTROLLERS]
        options = self.conf.api
        return App(controllers, self.policies, options.compute_link_prefix, options.response_validation)

    @functools.cached_property
    def claims(self) -> KeyClaims | None:
        """The store of used Idempotency-Keys; None if they are disabled."""
        seconds, most = self.conf.api.idempotency_seconds, self.conf.api.idempotency_keys_per_user
        return KeyClaims(self.store, seconds, most) if seconds else None

    def authenticate(self, token: str) -> Context:
        """The caller behind a token, for the built-in REST APIs: by the built-in identity, or by the noauth rules."""
        if self.conf.api.auth_strategy == 'none':
            return auth.noauth_context(token)
        return self.identity.authenticate(token)

    def start(self, *, alone: bool = False) -> None:
        """Begin to work: hosts report, workers take tasks. `alone`: no other process uses the store.

        A process without workers only sends its heartbeat. After an error, `start` can be called again.
        """
        if alone:
            self.platform.tasks.release_all()
        self.heartbeat.begin(alone=alone)
        if self.metrics is not None:
            self.metrics.sampler.start()
        if self.conf.workers:
            self.recover()
            self.hosts.start()
            self.serve_agents()
            self.auditor.start()
            self.healer.start()
            self.power_state_checker.start()
            for publisher in self.publishers:
                publisher.start()
        self.worker.start()

    def serve_agents(self) -> None:
        """Listen to the agents on other machines, if there are any."""
        if self.bus is not None:
            from computeapi.backends.hypervisor.remote.calls import CONTROL
            from computeapi.backends.hypervisor.remote.signing import secrets_of
            from computeapi.compute.agent_reports import AgentReports, networks_of

            facts = (secrets_of(self.conf), networks_of(self.conf))
            agent_reports = AgentReports(self.store, self.hosts, self.take_back, *facts)
            self.bus.serve(CONTROL, agent_reports, self.conf.workers)

    def take_back(self, host: str, machines: Collection[str]) -> None:
        """Do what was deferred until this host is up again; `machines` are the servers that have a machine there."""
        evacuation.return_agent(self.platform, host)
        if is_host_up(self.platform, host):
            self.audit.return_agent(host, machines)

    def repair(self) -> None:
        """Repair what no task holds."""
        list(self.audit.repair())

    def recover(self) -> None:
        """Finish what processes that died left undone."""
        self.hypervisor.upkeep()
        self.hosts.register()
        evacuation.return_hosts(self.platform, self.hosts.running())
        for backend in (self.images, self.networks, self.volumes):
            if isinstance(backend, registry.Recoverable):
                backend.recover()

    def state_replaced(self) -> None:
        """Drop all cached state: the contents of the store were replaced."""
        for backend in (self.identity, self.images, self.networks, self.volumes, self.shares):
            if isinstance(backend, registry.HasCache):
                backend.forget()
        self.cloud.cells.forget()
        self.heartbeat.beat()
        self.hosts.report()
        self.platform.tasks.wake()

    def stop(self) -> None:
        """Stop this process; work that takes long is left to the next one."""
        self.auditor.stop()
        self.healer.stop()
        self.power_state_checker.stop()
        self.worker.stop()
        self.hosts.stop()
        if self.mirror is not None:
            self.mirror.ending = True
        for publisher in self.publishers:
            publisher.stop(PUBLISHER_STOP_SECONDS)
        try:
            self.heartbeat.end()
        except DatabaseError:
            LOG.warning('This process could not be unregistered; it is listed as up until its heartbeat expires')
        if self.bus is not None:
            self.bus.close()
        for observer in self.observers:
            observer.end()

    def close(self) -> None:
        self.store.close()
