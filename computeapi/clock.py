"""Time as the store keeps it: naive UTC."""

from datetime import UTC, datetime

from oslo_utils import timeutils


def utcnow() -> datetime:
    """The current time in UTC, without tzinfo, to the microsecond."""
    return datetime.now(UTC).replace(tzinfo=None)


def parsed(text: str) -> datetime:
    """Parse an ISO 8601 time and convert it to UTC, the default if it names no zone; ValueError."""
    moment: datetime = timeutils.parse_isotime(text)
    try:
        return naive(moment)
    except OverflowError:
        raise ValueError(text) from None


def naive(moment: datetime) -> datetime:
    """The same moment as the store keeps it: in UTC, the default if it names no zone; OverflowError."""
    return moment if moment.tzinfo is None else moment.astimezone(UTC).replace(tzinfo=None)
