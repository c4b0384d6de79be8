"""Conditions in which tensors take part: their truth as tensors () of bool, with Python's rules for everything else.

Dynamo inlines these functions and folds their tests.  In non-strict export they run as Python, on traced tensors.
Where a graph break lies in one, it runs as Python too, for real: what nobody traces is decided as Python decides it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.compiler import is_exporting

from ...engine.attempt.as_written import is_as_written
from ...engine.door.question import answers_for, in_trace, question
from ...engine.door.tracer import Trace
from ...engine.door.variables import (
    Variable,
    fake_of,
    has_fixed_sizes,
    is_known,
    is_plain_tensor,
    is_unbacked,
    same_sizes,
)
from ...engine.epilogue import queue
from ...engine.epilogue.deferral import assert_in_graph, has_interpreter, is_exported_here, is_in_a_mode, is_transformed
from ...engine.facts import ranges
from ...engine.graph_end import dead_code
from ...engine.numbers import number_tensors
from ..defer.codes import NEEDS_ITS_BREAKS
from ..defer.traced import record
from ..where.codes import HARMFUL, IN_TRANSFORM, NOT_ONE_ELEMENT, UNTAKEN_RAISES
from . import traced_sides
from .traced_rounding import round_decisions
from .traced_sides import Unspeculable


def compiling() -> bool:
    """Is the caller being traced, by Dynamo or for an export?

    `torch.compiler.is_compiling` says so to every thread while one compiles, and to eager code that a backend runs.
    """
    return in_trace() or (is_exporting() and is_exported_here())


@answers_for(compiling, otherwise=True)
def _is_compiling(trace: Trace) -> bool:
    """No where a mode of the program sees each call of torch, and so those of ours: there the code is as written."""
    return not is_in_a_mode(trace)


@question(otherwise=False, elsewhere=lambda test: compiling() and isinstance(test, torch.Tensor))
def undecided(trace: Trace, test: Variable) -> bool:
    """Does the truth of `test` depend on data that only exists when the graph runs, and is it a tensor, or has one?"""
    return dead_code.remember(trace.compilation, test) or number_tensors.stands_for(trace, test)


def truth(test: torch.Tensor) -> torch.Tensor:
    """`test` as a tensor () of bool; shapes with more or less than one element have no truth."""
    if number_tensors.has_tensor(test):
        test = number_tensors.as_tensor(test)
    if not has_truth(test):
        raise Unspeculable(IN_TRANSFORM if is_transformed() else NOT_ONE_ELEMENT)
    flat = test if test.dim() == 0 else test.reshape(())
    predicate = flat if flat.dtype is torch.bool else flat != 0
    if in_trace():
        round_decisions(predicate)
    return predicate


def of_range(test: torch.Tensor) -> bool | None:
    """The truth of a test of one element where the range of its numbers, a draw in [0, 1) say, decides it; else None.

    The graph makes sure of it, and so keeps a draw that nothing else uses.
    """
    found = _by_range(test)
    if found is not None and not ranges.is_drawn_before(test):
        assert_in_graph(truth(test) if found else ~truth(test), "graphmend_hook: a random number is out of its range")
    return found


def has_known_range(test: Any) -> bool:
    """Does the range of its numbers decide the test?  Then nothing needs to be merged."""
    return has_truth(test) and (_by_range(test) is not None or number_tensors.is_sure(test))


def _by_range(test: Any) -> bool | None:
    if number_tensors.has_tensor(test) or not (in_trace() and queue.specialise):
        return None
    found: bool | None = ranges.truth(test)
    return found


def tested(test: Any) -> Any:
    """What an exit asks that stands deeper in a loop: its truth, where the range of its numbers decides that."""
    found = of_range(test) if undecided(test) and has_truth(test) else None
    return test if found is None else found


def may_join(test: Any) -> bool:
    """May a test join a condition as a tensor?"""
    return undecided(test) and has_truth(test) and not is_left_alone()


def may_join_by_elements(left: Any, right: Any) -> bool:
    """May what the elements of two tensors decide, each by each, join a condition as a tensor?"""
    both_are = undecided(left) and undecided(right) and has_elements(left) and has_elements(right)
    return both_are and not is_left_alone()


def is_left_alone() -> bool:
    """Is every statement to be traced as it was written?  Then Python asks for the truth of each tensor, by itself."""
    if _is_as_written():
        record(NEEDS_ITS_BREAKS)
        return True
    return False


def negate(test: Any) -> Any:
    """``not test``."""
    if may_join(test):
        return ~truth(test)
    return False if test else True  # noqa: SIM211  Dynamo makes an operation of `not`, which fails with another error


def both(left: Any, right: Any) -> Any:
    """``left and right`` for the sake of its truth; `right` is asked for only where `left` is a tensor or true."""
    is_joined = may_join(left)
    if not is_joined and not isinstance(left, torch.Tensor):
        return right
    if is_joined:
        if not undecided(right):
            return left if right else False
        if has_truth(right):
            return truth(left) & truth(right)
    return left and right


def either(left: Any, right: Any) -> Any:
    """``left or right`` for the sake of its truth; `right` is asked for only where `left` is a tensor or false."""
    is_joined = may_join(left)
    if not is_joined and not isinstance(left, torch.Tensor):
        return right
    if is_joined:
        if not undecided(right):
            return True if right else left
        if has_truth(right):
            return truth(left) | truth(right)
    return left or right


def every(condition: Any) -> Any:
    """Do all elements hold?  Of a tensor that has ways of its own nobody asks: `truth` refuses it."""
    return condition.all() if isinstance(condition, torch.Tensor) and holds_data(condition) else condition


def is_bool(test: torch.Tensor) -> bool:
    """Does the tensor stand for a bool of Python, and for no other number?"""
    return test.dtype is torch.bool


def one_value(tensor: Any) -> Any:
    """``tensor.item()`` for the sake of its truth."""
    return tensor if may_join(tensor) else tensor.item()


def of_number(name: str, given: Any, is_read: bool) -> Any:
    """``math.isnan(given)``, by its name, which `math` and torch share; is_read: of ``given.item()``."""
    if isinstance(given, torch.Tensor) and may_join(given) and not given.is_complex():
        return getattr(torch, name)(given)
    return getattr(math, name)(given.item() if is_read else given)


def early(join: Callable[[Any, Any], Any], left: Any, right: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    """`both` or `either` with a right operand that Python might not evaluate; None if it cannot be evaluated yet."""
    if not compiling():  # a graph break in here: from there on the original runs for real
        return None
    if in_trace():
        why_not = traced_sides.why_not_begun()
        if why_not:
            record(*why_not)
            return None
    joined: Any = None
    why: tuple[str, ...] = ()
    try:
        joined = join(left, right(*arguments))
    except Unspeculable as error:
        why = error.args
    except Exception:
        why = (UNTAKEN_RAISES,)
    if why:
        record(*why)
    if in_trace():
        traced_sides.end_sides()
        if why:
            traced_sides.give_up_sides(why)
    return joined


def begin_operand(left: Any) -> bool:
    """In a side: the right operand of `and` or `or` comes next, to which Python may not get if `left` is undecided."""
    is_open = in_trace() and undecided(left)
    if is_open:
        traced_sides.begin_operand()
    return is_open


def operand(is_open: bool, value: Any) -> Any:
    """The operand, which may have stored nothing: a side's stores are made where the side is taken."""
    if is_open and traced_sides.has_operand_changed():
        raise Unspeculable(HARMFUL)
    return value


def _holds_data(value: object) -> bool:
    return isinstance(value, torch.Tensor) and value.device.type != "meta" and not has_interpreter()


def _has_truth(value: Any) -> bool:
    return _holds_data(value) and is_known(value.numel() == 1)


@question(otherwise=False, elsewhere=_holds_data)
def holds_data(_trace: Trace, tensor: Variable) -> bool:
    """Is it a tensor with elements, on which no function transform has ways of its own?"""
    return is_plain_tensor(tensor) and _holds_data(fake_of(tensor))


@question(otherwise=False, elsewhere=_holds_data)
def has_elements(_trace: Trace, tensor: Variable) -> bool:
    """Does it hold data, as many elements as the trace can tell?"""
    return is_plain_tensor(tensor) and _holds_data(fake := fake_of(tensor)) and not is_unbacked(fake.shape)


@question(otherwise=None, elsewhere=same_sizes)
def are_same_shapes(_trace: Trace, left: Variable, right: Variable) -> bool | None:
    """Are they?  None where that depends on what symbols are."""
    return same_sizes(fake_of(left), fake_of(right))


def _fit(left: Sequence[Any], right: Sequence[Any]) -> bool:
    pairs = zip(reversed(left), reversed(right), strict=False)
    return all(is_known(one == other) or is_known(one == 1) or is_known(other == 1) for one, other in pairs)


@question(otherwise=False, elsewhere=_fit)
def fit(_trace: Trace, left: Variable, right: Variable) -> bool:
    """Are two shapes made one by repeating what is of length one, whatever symbols are?"""
    return _fit(fake_of(left), fake_of(right))


@question(otherwise=False, elsewhere=_holds_data)
def has_fixed_shape(_trace: Trace, tensor: Variable) -> bool:
    """Does it hold data, as many elements as there are in every call?"""
    return is_plain_tensor(tensor) and _holds_data(fake := fake_of(tensor)) and has_fixed_sizes(fake)


@question(otherwise=False, elsewhere=lambda: False)
def _is_as_written(trace: Trace) -> bool:
    return is_as_written(trace)


@question(otherwise=False, elsewhere=_has_truth)
def has_truth(trace: Trace, tensor: Variable) -> bool:
    """Does it hold one element, or is it a number for which such a tensor stands?"""
    if number_tensors.stands_for(trace, tensor):
        return True
    return is_plain_tensor(tensor) and not is_unbacked((fake := fake_of(tensor)).shape) and _has_truth(fake)
