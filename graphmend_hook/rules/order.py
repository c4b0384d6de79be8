"""The rules, in the order in which they are tried at a statement: the one file that knows them all."""

from __future__ import annotations

from .base import Rule
from .branches.cond import Cond
from .branches.where import Where
from .effects.defer import Defer
from .guards.trap import Trap
from .values.mask import Mask
from .values.sweep import Sweep
from .values.value import Value

ORDER: tuple[Rule, ...] = (Defer(), Trap(), Sweep(), Where(), Cond(), Mask(), Value())
