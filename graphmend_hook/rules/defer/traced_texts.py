"""Values whose text is made at the end of the graph: may it be another one by then, and the values as they are now.

Dynamo inlines these functions and folds their tests.
"""

from __future__ import annotations

import functools
from collections.abc import Collection
from typing import Any

import torch

from ...engine.door.question import question
from ...engine.door.tracer import Trace, log
from ...engine.door.unguarded import is_unread_plain
from ...engine.door.variables import Variable, fake_of, is_unread, python_of, tensor_node
from ...engine.epilogue import autograd_states, deferral, queue
from ...engine.numbers.late_numbers import Real, function_of, has_text, is_late_number
from ...engine.numbers.state_lists import is_copy, operands_at_delivery
from .codes import MAY_CHANGE, SHOWS_AUTOGRAD, TENSOR_IN_TRANSFORM

# What a container may hold, and how deep: every item costs tracing time.
_MOST_ITEMS = 32
_DEEPEST = 3


def _why_it_differs(value: object, depth: int, is_shown: bool) -> str:
    """The code of the refusal if the text of `value` may be another one at the end of the graph, else "".

    is_shown: is it given to a function that shows it, and is none that the program looks at?
    Asks for exact types: a subclass may have a text of its own, and Dynamo answers without a guard on the value.
    """
    if is_unread_plain(value) or is_late(value):
        return ""
    if is_number(value):
        return TENSOR_IN_TRANSFORM if deferral.is_transformed() else ""
    if is_late_number(value):
        return "" if has_text(value) or type(value) is list else MAY_CHANGE
    if deferral.is_drawn(value):
        return MAY_CHANGE
    kind = type(value)
    if is_text_or_number(value):
        return ""
    if kind is tuple or kind is list:
        return why_items_differ(value, depth + 1, is_shown)  # type: ignore[arg-type]
    if kind is dict:
        why = why_items_differ(value, depth + 1)  # type: ignore[arg-type]  # the keys, which are not restored
        return why or why_items_differ(value.values(), depth + 1, is_shown)  # type: ignore[attr-defined]
    if isinstance(value, torch.Tensor):
        is_known = kind is torch.Tensor and not value.requires_grad
        if not is_known and not (is_shown and autograd_state(value)):
            return SHOWS_AUTOGRAD
        return TENSOR_IN_TRANSFORM if deferral.is_transformed() else ""  # there it is a wrapper that cannot be kept
    if kind is torch.Size or kind is torch.dtype or kind is torch.device or kind is torch.layout:
        return ""
    return "" if kind is complex or kind is bytes or kind is type else MAY_CHANGE


def is_text_or_number(value: object) -> bool:
    """Is it a text, a number or None, that is not asked for anything the program has written?"""
    kind = type(value)
    return kind is str or kind is int or kind is float or kind is bool or value is None


def why_items_differ(values: Collection[object], depth: int, is_shown: bool = False) -> str:
    """The code of the refusal for the first of the values that has one, or for their number or depth; else ""."""
    if depth > _DEEPEST or len(values) > _MOST_ITEMS:
        return MAY_CHANGE
    for value in values:
        why = _why_it_differs(value, depth, is_shown)
        if why:
            return why
    return ""


def why_not_fixed(values: Collection[object]) -> str:
    """The code of the refusal if one of the values, which are not copied, is no constant; else ""."""
    for value in values:
        if isinstance(value, (torch.Tensor, list, dict, tuple)) or _why_it_differs(value, 0, False):
            return MAY_CHANGE
    return ""


def number_of(value: Any) -> Any:
    """A value that a text formats: of a tensor () that requires a gradient it shows the number, and no more."""
    if is_unread_plain(value) or not (type(value) is torch.Tensor or type(value) is torch.nn.Parameter):
        return value
    is_number = value.requires_grad and value.dim() == 0 and value.device.type != "meta"
    return (queue.NUMBER, value) if is_number else value


@question(otherwise=False)
def is_number(_trace: Trace, value: Variable) -> bool:
    """Is it one of those?"""
    return _begins_with(value, queue.NUMBER)


@question(otherwise=False)
def is_late(_trace: Trace, value: Variable) -> bool:
    """Is it one that is computed at the delivery?"""
    return late_items(value) is not None


def late_items(variable: Variable) -> Any:
    """What a value is computed with at the delivery: the function, and what that is given; None for any other value."""
    return variable.items[1:] if _begins_with(variable, queue.LATE) else None


def _begins_with(variable: Variable, marker: object) -> bool:
    if is_unread(variable) or type(variable.realize()).__name__ != "TupleVariable" or not variable.items:
        return False
    first = variable.items[0]
    return (first.peek_value() if is_unread(first) else vars(first.realize()).get("value")) is marker


@question(otherwise=False)
def holds_unread(_trace: Trace, items: Variable) -> bool:
    """Is one of the items of a list not looked at by the trace, or computed at the delivery?"""
    return any(is_unread(item) or late_items(item) is not None for item in items.realize().items)


@question(otherwise="")
def autograd_state(_trace: Trace, tensor: Variable) -> str:
    """What the text of a tensor says beside its values; nothing where that is not known, too."""
    return autograd_states.state_of(tensor_node(tensor), tensor.python_type())


def computed(value: Any) -> Any:
    """`value`, computed now if it is one that would be at the delivery."""
    if is_number(value):
        return value[1]
    return value[1](*value[2:]) if is_late(value) else value


def holds_tensor(value: Any) -> bool:
    """Is it a tensor, or a container with one?"""
    if is_unread_plain(value) or is_late(value):
        return False
    if isinstance(value, dict):
        return any([holds_tensor(item) for item in value.values()])  # noqa: C419  Dynamo: no generators
    if isinstance(value, (tuple, list)):
        return any([holds_tensor(item) for item in value])  # noqa: C419
    return isinstance(value, torch.Tensor)


@question(otherwise=True)
def text_fails(_trace: Trace, delivery: Variable, values: Variable) -> bool:
    """Does making the text of an effect that says nothing fail, as a format does that does not suit its value?

    It is made of values of the same types and shapes.
    """
    try:
        for kind in (float, int):
            example = functools.partial(_example, of_real=kind)
            delivery.realize().get_function()(NOBODY, [*map(example, values.realize().items)])
    except Exception as error:
        log.debug("the text of a record fails: %s", error)
        return True
    return False


class _Nobody:
    """A logger that says nothing."""

    def debug(self, msg: object, *args: object, **kwargs: object) -> None: ...

    info = warning = error = critical = debug


NOBODY = _Nobody()


def _example(variable: Variable, of_real: type) -> Any:
    """A value of the kind that the variable stands for; a text that the trace has not looked at is not looked at.

    of_real: the type of a number that is a float or a whole number, as the data decides.
    """
    if is_unread(variable):
        return variable.peek_value()
    example = functools.partial(_example, of_real=of_real)
    late = late_items(variable)
    if late is not None:
        return late[0].realize().get_function()(*map(example, late[1:]))
    variable = variable.realize()
    if hasattr(variable, "lines"):  # a late one
        return of_real() if variable.kind is Real else variable.kind()
    if type(variable).__name__ in ("TupleVariable", "ListVariable"):
        return variable.python_type()(map(example, variable.items))
    if type(variable).__name__ == "ConstDictVariable":
        return {python_of(key.vt): example(item) for key, item in variable.items.items()}
    value = fake_of(variable)
    if isinstance(value, torch.Tensor):
        return torch.zeros([_number(size) for size in value.shape], dtype=value.dtype, device="cpu")
    return _number(value)


def _number(value: Any) -> Any:
    kinds = {torch.SymInt: 2, torch.SymFloat: 2.0, torch.SymBool: True}
    return kinds.get(type(value), value)


def kept(value: Any) -> Any:
    """`value` as it is now: what can be written to in place is copied, inside the graph where it is a tensor."""
    if is_unread_plain(value) or is_late(value):
        return value
    if is_number(value):
        return deferral.without_gradient(value[1]).clone()
    if is_late_number(value):
        return _at_delivery(value)
    kind = type(value)
    if is_text_or_number(value):
        return value
    if kind is tuple or kind is list:
        items = [kept(item) for item in value]
        if holds_unread(items):
            return (queue.LATE, queue.as_tuple if kind is tuple else queue.as_list, *items)
        return tuple(items) if kind is tuple else items
    if kind is dict:
        keys, items = [kept(key) for key in value], [kept(item) for item in value.values()]
        if holds_unread(items):
            return (queue.LATE, queue.as_dict, tuple(keys), *items)
        return dict(zip(keys, items))  # noqa: B905  Dynamo: no strict=
    if isinstance(value, torch.Tensor):
        state, copy = autograd_state(value), deferral.without_gradient(value).clone()
        return (queue.LATE, autograd_states.restored, copy, state) if state else copy
    return value


def _at_delivery(value: Any) -> Any:
    """A number that is read, and computed with, when the effect is delivered, and only then."""
    if not is_late_number(value) or is_copy(value):
        return value
    operands = operands_at_delivery(value)
    return (queue.LATE, function_of(value), *[_at_delivery(operand) for operand in operands])
