"""Time as the store keeps it: naive UTC."""

from datetime import UTC, datetime

from oslo_utils import timeutils


def utcnow() -> datetime:
    """The present moment in UTC, without tzinfo, to the microsecond."""
    return datetime.now(UTC).replace(tzinfo=None)


def parsed(text: str) -> datetime:
    """The moment that ISO 8601 text names, in UTC, which is meant where it says no zone; ValueError."""
    moment: datetime = timeutils.parse_isotime(text)
    try:
        return moment.astimezone(UTC).replace(tzinfo=None)
    except OverflowError:
        raise ValueError(text) from None
