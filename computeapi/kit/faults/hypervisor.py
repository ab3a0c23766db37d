"""Wraps a driver: its operations are delayed, hang, fail, or do not reach a host, as rules, plans and outages say."""

import functools
import math
import socket
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from computeapi.backends.hypervisor import Console, Host, Hypervisor, HypervisorError, NotYet
from computeapi.backends.hypervisor.behaviour import LOOK_AGAIN_SECONDS, OPERATIONS, Behaviour, at_once
from computeapi.db.servers import Server
from computeapi.kit.tools import Tools
from computeapi.states import TaskState

DESTROY, LIVE_MIGRATE = 'destroy', 'live_migrate'


class FaultyHypervisor:
    """Wraps a driver. Calls that are not affected are passed on."""

    def __init__(self, driver: Hypervisor, tools: Tools, behaviour: Behaviour, task: int = 0, token: int = 0):
        self.driver, self.tools, self.behaviour = driver, tools, behaviour
        self.task, self.token = task, token

    def during(self, passed: Callable[[str], float], token: int = 0, task: int = 0) -> 'FaultyHypervisor':
        behaviour = self.tools.behaviour(task)
        behaviour.passed = passed
        return FaultyHypervisor(self.driver.during(passed, token, task), self.tools, behaviour, task, token)

    def hosts(self) -> list[Host]:
        down = self.tools.hosts.names
        return [replace(host, on=False) if host.name in down else host for host in self.driver.hosts()]

    def connect(self, server: Server, protocol: str, console: Console) -> socket.socket:
        """A host that is down accepts no connection; existing connections stay open."""
        if server.host in self.tools.hosts.names:
            raise HypervisorError(f'Host {server.host} does not respond.')
        return self.driver.connect(server, protocol, console)

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.driver, name)
        return functools.partial(self.act, name) if name in OPERATIONS else found

    def act(self, operation: str, server: Server, *arguments: Any, **options: Any) -> Any:
        """Call the driver, once no rule, plan or outage prevents it."""
        if operation == DESTROY and self.driver.power_state(server) is None:
            # Destroying a machine that does not exist takes no time and does not fail.
            return self.driver.destroy(server)
        try:
            wish = arguments[-1] if operation == LIVE_MIGRATE else ''
            driver = self.driver if wish == 'cancelling' else self.ready(operation, server, waits=wish != 'forcing')
            result = getattr(driver, operation)(server, *arguments, **options)
        except NotYet:
            # It will be tried again, as the same work.
            raise
        except BaseException:
            self.tools.faults.done(self.task, operation, server)
            raise
        self.tools.faults.done(self.task, operation, server)
        return result

    def ready(self, operation: str, server: Server, *, waits: bool) -> Hypervisor:
        """The driver to use, once nothing prevents the operation; NotYet, HypervisorError."""
        self.check_host(operation, server)
        if waits:
            self.behaviour.wait(operation, server)
        self.behaviour.fail(operation, server)
        if waits and self.tools.plans.lasts(self.task, operation, server, self.behaviour.passed):
            # The plan has determined how long it takes.
            return self.driver.during(at_once, self.token, self.task)
        return self.driver

    def check_host(self, operation: str, server: Server) -> None:
        """Make work on a host that is down wait until the host is back (NotYet). Destroying is allowed, because what is
        on the host is as good as gone. Anything else fails (HypervisorError) if the server is being deleted, or if the
        caller cannot wait."""
        if server.host not in self.tools.hosts.names or operation == DESTROY:
            return
        going = server.task_state == TaskState.DELETING
        if going or self.behaviour.passed(f'{operation} on {server.host} that is down') == math.inf:
            raise HypervisorError(f'Host {server.host} does not respond.')
        raise NotYet(LOOK_AGAIN_SECONDS)
