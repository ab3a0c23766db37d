"""A store in which something can come between any two transactions: all that lasts is written in them."""

from computeapi.db.engine import Store


class Killed(BaseException):
    """The process is gone, and with it everything that it would still have done."""


class Interruptible(Store):
    """The store of another object, in which something may happen before a transaction begins."""

    def __init__(self, store):
        self.__dict__.update(store.__dict__)
        self.left, self.interrupt, self.dead = None, None, False

    def read(self):
        self.live()
        return super().read()

    def write(self):
        self.live()
        if self.left is not None:
            self.left -= 1
            if self.left < 0:
                interrupt, self.left = self.interrupt, None
                interrupt()
        return super().write()

    def live(self):
        if self.dead:
            raise Killed()

    def after(self, steps, interrupt):
        """Let this happen when so many transactions are over; `left` is None then."""
        self.left, self.interrupt = steps, interrupt

    def die(self):
        self.dead = True
        raise Killed()

    def revive(self):
        self.dead, self.left = False, None
