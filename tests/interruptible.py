"""A store in which something can happen between any two transactions; everything persistent is written in
transactions."""

from types import SimpleNamespace

from computeapi.db.engine import Store


class Killed(BaseException):
    """The process is dead, along with everything that it would still have done."""


class Interruptible(Store):
    """A copy of a store in which something can happen before a transaction begins."""

    def __init__(self, store):
        self.__dict__.update(store.__dict__)
        # Shared with the stores that are copied from this one.
        self.plan = SimpleNamespace(left=None, interrupt=None, dead=False)

    @property
    def left(self):
        return self.plan.left

    def read(self):
        self.live()
        return super().read()

    def write(self):
        self.live()
        if self.plan.left is not None:
            self.plan.left -= 1
            if self.plan.left < 0:
                self.plan.left = None
                self.plan.interrupt()
        return super().write()

    def live(self):
        if self.plan.dead:
            raise Killed()

    def after(self, steps, interrupt):
        """Call `interrupt` after this many transactions; `left` is None then."""
        self.plan.left, self.plan.interrupt = steps, interrupt

    def die(self):
        self.plan.dead = True
        raise Killed()

    def revive(self):
        self.plan.dead, self.plan.left = False, None


def is_done_when_killed(store, service, settle, steps):
    """Let the workers act. Their process is killed after this many transactions, and another one continues. Returns
    whether all was done before."""
    store.after(steps, store.die)
    try:
        settle()
    except Killed:
        store.revive()
        service.platform.tasks.release_all()
        settle()
    done = store.left is not None
    store.after(None, None)
    return done
