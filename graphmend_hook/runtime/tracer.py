"""Dynamo's tracer: how to ask it something while it traces, and what it holds in its frames."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import torch
from torch._guards import CompileContext
from torch.compiler import is_dynamo_compiling

from . import refusals
from .endings import at_end, forget_own_guards

log = logging.getLogger("graphmend_hook.trace")
P = ParamSpec("P")
T = TypeVar("T")
OWN_FILES = frozenset(map(str, Path(__file__).parent.glob("*.py")))


def at_trace_time(otherwise: T) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """What `torch.compiler.assume_constant_result` does, without the import of Dynamo that it takes.

    A question that this torch's tracer cannot answer must not end the trace: the answer is then `otherwise`.  So it is
    where nothing is being traced: behind a graph break inside a function of ours, which is then compiled by itself.
    Dynamo stores the result as a global of the traced module under the name of the function's code, so the name is
    one that no module has.
    """

    def mark(question: Callable[P, T]) -> Callable[P, T]:
        def ask(*args: P.args, **kwargs: P.kwargs) -> T:
            with contextlib.suppress(AttributeError):  # nothing is being traced, or its end is being judged
                at_end(translator().output, forget_own_guards)
            try:
                return question(*args, **kwargs)
            except Exception as error:
                # An order to Dynamo, see `retrace.trace_anew`.
                if type(error).__name__ == "UnspecializeRestartAnalysis":
                    raise
                if CompileContext.try_get() is not None:
                    log.warning("%s cannot be told of torch %s", question.__name__, torch.__version__, exc_info=True)
                return otherwise

        ask._dynamo_marked_constant = True  # type: ignore[attr-defined]
        ask.__code__ = ask.__code__.replace(co_name=f"_@graphmend_{question.__name__}")
        return ask

    return mark


@at_trace_time(otherwise=None)
def record(code: str) -> None:
    """Remember that the effect being traced stays where it is."""
    from torch._guards import TracingContext

    frames = [frame for frame in TracingContext.extract_stack() if frame.filename not in OWN_FILES]
    frame = frames[-1] if frames else None
    place = (frame.filename, frame.lineno or 0, frame.name) if frame else ("?", 0, "?")
    if (code, *place) not in refusals.seen:
        refusals.seen.append((code, *place))
        log.debug("%s: left in place at %s:%s in %s: %s", code, *place, refusals.REFUSALS[code])


@at_trace_time(otherwise=True)
def is_symbol() -> bool:
    """Is the number at hand a symbol of the graph?"""
    return type(held("graphmend_number").realize()).__name__ == "SymNodeVariable"


def _types_read_texts() -> bool:
    """Does Dynamo guard a text itself once its type is asked for?  Up to torch 2.12: each text is compiled anew."""
    return bool(torch.__version__ < "2.13")


if _types_read_texts():

    def is_unread_text(graphmend_value: Any) -> bool:
        """Is it a text that the trace has not looked at, nor need look at?  Its type is guarded from now on."""
        return _is_unread_text()

else:

    def is_unread_text(graphmend_value: Any) -> bool:
        """Dynamo knows the type of a text that it has not looked at."""
        return False


@at_trace_time(otherwise=False)
def _is_unread_text() -> bool:
    from torch._dynamo.guards import GuardBuilder, install_guard

    variable = held("graphmend_value")
    if type(variable).__name__ != "LazyConstantVariable" or variable.is_realized() or variable.peek_type() is not str:
        return False
    install_guard(variable.source.make_guard(GuardBuilder.TYPE_MATCH))
    return True


def python_of(variable: Any) -> Any:
    """The Python object that a variable of Dynamo stands for."""
    variable = variable.realize()
    for holder in ("value", "fn"):
        if hasattr(variable, holder):
            return getattr(variable, holder)
    return variable.as_python_constant()


def fake_of(variable: Any) -> Any:
    """The same with fake tensors for the traced ones."""
    node = node_of(variable)
    if node is not None:
        return node.meta["example_value"]
    variable = variable.realize()
    kind = type(variable).__name__
    if kind in ("TupleVariable", "ListVariable", "SizeVariable"):
        return variable.python_type()([fake_of(item) for item in variable.items])
    if kind == "ConstDictVariable":
        return {python_of(key.vt): fake_of(value) for key, value in variable.items.items()}
    if kind == "SliceVariable":
        return slice(*[fake_of(item) for item in variable.items])
    return python_of(variable)


def node_of(variable: Any) -> Any:
    """The node of the graph that a tensor or a symbolic number is, else None."""
    variable = variable.realize()
    graphed = variable.is_tensor() or type(variable).__name__ == "SymNodeVariable"
    return variable.as_proxy().node if graphed else None


def translator() -> Any:
    from torch._dynamo.symbolic_convert import InstructionTranslator

    return InstructionTranslator.current_tx().output.current_tx  # the first is that of the outermost frame


def frames(translator: Any) -> Iterator[Any]:
    while translator is not None:
        yield translator
        translator = translator.parent


def site_of(translator: Any) -> tuple[str, int] | None:
    """The innermost place outside this package; None where a function of ours is compiled by itself, after a break."""
    outside = (frame for frame in frames(translator) if frame.f_code.co_filename not in OWN_FILES)
    frame = next(outside, None)
    return None if frame is None else (frame.f_code.co_filename, frame.lineno)


def has_known_shape(graphmend_tensor: Any) -> bool:
    """Are all sizes of the tensor numbers, or symbols with a value in the trace?  Asking for others breaks it."""
    return not is_dynamo_compiling() or not _has_unbacked_size()


@at_trace_time(otherwise=True)
def _has_unbacked_size() -> bool:
    from torch.fx.experimental.symbolic_shapes import free_unbacked_symbols

    return bool(free_unbacked_symbols(fake_of(held("graphmend_tensor")).shape))


def held(name: str) -> Any:
    """Dynamo's variable for the local of that name, in the innermost frame that has one."""
    frame = next(frame for frame in frames(translator()) if name in frame.symbolic_locals)
    return frame.symbolic_locals[name]
