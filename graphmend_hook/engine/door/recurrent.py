"""Recurrent layers in frames of mended modules, where a graph computes them as eager does and at the same cost.

Dynamo gives up a frame that reads a recurrent layer unless ``torch._dynamo.config.allow_rnn`` says otherwise, since
AOTAutograd unrolls most of them: an operation or ten for each step, layer and direction, 13 seconds until the first
result for 50 steps of a GRU that is trained.  Only of an LSTM on a CPU without gradients, projections and packed
sequences it makes eager's own operation, one for each layer and direction whatever the length.  That one is let
through, and so are a few steps of the others, which are rounded as the backend rounds; all else stays as without the
hook.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from ..attempt.attempt import Feature, Lifetime
from ..attempt.compilation import Compilation, NotTracingError, compilation_of, is_break_or_failure
from ..facts.writes import operations
from ..graph_end.order import Verdict
from .tracer import is_covered

_RECURRENT = Feature("a recurrent layer is traced", Lifetime.CODE)
_LAYERS = (nn.GRU, nn.LSTM, nn.RNN)
_FUNCTIONS = frozenset({"gru", "lstm", "rnn_relu", "rnn_tanh"})  # of torch, which the layers call
_MOST_STEPS = 4  # of all layers and directions, if they are unrolled: a second or two to compile each, and no slower


def watch() -> None:
    """Stand where Dynamo wraps a module, from now on; where another torch has that elsewhere, nothing changes."""
    from torch._dynamo import config
    from torch._dynamo.variables.builder import VariableBuilder

    wrap = getattr(VariableBuilder, "wrap_module", None)
    if wrap is not None and hasattr(config, "allow_rnn") and not hasattr(wrap, "__wrapped__"):
        VariableBuilder.wrap_module = _but_for_layers(wrap)


def _but_for_layers(wrap: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    @functools.wraps(wrap)
    def wrap_module(builder: Any, value: Any) -> Any:
        if type(value) not in _LAYERS or not (_may_be_traced(value) and _is_asked_for(builder.tx)):
            return wrap(builder, value)
        with torch._dynamo.config.patch(allow_rnn=True):  # it is read in this call alone
            return wrap(builder, value)

    return wrap_module


def _may_be_traced(layer: Any) -> bool:
    """May a graph compute it as eager does?  What it is given is judged at the end of the graph."""
    draws = layer.training and layer.dropout and layer.num_layers > 1
    is_measured = not torch.is_autocast_enabled("cpu") and not layer.proj_size
    return is_measured and not draws and all(_is_plain(each) for each in layer.parameters())


def _is_plain(tensor: object) -> bool:
    """Is it one of those for which it was measured that the graph is equal to the bit?"""
    return (
        isinstance(tensor, torch.Tensor)
        and type(tensor) in (nn.Parameter, torch.Tensor, torch._subclasses.FakeTensor)
        and (tensor.device.type, tensor.dtype) == ("cpu", torch.float32)
    )


def _is_asked_for(frame: Any) -> bool:
    """Is it in a mended function, or in what one calls, and not given up in this frame?"""
    output = frame.output
    while frame is not None and not is_covered(frame):
        frame = frame.parent
    try:
        compilation = compilation_of(output)
    except NotTracingError:
        return False
    if frame is None or not compilation.allows(_RECURRENT):
        return False
    compilation.judge(Verdict.RECURRENT, _judge_graph)
    compilation.at_end(_judge_end)
    return True


def _judge_graph(compilation: Compilation, module: torch.fx.GraphModule) -> None:
    """Is each layer of the graph one operation, or a few?"""
    for node in operations(module):
        name = getattr(node.target, "__name__", "")
        if name in _FUNCTIONS and not (_is_short(node) or (name == "lstm" and _is_inference(node))):
            compilation.without(_RECURRENT.at(), reason="a recurrent layer would be unrolled")


def _is_short(node: torch.fx.Node) -> bool:
    """Has the layer few steps, whose number is fixed?  A packed sequence is none such."""
    if len(node.args) != 9 or not isinstance(node.args[2], (tuple, list)):
        return False
    data, _, _, _, layers, _, _, bidirectional, batch_first = node.args
    fake: Any = data.meta.get("example_value") if isinstance(data, torch.fx.Node) else None
    if not _is_plain(fake):
        return False
    length: Any = fake.shape[1 if batch_first and fake.dim() == 3 else 0]
    return isinstance(length, int) and length * int(layers) * (2 if bidirectional else 1) <= _MOST_STEPS


def _is_inference(node: torch.fx.Node) -> bool:
    """Is it eager's own operation, of an LSTM without gradients?"""
    if len(node.args) != 9 or not isinstance(node.args[1], (tuple, list)):  # a packed sequence: its lengths
        return False
    if torch.is_grad_enabled() or not (torch.backends.mkldnn.is_available() and torch._C._get_mkldnn_enabled()):
        return False
    fakes = [each.meta.get("example_value") for each in (node.args[0], *node.args[1])]
    results = node.meta.get("example_value")
    return (
        all(_is_plain(fake) and not fake.requires_grad for fake in fakes)
        and isinstance(results, (tuple, list))
        and not any(result.requires_grad for result in results)
    )


def _judge_end(compilation: Compilation, error: BaseException | None) -> None:
    """Has the attempt ended in a break or an error?  Then the frame is left to Dynamo as it was without the hook."""
    if is_break_or_failure(error) and not compilation.one_graph and compilation.allows(_RECURRENT):
        compilation.without(_RECURRENT.at(), reason="a frame breaks in which a recurrent layer is traced")
