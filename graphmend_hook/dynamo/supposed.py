"""What is supposed of a number that the data decides, where a decision asks for it: ``if boxes.numel() > 4000:``.

PyTorch decides such a test by an example of the number, if there is one (`propagate_real_tensors`), and asserts in the
graph what it then took for granted.  Here the example is a usual number.  What is asserted of it is asserted of data
(`asserted`), and where that fails, the frame runs as it was written (`rerun`) and is compiled once more, by another
example; after a second failure its numbers are read as they were written.

The backend gets no examples: nobody would see to what it took for granted.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from .compilation import Compilation
from .rerun import RerunMemory

_USUAL = 3  # neither empty, nor one, nor many
_AFTER_A_FAILURE = 1


@dataclass
class Suppositions:
    """What a frame remembers.  made: one of its graphs rests on what was supposed."""

    made: bool = False


def example(compilation: Compilation) -> int:
    """What to suppose of each number that is captured in an attempt."""
    return _AFTER_A_FAILURE if compilation.memory.of(RerunMemory).failures else _USUAL


def is_to_be_read(compilation: Compilation) -> bool:
    """Have graphs failed, and is there nothing else left to be supposed of the frame's numbers?"""
    return compilation.memory.of(RerunMemory).failures > compilation.memory.of(Suppositions).made


def suppose(shapes: Any, symbols: Iterable[Any], number: int) -> None:
    """Let PyTorch decide on the symbols by the number, or by the nearest one that they can stand for."""
    for symbol in symbols:
        bounds = shapes.var_to_range[symbol]
        if bounds.is_int:
            shapes.set_real_tensor_prop_unbacked_vals(symbol, int(min(max(number, bounds.lower), bounds.upper)))


def conclude(compilation: Compilation) -> bool:
    """Forget the examples, now that the graph is made; False where it holds for a single number, the example.

    That is what a loop over ``range(n)`` asks for, or a list that is indexed: nothing speaks for just this number.
    """
    from torch.fx.experimental.symbolic_shapes import free_unbacked_symbols

    shapes = compilation.output.shape_env
    shapes.real_tensor_prop_unbacked_vals.clear()
    compilation.memory.of(Suppositions).made = True
    asserted = [item.expr for items in shapes.deferred_runtime_asserts.values() for item in items]
    return not any(
        getattr(expression, "rel_op", "") == "==" and len(free_unbacked_symbols(expression)) == 1
        for expression in asserted
    )
