"""What is not worth capturing: sizes with which a decision could not be traced before, and those of many pieces.

An attempt that fails has traced all that stands before the decision.  So what it has found out holds for every frame
that it had traced as a part of itself, and for those in which Dynamo goes on behind a break: they would fail there too.
And once attempts have been given up that traced twice as much as the longest of them, these frames capture no more.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from types import CodeType
from typing import Any
from weakref import WeakSet

from .compilation import Compilation
from .trace import SourceLine, Trace, traced_code
from .variables import fake_of, is_unbacked

_MOST_PIECES = 8
_MOST_GIVEN_UP = 2  # whole attempts
_SYMBOL = re.compile(r"\bu\d+\b")
_RESUMED = re.compile(r"torch_dynamo_resume_in_(.+)_at_\d+")
Function = tuple[str, str]  # its file and its name


@dataclass(eq=False)
class Undecided:
    """What a frame remembers of attempts that captured something and were given up.

    lines: whose numbers decide what is not known; functions: that were traced; operations: of each attempt, how many.
    """

    lines: set[SourceLine] = field(default_factory=set)
    functions: set[Function] = field(default_factory=set)
    operations: list[int] = field(default_factory=list)


_known: WeakSet[Undecided] = WeakSet()  # of all frames that Dynamo has code for


def remember(compilation: Compilation, lines: Iterable[SourceLine]) -> None:
    """The attempt is given up; what was captured at the lines cannot be decided on, here and in parts of the frame."""
    undecided = compilation.memory.of(Undecided)
    undecided.lines.update(lines)
    undecided.functions.update(map(_function, traced_code(compilation)))
    undecided.operations.append(len(compilation.output.graph.nodes))
    _known.add(undecided)


def is_known(trace: Trace) -> bool:
    """Has an attempt failed already with what would be captured here, or have too many failed with anything?"""
    function = _function(trace.compilation.code)
    known = [one for one in _known if function in one.functions]
    given_up = [operations for one in known for operations in one.operations]
    too_many = bool(given_up) and sum(given_up) > _MOST_GIVEN_UP * max(given_up)
    return too_many or any(trace.line in one.lines for one in known)


def _function(code: CodeType) -> Function:
    resumed = _RESUMED.fullmatch(code.co_name)
    return code.co_filename, resumed[1] if resumed else code.co_name


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


def is_decided_above_one(expression: str) -> bool:
    """Is the truth of the expression, as torch prints it, known if each number that the data decides is above one?

    So it is said of what cannot be read.
    """
    import sympy  # not before a trace has failed: `import torch` does without it
    from torch.utils._sympy import functions
    from torch.utils._sympy.value_ranges import ValueRanges, bound_sympy

    names = {*_SYMBOL.findall(expression)}
    symbols = {name: sympy.Symbol(name, integer=True) for name in names}
    try:
        found = sympy.sympify(expression, {**vars(functions), **symbols})
        above_one = ValueRanges(2, functions.int_oo)
        return bool(bound_sympy(found, dict.fromkeys(symbols.values(), above_one)).is_singleton())
    except Exception:
        return True
