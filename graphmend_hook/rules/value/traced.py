"""Numbers out of tensors: what [Value] calls to read one without a break.

Where there is no answer these give None, or the tensor, and the expression is traced as it was written, from its frame.
Dynamo inlines these functions and folds their tests; in eager none of them runs.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import torch

from ...engine.attempt.refusals import record
from ...engine.attempt.restart import expect_success
from ...engine.door import torch_modes
from ...engine.door.question import in_trace, question
from ...engine.door.tracer import Trace
from ...engine.door.variables import Variable
from ...engine.door.variables import is_tensor as is_any_tensor
from ...engine.epilogue import deferral, queue
from ...engine.graph_end import dead_code
from ...engine.numbers import (
    capture,
    clocks,
    drawn_numbers,
    late_arithmetic,
    late_calls,
    late_lists,
    late_numbers,
    late_tensor_lists,
    late_texts,
    made_tensors,
    number_or_tensor,
    number_tensors,
)
from ..shared.traced_conditions import has_elements, has_fixed_shape, has_truth, of_range
from ..shared.traced_operations import is_tensor
from ..shared.traced_sides import Unspeculable
from ..where.codes import MAY_FAIL
from . import traced_contents, traced_truths  # noqa: F401  what asks for a truth where no rule has seen the test
from .codes import DRAWN
from .traced_contents import known_elements

_MOST_SYMBOLS = 64  # of a list, in the graph
_MOST_NUMBERS = 16  # of a list that are read one by one, so that the program may look into it
# What Dynamo's functions make of late numbers, beside other late numbers; the latter come first.
late_numbers.handlers[:] = (
    late_arithmetic.add_handlers,
    number_tensors.add_handlers,
    late_texts.add_handlers,
    late_lists.add_handlers,
    late_calls.add_handlers,
    late_tensor_lists.add_handlers,
    made_tensors.add_handlers,
    number_or_tensor.add_handlers,
)
try:
    from numpy import ndarray  # type: ignore[import-not-found, unused-ignore]

    _ARRAYS: tuple[type, ...] = (ndarray,)
except ImportError:  # torch can do without
    _ARRAYS = ()


def item(tensor: Any, may_wait: bool = True, is_float: bool = False, is_alone: bool = False) -> Any:
    """``tensor.item()``.  may_wait: may it be a number that exists behind the graph?

    is_float: it is ``float(tensor)``, for which torch warns of one that requires a gradient.
    is_alone: is it used as a number alone, and so is no size?
    """
    tensor = as_tensor(tensor)
    if not is_asked(tensor) or not has_truth(tensor):
        return None
    is_late = may_wait and _may_be_late(tensor, is_alone)
    numbers = known_elements(tensor, not is_late)
    if numbers is not None:
        return numbers[0]
    if is_late:
        return _late(tensor, is_float and tensor.requires_grad)
    if capture.begin(tensor):
        number = tensor.item()
        capture.end()
        return number
    if may_wait and capture.is_given_up(tensor) and _may_be_late(tensor, True):
        return _late(tensor)
    traced_contents.refuse()
    return _late(tensor) if may_wait and _may_wait_until_asked(tensor) else None


def _late(tensor: torch.Tensor, warns: bool = False) -> Any:
    expect_success()
    return late_numbers.late(deferral.without_gradient(tensor).reshape(()).clone(), warns)


def read(tensor: Any) -> Any:
    """``tensor.item()`` for an effect, which shows the number: it is read when the effect is delivered."""
    found = _late_item(tensor)
    found = item(tensor) if found is None else found
    return tensor.item() if found is None else found


def read_in_side(tensor: Any) -> Any:
    """The same in a side of a branch, where it may not break the graph."""
    found = _late_item(tensor)
    if found is None:
        raise Unspeculable(MAY_FAIL, "item")
    return found


def _late_item(tensor: Any) -> Any:
    tensor = as_tensor(tensor)
    may_wait = is_asked(tensor) and has_truth(tensor) and _may_be_late(tensor, True)
    return _late(tensor) if may_wait else None


def read_by(function: Any, value: Any) -> Any:
    """``float(tensor)`` for an effect or an append, whose number is read behind the graph; else ``function(value)``.

    So too ``bool`` of one, and ``int`` of one that has no fraction: of infinity there is no ``int``.
    """
    found = _late_by(function, value)
    return function(value) if found is None else found


def read_in_side_by(function: Any, value: Any) -> Any:
    """The same in a side of a branch, where it may not break the graph."""
    found = _late_by(function, value)
    if found is not None:
        return found
    if isinstance(as_tensor(value), torch.Tensor):
        raise Unspeculable(MAY_FAIL, "item")
    return function(value)


def _late_by(function: Any, value: Any) -> Any:
    value = as_tensor(value)
    if not (is_asked(value) and has_truth(value) and _may_be_late(value, True)):
        return None
    if function is float:
        return float(_late(as_floats(value), value.is_floating_point() and value.requires_grad))
    if function is bool:
        return _late(value != 0)
    is_whole = function is int and not value.is_floating_point()
    return _late(value.to(torch.int64) if value.dtype is torch.bool else value) if is_whole else None


def as_floats(tensor: torch.Tensor) -> torch.Tensor:
    """What ``float(tensor)`` gives the number of: whole numbers and truths as floats of Python's, rounded as there."""
    return tensor if tensor.is_floating_point() or tensor.is_complex() else tensor.to(torch.float64)


def read_list(tensor: Any) -> Any:
    """``tensor.tolist()`` for an effect or an append, which comes behind the graph."""
    found = tolist(tensor)
    return tensor.tolist() if found is None else found


def _may_be_late(tensor: torch.Tensor, is_shown: bool) -> bool:
    return deferral.tracing() and not deferral.is_transformed() and late_numbers.may_be_late(tensor, is_shown)


def _may_wait_until_asked(tensor: torch.Tensor) -> bool:
    return deferral.tracing() and not deferral.is_transformed() and late_numbers.may_wait_until_asked(tensor)


def tolist(tensor: Any, may_capture: bool = True) -> Any:
    """``tensor.tolist()``."""
    tensor = as_tensor(tensor)
    if not is_asked(tensor) or not has_elements(tensor):
        return None
    numbers = known_elements(tensor)
    if numbers is not None:
        return _nested([*numbers], tensor.shape) if tensor.dim() else numbers[0]
    if may_capture and tensor.dim() and _may_be_late(tensor, tensor.dim() > 1):
        return _late_list(tensor)
    is_list = may_capture and tensor.dim() == 1 and has_fixed_shape(tensor)
    if is_list and 0 < tensor.numel() <= _MOST_SYMBOLS and capture.begin(tensor):
        found = on_host(tensor).tolist()
        capture.end()
        return found
    traced_contents.refuse()
    return None


def read_list_in_side(tensor: Any) -> Any:
    """``tensor.tolist()`` in a side of a branch, where it may not break the graph: its numbers wait for its end."""
    given = as_tensor(tensor)
    if not isinstance(given, torch.Tensor):
        return tensor.tolist()
    if given.dim() == 0:
        return read_in_side(given)
    if is_asked(given) and has_elements(given) and _may_be_late(given, True):
        return _late_list(given)
    raise Unspeculable(MAY_FAIL, "tolist")


def _late_list(tensor: torch.Tensor) -> Any:
    expect_success()
    copy = deferral.without_gradient(tensor).clone()
    if copy.dim() == 1 and has_fixed_shape(copy) and 0 < copy.numel() <= _MOST_NUMBERS:
        return [late_numbers.late(copy[place]) for place in range(copy.shape[0])]
    return late_numbers.late_list(copy)


def on_host(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor, or a copy of it in the host's memory: so a device is waited for once, and not for each element."""
    return tensor if tensor.device.type == "cpu" else tensor.cpu()


def known(value: Any, place: str = "") -> Any:
    """`value`, with the number in the place of a tensor of one element, or of such items of a tuple or list.

    place: "size" where torch takes a tensor of one whole number for a size, "scalar" where it takes a tensor without
        dimensions for a number; it refuses others.  "float", "bool": what those are called with; "int": where it
        is called for a number alone.
    """
    if _is_array(value):
        tensor = torch.as_tensor(value)
        found = known(tensor, place)
        return value if found is tensor else found
    if isinstance(value, torch.Tensor) and place == "float":
        number = item(as_floats(value), True, True)
        return value if number is None else number
    if isinstance(value, torch.Tensor) and place == "bool":
        number = item(value, value.is_floating_point() or value.dtype is torch.bool)
        return value if number is None else number
    if isinstance(value, torch.Tensor) and place == "int" and not value.is_floating_point():
        number = item(value, is_alone=True)
        return value if number is None else number
    if isinstance(value, torch.Tensor):
        place = "" if place == "int" else place
        may_wait = not place and (value.is_floating_point() or capture.is_given_up(value))
        number = item(value, may_wait) if not place or _is_taken(value, place) else None
        return value if number is None else number
    if type(value) is tuple:
        return tuple([known(part, place) for part in value])
    if type(value) is list:
        return [known(part, place) for part in value]
    return value


def _is_taken(tensor: torch.Tensor, place: str) -> bool:
    if tensor.dtype is torch.bool or tensor.is_complex():
        return False
    return tensor.dim() == 0 if place == "scalar" else not tensor.is_floating_point()


def size(owner: Any, value: Any, place: str = "") -> Any:
    """`value`, a size or a position if it is given to a tensor or a list: then as `known`, else as it is."""
    kind = type(owner)
    takes = is_tensor(owner) or kind is list or kind is tuple or kind is torch.Size
    return known(value, place) if takes else value


def elements(tensor: Any) -> Any:
    """`tensor`, or a list of its elements where it has one dimension and they are known."""
    found = tolist(tensor) if is_asked(tensor) and tensor.dim() == 1 else None
    return tensor if found is None else found


def decide(test: Any, of_inputs: bool = True) -> Any:
    """A test that is about to be asked for its truth, or that truth where it is known.

    of_inputs: may it be known from the inputs of the frame?
    """
    if _is_array(test):
        found = decide(torch.as_tensor(test), of_inputs)
        return test if isinstance(found, torch.Tensor) else found
    if is_asked(test) and has_truth(test):
        found = of_range(test)
        if found is not None:
            return found
        # A guard on a number would hold it to that, where each other that is not 0 decides alike.
        numbers = known_elements(test if test.dtype is torch.bool else test != 0, of_inputs)
        if numbers is not None:
            traced_contents.note_decision()
            return numbers[0]
        traced_contents.refuse()
    return test


def as_tensor(value: Any) -> Any:
    """`value`; a tensor, where it is an array of numpy, or one of its numbers, and is traced: then both are alike."""
    return torch.as_tensor(value) if _is_array(value) else value


def _is_array(value: Any) -> bool:
    return in_trace() and isinstance(value, _ARRAYS)


def decide_again(test: Any) -> Any:
    """The test of a `while`: as `decide`, but for what the inputs of the frame decide: any number of steps."""
    return decide(test, of_inputs=False)


def settle(test: Any) -> Any:
    """The test of a branch whose sides cannot be merged: as `decide`, if the rule [Value] is asked for."""
    return decide(test) if queue.specialise else test


def in_turn(test: Any) -> Any:
    """An operand that Python looks at before the next one, as it was written: of one graph its inputs may decide it."""
    return decide(test, _has_to_be_one_graph()) if queue.specialise else test


@question(otherwise=False)
def _has_to_be_one_graph(trace: Trace) -> bool:
    return trace.compilation.one_graph


def groupby(items: Any, key: Any) -> Any:
    """``itertools.groupby(items, key)`` of a list that nobody else has, in a form that Dynamo traces."""
    if not in_trace():
        return itertools.groupby(items, key)
    groups: list[tuple[Any, list[Any]]] = []
    for item in items:
        found = key(item)
        if groups and groups[-1][0] == found:
            groups[-1][1].append(item)
        else:
            groups.append((found, [item]))
    return [(found, iter(group)) for found, group in groups]


def default_device() -> Any:
    """``torch.get_default_device()``."""
    return torch.device("cpu") if in_trace() and torch_modes.has_no_default_device() else None


def as_float(value: Any) -> Any:
    """`value`, or the float of Python that a tensor of one element is, where it is known."""
    numbers = known_elements(value) if is_asked(value) and has_truth(value) and not value.is_complex() else None
    return value if numbers is None else float(numbers[0])


def drawn(function: Any, *numbers: Any) -> Any:
    """``function(*numbers)``, which draws a number, before the graph, in eager's order; or reads a clock."""
    found = _drawn(function, numbers) if in_trace() else None
    return function(*numbers) if found is None else found


@question(otherwise=None)
def _drawn(trace: Trace, function: Variable, numbers: Variable) -> Any:
    is_clock = clocks.is_clock(function)
    found = clocks.reading(trace, function) if is_clock else drawn_numbers.drawn(trace, function, numbers)
    if found is None:
        record(DRAWN)
    return found


def power(base: Any, exponent: Any) -> Any:
    """``pow(base, exponent)``, where a tensor is one of the two."""
    if isinstance(base, torch.Tensor) if _is_number(exponent) else isinstance(exponent, torch.Tensor):
        return base**exponent if isinstance(base, torch.Tensor) or _is_number(base) else None
    return None


def _is_number(value: Any) -> bool:
    return type(value) is int or type(value) is float


def sorted_items(mapping: Any) -> Any:
    """``sorted(mapping.items())`` of a dict with strings for keys: no two are alike, and no value is compared."""
    if type(mapping) is not dict or not all([type(key) is str for key in mapping]):  # noqa: C419  Dynamo: no generators
        return None
    return [(key, mapping[key]) for key in sorted(mapping)]


def answered(ask: Callable[..., Any], original: Callable[..., Any], *operands: Any) -> Any:
    """What is known of the operands, or where nothing is, what the original expression makes of them."""
    found = ask(*operands)
    return original(*operands) if found is None else found


@question(otherwise=False)
def is_asked(trace: Trace, tensor: Variable) -> bool:
    """Is it a tensor, and does Dynamo trace, so that it can be asked what the tensor holds?"""
    return dead_code.remember(trace.compilation, tensor)


@question(otherwise=False)
def is_traced(_trace: Trace, tensor: Variable) -> bool:
    """Is it a tensor, and does Dynamo trace?"""
    return is_any_tensor(tensor)


def _nested(flat: list[Any], shape: Sequence[int]) -> list[Any]:
    for size in reversed(shape[1:]):
        flat = [flat[start : start + size] for start in range(0, len(flat), size)]
    return flat
