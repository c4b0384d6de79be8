"""Recurrent layers in frames of mended modules: Dynamo traces them, and their functions are operators of the graph.

Dynamo gives up a frame that reads a recurrent layer unless ``torch._dynamo.config.allow_rnn`` says otherwise, and no
part of the frame behind it is compiled.  With that setting the function of the layer would be unrolled; here it is an
operator that calls it (`recurrent_operator`).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import nn
from torch.autograd import forward_ad
from torch.nn.utils.rnn import PackedSequence

from ..attempt.as_written import is_as_written
from ..attempt.attempt import Feature, Lifetime
from ..attempt.compilation import Compilation
from ..drawing_operator import Draws
from ..epilogue.deferral import has_interpreter, is_autocast, is_in_a_mode
from ..facts.writes import memory_of, operations, written_by
from ..graph_end.order import Verdict
from .question import at_connection
from .recurrent_operator import Layer, Tensors, operator_for, parted
from .tracer import Trace, covered_trace_at, is_caught
from .variables import Variable, fake_of, is_known, is_plain_tensor, tensor_node

_RECURRENT = Feature("a recurrent layer is an operator", Lifetime.CODE)
_LAYERS = (nn.GRU, nn.LSTM, nn.RNN)
_FUNCTIONS = ("gru", "lstm", "rnn_relu", "rnn_tanh")  # of torch, which the layers call
_DEVICES = ("cpu",)  # on which it was shown that the operator gives what eager gives


@at_connection
def watch() -> None:
    """Stand where Dynamo wraps a module, and these functions, from now on."""
    from torch._dynamo import config
    from torch._dynamo.variables.builder import VariableBuilder

    wrap = getattr(VariableBuilder, "wrap_module", None)
    if wrap is None or not hasattr(config, "allow_rnn") or hasattr(wrap, "__wrapped__"):
        return  # another torch has that elsewhere, or it was done before
    VariableBuilder.wrap_module = _but_for_layers(wrap)
    for name in _FUNCTIONS:
        VariableBuilder._id_dispatch()[id(getattr(torch, name))] = _function


def _but_for_layers(wrap: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    @functools.wraps(wrap)
    def wrap_module(builder: Any, value: Any) -> Any:
        trace = covered_trace_at(builder.tx) if isinstance(value, _LAYERS) else None
        if trace is None or _is_told(trace) or _has_packed(trace):
            return wrap(builder, value)
        with torch._dynamo.config.patch(allow_rnn=True):  # it is read in this call alone
            return wrap(builder, value)

    return wrap_module


def _has_packed(trace: Trace) -> bool:
    """Is the frame given a packed sequence?  Stock leaves it to eager then, as a whole.

    To pack and to unpack end the graph, so a layer between the two would be a graph by itself.
    """
    held = trace.output.root_tx.f_locals.values()
    return any(isinstance(each, PackedSequence) for each in held)


def _is_told(trace: Trace) -> bool:
    """Could anybody tell the operator from the function, or may it not be there where the graph is called?"""
    is_seen = has_interpreter() or is_autocast() or is_in_a_mode(trace) or forward_ad._current_level >= 0
    is_elsewhere = trace.compilation.is_saved or trace.output.export or trace.is_in_a_body
    is_given_up = not trace.compilation.allows(_RECURRENT) or is_as_written(trace)
    return is_seen or is_elsewhere or is_given_up or is_caught(trace)


def _function(builder: Any, function: Any) -> Variable:
    """What Dynamo makes of the function; in mended modules, one whose call is that of the operator."""
    from torch._dynamo import trace_rules
    from torch._dynamo.variables.misc import LambdaVariable

    standard = trace_rules.lookup(function).create_with_source(function, source=builder.source)
    if covered_trace_at(builder.tx) is None:
        return standard

    def called(*operands: Variable, **named: Variable) -> Variable:
        translator = builder.tx.output.current_tx
        trace = covered_trace_at(translator)
        made = None if trace is None or named else _operation(trace, function.__name__, [*operands])
        return standard.call_function(translator, [*operands], named) if made is None else made

    return LambdaVariable(called, source=builder.source)


def _operation(trace: Trace, function: str, operands: list[Variable]) -> Variable | None:
    """What the operator gives in the place of the function; None where it may not stand there."""
    if _is_told(trace):
        return None
    batch_sizes = None if len(operands) < 4 or hasattr(operands[2].realize(), "items") else operands.pop(1)
    if len(operands) != (9 if batch_sizes is None else 8):
        return None
    data, hidden, weights, *options = (operand.realize() for operand in operands)
    tensors = Tensors(data, batch_sizes, [*hidden.items] if function == "lstm" else [hidden], [*weights.items])
    if not all(map(is_plain_tensor, tensors.trained)) or not all(option.is_python_constant() for option in options):
        return None
    fakes = [fake_of(tensor) for tensor in tensors.trained]
    if any(fake.device.type not in _DEVICES for fake in fakes):
        return None
    given = [option.as_python_constant() for option in options] + ([False] if batch_sizes is not None else [])
    flags = [fake.requires_grad for fake in fakes]
    inputs = [tensor_node(weight).op == "placeholder" for weight in tensors.weights]
    stays = [*(False for _ in (data, *tensors.states)), *inputs]
    layer = Layer._make((function, *given, torch.is_grad_enabled(), flags, stays, 0))
    if layer.draws:
        layer = layer._replace(draw=trace.compilation.of(Draws).number())
    trace.compilation.judge(Verdict.RECURRENT, _judge_gradients)
    return _called_with(trace, layer, tensors)


def _called_with(trace: Trace, layer: Layer, tensors: Tensors) -> Variable:
    from torch._dynamo.variables.base import VariableTracker
    from torch._dynamo.variables.lists import ListVariable, TupleVariable

    def built(value: object) -> Variable:
        return VariableTracker.build(trace.translator, value)

    data, batch_sizes, states, weights = tensors
    given = [data, batch_sizes or built(None), ListVariable(states), ListVariable(weights), *map(built, layer)]
    results = built(operator_for(draws=layer.draws)).call_function(trace.translator, given, {}).items
    return TupleVariable(results[: 1 + len(states)])


def _judge_gradients(compilation: Compilation, module: torch.fx.GraphModule) -> None:
    """Is what the layer is trained by, and has kept, as it was when its backward pass comes?"""
    nodes = [*operations(module)]
    for place, node in enumerate(nodes):
        if node.target in (operator_for(draws=False), operator_for(draws=True)):
            tensors, layer = parted(node.args)
            kept = [*tensors.trained, *(node.users if layer.function == "lstm" else ())]
            # Of an input that is written to, a compiler may give what it held before, and what it holds then.
            is_written = _is_written(kept, nodes[place + 1 :]) or _is_written(tensors.weights, nodes[:place])
            if layer.is_recorded and (is_written or _is_shared(tensors, layer)):
                compilation.without(_RECURRENT.at(), reason="a tensor that it is trained by is used elsewhere")


def _is_written(kept: Sequence[torch.fx.Node], later: Sequence[torch.fx.Node]) -> bool:
    """Is one of them written to later?  Eager fails then, or goes back by other numbers."""
    memory = memory_of(kept)
    return any(not memory.isdisjoint(written_by(each)) for each in later)


def _is_shared(tensors: Tensors, layer: Layer) -> bool:
    """Is what gives several gradients to one operand not that operand's only use?

    Eager adds those up one after the other, among those of its other uses; the operator gives their sum.
    """
    steps = not _is_one_step(tensors, layer)
    several = [layer.bidirectional, *(False for _ in tensors.states), *(steps for _ in tensors.weights)]
    operands = zip(tensors.trained, layer.requires_grad, several, strict=True)
    return any(all(flags) and _is_used_elsewhere(operand) for operand, *flags in operands)


def _is_one_step(tensors: Tensors, layer: Layer) -> bool:
    """Does it give one gradient to each weight?  So does what oneDNN runs, and what has one step."""
    if tensors.batch_sizes is not None:
        return False
    fake, *states = (each.meta["example_value"] for each in (tensors.data, *tensors.states))
    if layer.function == "lstm" and fake.dtype is torch.float32 and states[0].shape[-1] == states[1].shape[-1]:
        return torch.backends.mkldnn.is_available() and bool(torch._C._get_mkldnn_enabled())
    return is_known(fake.shape[1 if layer.batch_first else 0] == 1)


def _is_used_elsewhere(operand: Any) -> bool:
    """Is it given to another operation, or to this one twice?"""
    (user, *others) = operand.users
    places = torch.utils._pytree.tree_leaves(user.args)
    return bool(others) or sum(place is operand for place in places) > 1
