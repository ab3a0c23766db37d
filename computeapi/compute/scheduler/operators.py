"""Operators in extra specs: `>= 4`, `<or> intel <or> amd`; without an operator, the texts must be equal."""

import operator
from collections.abc import Callable

NUMBERS: dict[str, Callable[[float, float], bool]] = {
    # By Nova's definition, a single = also accepts larger values.
    '=': operator.ge,
    '==': operator.eq,
    '!=': operator.ne,
    '>=': operator.ge,
    '<=': operator.le,
}
TEXTS: dict[str, Callable[[str, str], bool]] = {
    's==': operator.eq,
    's!=': operator.ne,
    's>=': operator.ge,
    's>': operator.gt,
    's<=': operator.le,
    's<': operator.lt,
    '<in>': lambda value, operand: operand in value,
    '<all-in>': lambda value, operand: all(part in value for part in operand.split()),
}


def matches(value: str, wanted: str) -> bool:
    """Whether *value* meets the extra spec *wanted*."""
    sign, _, operand = wanted.strip().partition(' ')
    if sign in TEXTS:
        return TEXTS[sign](value, operand.strip())
    if sign == '<or>':
        return value in [part.strip() for part in wanted.split('<or>') if part.strip()]
    if sign in NUMBERS:
        return _number_matches(sign, value, operand)
    return value == wanted


def _number_matches(sign: str, value: str, operand: str) -> bool:
    try:
        return NUMBERS[sign](float(value), float(operand))
    except ValueError:
        return False
