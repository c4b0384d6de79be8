"""Keeps Inductor's cache from handing a graph a backward pass that writes to a tensor which the program was given.

A backward pass may write to what is saved for it, if that is no result of the forward pass ("donated").  Inductor's
cache (2.13 to 2.15) finds a backward pass by its operations alone: if the same one was compiled for a graph that
returns nothing of it, ``return loss, y.detach()`` is overwritten.  Where a graph broke, mended ones have such results.
"""

from __future__ import annotations

import functools
import sys
import weakref
from typing import Any

import torch
from torch._guards import TracingContext

from ..attempt.compilation import Compilation
from ..door.tracer import log
from .order import Compiler

_CACHE = "torch._inductor.codecache"  # which `torch.compile` has imported by then, if its backend is Inductor
_mended: weakref.WeakSet[TracingContext] = weakref.WeakSet()  # a backward pass is compiled in the graph's own


def tell_apart(_compilation: Compilation, _module: torch.fx.GraphModule, compiler: Compiler) -> Compiler:
    """Let the key of the graph's backward pass say what it may write to."""
    context = TracingContext.try_get()
    if context is not None and _CACHE in sys.modules:
        _mended.add(context)
        _teach()
    return compiler


@functools.cache
def _teach() -> None:
    """Tell Inductor once; the keys of other graphs are as they were."""
    from torch._inductor import codecache

    details = getattr(codecache, "FxGraphHashDetails", None)
    if details is None:
        log.debug("this Inductor has another cache")
        return
    begin = details.__init__

    @functools.wraps(begin)
    def init(key: Any, *given: Any, **named: Any) -> None:
        begin(key, *given, **named)
        context = TracingContext.try_get()
        metadata = context.fw_metadata if context is not None and context in _mended else None
        if metadata is not None:  # of a forward pass nothing is known yet, and all are keys of ours
            key.graphmend_donated = tuple(metadata.bw_donated_idxs or ())

    details.__init__ = init
