"""How an agent tells the workers that its host is up, and what is on it."""

import logging
import os
import socket
import uuid
from collections.abc import Collection
from dataclasses import replace

from computeapi import __version__
from computeapi.backends.hypervisor import Capability, Hypervisor
from computeapi.backends.hypervisor.remote.calls import CONTROL, EXPECTATION, REPORT, Expectation, Report
from computeapi.backends.hypervisor.remote.signing import sign
from computeapi.bus import Bus, Unanswered, Unheard

LOG = logging.getLogger(__name__)
# A worker that is there answers at once; one that is not yet is asked again soon.
REPORT_SECONDS = 3.0
NOT_HERE = frozenset({Capability.HOST_POWER})
"""What a machine cannot do to itself."""


class Reporter:
    """Reports one host, until it is stopped with its process."""

    def __init__(self, bus: Bus, host: str, driver: Hypervisor, key: str | None = None):
        self.bus, self.host, self.driver, self.key = bus, host, driver, key
        self.arriving, self.compared, self.answered = True, False, True
        self.id = str(uuid.uuid4())

    def tell(self) -> None:
        """What goes wrong is logged when it begins."""
        try:
            said = sign(self.key, 'report', {'report': REPORT.write(self.made())})
            found = self.bus.call(CONTROL, 'report', REPORT_SECONDS, **said)
            expected: Expectation = EXPECTATION.read(found)
        except (Unanswered, Unheard) as error:
            return self.go_unheard(str(error))
        if expected.refused:
            return self.go_unheard(expected.refused)
        if not self.answered:
            LOG.info('A worker receives the reports of this agent again')
        self.answered = True
        if self.arriving and not self.compared:
            self.compare(expected.servers, expected.moving)
            self.compared = True
        # Whoever removes what has no business here may be killed meanwhile.
        self.arriving = bool(expected.leaving)

    def go_unheard(self, why: str) -> None:
        if self.answered:
            LOG.warning('No worker receives the reports of this agent: %s', why)
        self.answered = False

    def made(self) -> Report:
        """What is to be said now."""
        [host] = [each for each in self.driver.hosts() if each.name == self.host]
        report = Report(
            host=host,
            capabilities=self.driver.capabilities_of(self.host) - NOT_HERE,
            release=__version__,
            id=self.id,
            pid=os.getpid(),
            machine=socket.gethostname(),
            connector=dict(self.driver.connector(self.host)),
        )
        return replace(report, arriving=True, machines=self.machines()) if self.arriving else report

    def machines(self) -> list[str]:
        return sorted(server_id for server_id, host in self.driver.machines() if host == self.host)

    def compare(self, expected: Collection[str], moving: Collection[str]) -> None:
        """Tell operators where what is here is not what should be."""
        found = set(self.machines())
        LOG.info('%d virtual machines are on host %s, %d are expected', len(found), self.host, len(expected))
        for server_id in sorted(found.difference(expected, moving)):
            LOG.warning('The virtual machine of server %s is here, but not expected', server_id)
        for server_id in sorted(set(expected) - found):
            LOG.warning('The virtual machine of server %s is expected, but not here', server_id)
