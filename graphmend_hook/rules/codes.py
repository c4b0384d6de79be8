"""The codes of all families for what is left as it was written while Dynamo traces; loads no rule, and no torch."""

from __future__ import annotations

from ..dynamo import refusals
from .branches import codes as branches
from .effects import codes as effects
from .gradients import codes as gradients
from .guards import codes as guards
from .values import codes as values

BY_RULE = {**effects.REFUSALS, **branches.REFUSALS, **guards.REFUSALS, **values.REFUSALS, **gradients.REFUSALS}
REFUSALS = refusals.REFUSALS | {code: text for texts in BY_RULE.values() for code, text in texts.items()}
# What a statement that is mended does otherwise than in eager.
TOLD = frozenset({"GM101-T14"})
# The rule that most often gives a code, by what the code begins with: several rules have effects and branches.
RULE_OF_CODE = {code.partition("-")[0]: rule for rule, texts in BY_RULE.items() for code in texts}
