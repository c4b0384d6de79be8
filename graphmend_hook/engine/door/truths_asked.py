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


Answer = Callable[[Any, Variable], bool | None]
_answers: list[Answer] = []


def answer_truths(answer: Answer) -> None:
    """Let `answer` say, for a translator, whether a variable is true before Dynamo looks at it; None if it cannot.

    Then the next may, in the order in which they have been given, and Dynamo in the end.
    """
    if answer not in _answers:
        _answers.append(answer)
    _watch()


@functools.cache
def _watch() -> None:
    from torch._dynamo import symbolic_convert
    from torch._dynamo.variables.constant import ConstantVariable

    def wrapped(otherwise: Any) -> Any:
        @functools.wraps(otherwise)
        def jump(translator: Any, instruction: Any) -> Any:
            stack = translator.stack
            asked, depth = stack[-1], len(stack)
            found = (answer(translator, asked) for answer in _answers)
            truth = next((each for each in found if each is not None), None)
            if truth is None:
                return otherwise(translator, instruction)
            stack[-1] = ConstantVariable.create(truth)
            result = otherwise(translator, instruction)
            if instruction.opname.endswith("_OR_POP") and len(stack) == depth:
                stack[-1] = asked  # ``found = a and b``: the value of the first one
            return result

        return jump

    codes = [code for name, code in opcode.opmap.items() if name.startswith(_ASKING) and "NONE" not in name]
    kinds = [each for each in vars(symbolic_convert).values() if isinstance(each, type)]
    for table in {id(table): table for kind in kinds if (table := vars(kind).get("dispatch_table"))}.values():
        for code in codes:
            if table[code] is not None and not hasattr(table[code], "__wrapped__"):
                table[code] = wrapped(table[code])
