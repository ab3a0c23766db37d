"""How the simulated hypervisor behaves: it takes its time, hangs and fails as the configuration says."""

from __future__ import annotations

import threading
import time

from oslo_config import cfg

from computeapi.backends.hypervisor import HypervisorError, Interrupted, Operations
from computeapi.db import servers
from computeapi.db.engine import Store
from computeapi.db.servers import Server
from computeapi.states import TaskState

# What rules can be for.
OPERATIONS = frozenset(name for name in vars(Operations) if not name.startswith('_'))
POLL_SECONDS = 0.05
LONGEST_HANG_SECONDS = 3600
GOING = (TaskState.DELETING, TaskState.SOFT_DELETING)


class Behaviour:
    """options: the group [simulated]; ValueError for rules about what there is not."""

    def __init__(self, store: Store, options: cfg.ConfigOpts.GroupAttr):
        self.store, self.options = store, options
        self.stopping = threading.Event()
        for name in ('fail', 'hang'):
            unknown = {rule.partition(':')[0] for rule in options[name]} - OPERATIONS
            if unknown:
                raise ValueError(f'[simulated]{name}: there is no operation {", ".join(sorted(unknown))}')

    def stop(self) -> None:
        """Interrupt what is under way, and whatever begins."""
        self.stopping.set()

    def act(self, operation: str, server: Server, seconds: float = 0) -> None:
        """Take the time, then hang or fail if there is a rule that says so."""
        self.wait(seconds)
        until = time.monotonic() + LONGEST_HANG_SECONDS
        while self.hangs(operation, server):
            if time.monotonic() > until or self.is_overtaken(server):
                raise HypervisorError(f'The simulated hypervisor was told to hang: {operation}')
            self.wait(POLL_SECONDS)
        self.fail(operation, server)

    def fail(self, operation: str, server: Server) -> None:
        """Fail if there is a rule that says so."""
        rule = self.rule('fail', operation, server)
        if rule is not None:
            raise HypervisorError(f'The simulated hypervisor was told to fail: {rule}')

    def wait(self, seconds: float) -> None:
        if self.stopping.wait(seconds):
            raise Interrupted()

    def hangs(self, operation: str, server: Server) -> bool:
        return self.rule('hang', operation, server) is not None

    def rule(self, kind: str, operation: str, server: Server) -> str | None:
        """The rule of this kind for the operation on that server, if there is one."""
        rules: list[str] = self.options[kind]
        for rule in rules:
            name, _, prefix = rule.partition(':')
            if name == operation and server.name.startswith(prefix):
                return rule
        return None

    def is_overtaken(self, server: Server) -> bool:
        """Whether the server is going, or is not doing any more what it was when the operation began."""
        with self.store.read() as connection:
            found = servers.get(connection, server.uuid)
        if found is None or found.task_state in GOING:
            return server.task_state not in GOING
        return server.task_state not in (None, found.task_state)
