"""The codes of all refusals, those of each rule and of the engine; loads no rule, and no torch."""

from __future__ import annotations

from ..diagnostics import CODES
from ..engine.attempt import refusals as _engine  # noqa: F401
from .defer import codes as _defer
from .grad import codes as _grad  # noqa: F401
from .shared import codes as _shared  # noqa: F401
from .sweep import codes as _sweep  # noqa: F401
from .trap import codes as _trap  # noqa: F401
from .value import codes as _value  # noqa: F401
from .where import codes as _where  # noqa: F401

# Why a statement is left as it was written while Dynamo traces.
REFUSALS = {name: code.sentence for name, code in CODES.items() if "-T" in name}
# What a statement that is mended does otherwise than in eager.
TOLD = frozenset({_defer.HAD_AGAIN})
