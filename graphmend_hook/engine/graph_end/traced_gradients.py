"""Lets Dynamo trace ``torch.autograd.grad``, which ends the graph else: gradient penalties, scores, adaptive weights.

Dynamo (2.13 to 2.15) can, and refuses by itself what it cannot tell: a graph of gradients that begins outside of the
frame, or that is used up and given out.  It is off by default.  Here it is on for a call in code that is to be mended,
unless something may take part in the gradient that the graph does not have: hooks, and branches that were merged, of
which a side that was not taken would give zeros in the place of none.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch

from ..attempt.as_written import is_as_written
from ..attempt.attempt import Feature
from ..attempt.compilation import Compilation
from ..attempt.restart import expect_success_of
from ..door.frame_guards import install, may_be_relied_on
from ..door.question import at_connection, is_answered
from ..door.tracer import Trace, covered_trace_at
from ..region import Regions
from .undefined_gradients import has_hooks

_SETTING = "trace_autograd_ops"
_GRADIENT = Feature("a gradient that the program asks for is in the graph")


@at_connection
@functools.cache
def watch() -> None:
    """Stand where Dynamo handles the call, from now on."""
    from torch._dynamo import config
    from torch._dynamo.variables.torch import TorchInGraphFunctionVariable

    handlers = TorchInGraphFunctionVariable._get_handlers()
    otherwise = handlers.get(torch.autograd.grad)
    if otherwise is not None and hasattr(config, _SETTING):
        handlers[torch.autograd.grad] = _handled(otherwise)


def _handled(otherwise: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(otherwise)
    def handle(function: Any, translator: Any, *given: Any, **named: Any) -> Any:
        from torch._dynamo import config

        trace = covered_trace_at(translator)
        if getattr(config, _SETTING) or trace is None or not _may_be_traced(trace):
            return otherwise(function, translator, *given, **named)
        expect_success_of(trace.compilation)
        for source, _ in _inputs(trace.compilation):
            install(trace.compilation, ("no hooks", source), [source], _is_without_hooks, "a tensor has no hooks")
        trace.compilation.before_end(_see_hooks)
        trace.compilation.at_end(_judge)
        with config.patch({_SETTING: True}):
            return otherwise(function, translator, *given, **named)

    return handle


def _may_be_traced(trace: Trace) -> bool:
    if trace.is_in_a_body or not is_answered(trace) or is_as_written(trace) or trace.compilation.of(Regions).met:
        return False
    if not (trace.compilation.allows(_GRADIENT) and may_be_relied_on()):
        return False
    return all(_is_without_hooks(tensor) for _, tensor in _inputs(trace.compilation))


def _inputs(compilation: Compilation) -> Iterator[tuple[Any, torch.Tensor]]:
    """Where the graph finds the tensors that require a gradient, of those that it has been given by now, and they."""
    for node in compilation.output.graph.find_nodes(op="placeholder"):
        argument = node.meta.get("grapharg")
        if argument is not None and argument.is_tensor and argument.example.requires_grad:
            yield argument.source, argument.example


def _is_without_hooks(tensor: Any) -> bool:
    return not (isinstance(tensor, torch.Tensor) and has_hooks(tensor))


@dataclass
class _Hooks:
    """Has the frame added a hook to a tensor?"""

    are_added: bool = False


def _see_hooks(compilation: Compilation) -> None:
    compilation.of(_Hooks).are_added = bool(compilation.output.side_effects.tensor_hooks)


def _judge(compilation: Compilation, _error: BaseException | None) -> None:
    """A hook that the frame itself adds is called by a backward pass; here it would see none of this one."""
    if compilation.of(_Hooks).are_added:
        compilation.without(_GRADIENT.at(), reason="a hook is added to a tensor where a gradient is asked for")
