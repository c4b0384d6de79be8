"""What is not worth capturing: sizes with which a decision could not be traced before, and those of many pieces.

An attempt that fails has traced all that stands before the decision.  So what it has found out holds for every frame
that it had traced as a part of itself, and for those in which Dynamo goes on behind a break: they would fail there too.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from types import CodeType
from typing import Any

from ..attempt.attempt import Bet, Feature, Lifetime
from ..attempt.compilation import Compilation
from ..door.compiled_code import RESUMED
from ..door.tracer import SourceLine, Trace, traced_code
from ..door.variables import fake_of, is_unbacked

_MOST_PIECES = 8
_SYMBOL = re.compile(r"\bu\d+\b")
Function = tuple[str, str]  # its file and its name, with that of its class from Python 3.11 on


_DECIDED = Feature("what a number of a line decides is known", Lifetime.EVERYWHERE)  # by frame and line


def undecided(compilation: Compilation, lines: Iterable[SourceLine]) -> list[Bet]:
    """What to drop where what was captured at the lines cannot be decided on, here and in parts of the frame."""
    functions = {*map(_function, traced_code(compilation))}
    return [_DECIDED.at((function, line)) for line in lines for function in functions]


def is_known(trace: Trace) -> bool:
    """Has an attempt failed already with what would be captured here?"""
    return not trace.compilation.allows(_DECIDED, (_function(trace.compilation.code), trace.line))


def _function(code: CodeType) -> Function:
    name: str = getattr(code, "co_qualname", code.co_name)
    resumed = RESUMED.fullmatch(name)
    return code.co_filename, (resumed[1] or "") + resumed[2] if resumed else name


def is_of_many_pieces(trace: Trace) -> bool:
    """Does a list of the program hold many tensors already, each of a size of its own that the data decides?

    They are put together in the end, and the sum of the sizes decides something, which nobody knows; and each more
    piece makes tracing slower.
    """
    lists = [
        variable
        for frame in trace.frames_outside()
        for variable in frame.symbolic_locals.values()
        if type(variable).__name__ == "ListVariable" and len(variable.items) >= _MOST_PIECES
    ]
    return any(len({*map(str, _unbacked_shapes(variable.items))}) >= _MOST_PIECES for variable in lists)


def _unbacked_shapes(items: list[Any]) -> list[Any]:
    shapes = [fake_of(item).shape for item in items if item.is_tensor()]
    return [shape for shape in shapes if is_unbacked(shape)]


def is_decided_from(least: int, expression: str) -> bool | None:
    """Is the truth of the expression, as torch prints it, known if each number that the data decides is at least that?

    None if it cannot be read.
    """
    found = _bounds(expression, least, math.inf)
    return None if found is None else bool(found)


def holds(expression: str, number: int) -> bool | None:
    """Is the expression true where each number that the data decides is that one?  None if it cannot be read."""
    found = _bounds(expression, number, number)
    return bool(found.lower) if found else None


def _bounds(expression: str, least: int, most: float) -> Any:
    """The truth of the expression as a range, where each number lies in one; False if it has both, None if unknown."""
    import sympy  # not before a trace has failed: `import torch` does without it
    from torch.utils._sympy import functions
    from torch.utils._sympy.value_ranges import ValueRanges, bound_sympy

    names = {*_SYMBOL.findall(expression)}
    symbols = {name: sympy.Symbol(name, integer=True) for name in names}
    try:
        found = sympy.sympify(expression, {**vars(functions), **symbols})
        given = ValueRanges(least, functions.int_oo if most == math.inf else most)
        bounds = bound_sympy(found, dict.fromkeys(symbols.values(), given))
    except Exception:
        return None
    return bounds if bounds.is_singleton() else False
