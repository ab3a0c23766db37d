"""How an agent reports to the workers that its host is up, and what is on it."""

import logging
import os
import socket
import uuid
from collections.abc import Collection
from dataclasses import replace

from computeapi import __version__
from computeapi.backends.hypervisor import Capability, Hypervisor
from computeapi.backends.hypervisor.remote.calls import CONTROL, EXPECTATION, REPORT, Expectation, Report
from computeapi.backends.hypervisor.remote.signing import Keys, sign
from computeapi.bus import Bus, RemoteFailure, Unanswered

LOG = logging.getLogger(__name__)
# Workers answer at once; if none is there yet, the report is repeated soon.
REPORT_SECONDS = 3.0
NOT_HERE = frozenset({Capability.HOST_POWER})
"""The capabilities that a machine does not have for itself."""


class Reporter:
    """Reports one host, until its process stops."""

    def __init__(self, bus: Bus, host: str, driver: Hypervisor, keys: Keys = ()):
        self.bus, self.host, self.driver, self.keys = bus, host, driver, keys
        self.arriving, self.compared, self.answered = True, False, True
        self.id = str(uuid.uuid4())

    def report(self) -> None:
        """Send one report; errors are logged when they begin."""
        try:
            signed = sign(self.keys, 'report', {'report': REPORT.write(self.made())})
            found = self.bus.call(CONTROL, 'report', REPORT_SECONDS, **signed)
            expected: Expectation = EXPECTATION.read(found)
        except (Unanswered, RemoteFailure) as error:
            return self.warn_not_received(str(error))
        if expected.refused:
            return self.warn_not_received(expected.refused)
        if not self.answered:
            LOG.info('A worker receives the reports of this agent again')
        self.answered = True
        if self.arriving and not self.compared:
            self.compare(expected.servers, expected.moving)
            self.compared = True
        # Report as starting until nothing is left to remove: the worker that removes it may be killed.
        self.arriving = bool(expected.leaving)

    def warn_not_received(self, why: str) -> None:
        if self.answered:
            LOG.warning('No worker receives the reports of this agent: %s', why)
        # The host may have been taken for down, and servers on it deleted or evacuated.
        self.answered, self.arriving = False, True

    def made(self) -> Report:
        """The current report."""
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
        """Log differences between the machines found here and the expected ones, for operators."""
        found = set(self.machines())
        LOG.info('%d virtual machines are on host %s, %d are expected', len(found), self.host, len(expected))
        for server_id in sorted(found.difference(expected, moving)):
            LOG.warning('The virtual machine of server %s is here, but not expected', server_id)
        for server_id in sorted(set(expected) - found):
            LOG.warning('The virtual machine of server %s is expected, but not here', server_id)
