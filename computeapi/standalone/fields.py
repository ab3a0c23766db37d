"""Fields of the views of resources, as the volume and the share service show them."""

from collections.abc import Callable
from datetime import datetime
from typing import Any

from computeapi.web.contract import Field, attr


def time(moment: datetime | None) -> str | None:
    return None if moment is None else f'{moment:%Y-%m-%dT%H:%M:%S.%f}'


def read(get: Callable[..., Any], **kwargs: Any) -> Field:
    return Field({}, get, **kwargs)


def each(*names: str) -> dict[str, Field]:
    """Fields that show the attributes of the same names."""
    return {name: read(attr(name)) for name in names}


def constant(value: Any, **kwargs: Any) -> Field:
    """A field for a feature that this service does not have."""
    return read(lambda _: value, **kwargs)
