"""What [Where] and [Trap] call while tracing: is the test a tensor, may both sides be evaluated, can they be merged?

Dynamo inlines these functions and folds their tests.  In non-strict export they run as Python, on traced tensors.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import torch
from torch.compiler import is_compiling, is_dynamo_compiling

from . import dynamo, guards, rounding, traced_sides, tracer
from .speculation import Unspeculable, is_tensor

Effect = tuple[Any, ...]  # (predicate or None, method or None for a guard, delivery, target, values)
Side = Callable[..., tuple[Any, ...] | None]
_WHOLE = 2**53  # the whole numbers that float64 holds exactly


compiling = is_compiling  # is the caller being traced, by Dynamo or for an export?


def undecided(test: object) -> bool:
    """Does the truth of `test` depend on data that only exists when the graph runs?"""
    return compiling() and isinstance(test, torch.Tensor)


def select(
    test: torch.Tensor,
    sides: tuple[Side, Side],
    arguments: tuple[Any, ...],
    effects: list[Effect] | None,
) -> tuple[Any, ...] | None:
    """Evaluate both sides and merge what they return; None where that would not give what the original gives.

    sides: called with a list for their effects and with `arguments`; they return None where they raise.
    effects: where the effects go if this branch is inside another; else they are left for the end of the graph.
    """
    if not is_compiling():  # a graph break in here: from there on the original runs for real
        return None
    try:
        predicate = truth(test)
        if is_dynamo_compiling():
            if dynamo.is_abandoned():
                raise Unspeculable("GM101-T11")
            if not traced_sides.begin_sides():
                raise Unspeculable("GM102-T11")
        taken: list[Effect] = []
        untaken: list[Effect] = []
        left, right = sides[0](taken, *arguments), sides[1](untaken, *arguments)
        if is_dynamo_compiling():
            traced_sides.end_sides()
        merged = _merged(predicate, left, right)
        every = _conditional(predicate, taken, untaken)
        if effects is not None:
            effects.extend(every)
        elif every:
            guards.commit(every)
    except Unspeculable as error:
        tracer.record(error.args[0])
        return None
    except Exception:  # of the user's expressions: attributes that do not exist, types that do not fit
        tracer.record("GM102-T05")
        return None
    if is_dynamo_compiling():
        dynamo.expect_success()
    return merged


def truth(test: torch.Tensor) -> torch.Tensor:
    """`test` as a tensor () of bool; shapes with more or less than one element have no truth."""
    if dynamo.transformed():
        raise Unspeculable("GM102-T07")
    if not _has_elements(test) or test.numel() != 1:
        raise Unspeculable("GM102-T01")
    flat = test if test.dim() == 0 else test.reshape(())
    graphmend_predicate = flat if flat.dtype is torch.bool else flat != 0
    if is_dynamo_compiling():
        rounding.round_decisions()
    return graphmend_predicate


def required(outcome: tuple[Any, ...] | None) -> tuple[Any, ...]:
    """The results of a branch inside a side; without them the side cannot be evaluated."""
    if outcome is None:
        raise Unspeculable("GM102-T08")
    return outcome


def negate(test: Any) -> Any:
    """``not test``."""
    if undecided(test) and _has_truth(test):
        return ~truth(test)
    return not test


def both(left: Any, right: Any) -> Any:
    """``left and right`` for the sake of its truth; `right` is asked for only where `left` is a tensor or true."""
    if not undecided(left):
        return right
    if not undecided(right):
        return left if right else False
    if _has_truth(left) and _has_truth(right):
        return truth(left) & truth(right)
    return left and right


def either(left: Any, right: Any) -> Any:
    """``left or right`` for the sake of its truth; `right` is asked for only where `left` is a tensor or false."""
    if not undecided(left):
        return right
    if not undecided(right):
        return True if right else left
    if _has_truth(left) and _has_truth(right):
        return truth(left) | truth(right)
    return left or right


def every(condition: Any) -> Any:
    """Do all elements hold?"""
    return condition.all() if undecided(condition) else condition


def one_value(tensor: Any) -> Any:
    """``tensor.item()`` for the sake of its truth."""
    return tensor if undecided(tensor) and _has_truth(tensor) else tensor.item()


def early(join: Callable[[Any, Any], Any], left: Any, right: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    """`both` or `either` with a right operand that Python might not evaluate; None if it cannot be evaluated yet."""
    try:
        return join(left, right(*arguments))
    except Unspeculable as error:
        tracer.record(error.args[0])
    except Exception:
        tracer.record("GM102-T05")
    return None


def equal(left: Any, right: Any, **options: Any) -> Any:
    """``torch.equal(left, right)``, as a tensor () of bool where only the values can tell."""
    if not options and _are_alike(left, right):
        return (left == right).all() if left.shape == right.shape else False
    return torch.equal(left, right, **options)


def equal_method(left: Any, *others: Any, **options: Any) -> Any:
    """``left.equal(...)`` likewise."""
    if len(others) == 1 and not options and _are_alike(left, others[0]):
        return equal(left, others[0])
    return left.equal(*others, **options)


def allclose(left: Any, right: Any, *tolerances: Any, **options: Any) -> Any:
    """``torch.allclose(left, right, ...)``, as a tensor () of bool."""
    if _are_alike(left, right) and left.shape == right.shape:
        return torch.isclose(left, right, *tolerances, **options).all()
    return torch.allclose(left, right, *tolerances, **options)


def allclose_method(left: Any, right: Any, *tolerances: Any, **options: Any) -> Any:
    """``left.allclose(right, ...)`` likewise."""
    if _are_alike(left, right):
        return allclose(left, right, *tolerances, **options)
    return left.allclose(right, *tolerances, **options)


def number(tensor: Any) -> Any:
    """``tensor.item()`` as a tensor () of the dtype that holds what Python's numbers hold: int64 or float64."""
    if undecided(tensor) and _has_truth(tensor):
        if tensor.dtype.is_floating_point:
            return tensor.detach().reshape(()).to(torch.float64)
        if not tensor.dtype.is_complex and tensor.dtype is not torch.uint64:
            return tensor.detach().reshape(()).to(torch.int64)
    return tensor.item()


def carried(tensor: Any) -> Any:
    """``tensor.item()`` for guards alone, which can do with the tensor."""
    return tensor if undecided(tensor) and _has_truth(tensor) else tensor.item()


def number_of(value: Any) -> Any:
    """A number, or what `carried` gave for one, as `number` gives it."""
    return number(value) if isinstance(value, torch.Tensor) else value


def number_read(value: Any) -> Any:
    """A number, or what `carried` gave for one, as a number."""
    return value.item() if isinstance(value, torch.Tensor) else value


def calculate(name: str, left: Any, right: Any) -> Any:
    """``left <op> right`` of numbers, some of which are tensors as `number` gives them."""
    operation = getattr(operator, name)
    if not undecided(left) and not undecided(right):
        return operation(left, right)
    dtypes = [value.dtype for value in (left, right) if isinstance(value, torch.Tensor)]
    kinds = [type(value) for value in (left, right) if not isinstance(value, torch.Tensor)]
    whole, floating = dtypes[0] is torch.int64, dtypes[0] is torch.float64
    if dtypes[0] is dtypes[-1] and ((whole and kinds in ([], [int])) or (floating and kinds in ([], [int], [float]))):
        return operation(left, right)
    return operation(number_read(left), number_read(right))


def count_selected(tensor: Any, mask: Any) -> Any:
    """``tensor[mask].numel()``, counted without making the selection."""
    countable = undecided(tensor) and undecided(mask) and _has_elements(tensor) and _has_elements(mask)
    if countable and mask.dtype is torch.bool and mask.dim() and tensor.shape[: mask.dim()] == mask.shape:
        return mask.sum() * tensor.shape[mask.dim() :].numel()
    return tensor[mask].numel()


def compare(name: str, left: Any, right: Any, numbers: tuple[bool, bool]) -> Any:
    """``left <op> right`` where `numbers` says which operands are tensors that stand for Python numbers."""
    operation = getattr(operator, name)
    if not undecided(left) and not undecided(right):
        return operation(left, right)
    if numbers[0] and _is_beyond(left, right):
        return operation(0, right)
    if numbers[1] and _is_beyond(right, left):
        return operation(left, 0)
    if undecided(left) and undecided(right) and numbers[0] and numbers[1]:
        if left.dtype is right.dtype:
            return operation(left, right)
    elif undecided(left) and numbers[0] and not undecided(right):
        if _is_exact(left, right):
            return operation(left, right)
    elif undecided(right) and numbers[1] and not undecided(left) and _is_exact(right, left):
        return operation(left, right)
    return operation(
        left.item() if numbers[0] and undecided(left) else left,
        right.item() if numbers[1] and undecided(right) else right,
    )


def _is_beyond(tensor: Any, value: Any) -> bool:
    """Is `value` a number that no element of an integer tensor reaches?  All of them compare alike with it."""
    return type(value) is int and undecided(tensor) and tensor.dtype is torch.int64 and not -(2**63) <= value < 2**63


def _is_exact(tensor: torch.Tensor, value: object) -> bool:
    """Does comparing in the tensor's dtype give what Python gives for the two numbers?"""
    kind = type(value)
    if kind is bool:
        return True
    if kind is int:
        most = 2**63 - 1 if tensor.dtype is torch.int64 else _WHOLE
        return -most <= value <= most  # type: ignore[operator]
    return kind is float and tensor.dtype is torch.float64


def _has_elements(tensor: Any) -> bool:
    return is_tensor(tensor) and tensor.device.type != "meta" and not dynamo.transformed()


def _are_alike(left: Any, right: Any) -> bool:
    """Are they two tensors whose values can be compared?"""
    if not (undecided(left) and undecided(right) and _has_elements(left) and _has_elements(right)):
        return False
    return left.dtype is right.dtype and left.device == right.device and not left.is_quantized


def _has_truth(tensor: Any) -> bool:
    return _has_elements(tensor) and tensor.numel() == 1


def _merged(predicate: torch.Tensor, left: tuple[Any, ...] | None, right: tuple[Any, ...] | None) -> tuple[Any, ...]:
    if left is None or right is None:
        kept = right if left is None else left
        if kept is None:
            raise Unspeculable("GM102-T08")
        return kept
    return tuple([_merge(predicate, a, b) for a, b in zip(left, right)])  # noqa: B905  Dynamo: no strict=


def _merge(predicate: torch.Tensor, graphmend_left: Any, graphmend_right: Any) -> Any:
    left, right = graphmend_left, graphmend_right
    if isinstance(left, torch.Tensor) and isinstance(right, torch.Tensor):
        if left is right:
            return left
        if not _can_be_selected(left, right) or predicate.device != left.device:
            raise Unspeculable("GM102-T02")
        if is_dynamo_compiling() and not traced_sides.gradients_agree():
            raise Unspeculable("GM102-T06")
        graphmend_selected = torch.where(predicate, left, right)
        if is_dynamo_compiling():
            traced_sides.expect_no_writes()
        return graphmend_selected
    if type(left) is tuple and type(right) is tuple and len(left) == len(right):
        return tuple([_merge(predicate, a, b) for a, b in zip(left, right)])  # noqa: B905
    if not _is_same(left, right):
        raise Unspeculable("GM102-T03")
    return left


def _can_be_selected(left: torch.Tensor, right: torch.Tensor) -> bool:
    """Do the tensors differ in their values only?"""
    if type(left) is not type(right) or not is_tensor(left) or isinstance(left, torch.nn.Parameter):
        return False
    if left.dtype is not right.dtype or left.device != right.device or left.layout is not right.layout:
        return False
    if left.requires_grad != right.requires_grad or (left.requires_grad and not torch.is_grad_enabled()):
        return False  # what is selected without gradients requires none
    return bool(left.shape == right.shape) and left.stride() == right.stride()


def _is_same(left: Any, right: Any) -> bool:
    """Can no one tell the two values apart?"""
    kind = type(left)
    if kind is not type(right):
        return False
    if kind is float:
        return str(left) == str(right)  # of -0.0 and 0.0, which are equal, the sign can be seen
    if kind is int or kind is bool or kind is str:
        return bool(left == right)
    return left is None or left is right


def _conditional(predicate: torch.Tensor, taken: list[Effect], untaken: list[Effect]) -> list[Effect]:
    """The effects of both sides, each under the condition that its side is taken."""
    found: list[Effect] = []
    for side, effects in ((predicate, taken), (~predicate if untaken else predicate, untaken)):
        for inner, *rest in effects:
            found.append((side if inner is None else side & inner, *rest))
    return found
