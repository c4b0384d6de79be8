"""What the text of a tensor says of gradients: ``tensor(2.06, grad_fn=<SumBackward0>)``.

A graph gives a copy away, without a gradient; the text is to be that of the tensor in eager.
"""

from __future__ import annotations

import functools
import operator
import re
from typing import Any

import torch

# Of those that a trace makes as eager does: it has others for views, and for what Python's numbers stand in.
_AS_IN_EAGER = re.compile(
    "(?:Abs|Add|Addmm|Amax|Amin|BinaryCrossEntropy|BinaryCrossEntropyWithLogits|Bmm|Cat|Convolution|Dot|Embedding|Exp|Gelu"
    "|HuberLoss|LinalgVectorNorm|Log|LogSoftmax|Logsumexp|Max|Mean|Min|Mm|MseLoss|Mul|NativeLayerNorm|Neg|NllLoss|Relu"
    "|Sigmoid|Silu|SmoothL1Loss|Softmax|Sqrt|Stack|Std|Sum|Tanh|Var)Backward[0-9]"
)
_PARAMETER, _FROZEN = "parameter", "frozen parameter"


def state_of(node: torch.fx.Node, kind: type) -> str:
    """The name of what made the tensor, in eager, or that it is a parameter; nothing where that is not known.

    kind: the type of the tensor.  Nothing too of one that requires no gradient.
    """
    fake = node.meta.get("example_value")
    if not isinstance(fake, torch.Tensor) or torch.is_inference_mode_enabled():
        return ""
    if kind is torch.nn.Parameter:
        return _PARAMETER if fake.requires_grad else _FROZEN
    if kind is not torch.Tensor or not fake.requires_grad or node.op == "placeholder":
        return ""  # what comes in may be made by anything in the next call
    name = type(fake.grad_fn).__name__
    return name if _AS_IN_EAGER.fullmatch(name) and not _is_of_a_body(node) else ""


def _is_of_a_body(node: torch.fx.Node) -> bool:
    """Does a higher-order operator give it?  Eager has a name for that where there is one, as of a checkpoint."""
    while node.target is operator.getitem and isinstance(node.args[0], torch.fx.Node):
        node = node.args[0]
    return isinstance(node.target, torch._ops.HigherOrderOperator)


def restored(tensor: torch.Tensor, state: str) -> torch.Tensor:
    """The tensor with a text that says the same."""
    with torch.inference_mode(False), torch.enable_grad():
        if state in (_PARAMETER, _FROZEN):
            return torch.nn.Parameter(tensor, state == _PARAMETER)
        return _made_by(state).apply(tensor.requires_grad_())


@functools.cache
def _made_by(name: str) -> Any:
    """A function whose results say that another one made them."""
    from torch.autograd.function import BackwardCFunction, Function

    class Shown(Function):  # type: ignore[misc]
        @staticmethod
        def forward(_context: Any, tensor: torch.Tensor) -> torch.Tensor:
            return tensor.view_as(tensor)

    Shown._backward_cls = type(name, (BackwardCFunction,), {"_forward_cls": Shown})
    return Shown
