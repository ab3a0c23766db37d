"""The state of a service that this one depends on, without importing its client libraries."""

import enum
from typing import NamedTuple


class Health(enum.Enum):
    OK = 'ok'
    AWAY = 'away'
    LACKING = 'lacking'
    """Some requests will be refused."""
    WRONG = 'wrong'
    """Nothing will work until the configuration or the service is changed."""


class HealthReport(NamedTuple):
    """The state of a service, with an explanation for operators."""

    health: Health
    words: str
