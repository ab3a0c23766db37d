"""How a server gets from one state to another, and what does it.

    PAUSE = Transition('pause', during=TaskState.PAUSING, allowed={VMState.ACTIVE}, failed=unchanged)

    @PAUSE.work
    def pause(job: Job) -> None: ...

A request begins it: it checks the server, and writes down the task_state, the action and the task. A worker calls the
function. Its steps may run again after a worker died, so each first looks whether it was done; the last one is
`job.finish(...)`, which writes the outcome and removes the task in one transaction.
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
    """In which states a server can be asked for something.

    name: as its action is recorded.  asked: as a refusal calls it, where that is another name.
    allowed: the vm_states (None: any).  while_doing: the task_states (None: any).
    lockable: whether a locked server refuses it.  tells_lock: whether that refusal says why.
    hosted: whether the server must have a host.  launched: whether it must have run at least once.
    capability: what the driver must be able to do.
    """

    name: str
    _: KW_ONLY
    asked: str = ''
    allowed: Set[VMState] | None = None
    while_doing: Set[TaskState | None] | None = NOTHING_ELSE
    lockable: bool = True
    tells_lock: bool = True
    hosted: bool = False
    launched: bool = True
    capability: Capability | None = None


@dataclass(eq=False)
class Transition(Requirement):
    """A change of a server, done by a worker.

    during: the task_state that the server shows from the request on (None: none).
    steps: further ones in which the worker goes on; in any other somebody has overtaken it (the server is being
    deleted, its state was reset), and the task is dropped.
    beside: it is done beside whatever the server is doing and leaves its states alone; it ends with `job.end`.
    shares: whether a server that has shares can do it.
    failed: what becomes of the server when the function raises an error.
    harmless: whether the server is then what it was.
    patient: whether it waits for a neighbour that is away as long as it takes.
    undo: takes back what the request made for the task, when nobody will do it: the server is gone (None) or is doing
    something else.
    kind: what its tasks are called in the queue, where that is not the name.
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
        """Note that this function does it. The decorator is stacked where one function does several."""
        if self.function is not None:
            raise TypeError(f'{self.kind} is done by {self.function.__name__} already')
        self.function = function
        return function


def beside(name: str, **facts: Any) -> Transition:
    """A Transition beside whatever the server is doing; when it fails, that is no fault of the server."""
    return Transition(name, beside=True, failed=abandon, **facts)
