"""From which inputs of a frame the tensor is computed at which Dynamo stopped, by the names of their sources."""

from __future__ import annotations

import traceback
from typing import Any


def inputs_behind(error: BaseException) -> list[str]:
    """The names under which the inputs come in: arguments, attributes or keys, as `--values` takes them.

    Not of what a module holds.  Nothing where it cannot be told: there is no such tensor, or an input has no name.
    """
    nodes = [_leaves(frame.f_locals.get("self")) for frame, _ in traceback.walk_tb(error.__traceback__)]
    found = [leaves for leaves in nodes if leaves]
    names = [_name(source) for source in found[-1]] if found else []
    return sorted({name for name in names if name}) if all(names) else []


def _leaves(variable: Any) -> list[Any]:
    """The sources of the graph's inputs that a tensor is computed from, if the variable is one."""
    from torch._dynamo.variables import TensorVariable

    if not isinstance(variable, TensorVariable):
        return []
    waiting, known = [variable.as_proxy().node], set()
    while waiting:
        node = waiting.pop()
        if node not in known:
            known.add(node)
            waiting += node.all_input_nodes
    arguments = [node.meta.get("grapharg") for node in known if node.op == "placeholder"]
    sources = [argument.source for argument in arguments if argument is not None]
    return [source for source in sources if "NN_MODULE" not in source.guard_source.name]


def _name(source: Any) -> str:
    """The innermost name: of an attribute or a key, else of the argument."""
    while source is not None:
        for part in ("member", "index", "local_name", "global_name"):
            name = getattr(source, part, None)
            if isinstance(name, str) and name.isidentifier() and not name.startswith("___"):
                return name
        source = getattr(source, "base", None)
    return ""
