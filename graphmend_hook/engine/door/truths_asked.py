"""Where Dynamo asks a variable for its truth: at a conditional jump, and since Python 3.13 before one.

Its answer to each instruction is looked up in a table of each class of translators.
"""

from __future__ import annotations

import functools
import opcode
from collections.abc import Callable
from typing import Any

from .variables import Variable

_ASKING = ("POP_JUMP_IF", "POP_JUMP_FORWARD_IF", "POP_JUMP_BACKWARD_IF", "JUMP_IF", "TO_BOOL")


def answer_truths(answer: Callable[[Variable], bool | None]) -> None:
    """Let `answer` say whether a variable is true before Dynamo looks at it; where it gives None, Dynamo does."""
    from torch._dynamo import symbolic_convert
    from torch._dynamo.variables.constant import ConstantVariable

    def wrapped(otherwise: Any) -> Any:
        @functools.wraps(otherwise)
        def jump(translator: Any, instruction: Any) -> Any:
            truth = answer(translator.stack[-1])
            if truth is not None:
                translator.stack[-1] = ConstantVariable.create(truth)
            return otherwise(translator, instruction)

        return jump

    codes = [code for name, code in opcode.opmap.items() if name.startswith(_ASKING) and "NONE" not in name]
    kinds = [each for each in vars(symbolic_convert).values() if isinstance(each, type)]
    for table in {id(table): table for kind in kinds if (table := vars(kind).get("dispatch_table"))}.values():
        for code in codes:
            if table[code] is not None and not hasattr(table[code], "__wrapped__"):
                table[code] = wrapped(table[code])
