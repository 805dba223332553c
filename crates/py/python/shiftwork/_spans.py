"""Spans of time as Python's users give them: texts with a unit, ``timedelta``, or whole nanoseconds."""

from __future__ import annotations

from datetime import timedelta

from . import _shiftwork
from .errors import InputError

__all__ = ["Duration", "as_text", "span_ns"]

#: A text with its unit (``"500us"``) or a ``timedelta``; a bare number is refused.
Duration = str | timedelta

_NS = {"microseconds": 1_000, "seconds": 1_000_000_000}


def span_ns(key: str, value: Duration | None, ns: int | None = None, *, positive: bool = True) -> int | None:
    """The nanoseconds of keyword ``key`` or of its twin ``key_ns``; ``None`` if neither is given."""
    if ns is not None:
        if value is not None:
            raise InputError(f"`{key}` and `{key}_ns` are both given; keep one of them")
        return _whole(f"{key}_ns", ns, positive=positive)
    if value is None:
        return None
    if isinstance(value, timedelta):
        whole_s = value.days * 86_400 + value.seconds
        whole = whole_s * _NS["seconds"] + value.microseconds * _NS["microseconds"]
        return _whole(key, whole, positive=positive)
    if not isinstance(value, str):
        raise InputError(
            f"`{key}` is {value!r}, which has no unit; write a duration like \"500us\", a timedelta, or `{key}_ns`"
        )
    try:
        return _shiftwork.span_ns(value, positive)
    except InputError as error:
        raise InputError(f"`{key}`: {error.detail}") from None


def _whole(key: str, ns: int, *, positive: bool) -> int:
    if isinstance(ns, bool) or not hasattr(ns, "__index__"):
        raise InputError(f"`{key}` is {ns!r}; write a whole number of nanoseconds")
    whole = ns.__index__()
    # The longest span there is: about 146 years.
    if not (1 if positive else 0) <= whole < 2**62:
        raise InputError(f"`{key}` is {whole} ns; write {1 if positive else 0} to {2**62 - 1}")
    return whole


def as_text(ns: int) -> str:
    """For people: at most four digits, in the largest unit that leaves a digit before the point."""
    for unit, size in (("s", 1_000_000_000), ("ms", 1_000_000), ("us", 1_000)):
        if ns >= size:
            return f"{ns / size:.4g} {unit}"
    return f"{ns} ns"
