"""Constants of the trace that PyTorch has calculated with a float of which it knows the symbol alone, or in a region.

A tensor that is made of Python's numbers has a constant, with which PyTorch calculates at once.  For a symbolic float
it takes NaN, and then ``float(scale * constant)`` is NaN, and ``constant > scale`` False: stock silently does so, too.
What a side of a branch writes to such a tensor would be its constant behind the branch, whichever side is taken.
"""

from __future__ import annotations

from typing import Any

import torch

from ..door.fake_values import Calculate, around
from ..door.tracer import trace_at
from ..door.variables import Variable, fake_of
from ..facts.operations import written_nodes
from ..region import Regions


@around
def _forget_constants(translator: Any, node: torch.fx.Node, calculate: Calculate) -> Any:
    """Let what is calculated with such a float have no constant, nor what is written to in a region."""
    value = calculate()
    is_of_symbol = any(map(_is_symbol, node.all_input_nodes))
    trace = None if is_of_symbol else trace_at(translator)
    if is_of_symbol or (trace is not None and trace.compilation.of(Regions).open):
        written = [operand.meta.get("example_value") for operand in written_nodes(node)]
        for each in torch.utils._pytree.tree_leaves([value, written] if is_of_symbol else written):
            _forget(each)
    return value


def constant_of(tensor: Variable) -> torch.Tensor | None:
    """What the tensor is known to hold, since it is made of numbers, and has not been written to since."""
    return getattr(fake_of(tensor), "constant", None)


def _is_symbol(operand: torch.fx.Node) -> bool:
    return isinstance(operand.meta.get("example_value"), (torch.SymFloat, torch.SymBool))


def _forget(value: Any) -> None:
    """The tensor, and what shares its memory, has no constant any more."""
    constant = getattr(value, "constant", None)
    if isinstance(constant, torch.Tensor):
        value.fake_mode.fake_tensor_converter.invalidate_constant_aliases(constant)
        value.constant = None
