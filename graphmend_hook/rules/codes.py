"""The codes of all refusals, those of each rule and of the engine; loads no rule, and no torch."""

from __future__ import annotations

from ..diagnostics import CODES
from ..engine.attempt import refusals as engine
from .defer import codes as defer
from .grad import codes as grad
from .shared import codes as shared
from .sweep import codes as sweep
from .trap import codes as trap
from .value import codes as value
from .where import codes as where

# Why a statement is left as it was written while Dynamo traces.
REFUSALS = {name: code.sentence for name, code in CODES.items() if "-T" in name}
# What a statement that is mended does otherwise than in eager.
TOLD = frozenset({defer.HAD_AGAIN})
