"""The rules, in the order in which they are tried at a statement: the one file that knows them all."""

from __future__ import annotations

from ..parsing import RULE_NAMES
from .base import Rule
from .branches.where import Where
from .effects.defer import Defer
from .gradients.grad import Grad
from .guards.trap import Trap
from .values.sweep import Sweep
from .values.value import Value

_BY_NAME: dict[str, Rule] = {rule.name: rule for rule in (Defer(), Grad(), Sweep(), Trap(), Value(), Where())}
ORDER = tuple(_BY_NAME[name] for name in RULE_NAMES)
