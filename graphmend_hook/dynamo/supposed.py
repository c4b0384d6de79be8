"""What is supposed of a number that the data decides, where a decision asks for it: ``if boxes.numel() > 4000:``.

PyTorch decides such a test by an example of the number, if there is one (`propagate_real_tensors`), and asserts in the
graph what it then took for granted.  Here the example is a usual number.  What is asserted of it is asserted of data
(`asserted`), and where that fails, the frame runs as it was written (`rerun`) and is compiled once more, by another
example; after a second failure its numbers are read as they were written.

The backend gets no examples: nobody would see to what it took for granted.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import torch

from . import asserted, undecided
from .compilation import Compilation
from .rerun import RerunMemory
from .writes import fakes_of

_USUAL = 7  # neither empty, nor one, nor many, nor a number of corners or colours
_SECOND = 1


@dataclass
class Suppositions:
    """What a frame remembers.  made: one of its graphs rests on what was supposed."""

    made: bool = False


def example(compilation: Compilation) -> int | None:
    """What to suppose of each number that is captured in an attempt; None where nothing is left that may hold.

    Where a graph has failed, that is a number of which what it took for granted is not true.
    """
    memory = compilation.memory.of(RerunMemory)
    if not memory.failures:
        return _USUAL
    if memory.failures > 1 or not compilation.memory.of(Suppositions).made:
        return None
    failed = asserted.fact_in(memory.said)
    return _SECOND if failed and undecided.holds(failed, _SECOND) is False else None


def is_to_be_read(compilation: Compilation) -> bool:
    """Has a graph failed, and is there nothing left to be supposed of the frame's numbers?"""
    return compilation.memory.of(RerunMemory).failures > 0 and example(compilation) is None


def suppose(compilation: Compilation, symbols: Iterable[Any], number: int) -> None:
    """Let PyTorch decide on the symbols by the number, or by the nearest one that they can stand for."""
    shapes = compilation.output.shape_env
    logger = logging.getLogger("torch.fx.experimental.symbolic_shapes")
    logger.addFilter(_is_not_about_examples)
    compilation.undo.callback(logger.removeFilter, _is_not_about_examples)
    for symbol in symbols:
        bounds = shapes.var_to_range[symbol]
        if bounds.is_int:
            shapes.set_real_tensor_prop_unbacked_vals(symbol, int(min(max(number, bounds.lower), bounds.upper)))


def _is_not_about_examples(record: logging.LogRecord) -> bool:
    """PyTorch warns of each decision that it makes by an example, as if nothing made sure of it."""
    return not str(record.msg).startswith("propagate_real_tensors")


def conclude(compilation: Compilation) -> bool:
    """Forget the examples, now that the graph is made; False where it holds for a single number, the example.

    That is what a loop over ``range(n)`` asks for, or a list that is indexed: nothing speaks for just this number, and
    a backend that knows how many rows there are does not count them, so that no assertion of data can fail.  Where two
    numbers are equal it counts one of them.
    """
    shapes = compilation.output.shape_env
    known = {symbol for symbol in shapes.real_tensor_prop_unbacked_vals if shapes.var_to_range[symbol].is_singleton()}
    shapes.real_tensor_prop_unbacked_vals.clear()
    compilation.memory.of(Suppositions).made = True
    return not known and not any(getattr(fact, "rel_op", "") == "==" for fact in facts(compilation))


def is_trained(module: torch.fx.GraphModule) -> bool:
    """Does the graph give what requires a gradient?  Inductor compiles the backward pass only when that is run."""
    return any(fake.requires_grad for node in module.graph.output_node().all_input_nodes for fake in fakes_of(node))


def facts(compilation: Compilation) -> list[Any]:
    """What the graph takes for granted of symbols."""
    return [item.expr for items in compilation.output.shape_env.deferred_runtime_asserts.values() for item in items]
