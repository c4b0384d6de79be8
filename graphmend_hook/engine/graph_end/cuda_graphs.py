"""Keeps what depends on sizes that the data decides out of CUDA graphs.

A CUDA graph is recorded for fixed sizes.  Inductor hands one such sizes too, and records it anew for each set of them,
until that fails ("Not expecting deleter function").  It parts a graph around what cannot be recorded at all: so that
is what an operation is, in a graph with captured numbers, that has one in its sizes, or is given something that has.
"""

from __future__ import annotations

import functools
import itertools
import sys
from typing import Any

import torch
from torch.utils.weak import WeakIdKeyDictionary

from ..attempt import defects
from ..attempt.compilation import Compilation
from ..door.tracer import log
from ..facts.writes import fakes_of
from .order import Compiler

_SCHEDULER = "torch._inductor.scheduler"  # which `torch.compile` has imported by then, if its backend is Inductor
_captured = WeakIdKeyDictionary()  # environments of symbols that have such numbers; a backward pass has them too


def keep_out(compilation: Compilation, module: torch.fx.GraphModule, compiler: Compiler) -> Compiler:
    """Let no CUDA graph that becomes of the graph, or of its backward pass, have a size that the data decides."""
    if any(fake.device.type not in ("cpu", "meta") for node in module.graph.nodes for fake in fakes_of(node)):
        _captured[compilation.output.shape_env] = True
        if _SCHEDULER in sys.modules:
            _teach()
    return compiler


@functools.cache
def _teach() -> None:
    """Tell Inductor's scheduler once; of other graphs it decides as it did."""
    from torch._inductor.scheduler import Scheduler

    decides = getattr(Scheduler, "should_partition", None)
    if decides is None:
        log.debug("this Inductor does not part graphs")
        return

    @functools.wraps(decides)
    def should_partition(scheduler: Any, node: Any, *options: Any, **named: Any) -> Any:
        return decides(scheduler, node, *options, **named) or _why_not(node)

    Scheduler.should_partition = should_partition


def _why_not(node: Any) -> str | None:
    """Why the operation of a graph is not to be recorded, beside what Inductor knows; None where it may be."""
    try:
        return "a size that the data decides" if _depends_on_captured(node) else None
    except Exception as error:
        defects.report("a look at what Inductor schedules", error)
        return "it is not known which sizes it has"


def _depends_on_captured(node: Any) -> bool:
    """Is a number that was captured in a size of the operation, or of what it is given?"""
    from torch._inductor.ir import IRNode
    from torch._inductor.scheduler import get_scheduler_node_symbol_uses
    from torch._inductor.virtualized import V
    from torch.fx.experimental.symbolic_shapes import free_unbacked_symbols

    if V.graph.sizevars.shape_env not in _captured:
        return False
    given = (V.graph.try_get_buffer(read.name) for read in node.read_writes.reads)
    shapes = [buffer.maybe_get_size() or () for buffer in given if isinstance(buffer, IRNode)]  # a number has none
    sizes = map(V.graph.sizevars.simplify, itertools.chain(get_scheduler_node_symbol_uses(node), *shapes))
    return bool(free_unbacked_symbols([*sizes]))
