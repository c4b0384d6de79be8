"""The rules, in the order in which they are tried at a statement."""

from __future__ import annotations

from .base import Rule
from .cond import Cond
from .defer import Defer
from .mask import Mask
from .sweep import Sweep
from .trap import Trap
from .value import Value
from .where import Where

__all__ = ["ORDER", "Rule"]

ORDER: tuple[Rule, ...] = (Defer(), Trap(), Sweep(), Where(), Cond(), Mask(), Value())
