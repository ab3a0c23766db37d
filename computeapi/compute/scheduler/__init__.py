"""Selects the host of a server: filters decide which hosts can take it, weighers which is best; then it is claimed."""

import copy
from collections.abc import Callable, Iterator, Mapping, Set
from dataclasses import replace
from datetime import datetime
from typing import NamedTuple, TypeVar

import sqlalchemy as sa
from oslo_config import cfg

from computeapi.backends.hypervisor import Capability, Hypervisor
from computeapi.clock import utcnow
from computeapi.compute.scheduler.agent_silence import AgentSilence, AgentsSilent
from computeapi.compute.scheduler.choice import HOSTS_PER_PAGE, HostChoice
from computeapi.compute.scheduler.filters import ALWAYS, FILTERS
from computeapi.compute.scheduler.hosts import HostState, Ratios, claim, load, load_named
from computeapi.compute.scheduler.providers import suitable, traits_of
from computeapi.compute.scheduler.spec import Spec
from computeapi.compute.scheduler.weighers import WEIGHERS
from computeapi.db import host_providers
from computeapi.db.engine import Store
from computeapi.errors import Error

T = TypeVar('T')


class NoValidHost(Error):
    """No host can take the server; the text says which filter left how many."""

    text = 'No valid host was found. {reason}'


class Survey(NamedTuple):
    """The hosts on their way through the filters.

    known: all hosts.  steps: the hosts that were left: first those that the request allows, then those that passed each
    filter.  best: those left in the end, best first.
    """

    known: list[HostState]
    steps: list[tuple[str, list[HostState]]]
    best: list[HostState]

    @property
    def trail(self) -> list[str]:
        """How many hosts each filter left, for the filters that rejected some."""
        (_, left), *filters = self.steps
        summary = [f'{len(left)} hosts to begin with']
        for name, passed in filters:
            if len(passed) < len(left):
                summary.append(f'{name}: {len(passed)} hosts')
            left = passed
        return summary


class Scheduler:
    """Unknown names of filters or weighers in the configuration raise cfg.Error at startup.

    lonely: advice for the case that the only host does not fit.  hypervisor: None: hosts have all capabilities.
    """

    def __init__(
        self,
        store: Store,
        conf: cfg.ConfigOpts,
        clock: Callable[[], datetime] = utcnow,
        lonely: str | None = None,
        hypervisor: Hypervisor | None = None,
    ):
        self.store, self.conf, self.clock, self.lonely, self.hypervisor = store, conf, clock, lonely, hypervisor
        options = conf.filter_scheduler
        self.filters = [(name, _named(FILTERS, name)) for name in options.enabled_filters]
        self.weighers = [_named(WEIGHERS, name) for name in options.weight_classes]
        self.ratios = Ratios.of(conf)
        self.agent_silence = AgentSilence(store, conf, clock)
        self.choice = HostChoice(conf, self.ratios, options.enabled_filters, options.weight_classes)

    def on(self, store: Store) -> 'Scheduler':
        """The same scheduler, writing to another store."""
        scheduler = copy.copy(self)
        scheduler.store = store
        return scheduler

    def allocate(
        self,
        spec: Spec,
        record: Callable[[sa.Connection, HostState], None],
        check: Callable[[HostState], None] | None = None,
    ) -> HostState:
        """Choose a host and claim what the server needs there; NoValidHost, AgentsSilent, and any error of *check*.

        record: records the host in the transaction of the claim, so that no claim is without its reason.
        check: is called for a host before anything is claimed there.
        """
        narrowed = self._narrowed(spec)
        for host in self.promising(narrowed):
            if self._take(narrowed, host, record, check):
                return host
        # If there is none, or others were faster, all hosts are checked one by one, also for the message.
        self.agent_silence.check()
        narrowed = self._narrowed(spec)
        survey = self.candidates(narrowed)
        for host in survey.best:
            if self._take(narrowed, host, record, check):
                return host
        raise self.refusal(narrowed, survey)

    def _narrowed(self, spec: Spec) -> Spec:
        """The same if nothing is required, or if Placement was asked for the hosts."""
        return self.store.query(self.narrowed, spec) if spec.groups and spec.among is None else spec

    def narrowed(self, connection: sa.Connection, spec: Spec) -> Spec:
        """The same, among the hosts that have the required resources and traits."""
        return replace(spec, among=suitable(connection, spec, self._usual()))

    def _usual(self) -> frozenset[Capability]:
        return frozenset(Capability) if self.hypervisor is None else self.hypervisor.capabilities_of(None)

    def traits_on(self, host: str | None) -> Set[str]:
        """The traits of a host, without those that only Placement knows."""
        provider = self.store.query(host_providers.select, host).get(host or '')
        return frozenset() if provider is None else traits_of(provider, self._usual())

    def _take(
        self,
        spec: Spec,
        host: HostState,
        record: Callable[[sa.Connection, HostState], None],
        check: Callable[[HostState], None] | None,
    ) -> bool:
        """Claim what the server needs on the host; returns whether there is room."""
        if check is not None:
            check(host)
        if spec.current_host is None and not host.has_room(spec):
            # A server that holds nothing yet needs all of it.
            return False
        with self.store.write() as connection:
            if claim(connection, spec, host, self.ratios):
                record(connection, host)
                return True
        return False

    def promising(self, spec: Spec) -> Iterator[HostState]:
        """The hosts that pass and have room, best first, as the database selects them, a few at a time. Meanwhile
        others may claim resources, which changes the order."""
        if not self.store.query(self.choice.is_possible, spec):
            return
        hosts, first = self.store.query(self.choice.page, spec, self.clock(), 0), 0
        while hosts:
            yield from (host for host in hosts if all(passes(host, spec) for _, passes in self.filters))
            if len(hosts) < HOSTS_PER_PAGE:
                return
            first += HOSTS_PER_PAGE
            hosts = self.store.query(self.choice.page, spec, self.clock(), first)

    def check(self, spec: Spec, *names: str) -> None:
        """NoValidHost unless the host that *spec* names passes these filters, as far as they are enabled."""
        hosts = self.store.query(load_named, self.conf, self.ratios, self.clock(), spec)
        wanted = [passes for name, passes in self.filters if name in names]
        if not any(host.is_asked_for(spec) and all(passes(host, spec) for passes in wanted) for host in hosts):
            raise NoValidHost(reason=f'Host {spec.host} does not pass {", ".join(names)}.')

    def candidates(self, spec: Spec) -> Survey:
        """The hosts that pass; NoValidHost if there are none."""
        survey = self.store.query(self.survey, spec)
        if not survey.best:
            raise self.refusal(spec, survey)
        return survey

    def survey(self, connection: sa.Connection, spec: Spec) -> Survey:
        """The hosts that each filter leaves, and the order of those left in the end."""
        known = load(connection, self.conf, self.ratios, self.clock(), spec)
        hosts = [host for host in known if host.name not in spec.ignored_hosts and host.is_asked_for(spec)]
        if spec.forced and spec.current_host is None:
            # A move can be forced to a disabled host, a new server cannot.
            hosts = [host for host in hosts if host.enabled]
        steps = [('', hosts)]
        filters = [*(() if spec.among is None else ALWAYS.items()), *(() if spec.forced else self.filters)]
        for name, passes in filters:
            hosts = [host for host in hosts if passes(host, spec)]
            steps.append((name, hosts))
        best = sorted(hosts, key=lambda host: [-weigh(host, spec) for weigh in self.weighers])
        return Survey(known, steps, best)

    def refusal(self, spec: Spec, survey: Survey) -> NoValidHost:
        """The reason for a failure: there is no such host, no host passes the filters, or those that pass have no
        room."""
        if not any(host.is_asked_for(spec) for host in survey.known) and (spec.host or spec.node):
            return NoValidHost(reason=f'No such host - host: {spec.host} node: {spec.node} ')
        if survey.best:
            return NoValidHost(reason='Filter results: ' + '; '.join([*survey.trail, 'Claim: 0 hosts']))
        # Another host would have the same traits and resources.
        helps = len(survey.known) == 1 and (spec.among is None or spec.among)
        advice = f'{self.lonely} ' if self.lonely and helps else ''
        return NoValidHost(
            reason=f'There are not enough hosts available. {advice}Filter results: {"; ".join(survey.trail)}'
        )


def _named(table: Mapping[str, T], name: str) -> T:
    if name not in table:
        raise cfg.ConfigFileValueError(f'[filter_scheduler]: There is no {name}; there are {", ".join(sorted(table))}')
    return table[name]


__all__ = ['HostState', 'AgentsSilent', 'NoValidHost', 'Scheduler', 'Spec', 'Survey']
