"""Whole numbers that count calls: symbols from the first call on.

They are attributes of modules that a frame adds to, ``self.calls += 1``, and arguments that it asks for a period,
``step % 50``.  Dynamo takes a number of a module for a constant, compiles for each value anew, and after eight runs the
frame in eager for good; an argument is a constant in the first call.  Of those in traced code of a mended module it is
told that they are none.
"""

from __future__ import annotations

import dis
import functools
import itertools
from collections.abc import Callable
from types import CodeType
from typing import Any

from ...source.templates import RUNTIME
from ..attempt.attempt import Feature, Lifetime
from ..attempt.compilation import Compilation, NotTracingError, compilation_of, is_break_or_failure
from .frame_guards import name_of

_SHUFFLING = ("SWAP", "ROT_TWO", "COPY", "DUP_TOP")  # what stands on the stack twice, or in another order
_COUNTER = Feature("a number that the frame adds to is a symbol", Lifetime.CODE)


def watch() -> None:
    """Stand where Dynamo decides on a number, from now on; where another torch has that elsewhere, nothing changes."""
    from torch._dynamo.variables import builder

    decide = getattr(builder, "is_int_specialization_case", None)
    if decide is not None and not hasattr(decide, "__wrapped__"):
        builder.is_int_specialization_case = _but_for_counters(decide)


def _but_for_counters(decide: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool]:
    @functools.wraps(decide)
    def is_constant(value: Any, source: Any) -> bool:
        return not _is_counted_here(value, source) and bool(decide(value, source))

    return is_constant


def _is_counted_here(value: int, source: Any) -> bool:
    from torch._dynamo.pgo import FrameStateSizeEntry, process_automatic_dynamic
    from torch._dynamo.symbolic_convert import InstructionTranslator

    root = InstructionTranslator.current_tx()
    if not _is_counter(root.output.current_tx, source):
        return False
    try:
        compilation = compilation_of(root.output)
    except NotTracingError:
        return False
    if not compilation.allows(_COUNTER):
        return False
    compilation.at_end(_judge_end)
    # Dynamo makes a symbol of a number that it has met with two values.
    process_automatic_dynamic(root, name_of(source), FrameStateSizeEntry.make_scalar(value + 1))
    return True


def _judge_end(compilation: Compilation, error: BaseException | None) -> None:
    """Has the attempt ended in a break or an error?  It may be for want of the number itself, as in a text."""
    if is_break_or_failure(error) and not compilation.one_graph and compilation.allows(_COUNTER):
        compilation.without(_COUNTER.at(), reason="a frame breaks in which a counter is a symbol")


def _is_counter(frame: Any, source: Any) -> bool:
    """Is it a number of a module that a traced function of a mended module, this one or a caller, adds to?

    Or an argument of the frame that it asks for a period.
    """
    argument = getattr(source, "local_name", None)
    if argument is not None:
        return frame.parent is None and RUNTIME in frame.f_globals and argument in asked_for_periods(frame.f_code)
    member = getattr(source, "member", None)
    if member is None or not source.guard_source.is_unspecialized_nn_module():
        return False
    while frame is not None:
        if RUNTIME in frame.f_globals:
            names = [name for name, added in added_to(frame.f_code) if added == member]
            sources = [getattr(frame.symbolic_locals.get(name), "source", None) for name in names]
            if name_of(source.base) in map(name_of, filter(None, sources)):
                return True
        frame = frame.parent
    return False


@functools.cache
def added_to(code: CodeType) -> frozenset[tuple[str, str]]:
    """The attributes to which the code assigns what it makes of them: ``x.n += 1``, ``x.n = min(x.n + len(y), 9)``.

    Each as the local name that it is an attribute of, "" for something else, and its own name.
    """
    found = [each for each in dis.get_instructions(code) if each.opname not in _SHUFFLING]
    added, line = set(), list[dis.Instruction]()
    for each in found:
        if each.starts_line:
            line = []
        line.append(each)
        if each.opname == "STORE_ATTR" and any(one.opname.startswith(("BINARY_", "INPLACE_")) for one in line):
            for owner, read in itertools.pairwise(line):
                if read.opname == "LOAD_ATTR" and read.argval == each.argval:
                    added.add((owner.argval if owner.opname.startswith("LOAD_FAST") else "", read.argval))
    return frozenset(added)


@functools.cache
def asked_for_periods(code: CodeType) -> frozenset[str]:
    """The local names of which the code takes a remainder: ``n % 50``, ``n % self.every``; no texts that are filled."""
    found, names = [each for each in dis.get_instructions(code) if each.opname not in _SHUFFLING], set()
    for number, then in enumerate(found):
        if then.opname == "BINARY_MODULO" or (then.opname == "BINARY_OP" and then.argrepr == "%"):
            before = found[max(number - 4, 0) : number]
            if not any(isinstance(each.argval, str) for each in before if each.opname == "LOAD_CONST"):
                loads = [each.argval for each in before if each.opname.startswith("LOAD_FAST")]
                names |= {name for load in loads for name in (load if isinstance(load, tuple) else (load,))}
    return frozenset(names)
