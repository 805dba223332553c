"""Which policies there are."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Literal

from . import _shiftwork

__all__ = ["Policy", "policies"]


@dataclass(frozen=True, slots=True)
class Policy:
    """A scheduling policy."""

    #: As it is published; names are accepted in any case.
    name: str
    #: What it is, in a line.
    summary: str
    #: Which task sets it takes.
    domain: str
    #: By what it ranks jobs.
    order: Literal["edf", "fp", "fl", "edzl", "llf"]
    #: Which invariant it keeps.
    invariant: str
    #: Where it comes from.
    source: str
    #: Which keys of ``[platform]`` the simulator models under it and ignores under others.
    models: tuple[str, ...]


def policies() -> list[Policy]:
    """All policies.

    >>> import shiftwork as sw
    >>> [policy.name for policy in sw.policies() if policy.invariant == "weak"]
    ['weak-edf', 'weak-fp']
    """
    listed = json.loads(_shiftwork.policies())["policies"]
    return [Policy(**{**policy, "models": tuple(policy["models"])}) for policy in listed]
