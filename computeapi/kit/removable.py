"""What holds until somebody removes it."""

from collections.abc import Callable
from types import TracebackType
from typing import Any, Self


class Removable:
    """Something that a test adds to a cloud: it holds until `remove`, or until the end of a `with`."""

    _remove: Callable[[Any], None]

    def document(self) -> dict[str, Any]:
        """For readers of JSON."""
        raise NotImplementedError

    def remove(self) -> None:
        """Let it be over; what waits because of it goes on."""
        self._remove(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.remove()

    def __repr__(self) -> str:
        return f'{type(self).__name__}({", ".join(f"{name}={value!r}" for name, value in self.document().items())})'
