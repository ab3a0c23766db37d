"""State transitions of a server, and the functions that perform them.

    PAUSE = Transition('pause', during=TaskState.PAUSING, allowed={VMState.ACTIVE}, failed=unchanged)

    @PAUSE.work
    def pause(job: Job) -> None: ...

A request begins the transition: it checks the server, and writes the task_state, the action and the task. A worker
calls the function. Its steps may run again after a worker died, so each first checks whether it was done; the last one
is `job.finish(...)`, which writes the outcome and removes the task in one transaction.
"""

from collections.abc import Callable, Set
from dataclasses import KW_ONLY, dataclass, field
from typing import Any

from computeapi.backends.hypervisor import Capability
from computeapi.compute.platform import Platform
from computeapi.compute.tasks.job import Job, abandon, into_error
from computeapi.db.servers import Server
from computeapi.db.tasks import Task
from computeapi.states import TaskState, VMState

Work = Callable[[Job], None]
Failure = Callable[[Job, Exception], None]
Undo = Callable[[Platform, Task, Server | None], None]

NOTHING_ELSE: Set[TaskState | None] = frozenset({None})


@dataclass(eq=False)
class Requirement:
    """The states in which a server accepts a request.

    name: as its action is recorded.  api_name: its name in refusals, if it differs.
    allowed: the vm_states (None: any).  while_doing: the task_states (None: any).
    lockable: whether a locked server refuses it.  tells_lock: whether that refusal mentions the lock.
    hosted: whether the server must have a host.  launched: whether it must have run at least once.
    capability: the required capability of the driver.
    """

    name: str
    _: KW_ONLY
    api_name: str = ''
    allowed: Set[VMState] | None = None
    while_doing: Set[TaskState | None] | None = NOTHING_ELSE
    lockable: bool = True
    tells_lock: bool = True
    hosted: bool = False
    launched: bool = True
    capability: Capability | None = None


@dataclass(eq=False)
class Transition(Requirement):
    """A change of a server, performed by a worker.

    during: the task_state that the server shows from the request on (None: none).
    steps: further task_states in which the worker continues; in any other, the task was overtaken (the server is being
    deleted, its state was reset) and is dropped.
    beside: it runs alongside whatever the server is doing and leaves its states alone; it ends with `job.end`.
    shares: whether a server with shares can do it.
    failed: handles the server when the function raises an error.
    harmless: whether the server is then as it was before.
    patient: whether it waits without a limit for a neighbour that is away.
    undo: takes back what the request created for the task when the task will not run: the server is deleted (None) or
    is doing something else.
    kind: the name of its tasks in the queue, if it differs from the name.
    """

    _: KW_ONLY
    during: TaskState | None = None
    steps: tuple[TaskState | None, ...] = ()
    beside: bool = False
    shares: bool = True
    failed: Failure = into_error
    harmless: bool = False
    patient: bool = False
    undo: Undo | None = None
    kind: str = ''
    function: Work | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        self.kind = self.kind or self.name
        self.doing = frozenset({self.during, *self.steps})

    def work(self, function: Work) -> Work:
        """Register the function that performs it. Stack the decorator if one function performs several transitions."""
        if self.function is not None:
            raise TypeError(f'{self.kind} is already done by {self.function.__name__}')
        self.function = function
        return function


def beside(name: str, **kwargs: Any) -> Transition:
    """A Transition that runs alongside whatever the server is doing; its failure is not a fault of the server."""
    return Transition(name, beside=True, failed=abandon, **kwargs)
