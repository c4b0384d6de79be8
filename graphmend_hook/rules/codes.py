"""The codes of all rules for what is left as it was written while Dynamo traces; loads no rule, and no torch."""

from __future__ import annotations

from ..engine.attempt import refusals
from .defer import codes as defer
from .grad import codes as grad
from .sweep import codes as sweep
from .trap import codes as trap
from .value import codes as value
from .where import codes as where

_RULES = (defer.REFUSALS, where.REFUSALS, trap.REFUSALS, value.REFUSALS, sweep.REFUSALS, grad.REFUSALS)
BY_RULE = {name: texts for refused in _RULES for name, texts in refused.items()}
REFUSALS = refusals.REFUSALS | {code: text for texts in BY_RULE.values() for code, text in texts.items()}
# What a statement that is mended does otherwise than in eager.
TOLD = frozenset({"GM101-T14"})
# The rule that most often gives a code, by what the code begins with: several rules have effects and branches.
RULE_OF_CODE = {code.partition("-")[0]: rule for rule, texts in BY_RULE.items() for code in texts}
