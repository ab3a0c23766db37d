"""Types of command-line arguments, for argparse."""

from __future__ import annotations

import argparse
import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import datetime


def version(text: str) -> str:
    """A version of the compute API, or `latest`."""
    from computeapi.versions import HISTORY

    if text != 'latest' and text not in HISTORY:
        raise argparse.ArgumentTypeError(f'{text} is not a version of this API')
    return text


def port(text: str) -> int:
    if not text.isdecimal() or int(text) > 65535:
        raise argparse.ArgumentTypeError(f'{text} is not a port')
    return int(text)


def number(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f'{text} is not a number above 0')
    return int(text)


def seconds(text: str) -> float:
    try:
        found = float(text)
    except ValueError:
        found = math.nan
    if not 0 <= found < math.inf:
        raise argparse.ArgumentTypeError(f'{text} is not a number of seconds')
    return found


def password(text: str) -> str:
    """Not empty, as an unset variable of a shell is."""
    if not text:
        raise argparse.ArgumentTypeError('the password is empty')
    return text


def date(text: str) -> datetime:
    from computeapi.clock import parsed

    try:
        return parsed(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f'{text} is not a date') from None
