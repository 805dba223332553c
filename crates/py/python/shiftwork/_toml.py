"""Values as TOML, for the reader of task-set files."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import timedelta

from ._spans import span_ns
from .errors import InputError

__all__ = ["line", "value"]


def line(key: str, item: object) -> str:
    """``key = item``."""
    return f"{_text(key)} = {value(item)}"


def value(item: object) -> str:
    """A value in one line; a ``timedelta`` becomes a duration."""
    match item:
        case bool():
            return "true" if item else "false"
        case str():
            return _text(item)
        case int():
            return str(item)
        case float():
            # TOML wants a digit after the point or an exponent, as `repr` has them.
            return repr(item)
        case timedelta():
            return _text(f"{span_ns('duration', item, positive=False)}ns")
        case Mapping():
            entries = (line(str(key), inner) for key, inner in item.items())
            return "{ " + ", ".join(entries) + " }"
        case Iterable():
            return "[" + ", ".join(value(inner) for inner in item) + "]"
    raise InputError(f"{item!r} has no place in a task set; write texts, numbers, lists or dictionaries")


def _text(text: str) -> str:
    # A JSON string is a TOML string, but for one control character that JSON leaves as it is.
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
