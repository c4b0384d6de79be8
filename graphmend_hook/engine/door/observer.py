"""What Dynamo does in this process: each graph that a backend is given, each break; and where it stands."""

from __future__ import annotations

import contextlib
import traceback
from collections.abc import Callable, Iterator
from typing import Any

from . import trust


@contextlib.contextmanager
def observed(on_graph: Callable[[Any, str], None], on_break: Callable[[str, BaseException], None]) -> Iterator[None]:
    """Call `on_graph` with each `GraphModule` and the name of the backend that is to have it, before it does.

    `on_break` is called with Dynamo's reason for each break.

    The two functions of Dynamo that are wrapped are asked for every graph and for every break, under any backend.
    """
    from unittest.mock import patch  # Dynamo has imported it

    from torch._dynamo.output_graph import OutputGraph
    from torch._dynamo.symbolic_convert import InstructionTranslatorBase

    compile_graph, log_break = OutputGraph.call_user_compiler, InstructionTranslatorBase.log_graph_break

    def graph(output: Any, module: Any, *args: Any) -> Any:
        if not trust.is_proving:
            on_graph(module, _name_of(output.compiler_fn))
        return compile_graph(output, module, *args)

    def broken(translator: Any, options: Any, reason: str, exc: Any) -> None:
        if not exc.logged and not trust.is_proving:
            on_break(str(reason), exc)
        log_break(translator, options, reason, exc)

    breaks = patch.object(InstructionTranslatorBase, "log_graph_break", broken)
    with patch.object(OutputGraph, "call_user_compiler", graph), breaks:
        yield


def _name_of(backend: Any) -> str:
    """What `torch.compile` was told to use; it stands on a wrapper of the backend, or on what that wraps."""
    wrapped = getattr(backend, "_torchdynamo_orig_backend", None)
    names = (getattr(backend, "compiler_name", None), getattr(wrapped, "compiler_name", None))
    return str(next(filter(None, (*names, getattr(backend, "__name__", None))), type(backend).__name__))


def stack_of(error: BaseException) -> traceback.StackSummary:
    """The traced frames in which Dynamo broke the graph, the innermost last."""
    from torch._guards import TracingContext

    stack: traceback.StackSummary = getattr(error, "real_stack", None) or TracingContext.extract_stack()
    return stack


def kind_of(error: BaseException) -> str:
    """Dynamo's name for the kind of a break."""
    return str(getattr(error, "gb_type", None) or type(error).__name__)


def compilation_id() -> tuple[int, int]:
    """The number of the frame that Dynamo compiles, and how often it has been compiled before."""
    from torch._guards import CompileContext

    current = CompileContext.current_compile_id()
    return (-1, 0) if current is None else (current.frame_id or 0, current.frame_compile_id or 0)
