"""Arrays of numpy that the graph has a tensor for: Dynamo traces what numpy does with them as operations on tensors."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch

from ..door.tracer import Trace
from ..door.variables import Variable, is_known
from ..graph_end import dead_code
from .captured_tensors import call


@dataclass
class _Read:
    """The tensors that stand for arrays in an attempt, by the node of the array."""

    tensors: dict[torch.fx.Node, Variable] = field(default_factory=dict)


def is_array(variable: Variable) -> bool:
    """Is it an array, or a number of numpy, which is one without dimensions to Dynamo?"""
    return type(variable).__name__ == "NumpyNdarrayVariable"


def tensor_of(trace: Trace, array: Variable) -> Variable:
    """The tensor of the graph that has the one element of the array; None if it has another number of them."""
    node = array.as_proxy().node
    if not is_known(node.meta["example_value"].numel() == 1):
        return None
    tensors = trace.compilation.of(_Read).tensors
    if node not in tensors:
        tensors[node] = call(trace, torch.Tensor.detach, array)
    dead_code.remember(trace.compilation, tensors[node])
    return tensors[node]
