"""Properties of images as image services store them: as text."""

from collections.abc import Mapping
from typing import Any

import orjson


def texts(properties: Mapping[str, Any]) -> dict[str, str]:
    return {name: _text(value) for name, value in properties.items() if value is not None}


def _text(value: Any) -> str:
    return orjson.dumps(value).decode() if isinstance(value, dict | list | tuple) else str(value)
