"""Why did nothing happen?  The checks of ``graphmend doctor``, each of which gives findings."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Any


class Level(Enum):
    """How bad it is."""

    OK = "ok"
    SKIPPED = "skipped"
    WARNING = "warning"
    PROBLEM = "problem"


@dataclass(frozen=True)
class Finding:
    """The result of one check.  remedy: what to do, empty if nothing need be done."""

    check: str
    level: Level
    text: str
    remedy: str = ""
    details: dict[str, Any] = field(default_factory=dict)
