"""How a service is that this one stands on, whatever is installed to ask it."""

import enum
from typing import NamedTuple


class Standing(enum.Enum):
    OK = 'ok'
    AWAY = 'away'
    LACKING = 'lacking'
    """Some of what is asked for will be refused."""
    WRONG = 'wrong'
    """Nothing will work before the configuration, or the service there, is another one."""


class Impression(NamedTuple):
    """What it looks like, in words for operators."""

    standing: Standing
    words: str
