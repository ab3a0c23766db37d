"""Things that stay until they are removed."""

from collections.abc import Callable
from types import TracebackType
from typing import Any, Self


class Removable:
    """Something that a test adds to a cloud. It stays until `remove` or the end of a `with` block."""

    _remove: Callable[[Any], None]

    def document(self) -> dict[str, Any]:
        """The thing as JSON."""
        raise NotImplementedError

    def remove(self) -> None:
        """Remove it; what waits because of it continues."""
        self._remove(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.remove()

    def __repr__(self) -> str:
        return f'{type(self).__name__}({", ".join(f"{name}={value!r}" for name, value in self.document().items())})'
