"""New inputs of a graph that are numbers or arrays, which generated code hands in as tensors."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import torch

from ..door.tracer import Trace
from ..door.variables import Variable


def number_input(trace: Trace, source: Any, kind: type, name: str) -> Variable:
    """A new input of the graph: a tensor () in which generated code hands in a number of that type.

    source: where it loads the number.
    """
    from torch._dynamo.source import RandomValueSource
    from torch._dynamo.variables.builder import wrap_fx_proxy, wrap_to_fake_tensor_and_record

    example = torch.zeros((), dtype=torch.float64 if kind is float else torch.int64)
    of_tensor = RandomValueSource(name)  # of others PyTorch makes a symbol, which may be a constant in the end
    fake = wrap_to_fake_tensor_and_record(example, tx=trace.translator, is_tensor=False, source=of_tensor)
    proxy = trace.output.root_tracer.create_graph_input(name, torch.Tensor, fake, source=of_tensor)
    _hand_in(proxy, source, example, fake)
    return wrap_fx_proxy(trace.translator, proxy, example_value=fake)


def array_input(trace: Trace, source: Any, name: str, example: torch.Tensor) -> Variable:
    """A new input of the graph: an array of numpy, of the dtype and the sizes of the example.

    source: where generated code loads the array; name: of the input.
    """
    from torch._dynamo.variables.builder import wrap_fx_proxy_cls
    from torch._dynamo.variables.tensor import NumpyNdarrayVariable

    fake = trace.output.fake_mode.from_tensor(example, static_shapes=True)
    proxy = trace.output.root_tracer.create_graph_input(name, torch.Tensor, fake, source=source)
    _hand_in(proxy, source, example, fake)
    return wrap_fx_proxy_cls(NumpyNdarrayVariable, trace.translator, proxy, example_value=fake)


def _hand_in(proxy: Any, source: Any, example: torch.Tensor, fake: torch.Tensor) -> None:
    """Let generated code load what there is at the source, and make the tensor of it that the input takes."""
    from torch._dynamo.variables.builder import GraphArg

    proxy.node.meta["grapharg"] = GraphArg(
        source, example, pass_arg_as_tensor=True, fake_tensor=fake, is_tensor=False, example_strong_ref=example
    )


def computed_input(
    trace: Trace, sources: Sequence[Any], compute: Callable[..., Any], kind: type, name: str
) -> Variable:
    """The same of what the function makes of what generated code loads from the sources, before the graph."""
    function = trace.output.install_global_by_id("graphmend_computed", compute)
    return number_input(trace, _kind_of_source()(name, function, (*sources,)), kind, name)


@functools.cache
def _kind_of_source() -> Any:
    from torch._dynamo.bytecode_transformation import create_call_function
    from torch._dynamo.source import RandomValueSource

    class Computed(RandomValueSource):  # type: ignore[misc]
        """What a global function is called with, of what there is at other sources."""

        def __init__(self, name: str, function: str, sources: tuple[Any, ...]) -> None:
            super().__init__(name)
            object.__setattr__(self, "_call", (function, sources))

        def reconstruct(self, codegen: Any) -> None:
            function, sources = self._call
            codegen.add_push_null(lambda: codegen.append_output(codegen.create_load_global(function, add=True)))
            for source in sources:
                codegen(source)
            codegen.extend_output(create_call_function(len(sources), False))

        def __reduce__(self) -> tuple[Any, ...]:
            """For the key of a backend's cache: what it is called with is not a matter of the graph."""
            return RandomValueSource, (self.random_call_index,)

    return Computed
