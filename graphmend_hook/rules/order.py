"""The rules, in the order in which they are tried at a statement: the one file that knows them all."""

from __future__ import annotations

from ..settings.syntax import RULE_NAMES
from .base import Rule
from .defer.rewrite import Defer
from .grad.rewrite import Grad
from .sweep.rewrite import Sweep
from .trap.rewrite import Trap
from .value.rewrite import Value
from .where.rewrite import Where

_BY_NAME: dict[str, Rule] = {rule.name: rule for rule in (Defer(), Grad(), Sweep(), Trap(), Value(), Where())}
ORDER = tuple(_BY_NAME[name] for name in RULE_NAMES)
