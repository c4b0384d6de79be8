"""Guards of our own on the frame that is being compiled: Dynamo runs the code only while they hold.

Those on values are computations: before compiled code runs, each has to give of the frame's inputs what it gave.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch.utils._python_dispatch import _disable_current_modes

from ..attempt.compilation import Compilation
from ..facts.operations import only_computes
from .tracer import compiling_frame, log
from .trust import Mechanism, works

OWN_GUARD = "graphmend_guard_"  # how the functions of ours are called that guards call
_numbers = itertools.count()


class Installed(set[object]):
    """What the guards of one compilation are about; each is installed once."""


def name_of(source: Any) -> str:
    """The expression that guards have for a source: a property in today's torch, up to 2.9 a method."""
    name = source.name
    return name if isinstance(name, str) else str(name())


def may_be_relied_on() -> bool:
    """Do guards of ours work on this torch, and does no ``guard_filter_fn`` of the program's see them?

    It may drop any of them after the trace.
    """
    frame = compiling_frame()
    hooks = None if frame is None else frame.f_locals.get("hooks")
    return works(Mechanism.GUARDS) and hooks is not None and hooks.guard_filter_fn is None


def inputs_at(sources: Sequence[Any], compilation: Compilation) -> list[Any] | None:
    """What the expressions of guards give for the sources in the frame that is compiled.

    None where one fails, as it would for Dynamo, and where no guard may be relied on.
    """
    if not may_be_relied_on():
        return None
    root = compilation.output.root_tx
    scope = {**_names(), "L": root.f_locals, "G": root.f_globals}
    try:
        return [eval(name_of(source), scope) for source in sources]
    except Exception as error:
        log.debug("no guard: %s", error)
        return None


def install(
    compilation: Compilation, key: object, sources: Sequence[Any], holds: Callable[..., bool], note: str
) -> None:
    """Let the code run only where `holds` is true of the values of the sources; once for each `key`."""
    from torch._dynamo.guards import install_guard
    from torch._dynamo.source import GlobalStateSource

    installed = compilation.of(Installed)
    if key not in installed:
        installed.add(key)
        install_guard(GlobalStateSource().make_guard(functools.partial(_build, sources, holds, note)))


def _build(sources: Sequence[Any], holds: Callable[..., bool], note: str, builder: Any, guard: Any) -> None:
    """What Dynamo calls when the graph is complete: adds the guard."""
    function = f"{OWN_GUARD}{next(_numbers)}"
    call = f"{function}({', '.join(map(name_of, sources))})"
    builder.add_python_lambda_leaf_guard_to_root([call], [f"{call}  # {note}"], {**_names(), function: holds}, True)


def _names() -> dict[str, Any]:
    """What the expressions of guards may call: a key of a dict may be a device, say."""
    from torch._dynamo import guards

    return guards._get_closure_vars() if hasattr(guards, "_get_closure_vars") else {**guards.CLOSURE_VARS}


class Computation:
    """Operations of a graph on inputs of a frame, each input given by the expression that Dynamo's guards have for it.

    key: says which computation it is, within a frame.
    """

    def __init__(
        self, root: torch.fx.Node, operations: Sequence[torch.fx.Node], leaves: Sequence[torch.fx.Node]
    ) -> None:
        graph = torch.fx.Graph()  # copies, which hold on to nothing of the trace
        copies: dict[torch.fx.Node, torch.fx.Node] = {}
        for node in (*leaves, *operations):
            copies[node] = graph.node_copy(node, copies.__getitem__)
            copies[node].meta = {}
        self._root = copies[root]
        self._operations = [copies[node] for node in operations]
        self._writes = not all(map(only_computes, operations))
        self._leaves = [copies[node] for node in leaves]
        self._sources = [leaf.meta["grapharg"].source for leaf in leaves]
        names = [name_of(source) for source in self._sources]
        self.key = "; ".join([*names, *(f"{node.target}{node.args}{node.kwargs}" for node in self._operations)])
        self.result_dtype = root.meta["example_value"].dtype

    def can_be_guarded(self, compilation: Compilation, answer: str) -> bool:
        """Do the expressions of guards give inputs of which the computation gives `answer`?"""
        found = inputs_at(self._sources, compilation)
        return found is not None and self.holds(answer, *found)

    def guard(self, compilation: Compilation, answer: str) -> None:
        """Let the code that is being compiled run only where the computation gives `answer`."""
        holds = functools.partial(self.holds, answer)
        install(compilation, self.key, self._sources, holds, f"value is {answer}")

    def holds(self, answer: str, *inputs: torch.Tensor) -> bool:
        """Is that what it gives?  No mode of the program's sees the operations."""
        try:
            with torch._C.DisableTorchFunction(), _disable_current_modes():
                given = dict(zip(self._leaves, inputs, strict=True))
                return text_of(run(self._root, self._operations, given, self._writes)) == answer
        except Exception as error:
            log.debug("a value cannot be read: %s", error)
            return False


def run(
    root: torch.fx.Node,
    operations: Sequence[torch.fx.Node],
    inputs: Mapping[torch.fx.Node, torch.Tensor],
    writes: bool,
) -> torch.Tensor:
    """The tensor that `root` stands for, where `inputs` are the real ones of the graph; they are not written to.

    writes: may the operations write to their operands?
    """
    results: dict[torch.fx.Node, Any] = dict(inputs)
    if writes:
        results = {node: tensor.clone() for node, tensor in inputs.items()}
    with torch.no_grad():
        for operation in operations:
            results[operation] = result_of(operation, results)
    found: torch.Tensor = results[root]
    return found


def result_of(operation: torch.fx.Node, results: Mapping[torch.fx.Node, Any]) -> Any:
    """What the operation gives, called with the results of others."""
    arguments, options = torch.fx.node.map_arg((operation.args, operation.kwargs), results.__getitem__)
    if operation.op == "call_method":
        owner, *arguments = arguments
        return getattr(owner, str(operation.target))(*arguments, **options)
    return operation.target(*arguments, **options)


def text_of(tensor: torch.Tensor) -> str:
    """The elements, parted by spaces."""
    return " ".join(map(repr, tensor.detach().reshape(-1).tolist()))
